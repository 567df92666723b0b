"""Several maps read in one call: the same keys, the same words on bad files, as file by file."""

from __future__ import annotations

import os
import resource
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuroshio.archive import bulk
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.model import Archive, ByteRange, Grid, Packing, Piece
from kuroshio.archive.plan import Block, Load
from kuroshio.archive.read import Reader
from kuroshio.archive.sea import Runs, ValueOnLand, all_cells, runs_of
from kuroshio.errors import Refusal
from kuroshio.keys import AFFINE16, Keys, NotCodes

SHAPE = (12, 20)
CELLS = SHAPE[0] * SHAPE[1]
FILL = -999
KEYS = Keys(AFFINE16, 0.01, 5.0)


def write(path: Path, codes: np.ndarray, *, deflate: bool = True, level: int = 4) -> ByteRange:
    """One map in one shuffled chunk, as HDF5 itself writes it, and where that lies."""
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "sst", data=codes[None], chunks=(1, *codes.shape), shuffle=True,
            compression="gzip" if deflate else None, compression_opts=level if deflate else None,
        )  # fmt: skip
        chunk = made.id.get_chunk_info(0)
    where = (chunk.byte_offset, chunk.size)
    return ByteRange(str(path), *where, (1, *codes.shape), "<i2", deflate, shuffle=True)


def archive_of(wheres: list[ByteRange], fills: list[int | None]) -> Archive:
    box = tuple(slice(0, n) for n in SHAPE)
    pieces = tuple(
        Piece((i,), box, Packing(0.01, 5.0, () if fill is None else (float(fill),), True), where)
        for i, (where, fill) in enumerate(zip(wheres, fills, strict=True))
    )
    days = np.arange(len(pieces))
    return Archive("sst", {}, np.dtype("<i2"), Grid(("y", "x"), SHAPE), "standard", days, pieces)


def draw_codes(rng: np.random.Generator, maps: int, fill: int = FILL) -> np.ndarray:
    codes = rng.integers(-300, 3500, (maps, *SHAPE)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.1] = fill
    return codes


def block_of(rows: slice = slice(0, SHAPE[0]), runs: Runs | None = None) -> Block:
    runs = runs or all_cells((rows.stop - rows.start) * SHAPE[1])
    return Block(rows, runs, runs.cells + 16, 1, 9, 0, ())


def load(archive: Archive, block: Block, rows: list[int], *, fast: bool, skip_bad: bool = False):
    """The key buffer after all pieces have been loaded together, and what was skipped."""
    buffer = np.full((block.key_rows, block.stride_cells), 77, np.uint16)
    reader = Reader(archive, KEYS, lambda *_: None, skip_bad)
    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(bulk, "available", lambda: False)
        reader.load_together([Load(i, (row,)) for i, row in enumerate(rows)], block, buffer)
    return buffer, reader.skipped


def inflate(archive: Archive, *, fast: bool, skip_bad: bool = False):
    """The bytes of all chunks, which are missing, what was skipped."""
    maps = np.full((len(archive.pieces) + 1, 2 * CELLS), 77, np.uint8)
    reader = Reader(archive, KEYS, lambda *_: None, skip_bad)
    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(bulk, "available", lambda: False)
        missing = reader.inflate_together([Load(i, (i,)) for i in range(len(archive.pieces))], maps)
    maps[missing] = 0  # whatever has come of them
    return maps, missing, reader.skipped


