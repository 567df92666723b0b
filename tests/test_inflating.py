"""Maps inflated on devices, or some of them: the same bits, and damaged files are named."""

from __future__ import annotations

import gc
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import EmulatedGpu
from engine import compute
from kuroshio import engines
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.model import Archive, ByteRange, Grid, Packing, Piece
from kuroshio.device.gpu import GpuError
from kuroshio.engines import waves
from kuroshio.engines.division import Division
from kuroshio.request import Request

FILL = -999
REQUEST = Request((2000, 2002), (90.0,), half_width=2, doys=tuple(range(100, 130)))


def archive_in(folder: Path, rng: np.random.Generator, shape: tuple[int, int]) -> Archive:
    """Three years of maps in one file; many with chunks of their own size, level and fill value."""
    days = np.arange(365 * 3 + 1) + 10957
    codes = rng.integers(-100, 3000, (days.size, *shape)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.05] = FILL
    if rng.random() < 0.5:
        codes[:, :, : shape[1] // 2] = FILL
    pieces = []
    path = folder / "maps.bin"
    with path.open("wb") as file:
        for i, each in enumerate(codes):
            stored = each.view(np.uint8).reshape(-1, 2).T.tobytes()
            data = zlib.compress(stored, int(rng.integers(0, 10)))
            file.write(bytes(int(rng.integers(0, 20))))
            where = ByteRange(str(path), file.tell(), len(data), (1, *shape), "<i2", True, True)
            file.write(data)
            box = tuple(slice(0, n) for n in shape)
            packing = Packing(0.01, 0.0, (float(FILL),), packed=True)
            pieces.append(Piece((i,), box, packing, where))
    dtype = np.dtype("<i2")
    return Archive("sst", {}, dtype, Grid(("y", "x"), shape), "standard", days, tuple(pieces))


def on_devices(patch: pytest.MonkeyPatch, rng: np.random.Generator, share: float) -> None:
    """Devices get about this share of each batch: the maps here are too small for any at all."""
    part = share if share == 1 else rng.uniform(share - 0.1, share + 0.1)
    patch.setattr(Division, "share", lambda self, maps, batches, beside: part)


def flipped(stream: bytearray, rng: np.random.Generator) -> bytearray:
    """With one bit other, so that it is no longer what it was.

    Not every bit counts: some only fill a byte up, and among equal values a copy from further away
    is the same. Such a stream is whole, and nobody could say that it is damaged.
    """
    raw = zlib.decompress(stream)
    while True:
        other = bytearray(stream)
        other[int(rng.integers(2, len(other)))] ^= 1 << int(rng.integers(8))
        try:
            if zlib.decompress(other) != raw:
                return other
        except zlib.error:
            return other


def damage(archive: Archive, rng: np.random.Generator, kind: str, number: int | None = None) -> int:
    """Spoil the chunk of a day that is needed; `kind` says how."""
    number = int(rng.integers(100, 120)) if number is None else number
    where = archive.pieces[number].where
    path = Path(where.path)
    data = bytearray(path.read_bytes())
    stream = slice(where.offset, where.offset + where.nbytes)
    mine = data[stream]
    raw = zlib.decompress(mine)
    if kind == "flipped":
        mine = flipped(mine, rng)
    elif kind == "header":
        mine[0] ^= 0x10
    elif kind == "zeros":
        mine[int(rng.integers(2, len(mine) - 2)) :] = bytes(len(mine))
    elif kind == "checksum":
        mine[-1] ^= 0xFF
    else:  # one that is whole and too long: only its checksum lies where it should
        mine[:] = zlib.compress(raw + raw, 9)
    data[stream] = (mine + bytes(where.nbytes))[: where.nbytes]
    path.write_bytes(bytes(data))
    return number


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_the_same_bits_as_on_the_processor(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    shape = (data.draw(st.integers(1, 5)), data.draw(st.integers(1, 300)))
    pinned_bytes = data.draw(st.sampled_from((1, 20_000, 1 << 24)))
    gpus = EmulatedGpu.several(data.draw(st.integers(1, 3)), inflating="yes")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        on_devices(patch, rng, data.draw(st.sampled_from((0.3, 0.9, 1.0))))
        patch.setattr(waves, "_WAVE_MAPS", data.draw(st.sampled_from((10, 70, 1000))))
        little = data.draw(st.booleans())  # so that not every map has a place
        patch.setattr(engines.gpu, "_INFLATING", 1e-5 if little else 1 / 3)
        archive = archive_in(Path(folder), rng, shape)
        expected = compute(archive, REQUEST)
        found = compute(
            archive, REQUEST, gpu=gpus, key_bytes=2, threads=data.draw(st.integers(1, 3)),
            pinned_bytes=pinned_bytes,
        )  # fmt: skip
    if pinned_bytes == 1 << 24 and 50 < shape[0] * shape[1] < 1000:  # else there may be no place
        assert any("inflate" in gpu.ran for gpu in gpus)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    gc.collect()
    assert not any(gpu.live for gpu in gpus)


@pytest.mark.parametrize("inflating", ["yes", "stops"])
@pytest.mark.parametrize("kind", ["flipped", "header", "zeros", "checksum", "too long"])
@pytest.mark.parametrize("share", [0.9, 1.0])
def test_a_damaged_stream_is_named(tmp_path, monkeypatch, inflating, kind, share):
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, share)
    archive = archive_in(tmp_path, rng, (4, 60))
    damage(archive, rng, kind)
    gpu = EmulatedGpu(inflating=inflating)
    with pytest.raises(BadFile, match=r"maps\.bin"):
        compute(archive, REQUEST, gpu=gpu, key_bytes=2)
    gc.collect()
    assert not gpu.live


@pytest.mark.parametrize("number", [84, 112, 140])
def test_whatever_batch_a_device_stops_at(tmp_path, monkeypatch, number):
    """The first, one in the middle, the last."""
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 1.0)
    archive = archive_in(tmp_path, rng, (4, 60))
    damage(archive, rng, "zeros", number)
    with pytest.raises(BadFile, match=r"maps\.bin"):
        compute(archive, REQUEST, gpu=EmulatedGpu(inflating="stops"), key_bytes=2)


