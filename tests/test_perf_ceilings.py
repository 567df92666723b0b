"""Ceilings of a processor: loops, sizes, disk, inflating, what is kept, and the command."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf import ceilings_command
from kuroshio.perf.ceilings import cpu, cpu_kernels, disk, inflating, store
from kuroshio.perf.ceilings.caches import Cache, caches
from kuroshio.perf.ceilings.ceiling import BANDWIDTHS, GB, Ceiling, Missing, ceiling
from kuroshio.perf.ceilings.cpu import Effort
from kuroshio.perf.ceilings.team import rates
from perf_runs import run_perf

TINY = Effort(3, 1e-4)


def cache_folder(folder: Path, processors: int, *levels: tuple[str, str, str, int]) -> Path:
    """As Linux lays it out: (level, type, size, how many processors share one)."""
    for number in range(processors):
        for index, (level, kind, size, sharers) in enumerate(levels):
            here = folder / f"cpu{number}" / "cache" / f"index{index}"
            here.mkdir(parents=True)
            first = number // sharers * sharers
            shared = str(first) if sharers == 1 else f"{first}-{first + sharers - 1}"
            for name, text in (("level", level), ("type", kind), ("size", size),
                               ("shared_cpu_list", shared)):  # fmt: skip
                (here / name).write_text(text + "\n")
    return folder


def test_caches_are_read(tmp_path):
    folder = cache_folder(
        tmp_path, 8, ("1", "Data", "48K", 1), ("1", "Instruction", "32K", 1),
        ("2", "Unified", "2048K", 2), ("3", "Unified", "32768K", 4),
    )  # fmt: skip
    assert caches(folder) == [
        Cache("L1", 48 << 10, 1, 8), Cache("L2", 2 << 20, 2, 4), Cache("L3", 32 << 20, 4, 2)
    ]  # fmt: skip


def test_no_caches_are_known_elsewhere(tmp_path):
    assert caches(tmp_path) == []
    (place,) = cpu.places([], 4, 8 << 30)
    assert place.level == "memory"
    assert "not known" in place.note


@given(
    st.integers(14, 17), st.integers(18, 22), st.integers(20, 28), st.integers(1, 64),
    st.integers(1, 64), st.integers(1, 4), st.integers(24, 40),
)  # fmt: skip
def test_sizes_fit_their_levels(l1, l2, l3, threads, sharers, count, free):
    known = [Cache("L1", 1 << l1, 1, 64), Cache("L2", 1 << l2, 1, 64),
             Cache("L3", 1 << l3, sharers, count)]  # fmt: skip
    places = cpu.places(known, threads, 1 << free)
    assert [place.level for place in places] == ["L1", "L2", "L3", "memory"]
    sizes = {place.level: place.nbytes for place in places}
    for cache in known:
        together = min(cache.sharers, -(-threads // cache.count))
        assert sizes[cache.level] * together <= cache.nbytes
    assert sizes["L2"] > known[0].nbytes or l2 <= l1 + 1
    if sizes["L3"]:
        assert sizes["L3"] > sizes["L2"]
    assert sizes["memory"] * threads <= max((1 << free) // 4, threads << 20)
    short = (1 << free) // 4 < 2 << l3
    assert ("memory is short" in places[-1].note) == short


def test_the_loops_do_what_is_counted():
    random = np.random.default_rng()
    words = random.integers(-(1 << 40), 1 << 40, 97)
    assert cpu_kernels.read(words, 3) == 3 * words.sum()
    a, b = random.standard_normal((2, 97))
    target = np.zeros(97)
    cpu_kernels.triad(a, b, target, 4)
    np.testing.assert_allclose(target, a + 4 * b, rtol=1e-14, atol=1e-14)
    source, copied = words.copy(), np.zeros_like(words)
    cpu_kernels.copy(source, copied, 1)
    assert (copied == words).all()
    copied += 1
    cpu_kernels.copy(source, copied, 2)  # there, and back
    assert (copied == words).all()
    ones = sum(bin(int(word) & (1 << 64) - 1).count("1") for word in words)
    assert cpu_kernels.popcount(words, 2) == 2 * ones
    right = a.copy()
    for _ in range(2 * cpu_kernels.CHAIN):
        right = right * 0.5 + 1
    cpu_kernels.fma(a, 0.5, 1.0, 2)
    np.testing.assert_allclose(a, right, rtol=1e-14)


def test_minima_and_maxima_of_the_loop():
    random = np.random.default_rng()
    values = random.integers(-1000, 1000, 97, np.int32)
    bounds = random.integers(-1000, 1000, 8).astype(np.int32)
    right = values
    for low, high in (*bounds.reshape(4, 2), *bounds.reshape(4, 2)[:, ::-1]):
        right = np.maximum(np.minimum(right, low), high)
    cpu_kernels.min_max(values, bounds, 1)
    assert (values == right).all()


def test_a_failure_in_a_thread_is_told():
    def fails(passes):
        if passes:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        rates(fails, tuple, 2, 1.0, 3, 1)


def test_bandwidth_falls_with_distance(monkeypatch):
    """The only order that holds on any machine, with wide margins: near is quicker than far."""
    # Filling four times the last level takes seconds where that is large; the level before will do.
    monkeypatch.setattr(cpu, "available_memory_bytes", lambda: 1 << 30)
    for _ in range(4):
        found = [c for c in cpu.memory(1, Effort(6, 2e-3)) if isinstance(c, Ceiling)]
        best = {}
        for each in found:
            best[each.level] = max(best.get(each.level, 0.0), each.high)
        if "L1" not in best or best["L1"] > 1.3 * best["memory"]:
            break
    else:
        pytest.fail(f"{best}")
    assert {each.name for each in found} == set(BANDWIDTHS)
    assert all(0 < each.low <= each.value <= each.high and each.n == 6 for each in found)


def test_a_disk_is_read(tmp_path):
    found = list(disk.disk(tmp_path, 2, TINY, 4 << 20))
    assert [each.name for each in found][-1] == disk.WARM
    assert found[0].name == disk.COLD
    assert list(tmp_path.iterdir()) == []
    assert all(each.threads == 2 and each.value > 0 for each in found if isinstance(each, Ceiling))


def test_a_disk_that_refuses_direct_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    cold, warm = disk.disk(tmp_path, 1, TINY, 4 << 20)
    assert "which it need not do" in cold.how
    assert isinstance(warm, Ceiling)
    monkeypatch.delattr(os, "posix_fadvise")
    cold, warm = disk.disk(tmp_path, 1, TINY, 4 << 20)
    assert isinstance(cold, Missing)
    assert isinstance(warm, Ceiling)


def test_inflating_by_every_library():
    found = list(inflating.inflate(1, TINY))
    assert "inflate (zlib)" in {each.name for each in found}
    assert all(each.unit == GB and each.value > 0.01 for each in found)


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path))
    return tmp_path / "ceilings"


def example() -> list[Ceiling]:
    return [
        ceiling(BANDWIDTHS[0], "memory", GB, [10.0, 12.0, 11.0], "so", threads=2),
        ceiling("float64 fma", None, "Gop/s", [100.0], "so", threads=2),
        ceiling("host to device, pinned", "link", GB, [5.0], "so", message_bytes=1 << 20),
    ]


def keep(kept: Path) -> Path:
    who = store.identity("cpu")
    kept.mkdir()
    path = kept / who.file_name
    path.write_text(json.dumps(store.document(who, {}, example())))
    return path


def test_what_is_kept_comes_back(kept):
    path = keep(kept)
    said, found = store.saved("cpu")
    assert found == example()
    assert said["schema"] == store.SCHEMA
    assert said["ceilings"][0]["value"] == 11.0
    assert path.parent == store.folder()


def test_none_measured_yet(kept):
    with pytest.raises(Refusal, match="kuroshio perf ceilings --device cpu --save") as refusal:
        store.saved("cpu")
    assert "none are guessed" in refusal.value.message


def test_those_of_other_software_are_named(kept):
    path = keep(kept)
    path.rename(path.with_name("cpu-other-00000000.json"))
    with pytest.raises(Refusal, match=r"cpu-other-00000000\.json"):
        store.saved("cpu")


def test_damaged_files_are_refused(kept):
    path = keep(kept)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(Refusal, match="cut off"):
        store.read(path)
    path.write_text('{"schema": "another"}')
    with pytest.raises(Refusal, match="holds no ceilings"):
        store.read(path)
    path.write_text(text.replace('"value": 11.0', '"value": "much"'))
    with pytest.raises(Refusal, match="damaged"):
        store.read(path)
    path.write_text(text.replace('"value": 11.0, ', ""))
    with pytest.raises(Refusal, match="damaged"):
        store.read(path)
    with pytest.raises(Refusal, match="cannot be read"):
        store.read(path.with_name("none"))


def test_the_command_prints_and_writes(tmp_path):
    out = tmp_path / "ceilings.json"
    done = run_perf(
        "ceilings", "--quick", "--only", "arithmetic", "--threads", 1, "--json", "-o", out
    )
    assert done.status == 0, done
    said = json.loads(done.out)
    assert said == json.loads(out.read_text())
    assert {each["name"] for each in said["ceilings"]} >= {"float64 fma", "float32 fma"}
    assert said["environment"]["software"]
    assert said["data_sheet_peaks"] == []
    assert store.read(out)[1]


def test_full_disk_is_missing(tmp_path, monkeypatch):
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "_write", full)
    (found,) = disk.disk(tmp_path, 1, TINY, 4 << 20)
    assert isinstance(found, Missing)
    assert "No space left" in found.why
    assert list(tmp_path.iterdir()) == []
    done = run_perf("ceilings", "--quick", "--only", "disk", "--folder", tmp_path)
    assert done.status == 2
    assert "No space left" in done.err


def test_place_to_keep_them_is_looked_at_first(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "file"))
    done = run_perf("ceilings", "--save")
    assert done.status == 2
    assert "Ceilings cannot be kept" in done.err
    assert "KUROSHIO_CACHE_DIR" in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--only", "memry"), "bandwidth, arithmetic, inflate, disk"),
        (("--threads", "0"), "this process may use"),
        (("--threads", "100000"), "this process may use"),
        (("--folder", "not/there"), "no file can be made there"),
        (("--folder", "/proc"), "no file can be made there"),
        (("--device", "cuda:all"), "one device"),
        (("--device", "gpu"), "is no device"),
        (("--device", "cuda:0", "--threads", "2"), "--threads is of a processor"),
        (("--save", "--only", "disk"), "--save keeps all"),
        (("-o", "not/there/file.json"), "cannot be written"),
    ],
)
def test_bad_requests_end_at_once(arguments, says):
    done = run_perf("ceilings", *arguments)
    assert done.status == 2
    assert says in done.err


@pytest.mark.parametrize(
    ("unit", "message_bytes", "unsteady"),
    [("GB/s", None, True), ("us", None, False), ("GB/s", 1024, False), ("GB/s", 1 << 28, True)],
)
def test_stragglers_of_latencies_are_no_alarm(unit, message_bytes, unsteady):
    found = ceiling("copy", "link", unit, [1.0, 2.0, 2.0], "", None, message_bytes)
    assert found.unsteady == unsteady


def test_an_unsteady_ceiling_is_named_with_its_level_and_threads(capsys):
    who = store.identity("cpu")
    found = [
        ceiling("memory read", "L2", "GB/s", [1.0, 2.0], "", 4),
        ceiling("memory copy", "L2", "GB/s", [1.9, 2.0], "", 4),
    ]
    ceilings_command._show(who, found, [], {}, [])
    said = capsys.readouterr().out
    assert "Unsteady (*): of 1 of 2 the lowest" in said
    (marked,) = (line for line in said.splitlines() if "1 *" in line)
    assert "memory read" in marked
