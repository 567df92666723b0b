"""Files of moments made, changed and read back, for the tests that hold them to the climatology."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine import archive_of
from kuroshio.archive.model import Archive
from kuroshio.moments.job import Means, estimate, make, update
from kuroshio.moments.state import State, read_state
from kuroshio.request import Request
from strategies import Sample


def means() -> Means:
    return Means(threads=2, memory_bytes=1 << 30)


def arrays(path: Path) -> dict[str, np.ndarray]:
    """All that is kept of pools, as it is stored."""
    state, stored = read_state(path)
    with stored:
        return {name: stored.read(name, slice(None), slice(None)) for name in state.names}


def facts(path: Path) -> State:
    state, stored = read_state(path)
    stored.close()
    return state


def daily(sample: Sample) -> Archive:
    """A piece a day."""
    return archive_of(sample, tuple(range(1, sample.days.size)))


def part_of(sample: Sample, chosen: np.ndarray) -> Sample:
    """Some of its days."""
    return replace(
        sample, values=sample.values[chosen], stored=sample.stored[chosen],
        days=sample.days[chosen],
    )  # fmt: skip


def new(path: Path, archive: Archive, first: int, last: int, half_width: int = 5) -> Path:
    make(archive, (first, last), half_width, path, means())
    return path


def change(
    path: Path, archive: Archive, add: Iterable[int] = (), remove: Iterable[int] = ()
) -> None:
    update(path, archive, add, remove, means())


def climatology(path: Path, request: Request) -> dict[str, np.ndarray]:
    """As engine.compute gives it: percentiles first."""

    def wanted(state: State) -> Request:
        return replace(
            request, baseline=(state.years[0], state.years[-1]), half_width=state.half_width,
            method="moments",
        )  # fmt: skip

    found = {name: np.float64(f) for name, f in estimate(path, wanted, means()).fields.items()}
    several = len(request.percentiles) > 1
    found["thresh"] = np.moveaxis(found["thresh"], 1, 0) if several else found["thresh"][None]
    return found
