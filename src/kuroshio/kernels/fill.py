"""Short gaps filled on a straight line in time, before anything is computed (--max-pad)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit


def tables(fills: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Key rows to fill, in time order, and those of the days before and after, nearest first."""
    return (
        np.array([f.row for f in fills], np.int64),
        np.array([f.before for f in fills], np.int64),
        np.array([f.after for f in fills], np.int64),
    )


@njit(nogil=True, cache=True, error_model="numpy")
def fill_gaps(first, last, buffer, rows, before, after):
    """Fill the missing keys of `rows` for cells first to last, in place.

    buffer (row, cell) FLOAT64 keys; rows (n,); before, after (n, days). A gap is filled if it has
    valid neighbours on both sides and no more days than before has columns. Days already filled lie
    on the same line, so they may serve as neighbours.
    """
    longest = before.shape[1]
    line = np.empty(3, np.uint64)
    value = line.view(np.float64)
    for r in range(rows.size):
        for i in range(first, last):
            if buffer[rows[r], i] != 0:
                continue
            back = 0
            while back < longest and buffer[before[r, back], i] == 0:
                back += 1
            ahead = 0
            while ahead + back < longest and buffer[after[r, ahead], i] == 0:
                ahead += 1
            if back + ahead + 1 > longest or buffer[after[r, ahead], i] == 0:
                continue
            line[0] = _flip(buffer[before[r, back], i])
            line[1] = _flip(buffer[after[r, ahead], i])
            share = (back + 1) / (back + ahead + 2)
            value[2] = value[0] + (value[1] - value[0]) * share
            buffer[rows[r], i] = _key(line[2])


@njit(nogil=True, cache=True)
def _flip(key):
    """A float64's bits from its key."""
    top = np.uint64(1 << 63)
    return key ^ top if key & top else ~key


@njit(nogil=True, cache=True)
def _key(bits):
    """A float64's key from its bits."""
    top = np.uint64(1 << 63)
    return ~bits if bits & top else bits ^ top
