"""What a block is carried out with, on any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..archive.model import Progress, Spans
from ..archive.needs import Needs
from ..device.cpu import Crew
from ..keys import Keys

if TYPE_CHECKING:
    from ..archive.read import Reader  # with Numba


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
