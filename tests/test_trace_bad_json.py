"""Files that are damaged, foreign or hostile: a Refusal that says what to do, or a limitation."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf.traces import chrome_columns, source
from kuroshio.perf.traces.events import ABSENT, Kind
from kuroshio.perf.traces.read import read
from kuroshio.perf.traces.sound import MOST_DEVICES

KERNEL = {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 10.5, "dur": 2,
          "args": {"device": 0, "stream": 7, "correlation": 3}}  # fmt: skip


def saved(tmp_path: Path, content: Any, name: str = "trace.json") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refused(path: Path) -> str:
    with pytest.raises(Refusal) as caught:
        read(path)
    assert str(path) in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (gzip.compress(b""), "is empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "HTML"),
        (b"\xef\xbb\xbf<html>", "HTML"),
        (gzip.compress(b"<html>"), "HTML"),
        (b"PK\x03\x04rest", "unpack"),
        (b"\x28\xb5\x2f\xfdrest", "unzstd"),
        ("{}".encode("utf-16"), "UTF-8"),
        (b"Index,KernelNames\n", "begins with 'Index,KernelNames"),
        (b"\0" * 100, "no format that is known"),
        (b"{", "cut off"),
        (b'{"traceEvents": [{"ph": "X", "ca', "cut off"),
        (b'{"traceEvents": [{"ph": "X"} {"ph"]}', "no whole JSON"),
        ({"cells": []}, "no trace"),
        ({}, "no trace"),
        ({"traceEvents": {}}, "no trace"),
        ({"traceEvents": []}, "list of events is empty"),
        ([], "list of events is empty"),
        ([7] * 200_000, "is no trace"),
        ([1, "two", None, [3]], "4 are no events"),
        ([{"ph": "B", "cat": "kernel", "name": "add", "ts": 1}], "1 have no length"),
        ([{"ph": "X", "cat": "v8", "name": "gc", "ts": 1, "dur": 1}], r"v8 \(1\)"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, content, said):
    path = saved(tmp_path, content)
    with pytest.raises(Refusal, match=said):
        read(path)
    refused(path)


def test_paths_that_cannot_be_read(tmp_path):
    refused(tmp_path / "nothing")
    assert "is empty" in refused(tmp_path)
    saved(tmp_path, b"", "notes.txt")
    assert "notes.txt" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "pipe" in refused(tmp_path / "pipe")
    with pytest.raises(Refusal, match="cannot be read"):
        read(tmp_path / "a\0b")


def test_a_cut_or_changed_gz_is_refused(tmp_path, shared):
    whole = (shared / "traces" / "kineto" / "mi250_toy_training.json.gz").read_bytes()
    for end in (3, 10, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        assert "cut off" in refused(saved(tmp_path, whole[:end]))
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 255
    assert "damaged" in refused(saved(tmp_path, bytes(changed)))
    changed = bytearray(whole)
    changed[-6] ^= 255  # the checksum
    assert "damaged" in refused(saved(tmp_path, bytes(changed)))


@pytest.mark.parametrize("more", [b"junk", b"\0\0{}", b"\x1f-", json.dumps([KERNEL]).encode()])
@pytest.mark.parametrize("boundary", [0, 3])
def test_what_comes_after_gzips_end_is_told(tmp_path, monkeypatch, more, boundary):
    """Also where the file is read in pieces that end within it."""
    whole = gzip.compress(json.dumps([KERNEL]).encode())
    monkeypatch.setattr(source, "_PACKED_PIECE", len(whole) + boundary)
    path = saved(tmp_path, whole + more, "a trace.json.gz")
    said = refused(path)
    assert "after the end of gzip's data" in said
    subprocess.run(["/bin/sh", "-c", said.rpartition(": ")[2]], stderr=subprocess.DEVNULL)
    assert len(read(tmp_path / "a trace.json").events) == 1


def test_gzip_is_told_by_content_and_may_be_of_several_parts(tmp_path):
    text = json.dumps([KERNEL]).encode()
    parts = gzip.compress(text[:20]) + gzip.compress(text[20:]) + b"\0" * 512
    assert len(read(saved(tmp_path, parts, "trace.json")).events) == 1
    assert len(read(saved(tmp_path, text, "trace.json.gz")).events) == 1


def test_a_zip_bomb_is_refused_in_little_memory(tmp_path):
    """Zeros, space, a string, or brackets, without end."""
    for name, begin, filling in (("a", b"", b"\0"), ("b", b"[", b" "), ("c", b'[{"name":"', b"x"),
                                 ("d", b'{"other":"', b"x"), ("e", b"[", b"[")):  # fmt: skip
        path = tmp_path / name
        with gzip.open(path, "wb", 1) as file:
            file.write(begin)
            for _ in range(40):
                file.write(filling * (1 << 20))
        tracemalloc.start()
        refused(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 600 << 20, (name, peak >> 20)


def test_more_than_a_trace_can_be_is_refused(tmp_path):
    path = saved(tmp_path, gzip.compress(b" " * 3000))
    with pytest.raises(Refusal, match="unpacked"):
        list(source.pieces(path, 100, 2000))


def changed(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in {**KERNEL, **fields}.items() if value is not ...}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (changed(dur=-5), "end is before the start"),
        (changed(ts=...), "times were not recorded"),
        (changed(dur=...), "times were not recorded"),
        (changed(ts=None), "times were not recorded"),
        (changed(ts="soon"), "times were not recorded"),
        (changed(ts=1e300), "times were not recorded"),
        (changed(dur=1e15), "times were not recorded"),
        (changed(ph="B"), "only the beginning"),
        (changed(ph="b"), "no length"),
        (changed(cat="python_function"), "Python functions"),
        (changed(cat="my_tool"), "my_tool"),
        (changed(cat=...), "none"),
        ("text", "no events"),
        (None, "no events"),
        ([], "no events"),
        (changed(tid=[1]), "no events"),
    ],
)
def test_what_cannot_be_an_event_is_left_out_and_said(tmp_path, event, said):
    trace = read(saved(tmp_path, [KERNEL, event]))
    assert len(trace.events) == 1
    assert any(said in each for each in trace.cannot_tell), trace.cannot_tell


@pytest.mark.parametrize("args", [..., None, [], "text", 3, {}, {"stream": [], "device": {}}])
def test_device_events_without_sound_arguments_stay(tmp_path, args):
    events = read(saved(tmp_path, [changed(args=args), KERNEL, changed(args=args)])).events
    assert events.start.tolist() == [10_500] * 3
    assert sorted(events.correlation.tolist()) == [ABSENT, ABSENT, 3]
    assert events.device.tolist() == [0, 0, 0]  # as the lane has it
    assert events.stream.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), ("7", 7), ("stream 7", 7), ("0x1f", 31), (7.0, 7), (2**70, ABSENT), ("x", ABSENT),
     (True, ABSENT), (7.5, ABSENT), ([7], ABSENT), ("7" * 400, ABSENT), (None, ABSENT)],
)  # fmt: skip
def test_numbers_may_be_written_in_several_ways(tmp_path, value, number):
    call = {**KERNEL, "cat": "cuda_runtime", "args": {"correlation": value}}
    events = read(saved(tmp_path, [call])).events
    assert events.correlation.tolist() == [number]


def test_numbers_too_large_for_their_column_are_absent(tmp_path):
    args = {"registers per thread": 2**33, "block": [2**40, 1, 1], "grid": [1, 2]}
    events = read(saved(tmp_path, [changed(args=args)])).events
    assert events.registers.tolist() == [ABSENT]
    assert events.block.tolist() == [[ABSENT, 1, 1]]
    assert events.grid.tolist() == [[ABSENT] * 3]


def test_names_of_any_bytes_and_types(tmp_path):
    text = json.dumps([changed(name=name) for name in ("QQ", 5, None, "\x1b[31m</script>")])
    trace = read(saved(tmp_path, text.encode().replace(b"QQ", b"caf\xe9")))
    assert set(trace.events.names) == {"caf\ufffd", "5", "", "\x1b[31m</script>"}
    assert any("UTF-8" in each for each in trace.cannot_tell)


def test_names_and_values_have_a_longest(tmp_path):
    long = "n" * 100_000
    trace = read(saved(tmp_path, [changed(name=long, args={"note": long})]))
    assert len(trace.events.names[0]) == chrome_columns.LONGEST_NAME
    assert len(trace.events.others["note"].values[0]) == chrome_columns.LONGEST_VALUE
    assert any("cut" in each for each in trace.cannot_tell)


def test_columns_are_not_endless(tmp_path):
    events = [changed(args={f"own {i}": i, "shared": "yes"}) for i in range(500)]
    trace = read(saved(tmp_path, events))
    assert len(trace.events) == 500
    assert len(trace.events.others) <= chrome_columns.MOST_COLUMNS
    assert trace.events.others["shared"].values == ("yes",)
    assert any("more kinds of arguments" in each for each in trace.cannot_tell)


def test_more_devices_than_any_machine_has_are_refused(tmp_path):
    events = [changed(args={"device": number}) for number in range(MOST_DEVICES + 1)]
    assert "1,025 devices" in refused(saved(tmp_path, events))


@pytest.mark.parametrize("key", ['"', "\\", "a\nb", "\0", "k" * 300])
def test_arguments_whose_names_cannot_be_kept_are_left_out_and_said(tmp_path, key):
    trace = read(saved(tmp_path, [changed(args={key: 1, "device": 0, "plain": "yes"})]))
    assert trace.events.device.tolist() == [0]
    assert set(trace.events.others) == {"plain"}
    assert any("none of them a quote" in each for each in trace.cannot_tell)


def test_copies_and_sets_that_are_kernels(tmp_path):
    """As ROCm draws them from 7.1 on."""
    names = ("__amd_rocclr_copyBuffer", "__amd_rocclr_fillBufferAligned.kd", "add")
    events = read(saved(tmp_path, [changed(name=name) for name in names])).events
    kinds = {events.named(row): Kind(events.kind[row]) for row in range(3)}
    assert list(map(kinds.get, names)) == [Kind.COPY, Kind.SET, Kind.KERNEL]


def test_a_list_without_end_is_read_and_said(tmp_path):
    trace = read(saved(tmp_path, json.dumps([KERNEL]).encode()[:-1]))
    assert len(trace.events) == 1
    assert any("no end" in each for each in trace.cannot_tell)
