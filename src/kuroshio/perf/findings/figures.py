"""Figures in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import seconds_text

_LONGEST = 80  # characters of a name within a sentence


def time(ns: int) -> str:
    """Three figures and a unit: 12.3 us."""
    return seconds_text(ns / 1e9)


def share(part: float, whole: float) -> str:
    """Of the whole, with two figures: 5.3%, 39%."""
    found = 100 * part / whole if whole else 0.0
    return f"{found:.1f}%" if found < 9.95 else f"{found:.0f}%"


def count(number: int, one: str, many: str = "") -> str:
    """1 hole, 1,200 holes."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def named(name: str) -> str:
    """A name short enough for a sentence."""
    return clipped(name, _LONGEST)


def clipped(name: str, most: int) -> str:
    """At most so many characters of it."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def listed(words: Sequence[str], most: int = 4) -> str:
    """a, b and c; of many the first, and how many more."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
