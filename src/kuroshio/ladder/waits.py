"""How long a device will wait for the reader with so many rings: a formula, and the turns played.

The published formula: with R rings nothing waits if (R - 1) T_gpu >= T_io. That is so for the
first R - 1 batches, if they were read before the device began. A reader that takes longer for a
batch than the device is the slower side: the device then waits the difference at every batch,
whatever R, and only a faster reader helps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..intervals import Intervals
from .place import Span


@dataclass(frozen=True)
class Played:
    """Seconds of a pass without its end: all of it, and of those the device's waiting."""

    total_s: float
    hidden_wait_s: float


def rings_by_formula(io_s: float, gpu_s: float) -> int | None:
    """R of the published formula; None where T_gpu is nothing, for then none are enough."""
    return 1 + math.ceil(io_s / gpu_s) if gpu_s > 0 else None


def played(
    rings: int, io_s: Sequence[float], copy_s: float, gpu_s: float, *, buffers: int = 2,
    streams: int = 2,
) -> Played:  # fmt: skip
    """The turns of a pass, batch by batch.

    io_s     to read each batch
    copy_s   to copy one to the device; 0: it is worked on where it is
    buffers  on the device: a copy waits until what it writes over has been worked on
    streams  1: a copy waits for the kernels before it
    """
    ring_free: list[float] = []
    ends: list[float] = []  # of kernels
    spans: list[Span] = []  # of copies and kernels
    reader = link = 0.0
    for number, io in enumerate(io_s):
        reader = io + (max(reader, ring_free[number - rings]) if number >= rings else reader)
        ready = reader
        if copy_s:
            begin = max(reader, link)
            if streams == 1 and ends:
                begin = max(begin, ends[-1])
            elif number >= buffers:
                begin = max(begin, ends[number - buffers])
            ready = link = begin + copy_s
            spans.append((begin, link))
        begin = max(ready, ends[-1]) if ends else ready
        ends.append(begin + gpu_s)
        spans.append((begin, ends[-1]))
        ring_free.append(link if copy_s else ends[-1])
    total = ends[-1]
    return Played(total, max(total - io_s[0] - Intervals(spans).seconds, 0.0))
