"""The published strategies in our own words: what was seen, what was held, what was changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Strategy:
    """Prose of a rung's record; `numbers` are the published strategies that it is made of."""

    observation: str
    hypothesis: str
    change: str
    numbers: tuple[int, ...] = ()


STRATEGIES = {
    "baseline": Strategy(
        "A percentile of 330 values needs the 34 largest of them.",
        "A heap of 34 values a day and cell finds them in one reading of the maps; a thread reads "
        "the next batch into a second ring meanwhile.",
        "One thread a cell pushes a batch's values into the heaps of 12 days, which lie in the "
        "device's memory between batches; two rings.",
    ),
    "A": Strategy(
        "Heaps are indexed by numbers that only the run knows, so they lie in memory, and are "
        "loaded and stored at every batch.",
        "A sorted list whose indices the compiler knows stays in registers, and with all maps on "
        "the device it need never leave them.",
        "Maps of a pass stay on the device; then a launch a day of year keeps 34 values sorted in "
        "registers.",
        (1, 2, 5, 7),
    ),
    "B": Strategy(
        "To find the largest values, lanes of a wave do different things at each value.",
        "Four sums of powers describe a distribution well enough for its percentile, and adding "
        "has no branches.",
        "Sums of x to x^4 of the window of each day; the percentile by Cornish and Fisher's "
        "expansion, with sums and fourth moment as published.",
        (3,),
    ),
    "C": Strategy(
        "Kernels are so short now that the device waits for the reader.",
        "With two more rings the reader is further ahead, and the device waits less.",
        "Four rings instead of two, and nothing else.",
        (6, 7),
    ),
    "D": Strategy(
        "Windows of neighbouring days have all but two of their slots in common, and each value is "
        "added 6 times on average.",
        "Sums of disjoint sets add: if each slot is summed once, the window slides by one sum that "
        "enters and one that leaves.",
        "Sums of the 22 slots of a pass, a value added once; then a window that slides.",
        (4,),
    ),
    "D+": Strategy(
        "Sums of x^4 about zero have more digits than float32 can hold, and the published fourth "
        "moment lacks a factor of 3.",
        "Sums in float64 of differences from a value of the cell keep the digits that matter, at "
        "the cost of twice the bytes of sums.",
        "As D, with references, float64 and the right formula.",
        (3, 4),
    ),
    "ours": Strategy(
        "Every rung so far opens and reads each file again for each pass that needs it, in one "
        "thread at a time.",
        "If each file is read once, by all threads and past the library's lock, reading no longer "
        "bounds the whole, and there is time for the exact percentile.",
        "This package's engine: exact selection on bit planes or sorted lists, rings sized by "
        "measurement, output compressed and written by all threads.",
    ),
}
