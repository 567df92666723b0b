"""Our chunks are what HDF5's own filters would have made of the same values."""

import zlib
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kuroshio.archive import compress_at_once
from kuroshio.archive.compress import compress_chunks
from kuroshio.archive.low_bytes import blocks_capacity, write_blocks
from kuroshio.archive.shuffle import shuffle


@pytest.fixture(scope="module", params=["at once", "by steps"], autouse=True)
def way(request):
    """Both ways to the same stream: in one call, and where that cannot be had by steps."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by steps":
            patch.setattr("kuroshio.archive.compress.available", lambda: False)
        else:
            assert compress_at_once.available()
        yield


DTYPES = st.sampled_from([np.int8, np.int16, np.int32, np.float32, np.float64])


def compress_chunk(values: np.ndarray) -> bytes | memoryview:
    (stored,), _ = compress_chunks(values[None], deque())
    return stored


def reference_shuffle(values: np.ndarray) -> bytes:
    return values.reshape(-1).view(np.uint8).reshape(values.size, values.itemsize).T.tobytes()


@settings(deadline=None)
@given(st.data(), DTYPES, st.integers(0, 100))
def test_shuffle_is_a_transposition_of_bytes(data, dtype, size):
    values = data.draw(hnp.arrays(dtype, size))
    assert shuffle(values).tobytes() == reference_shuffle(values)
    planes = np.empty((values.itemsize, size), np.uint8)
    assert shuffle(values, planes) is planes
    assert planes.tobytes() == reference_shuffle(values)


@settings(deadline=None)
@given(st.data(), DTYPES, st.integers(1, 200), st.sampled_from([0, 0.05, 0.5, 1]))
def test_a_chunk_inflates_to_its_shuffled_bytes(data, dtype, size, missing):
    values = data.draw(hnp.arrays(dtype, size))
    if values.dtype.kind == "f":
        values[: round(missing * size)] = np.nan
    assert zlib.decompress(compress_chunk(values)) == reference_shuffle(values)


@pytest.mark.parametrize("missing", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("count", [16384, 32767, 65536, 250_000])
def test_stored_blocks_of_every_length(count, missing):
    rng = np.random.default_rng(count)
    values = (rng.standard_normal(count).cumsum() * 1e-3 + 15).astype(np.float32)
    values[rng.random(count) < missing] = np.nan
    stream = compress_chunk(values)
    assert zlib.decompress(stream) == reference_shuffle(values)
    assert len(stream) < 0.95 * values.nbytes


@settings(deadline=None)
@given(st.data(), DTYPES, st.integers(1, 5), st.integers(1, 300), st.integers(0, 3))
def test_several_chunks_are_the_same_as_one_by_one(data, dtype, number, size, spare):
    """Whatever memory is there to be used again: none, too little, enough."""
    chunks = data.draw(hnp.arrays(dtype, (number, size)))
    before = [bytes(compress_chunk(chunk)) for chunk in chunks]
    lengths = st.integers(0, 20_000)
    memories = deque(np.full(data.draw(lengths), 0xEE, np.uint8) for _ in range(spare))
    stored, memory = compress_chunks(chunks, memories)
    assert [bytes(each) for each in stored] == before
    assert memory is None or not any(memory is other for other in memories)
    for each, chunk in zip(stored, chunks, strict=True):
        assert zlib.decompress(each) == reference_shuffle(chunk)


def test_land_is_nearly_free():
    assert len(compress_chunk(np.full((8, 120, 240), np.nan, np.float32))) < 10_000


@settings(deadline=None, max_examples=300)
@given(st.data(), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_runs_and_copies_of_any_length_inflate(data, pieces, seed):
    """Pieces of noise and of zeros, of lengths about every limit of the two kinds of block."""
    rng = np.random.default_rng(seed)
    lengths = st.one_of(
        st.integers(0, 12), st.integers(30, 36), st.sampled_from([8191, 8192, 8193, 20_000])
    )
    parts = []
    for _ in range(min(pieces, 40)):
        length = 8 * data.draw(lengths)
        noise = rng.integers(0, 256, length, np.uint8)
        parts.append(noise if data.draw(st.booleans()) else np.zeros(length, np.uint8))
    low = np.concatenate([*parts, np.empty(0, np.uint8)])
    out = np.empty(blocks_capacity(low.size), np.uint8)
    size = write_blocks(low, out)
    assert size <= out.size
    inflate = zlib.decompressobj(-15)
    assert inflate.decompress(out[:size].tobytes()) == low.tobytes()
    assert inflate.unconsumed_tail == b""
    last = b"\x03\x00"  # an empty final block: what we wrote ended on a byte
    assert inflate.decompress(last) == b""
    assert inflate.eof


def test_runs_of_every_length_up_to_several_matches():
    for words in range(1, 200):
        low = np.full(8 * (words + 2), 7, np.uint8)
        low[8:-8] = 0
        out = np.empty(blocks_capacity(low.size), np.uint8)
        size = write_blocks(low, out)
        assert zlib.decompressobj(-15).decompress(out[:size].tobytes()) == low.tobytes()
        if words > 5:
            assert size < 16 + 5 + 5 + 2 + words  # the run itself takes few bytes