@pytest.mark.parametrize("fast", [True, False])
def test_too_many_open_files_are_no_fault_of_the_file(tmp_path, fast):
    """It is not skipped, which would lose its days."""
    codes = draw_codes(np.random.default_rng(), 2)
    archive = archive_of(
        [write(tmp_path / f"{i}.nc", each) for i, each in enumerate(codes)], [0, 0]
    )
    load(archive, block_of(), [0, 1], fast=fast)  # all that is needed is compiled
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(Refusal, match="Too many open files") as caught:
            load(archive, block_of(), [0, 1], fast=fast, skip_bad=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not isinstance(caught.value, BadFile)


def test_there_is_bulk_reading_here():
    """Else the tests below would compare a thing with itself."""
    assert bulk.available()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1), maps=st.integers(1, 5), deflate=st.booleans(),
    level=st.integers(0, 9), how=st.sampled_from(("whole", "runs", "band")),
)  # fmt: skip
def test_the_same_keys(tmp_path_factory, seed, maps, deflate, level, how):
    folder, rng = tmp_path_factory.mktemp("maps"), np.random.default_rng(seed)
    codes = draw_codes(rng, maps)
    fills = [FILL if rng.random() < 0.8 else None for _ in range(maps)]
    block = block_of()
    kept, rows_kept = np.ones(CELLS, bool), slice(0, SHAPE[0])
    if how == "runs":
        sea = np.zeros(CELLS, bool)
        sea[50:90] = sea[200:] = True
        block = block_of(runs=runs_of(sea, 8))
        kept = np.concatenate([np.arange(s, s + n) for s, n, _ in block.runs.table])
        land = np.setdiff1d(np.arange(CELLS), kept)
        codes.reshape(maps, -1)[:, land] = FILL
        fills = [FILL] * maps
    elif how == "band":
        rows_kept = slice(3, 9)
        block = block_of(rows_kept)
    wheres = [
        write(folder / f"{i} \xe4.nc", c, deflate=deflate, level=level) for i, c in enumerate(codes)
    ]
    archive = archive_of(wheres, fills)
    rows = (rng.permutation(8)[:maps] + 1).tolist()
    if maps > 1:
        rows[rng.integers(maps)] = -1
    fast, _ = load(archive, block, rows, fast=True)
    slow, _ = load(archive, block, rows, fast=False)
    expected = np.full_like(fast, 77)
    for i, row in enumerate(rows):
        if row >= 0:
            keys = codes[i].view(np.uint16) ^ 0x8000
            keys = np.where((codes[i] == FILL) & (fills[i] is not None), 0, keys)[rows_kept]
            here = keys.reshape(-1) if how == "band" else keys.reshape(-1)[kept]
            expected[row, : block.cells] = here
    np.testing.assert_array_equal(fast, expected)
    np.testing.assert_array_equal(slow, expected)

    raw, missing, _ = inflate(archive, fast=True)
    same, _, _ = inflate(archive, fast=False)
    assert missing == []
    np.testing.assert_array_equal(raw, same)
    low, high = raw[:maps, :CELLS], raw[:maps, CELLS:]
    np.testing.assert_array_equal(
        (low | high.astype(np.uint16) << 8).view(np.int16), codes.reshape(maps, -1)
    )
    assert (raw[maps] == 77).all()


# -- faults ----------------------------------------------------------------------------------------


def compressed(size: int) -> bytes:
    return zlib.compress(np.random.default_rng(0).bytes(size))


def put(where: ByteRange, data: bytes) -> ByteRange:
    """Other bytes in the place of a chunk, at the file's end."""
    with open(where.path, "ab") as file:
        offset = file.tell()
        file.write(data)
    return where._replace(offset=offset, nbytes=len(data))


def missing(where: ByteRange) -> ByteRange:
    os.unlink(where.path)
    return where


def a_folder(where: ByteRange) -> ByteRange:
    os.unlink(where.path)
    os.mkdir(where.path)
    return where


def a_loop(where: ByteRange) -> ByteRange:
    os.unlink(where.path)
    os.symlink(where.path, where.path)
    return where


def below_a_file(where: ByteRange) -> ByteRange:
    return where._replace(path=f"{where.path}/0.nc")


def too_long_a_name(where: ByteRange) -> ByteRange:
    return where._replace(path=where.path + "x" * 300)


def truncated(where: ByteRange) -> ByteRange:
    os.truncate(where.path, where.offset + where.nbytes - 1)
    return where


def empty(where: ByteRange) -> ByteRange:
    os.truncate(where.path, 0)
    return where


