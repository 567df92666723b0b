"""The roofline in the page: roofs, and a point a kernel, as large as its share of the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...pages import text
from ..roofline import Judgement, Roofs, short
from ..roofline_axes import Axes, axes, mark, peaks_of

_WIDE, _HIGH = 480, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 38  # px around the area
_LEAST, _MOST = 5, 16  # px, radius of a point of none and of all of the time


def picture(judged: Sequence[Judgement], under: Roofs) -> str:
    """As SVG; empty where no point has both operations and bytes. Letters are the table's rows."""
    shown = [(at, each) for at, each in enumerate(judged) if each.intensity and each.rate]
    if not shown:
        return ""
    area = axes([each for _, each in shown], under)
    inside = [*_grid(area), *_roofs(area, [each for _, each in shown], under)]
    # The large ones first, so that small ones are not hidden.
    for at, each in sorted(shown, key=lambda pair: -pair[1].point.share):
        inside.append(_point(area, at, each))
    said = f"Roofline of {len(shown)} kernels on {under.device}: the table below has the figures"
    return (
        f'<svg class="roofline" viewBox="0 0 {_WIDE} {_HIGH}" role="img" '
        f'aria-label="{text(said)}">{"".join(inside)}</svg>'
    )


def _x(area: Axes, value: float) -> float:
    share = math.log(value / area.left) / math.log(area.right / area.left)
    return _LEFT + share * (_WIDE - _LEFT - _RIGHT)


def _y(area: Axes, value: float) -> float:
    share = math.log(value / area.bottom) / math.log(area.top / area.bottom)
    return _HIGH - _BOTTOM - share * (_HIGH - _TOP - _BOTTOM)


def _grid(area: Axes) -> Iterator[str]:
    bottom, right = _HIGH - _BOTTOM, _WIDE - _RIGHT
    for power in range(round(math.log10(area.left)), round(math.log10(area.right)) + 1):
        x = _x(area, 10.0**power)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield _words(x, bottom + 16, f"{10.0**power:g}", "middle")
    for power in range(round(math.log10(area.bottom)), round(math.log10(area.top)) + 1):
        y = _y(area, 10.0**power)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _words(_LEFT - 5, y + 4, short(10.0**power), "end")
    yield _words(right, bottom + 32, "operations a byte", "end")
    yield _words(_LEFT + 4, _TOP + 10, "Gop/s", "start")


def _roofs(area: Axes, judged: Sequence[Judgement], under: Roofs) -> Iterator[str]:
    """Each level's slope up to the highest peak, and the peaks from memory's slope on."""
    peaks = peaks_of(judged, under)
    highest = peaks[0].value if peaks else area.top
    for level in under.bandwidths:
        slope = under.best(level).value
        left = max(area.left, area.bottom / slope)
        right = min(area.right, highest / slope)
        if left < right:
            kind = "roof" if level == "memory" else "roof near"
            yield _line(area, left, left * slope, right, right * slope, kind)
    memory = under.best("memory").value
    for peak in peaks:
        left = max(area.left, peak.value / memory)
        yield _line(area, left, peak.value, area.right, peak.value, "roof")
        y = _y(area, peak.value) - 4
        yield _words(_WIDE - _RIGHT - 2, y, f"{peak.name}: {short(peak.value)}", "end")
    # Below the middle of the slope.
    at = min(area.right, highest / memory) ** 0.5 * area.left**0.5
    x, y = _x(area, at) + 8, _y(area, at * memory) + 16
    yield _words(x, min(y, _HIGH - _BOTTOM - 4), f"memory: {short(memory)} GB/s", "start")


def _line(area: Axes, x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return (
        f'<line class="{kind}" x1="{_x(area, x):.1f}" y1="{_y(area, y):.1f}" '
        f'x2="{_x(area, to_x):.1f}" y2="{_y(area, to_y):.1f}"/>'
    )


def _point(area: Axes, number: int, each: Judgement) -> str:
    assert each.intensity
    assert each.rate
    x, y = _x(area, each.intensity), _y(area, each.rate)
    radius = _LEAST + (_MOST - _LEAST) * math.sqrt(min(1.0, max(0.0, each.point.share)))
    return (
        f'<g><title>{text(each.point.name)}</title><circle cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{radius:.1f}"/>{_words(x + radius + 3, y + 4, mark(number), "start")}</g>'
    )


def _words(x: float, y: float, said: str, side: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{side}">{text(said)}</text>'
