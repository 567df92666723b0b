"""Where the names of roofs go in a picture: along their lines, clear of the points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .ceilings.ceiling import Ceiling

FONT = 9  # points
_LETTER = 0.57  # of the font's size: how wide a letter is
_STEPS = 24


Line = tuple[tuple[float, float], tuple[float, float]]  # from, to


class Circle(NamedTuple):
    """A point's marker, in pixels."""

    x: float
    y: float
    radius: float


def label(
    plot: Any, start: tuple[float, float], stop: tuple[float, float], text: str, colour: str,
    circles: list[Circle], lines: Sequence[Line],
) -> None:  # fmt: skip
    """Into the line from start to stop, or beside it, as near to start as circles let it.

    lines  all that are drawn; it keeps clear of the others, if only a little

    The label itself is then in the way of others: it is added to the circles.
    """
    (x0, y0), (x1, y1) = plot.transData.transform([start, stop])
    length = math.hypot(x1 - x0, y1 - y0)
    along = (x1 - x0) / length, (y1 - y0) / length
    upward = (-along[1], along[0]) if along[0] > 0 else (along[1], -along[0])
    letter = FONT * plot.figure.dpi / 72
    wide = len(text) * _LETTER * letter
    room = max(length - wide, 0.0)
    least = min(letter, room)
    # Farther off it would seem another slope's.
    asides = (0.0, 1.1, -1.1, 1.8) if y0 == y1 else (0.0, 1.1, -1.1)
    places = [
        (least + (room - least) * step / _STEPS, aside * letter)
        for aside in asides
        for step in range(_STEPS + 1)
    ]

    others = [
        Circle(float(x), float(y), 1.0)
        for line in lines
        if line != (start, stop)
        for x, y in plot.transData.transform(_points(*line))
    ]

    def clear(place: tuple[float, float]) -> float:
        """How far the nearest circle's edge is."""
        begin = x0 + upward[0] * place[1], y0 + upward[1] * place[1]
        return min(
            (_distance(c, begin, along, place[0], wide) - c.radius for c in [*circles, *others]),
            default=math.inf,
        )

    best = next((p for p in places if clear(p) > 0.6 * letter), max(places, key=clear))

    def at(distance: float) -> tuple[float, float]:
        return (
            x0 + along[0] * distance + upward[0] * best[1],
            y0 + along[1] * distance + upward[1] * best[1],
        )

    angle = math.degrees(math.atan2(along[1], along[0]))
    turned = angle + 180 if abs(angle) > 90 else angle  # never upside down
    x, y = plot.transData.inverted().transform(at(best[0] + wide / 2))
    gap = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    plot.text(
        x, y, text, rotation=turned, rotation_mode="anchor", fontsize=FONT, color=colour,
        ha="center", va="center", bbox=None if best[1] else gap,
    )  # fmt: skip
    steps = max(round(wide / letter), 1)
    for step in range(steps + 1):
        circles.append(Circle(*at(best[0] + wide * step / steps), letter / 2))


def _points(start: tuple[float, float], stop: tuple[float, float]) -> list[tuple[float, float]]:
    """Of a straight line in a picture whose axes are both logarithmic."""
    shares = [step / 60 for step in range(61)]
    return [
        (start[0] * (stop[0] / start[0]) ** share, start[1] * (stop[1] / start[1]) ** share)
        for share in shares
    ]


def marks(circles: Sequence[Circle], letter: float) -> list[Circle | None]:
    """Where the letter of each circle goes, of so many pixels: None for into it, else beside it.

    circles  in the order in which they are drawn: later ones lie on earlier ones
    """
    found: list[Circle | None] = []
    for i, own in enumerate(circles):
        if all(_apart(own, other) > other.radius + letter / 2 for other in circles[i + 1 :]):
            found.append(None)
            continue
        taken = [*circles, *(place for place in found if place)]
        around = [
            Circle(own.x + reach * math.cos(turn), own.y + reach * math.sin(turn), 0.7 * letter)
            for reach in (own.radius + letter * step for step in (1.2, 2.4, 3.6))
            for turn in (math.pi * eighth / 4 for eighth in (3, 5, 1, 7, 2, 6, 4, 0))
        ]

        def free(place: Circle, taken: Sequence[Circle] = taken) -> float:
            return min(_apart(place, each) - each.radius - place.radius for each in taken)

        found.append(next((p for p in around if free(p) > 0), max(around, key=free)))
    return found


def _apart(one: Circle, other: Circle) -> float:
    return math.hypot(one.x - other.x, one.y - other.y)


def near(peaks: Sequence[Ceiling]) -> list[list[Ceiling]]:
    """Peaks whose names would lie over each other, together; the highest first."""
    groups: list[list[Ceiling]] = []
    for peak in peaks:
        if groups and peak.value > groups[-1][0].value / 1.5:
            groups[-1].append(peak)
        else:
            groups.append([peak])
    return groups


def _distance(
    circle: Circle, start: tuple[float, float], along: tuple[float, float], place: float,
    wide: float,
) -> float:  # fmt: skip
    """Of a circle's centre to a stretch of a line, `wide` long, `place` from its start."""
    dx, dy = circle.x - start[0], circle.y - start[1]
    ahead = dx * along[0] + dy * along[1]
    aside = dx * along[1] - dy * along[0]
    beyond = max(place - ahead, ahead - place - wide, 0.0)
    return math.hypot(beyond, aside)