def test_a_file_that_ends_too_early_is_named(tmp_path, monkeypatch):
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 1.0)
    archive = archive_in(tmp_path, rng, (4, 60))
    where = archive.pieces[110].where
    with open(where.path, "r+b") as file:
        file.truncate(where.offset + where.nbytes // 2)
    with pytest.raises(BadFile, match="ends before its data does"):
        compute(archive, REQUEST, gpu=EmulatedGpu(inflating="yes"), key_bytes=2)


def test_a_device_that_stops_for_another_reason_is_not_blamed_on_a_file(tmp_path, monkeypatch):
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 1.0)
    archive = archive_in(tmp_path, rng, (4, 60))
    gpu = EmulatedGpu(inflating="yes", failing="judge_maps")
    with pytest.raises(GpuError, match="a kernel failed"):
        compute(archive, REQUEST, gpu=gpu, key_bytes=2)
    gc.collect()
    assert not gpu.live


def test_where_bad_files_are_skipped_the_host_inflates(tmp_path, monkeypatch):
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 1.0)
    archive = archive_in(tmp_path, rng, (4, 60))
    damage(archive, rng, "flipped")
    gpu = EmulatedGpu(inflating="yes")
    found = compute(archive, REQUEST, gpu=gpu, key_bytes=2, skip_bad=True)
    expected = compute(archive, REQUEST, skip_bad=True)
    np.testing.assert_array_equal(found["thresh"], expected["thresh"])
    assert "inflate" not in gpu.ran


def test_what_a_device_wrongly_takes_for_damaged_is_read_by_the_host(tmp_path, monkeypatch):
    """As is a map over whose memory a damaged one before it was written."""
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 1.0)
    archive = archive_in(tmp_path, rng, (4, 60))
    gpu = EmulatedGpu(inflating="errs")
    found = compute(archive, REQUEST, gpu=gpu, key_bytes=2)
    expected = compute(archive, REQUEST)
    np.testing.assert_array_equal(found["thresh"], expected["thresh"])


