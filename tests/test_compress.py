"""Our chunks are what HDF5's own filters would have made of the same values."""

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kuroshio.archive.compress import compress_chunk
from kuroshio.archive.shuffle import shuffle

DTYPES = st.sampled_from([np.int8, np.int16, np.int32, np.float32, np.float64])


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


def test_land_is_nearly_free():
    assert len(compress_chunk(np.full((8, 120, 240), np.nan, np.float32))) < 10_000
