"""What the page's script draws, as JSON that is safe within a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...messages import printable
from ..findings import figures
from ..findings.finding import Finding
from ..findings.rules import trace_name
from . import palette
from .diagnosis import Diagnosis
from .lanes import MOST, Lane, Lanes, lanes
from .merging import Row

_LONGEST = 160  # characters of a name; kernels' can have thousands
_MOST_NAMES = 20_000  # different ones in a page, so that names alone stay below 4 MB
_OTHER = "(one of more names than a page holds)"
# What would end the element that holds it, or begin a comment or an entity, within HTML.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def safe(content: Any) -> str:
    """As JSON of ASCII without <, > and &, so that no text in it can end a script element."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for sign, spelled in _UNSAFE.items():
        text = text.replace(sign, spelled)
    return text


def drawn(diagnosis: Diagnosis) -> list[Lanes]:
    """The lanes of each trace; traces share the rectangles that a page may have."""
    each = MOST // max(1, len(diagnosis.analyses))
    return [lanes(analysis, each) for analysis in diagnosis.analyses]


def page_data(diagnosis: Diagnosis, shown: Sequence[Lanes]) -> dict[str, Any]:
    """Times are ns from the start of each trace; rectangles are columns, starts as differences."""
    names = _Names()
    traces = [
        {
            "title": title(diagnosis, number) if len(shown) > 1 else "",
            "length": each.end - each.start,
            "lanes": [_lane(lane, each.start, names) for lane in each.lanes],
        }
        for number, each in enumerate(shown)
    ]
    return {
        "colours": list(palette.COLOURS),
        "traces": traces,
        "findings": [_finding(finding, shown) for finding in diagnosis.findings],
        "names": names.known(),
    }


def title(diagnosis: Diagnosis, number: int) -> str:
    """Of one of several traces."""
    return trace_name(diagnosis.analyses[number], number)


class _Names:
    """Numbers of names, as they are first asked for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {_OTHER: 0}

    def of(self, name: str) -> int:
        short = figures.clipped(name, _LONGEST)
        if short not in self._numbers and len(self._numbers) >= _MOST_NAMES:
            return 0
        return self._numbers.setdefault(short, len(self._numbers))

    def known(self) -> list[str]:
        return [printable(name) for name in self._numbers]


def _lane(lane: Lane, origin: int, names: _Names) -> dict[str, Any]:
    return {
        "label": printable(lane.label),
        "device": lane.device,
        "rows": [_row(each, lane.names, origin, names) for each in lane.rows],
    }


def _row(row: Row, known: Sequence[str], origin: int, names: _Names) -> dict[str, Any]:
    used, where = np.unique(row.name, return_inverse=True)
    numbers = np.array([names.of(known[each]) for each in used.tolist()], np.int64)
    return {
        "start": np.diff(row.start, prepend=origin).tolist(),
        "length": (row.end - row.start).tolist(),
        "name": numbers[where].tolist() if len(used) else [],
        "colour": row.colour.tolist(),
        # As a rule all are one: then that is said once.
        "count": row.count.tolist() if (row.count > 1).any() else [],
    }


def _finding(finding: Finding, shown: Sequence[Lanes]) -> dict[str, Any]:
    return {
        "title": printable(finding.title),
        "places": [
            {
                "trace": place.trace,
                "start": place.start - shown[place.trace].start,
                "end": place.end - shown[place.trace].start,
                "device": place.device,
                "what": printable(place.what),
            }
            for place in finding.places
        ],
        "all": finding.places_in_all,
    }