def test_on_every_device(gpu, tmp_path, monkeypatch):
    """The same bits with maps inflated there; a damaged file is named."""
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 0.7)
    device = EmulatedGpu(inflating="yes") if isinstance(gpu, EmulatedGpu) else gpu
    if not device.inflates():
        pytest.skip("nvCOMP is not installed")
    archive = archive_in(tmp_path, rng, (40, 60))
    found = compute(archive, REQUEST, gpu=device, key_bytes=2)
    expected = compute(archive, REQUEST)
    np.testing.assert_array_equal(found["thresh"], expected["thresh"])
    np.testing.assert_array_equal(found["seas"], expected["seas"])
    damage(archive, rng, "flipped")
    with pytest.raises(BadFile, match=r"maps\.bin"):
        compute(archive, REQUEST, gpu=device, key_bytes=2)


def test_a_device_that_is_not_content_with_a_whole_file_is_not_trusted(tmp_path, monkeypatch):
    rng = np.random.default_rng()
    on_devices(monkeypatch, rng, 1.0)
    archive = archive_in(tmp_path, rng, (4, 60))
    gpu = EmulatedGpu(inflating="lies")
    with pytest.raises(GpuError, match="takes files for damaged that are whole"):
        compute(archive, REQUEST, gpu=gpu, key_bytes=2)
    gc.collect()
    assert not gpu.live


# -- the division ----------------------------------------------------------------------------------


MAP_BYTES = 2_073_600


def test_a_few_maps_are_left_to_the_host_and_many_are_divided():
    division = Division(MAP_BYTES, threads=16)
    assert division.share(100, 1, beside=False) == 0
    many = division.share(3000, 1, beside=False)
    assert 0.5 < many < 1
    both = division.device_s(3000 * many), division.host_s(3000 * (1 - many), 3000 * many)
    assert both[0] == pytest.approx(both[1], rel=0.05)  # they end together
    assert division.share(3000, 1, beside=True) == many
    assert division.share(100, 1, beside=True) > 0.5  # what takes no time of its own


def test_the_division_follows_what_is_measured():
    division = Division(MAP_BYTES, threads=16)
    before = division.share(1000, 1, beside=False)
    division.device_took(500, 0.0, 0.2)
    division.device_took(500, 0.1, 0.5)
    assert division.device_s(1000) == pytest.approx(0.5)
    assert division.share(1000, 1, beside=False) < before
    division = Division(MAP_BYTES, threads=16)
    for _ in range(50):
        division.host_took(4, 0.5)
    assert division.host_s(1000, 0) == pytest.approx(1000 * 0.125 / 16, rel=0.01)
    assert division.share(1000, 1, beside=False) > before
    division.other_s = 0.1
    some = division.share(1000, 1, beside=False)
    assert before < some <= division.share(1000, 100, beside=False) == 1


def test_a_clock_that_saw_nothing_is_not_believed():
    division = Division(MAP_BYTES, threads=16)
    division.device_took(10, 1.0, 1.0)
    division.device_took(10, 1.0, 1.1)
    assert division.device_s(20) == pytest.approx(0.1)


def test_the_report_says_what_was_predicted_and_measured():
    division = Division(MAP_BYTES, threads=16)
    assert division.report() is None
    taken = round(2000 * division.share(2000, 1, beside=False))
    division.count(taken, 2000, beside=False)
    predicted = float(division.device_s(taken))
    division.device_took(taken, 1.0, 1.25)
    assert division.report() == {
        "maps_on_device": taken, "maps": 2000, "device_predicted_s": round(predicted, 4),
        "device_measured_s": 0.25,
    }  # fmt: skip


def test_what_a_device_has_no_room_for_is_not_predicted():
    division = Division(MAP_BYTES, threads=16)
    assert division.share(3000, 1, beside=False) > 0.5
    division.count(10, 3000, beside=False)
    assert division.report()["device_predicted_s"] == round(float(division.device_s(10)), 4)
