"""What a block is carried out with, on any device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..archive.model import Progress, Spans
from ..archive.needs import Needs
from ..archive.plan import Load
from ..device.cpu import Crew
from ..keys import Keys

if TYPE_CHECKING:
    from ..archive.read import Reader  # with Numba

TOGETHER = 4  # pieces that a thread reads in one go
MOST_RINGS = 2  # of a thread, on their way to a device
RING_BYTES = 8 << 20  # about, of each: small copies do not fill the link
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


def together(loads: Sequence[Load], number: int) -> list[Sequence[Load]]:
    """Loads in groups for one thread each: small files are worth a lock only by the handful."""
    return [loads[i : i + number] for i in range(0, len(loads), number)]
