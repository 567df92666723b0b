"""What a block is carried out with, on any device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING

from ..archive.model import Progress, Spans
from ..archive.needs import Needs
from ..archive.plan import Load
from ..device.cpu import Crew
from ..keys import Keys

if TYPE_CHECKING:
    from ..archive.read import Reader  # with Numba

_COMPILING_S = 0.5  # longer than taking kernels from the cache
TOGETHER = 4  # pieces that a thread reads in one go
MOST_RINGS = 2  # of a thread, on their way to a device
RING_BYTES = 32 << 20  # at most, of each, unless a map is larger
TABLE_BYTES = 256  # of a ring, before its maps: what the device must know of them


@dataclass
class Means:
    """What all blocks of a run share."""

    needs: Needs
    keys: Keys
    reader: Reader
    crew: Crew
    spans: Spans
    progress: Progress
    pieces: int  # to read in all
    pieces_read: int = 0

    def have_read(self, pieces: int) -> None:
        """So many more; from any thread."""
        self.pieces_read += pieces
        self.progress("read", self.pieces_read, self.pieces)

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """A span of that stage; the user hears of it where it takes long."""
        said = Timer(_COMPILING_S, self.progress, ("compile", 0, 1))
        said.start()
        start = perf_counter()
        try:
            yield
        finally:
            said.cancel()
        stop = perf_counter()
        if stop - start > _COMPILING_S:
            self.progress("compile", 1, 1)
        self.spans("compile", start, stop, 0)


def together(loads: Sequence[Load], number: int) -> list[Sequence[Load]]:
    """Loads in groups for one thread each: small files are worth a lock only by the handful."""
    return [loads[i : i + number] for i in range(0, len(loads), number)]
