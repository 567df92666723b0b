"""Runs the engine on arrays in memory, for the tests that hold it to the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import strategies
from kuroshio import calendar as cal
from kuroshio import pipeline
from kuroshio.archive.model import Archive, ArraySlice, Grid, Packing, Piece
from kuroshio.device.gpu import Gpu
from kuroshio.engines.choose import Choice
from kuroshio.engines.gpu import GpuEngine
from kuroshio.request import Request

PLENTY = 1 << 34


class Arrays:
    """An output that keeps everything, and notices what is written twice or never."""

    def __init__(self, request: Request, grid: Grid, calendar: str) -> None:
        doys = len(request.doys or range(cal.template_length(calendar)))
        shape = grid.shape or (1,)
        several = len(request.percentiles) > 1
        self.shape = shape
        self.band_rows = max(1, shape[0] // 2)
        self.several = several
        self.fields = {name: np.zeros((doys, *shape)) for name in ("seas", *request.extras)}
        further = (len(request.percentiles),) if several else ()
        self.fields["thresh"] = np.zeros((doys, *further, *shape))
        self.written = {name: np.zeros(f.shape, int) for name, f in self.fields.items()}

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None:
        first, *which = position if isinstance(position, tuple) else (position,)
        index = (slice(first, first + len(values)), *which, rows)
        self.fields[name][index] = values
        self.written[name][index] += 1

    def finish(self, skipped: list[str]) -> None:
        for name, times in self.written.items():
            assert (times == 1).all(), f"{name} was not written exactly once everywhere"


def archive_of(sample: strategies.Sample, splits: tuple[int, ...] = (), rows: int = 0) -> Archive:
    """The sample as an archive in pieces: split in time before `splits`, in cells every `rows`."""
    shape = sample.values.shape[1:]
    packing = Packing()
    if sample.codes is not None:
        missing = () if sample.fill is None else (float(sample.fill),)
        packing = Packing(sample.scale, sample.offset, missing, packed=True)
    edges = [0, *splits, len(sample.days)]
    rows = rows or shape[0]
    pieces = []
    for start, stop in pairwise(edges):
        for top in range(0, shape[0], rows):
            box = (slice(top, min(top + rows, shape[0])), *(slice(0, n) for n in shape[1:]))
            where = ArraySlice(sample.stored, (slice(start, stop), *box))
            pieces.append(Piece(tuple(range(start, stop)), box, packing, where))
    grid = Grid(tuple("yx"[-len(shape) :]), shape)
    return Archive("sst", {}, sample.dtype, grid, sample.calendar, sample.days, tuple(pieces))


def drawn_job(data: Any, pools: Any) -> tuple[strategies.Sample, Request, Archive]:
    """A sample, a request of one of the `pools`, and the sample cut into pieces; by Hypothesis."""
    sample = data.draw(strategies.archives(max_years=12))
    request = data.draw(strategies.requests(sample, pools=pools))
    splits = data.draw(
        st.lists(st.integers(1, max(len(sample.days) - 1, 1)), max_size=4, unique=True)
    )
    splits = tuple(sorted(s for s in splits if s < len(sample.days)))
    return sample, request, archive_of(sample, splits, rows=data.draw(st.integers(1, 3)))


def compute(
    archive: Archive, request: Request, *, memory_bytes: int = PLENTY, threads: int = 2,
    gpu: Gpu | Sequence[Gpu] | None = None, pinned_bytes: int | None = None,
    device_bytes: int | None = None, skip_bad: bool = False, key_bytes: int = 0,
) -> dict[str, np.ndarray]:  # fmt: skip
    """The engine's results as float64 arrays: seas, thresh (percentile first), extras asked for.

    Somebody follows it: what is said to be read must come to all of it.
    """
    opened_outputs = []
    told: list[tuple[int, int]] = []

    @contextmanager
    def opened(*_: Any) -> Any:
        opened_outputs.append(Arrays(request, archive.grid, archive.calendar))
        yield opened_outputs[-1]

    with pytest.MonkeyPatch.context() as patch:
        if gpu is not None:
            gpus = gpu if isinstance(gpu, Sequence) else [gpu]
            engine = GpuEngine(gpus, pinned_bytes, key_bytes)
            engine.device_bytes = device_bytes or engine.device_bytes
            patch.setattr(pipeline, "choose_engine", lambda *_: Choice(engine, "as asked"))
        pipeline.run(
            archive, request, opened, memory_bytes=memory_bytes, threads=threads,
            skip_bad=skip_bad, spans=lambda *_, **__: None, 
            progress=lambda stage, *each: told.append(each) if stage == "read" else None,
        )  # fmt: skip
    total = told[-1][1]  # it may have begun anew with another plan
    assert (total, total) in told
    output = opened_outputs[-1]  # an earlier one was given up for a wider kind of key
    fields = output.fields
    thresh = fields["thresh"]
    fields["thresh"] = np.moveaxis(thresh, 1, 0) if output.several else thresh[None]
    return fields
