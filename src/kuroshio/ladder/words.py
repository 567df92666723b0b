"""What the rows of the account say, in sentences that are computed from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from .account import FIRST, Row
from .document import FACTORS, GAIN
from .records import KERNELS, NEAR, figure_of

NONE = "n/a"
_PUBLISHED = ("baseline", "A", "B", "C", "D")
_AS_MUCH = 1.1  # a factor that is called none

# What a device, or the whole, is busy with or waits for.
PART_WORDS = {
    "first read": "reading the first batch",
    "hidden wait": "waiting for the reader",
    "copy": "copying to the device",
    "compute": "kernels",
    "final": "copying back",
    "write": "writing",
}
_READING = ("first read", "hidden wait")


def seconds(value: float | None) -> str:
    """Three figures, without a unit: a column has one for all."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:#.3g}" if abs(value) >= 0.001 else f"{value:.3g}"


def times(value: float | None) -> str:
    """How many times as fast."""
    return NONE if value is None else f"{seconds(value)}x"


def percent(share: float) -> str:
    """'95.2%'; 100.0% means all, and 0.0% nothing."""
    if 0.9995 <= share < 1:
        return ">99.9%"
    return "<0.1%" if 0 < share < 0.0005 else f"{100 * share:.1f}%"


def largest(row: Row) -> str:
    """A rung's bottleneck: its largest part, and reading as a whole where that is more."""
    if not row.bottleneck:
        return NONE
    said = f"{PART_WORDS[row.bottleneck]}, {percent(row.share(row.bottleneck))}"
    reading = sum(row.share(part) for part in _READING)
    if row.bottleneck not in _READING and reading > row.share(row.bottleneck):
        said += f" (the reader in all {percent(reading)})"
    return said


def moved(rows: Sequence[Row]) -> list[str]:
    """How the bottleneck moved, a sentence a rung that ran."""
    said, before = [], None
    for row in (row for row in rows if row.bottleneck):
        if before is None:
            said.append(f"{row.key}: the largest part of a pass is {largest(row)}.")
        elif row.bottleneck == before.bottleneck:
            said.append(f"{row.key}: still {largest(row)}.")
        else:
            was, now = before.parts[before.bottleneck], row.parts[before.bottleneck]
            how = "fell" if now < was else "rose"
            said.append(
                f"{row.key}: now the largest part is {largest(row)}; "
                f"{PART_WORDS[before.bottleneck]} {how} from {seconds(was)} to {seconds(now)} s."
            )
        before = row
    return said


def factors(rows: Sequence[Row]) -> list[str]:
    """That factors measured apart do not multiply, or that here they did."""
    said = []
    chain = [row for row in rows if row.key in _PUBLISHED and row.total_s]
    if len(chain) > 2 and chain[0].key == FIRST:
        steps = [(row, *_aimed(row, before)) for before, row in pairwise(chain)]
        product = math.prod(step for _, _, step in steps)
        gain, kernels = chain[-1].gain or 1.0, chain[-1].gpu_gain
        listed = ", ".join(f"{row.key} {times(step)} ({what})" for row, what, step in steps)
        said.append(
            f"Each rung by the figure that its strategy is about: {listed}. Multiplied, that is "
            f"{times(product)}; kernels alone became {times(kernels)} as fast from {FIRST} to "
            f"{chain[-1].key}, and a pass {times(gain)}."
        )
        apart = product / gain
        if 1 / _AS_MUCH < apart < _AS_MUCH:
            said.append(
                "Here the factors do multiply, to what was gained: one figure bounds all rungs."
            )
        else:
            said.append(
                "Factors measured apart do not multiply: once the bottleneck has moved, a faster "
                "part is no longer waited for."
            )
    said.append(
        f"Published: the factors of the seven strategies multiply to {FACTORS:g}, and the whole "
        f"became {GAIN:g} times as fast."
    )
    return said


def fastest(rows: Sequence[Row]) -> str:
    """Which rung takes least, and whether what it gives is right; empty where fewer than 2 ran."""
    ran = sorted((row for row in rows if row.total_s), key=lambda row: row.total_s or 0.0)
    if len(ran) < 2:
        return ""
    best, second = ran[:2]
    assert best.total_s
    assert second.total_s
    exact, second_exact = (
        "exact" if row.accuracy and row.accuracy.exact else "not exact" for row in (best, second)
    )
    ahead = times(second.total_s / best.total_s)
    return (
        f"Fastest from files to file is {best.key}, {seconds(best.total_s)} s a pass, {exact}; "
        f"next is {second.key}, {seconds(second.total_s)} s ({ahead}), {second_exact}."
    )


def right(rows: Sequence[Row]) -> list[str]:
    """Whose results can be used: exact, as near as was promised, or only as published."""
    held = [(row, row.accuracy) for row in rows if row.accuracy]
    kept = [(row, accuracy) for row, accuracy in held if row.kept]
    exact = [row.key for row, accuracy in kept if accuracy.exact]
    said = [f"Exact: {', '.join(exact)}."] if exact else []
    said += [
        f"An estimate, as good as moments allow: {row.key}, with "
        f"{percent(accuracy.within.get(NEAR, 0.0))} within {NEAR} degrees."
        for row, accuracy in kept
        if not accuracy.exact
    ]
    if stated := [(row.key, accuracy) for row, accuracy in held if row.kept is None]:
        shares = [f"of {key} {percent(each.within.get(NEAR, 0.0))}" for key, each in stated]
        said.append(
            f"As published, mistakes and all: {', '.join(key for key, _ in stated)}; within {NEAR} "
            f"degrees are {', '.join(shares)}."
        )
    if broken := [row.key for row, _ in held if row.kept is False]:
        said.append(f"NOT what was promised: {', '.join(broken)}.")
    return said


def counters(rows: Sequence[Row], device: str) -> list[str]:
    """Why none were read, rung by rung where the reasons differ; never a figure for none."""
    why: dict[str, list[str]] = {}
    for row in rows:
        if not row.skipped and not row.counters:
            why.setdefault(row.no_counters or _no_counters(device), []).append(row.key)
    if len(why) == 1 and not any(row.counters for row in rows):
        return [f"Divergence and achieved bandwidth: no counters were read: {next(iter(why))}."]
    return [f"{', '.join(keys)}: no counters were read: {each}." for each, keys in why.items()]


def _no_counters(device: str) -> str:
    if device == "cpu":
        return "the rungs ran on a processor, and these are a GPU's"
    return "none were given (--counters)"


def _aimed(row: Row, before: Row) -> tuple[str, float]:
    """What a rung's strategy is about, and how many times as fast that became; 1 where unknown."""
    if figure_of(row.key) == KERNELS:
        old, new, what = before.gpu_s, row.gpu_s, "kernels"
    else:
        old, new, what = before.total_s, row.total_s, "a pass"
    return what, old / new if old and new else 1.0