def damaged(where: ByteRange) -> ByteRange:
    with open(where.path, "r+b") as file:
        file.seek(where.offset + where.nbytes // 2)
        file.write(b"\xff\x00\xff\x00\xff\x00\xff\x00")
    return where


def no_stream(where: ByteRange) -> ByteRange:
    return put(where, bytes(50))


def half_a_stream(where: ByteRange) -> ByteRange:
    return where._replace(nbytes=where.nbytes // 2)


def wrong_checksum(where: ByteRange) -> ByteRange:
    data = bytearray(zlib.compress(bytes(2 * CELLS)))
    data[-1] ^= 1
    return put(where, bytes(data))


def smaller(where: ByteRange) -> ByteRange:
    size = 2 * CELLS - 2
    return put(where, compressed(size) if where.deflate else bytes(size))


def larger(where: ByteRange) -> ByteRange:
    size = 2 * CELLS + 2
    return put(where, compressed(size) if where.deflate else bytes(size))


def much_larger(where: ByteRange) -> ByteRange:
    size = 40 * CELLS
    return put(where, compressed(size) if where.deflate else bytes(size))


def unreadable(where: ByteRange) -> ByteRange:
    os.chmod(where.path, 0)
    if os.access(where.path, os.R_OK):  # root may do everything
        return missing(where)
    return where


FAULTS = (
    missing, a_folder, a_loop, below_a_file, too_long_a_name, truncated, empty, smaller, larger,
    much_larger, unreadable, damaged, no_stream, half_a_stream, wrong_checksum,
)  # fmt: skip
OF_STREAMS = FAULTS[-4:]


@pytest.mark.parametrize("deflate", [True, False])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_same_words_on_a_bad_file(tmp_path, fault, deflate):
    if fault in OF_STREAMS and not deflate:
        fault = truncated
    codes = draw_codes(np.random.default_rng(), 4)
    wheres = [write(tmp_path / f"{i}.nc", c, deflate=deflate) for i, c in enumerate(codes)]
    wheres[2] = fault(wheres[2])
    archive, block = archive_of(wheres, [FILL] * 4), block_of()
    said = []
    for fast in (True, False):
        with pytest.raises(BadFile) as raised:
            load(archive, block, [1, 2, 3, 4], fast=fast)
        said.append(str(raised.value))
        with pytest.raises(BadFile) as raised:
            inflate(archive, fast=fast)
        said.append(str(raised.value))
    assert wheres[2].path in said[0]
    assert len(set(said)) == 1, said

    fast, skipped = load(archive, block, [1, 2, 3, 4], fast=True, skip_bad=True)
    slow, same = load(archive, block, [1, 2, 3, 4], fast=False, skip_bad=True)
    np.testing.assert_array_equal(fast[:, :CELLS], slow[:, :CELLS])
    assert (fast[3, :CELLS] == 0).all()
    assert (fast[4, :CELLS] != 0).any()
    assert len(skipped) == 1
    assert skipped == same
    maps, gone, skipped = inflate(archive, fast=True, skip_bad=True)
    again, too, same = inflate(archive, fast=False, skip_bad=True)
    assert gone == too == [2]
    np.testing.assert_array_equal(maps, again)
    assert skipped == same


def test_a_bad_file_that_nobody_needs_is_skipped_too(tmp_path):
    codes = draw_codes(np.random.default_rng(), 2)
    wheres = [write(tmp_path / f"{i}.nc", c) for i, c in enumerate(codes)]
    missing(wheres[0])
    archive = archive_of(wheres, [FILL] * 2)
    for fast in (True, False):
        buffer, skipped = load(archive, block_of(), [-1, 1], fast=fast, skip_bad=True)
        assert len(skipped) == 1
        assert (np.delete(buffer, 1, axis=0) == 77).all()


# -- values that have no key, or no place ----------------------------------------------------------


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("fill", [None, FILL, -32768])
def test_a_valid_code_without_a_key(tmp_path, fast, fill):
    codes = draw_codes(np.random.default_rng(), 3)
    codes[1, 4, 4] = -32768
    wheres = [write(tmp_path / f"{i}.nc", c) for i, c in enumerate(codes)]
    archive = archive_of(wheres, [fill] * 3)
    if fill == -32768:
        assert load(archive, block_of(), [1, 2, 3], fast=fast)[0][2, 4 * SHAPE[1] + 4] == 0
    else:
        with pytest.raises(NotCodes):
            load(archive, block_of(), [1, 2, 3], fast=fast)


@pytest.mark.parametrize("fast", [True, False])
def test_a_value_on_land(tmp_path, fast):
    sea = (np.arange(CELLS) > 20) & (np.arange(CELLS) < 100)
    runs = runs_of(sea, 8)
    land = runs.expand(np.ones(runs.cells), 0) == 0
    codes = draw_codes(np.random.default_rng(), 3).reshape(3, CELLS)
    codes[:, land] = FILL
    codes[2, np.random.default_rng().choice(np.flatnonzero(land))] = 5
    codes = codes.reshape(3, *SHAPE)
    wheres = [write(tmp_path / f"{i}.nc", c) for i, c in enumerate(codes)]
    archive, block = archive_of(wheres, [FILL] * 3), block_of(runs=runs)
    load(archive_of(wheres[:2], [FILL] * 2), block, [1, 2], fast=fast)
    with pytest.raises(ValueOnLand):
        load(archive, block, [1, 2, 3], fast=fast)


# -- without the library ---------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [ImportError, AttributeError, OSError])
def test_without_the_library_files_are_read_one_by_one(monkeypatch, problem):
    def fail():
        raise problem("nothing there")

    monkeypatch.setattr(bulk, "libdeflate", fail)
    assert bulk._functions.__wrapped__() is None


def test_other_systems_have_none(monkeypatch):
    monkeypatch.setattr(bulk.sys, "platform", "darwin")
    assert bulk._functions.__wrapped__() is None


# -- streams as they are stored --------------------------------------------------------------------


def stored_in(path: Path, chunks: list[bytes]) -> list[ByteRange]:
    wheres, at = [], 0
    for chunk in chunks:
        wheres.append(ByteRange(str(path), at, len(chunk), (1, *SHAPE), "<i2", True, True))
        at += len(chunk)
    path.write_bytes(b"".join(chunks))
    return wheres


def test_streams_come_as_they_are_with_their_checksums(tmp_path):
    rng = np.random.default_rng()
    raws = [rng.integers(0, 20, int(n)).astype(np.uint8).tobytes() for n in (1, 300, 5000)]
    chunks = [zlib.compress(raw, int(rng.integers(0, 10))) for raw in raws]
    wheres = stored_in(tmp_path / "chunks", chunks)
    out = np.full(sum(map(len, chunks)) + 100, 7, np.uint8)
    starts = np.array([5, 40, 40 + len(chunks[1]) + 3])
    told = []
    checksums = bulk.read_streams(wheres, out, starts, lambda *span: told.append(span))
    assert checksums.tolist() == [zlib.adler32(raw) for raw in raws]
    untouched = np.ones(out.size, bool)
    for start, chunk in zip(starts.tolist(), chunks, strict=True):
        assert out[start : start + len(chunk)].tobytes() == chunk
        untouched[start : start + len(chunk)] = False
    assert (out[untouched] == 7).all()
    assert [(name, nbytes) for name, _, _, nbytes in told] == [("read", sum(map(len, chunks)))]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: b"\x79" + data[1:], "compressed data is damaged"),
        (lambda data: data[:1] + bytes([data[1] ^ 1]) + data[2:], "compressed data is damaged"),
        (lambda data: b"\x78\xbb" + data[2:], "compressed data is damaged"),  # a dictionary
        (lambda data: data[:6], "compressed data is damaged"),
        (lambda data: b"", "compressed data is damaged"),
    ],
)
def test_what_is_no_stream_is_named(tmp_path, spoil, why):
    whole = zlib.compress(b"some bytes")
    assert b"\x78\xbb"[0] * 256 + b"\x78\xbb"[1] == 31 * 997
    wheres = stored_in(tmp_path / "chunks", [whole, spoil(whole)])
    with pytest.raises(BadFile, match=why):
        bulk.read_streams(wheres, np.zeros(100, np.uint8), np.array([0, 50]), lambda *_: None)


def test_streams_that_cannot_be_read_are_named(tmp_path):
    (where,) = stored_in(tmp_path / "chunks", [zlib.compress(b"some bytes" * 9)])
    out, starts = np.zeros(100, np.uint8), np.array([0])
    os.truncate(where.path, 10)
    with pytest.raises(BadFile, match="it ends before its data does"):
        bulk.read_streams([where], out, starts, lambda *_: None)
    os.unlink(where.path)
    with pytest.raises(BadFile, match="chunks"):
        bulk.read_streams([where], out, starts, lambda *_: None)
