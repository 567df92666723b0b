"""The figures that the published program was described with, to stand beside what is measured.

They are of one pass of 12 days on one device; eight devices worked on eight passes at once. The
described machine had two nodes of four DCUs each.
"""

from __future__ import annotations

from dataclasses import dataclass

ABOUT = (
    "Published: one pass of 12 days of year, 721 x 1440 cells, on one of eight DCUs. Another "
    "machine, and at another time: its figures say how rungs compare there, not how it compares "
    "with this one."
)
CELLS = 721 * 1440  # of a map
FACTORS, GAIN = 205.0, 3.3  # the strategies' factors multiplied, and what all of it became


@dataclass(frozen=True)
class Published:
    """Seconds of a pass; `note` where something is said of them."""

    gpu_s: float
    total_s: float
    note: str = ""


PUBLISHED = {
    "baseline": Published(8.0, 14.0),
    "A": Published(0.9, 8.6),
    "B": Published(0.35, 10.8, "with two rings waiting ate the gain"),
    "C": Published(0.6, 6.8),
    "D": Published(0.08, 4.2, "reading 1.2, hidden wait 2.5, kernels 0.08, final and writing 0.4"),
}
