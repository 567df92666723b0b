"""The account as tables of text, which the terminal and the page show alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .account import GFX906, Compiled, Row, kernels_of
from .document import ABOUT
from .document import CELLS as PUBLISHED_CELLS
from .problem import Problem
from .results import PARTS, Accuracy
from .study import Study
from .words import NONE, largest, percent, seconds, times

NOT_TOLD = "not told"


@dataclass(frozen=True)
class Table:
    """`text` names the columns that hold words; the others hold numbers, flush right.

    links  where the last cell of each row leads, or nothing
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    text: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def tables(
    rows: Sequence[Row], problem: Problem, device: str, folder: str,
    compiled: Sequence[Compiled] = (),
) -> list[Table]:  # fmt: skip
    """All of the account that has rows. `folder` has the records, as seen from the page."""
    ran = [row for row in rows if not row.skipped]
    unit = "CPU" if device == "cpu" else "GPU"
    made = [_seconds(rows, problem, unit), _where(ran), _accuracy(ran)]
    made += [_predicted(ran, folder, unit), _kernels(rows, device), _counters(ran)]
    if rows:
        made.append(_other_kernels(rows, compiled))
    return [table for table in made if table.rows]


def study_table(study: Study) -> Table:
    """A strategy's own table; its claim, prediction and finding are for whoever shows it."""
    words = {
        column
        for at, column in enumerate(study.columns)
        if any(isinstance(row[at], str) for row in study.rows)
    }
    return Table(
        study.title,
        list(study.columns),
        [[_cell(value) for value in row] for row in study.rows],
        frozenset(words),
    )


def _seconds(rows: Sequence[Row], problem: Problem, unit: str) -> Table:
    body = []
    for row in rows:
        published = row.published
        told = [published.gpu_s, published.total_s] if published else [None, None]
        if row.skipped:
            body.append([row.key, f"{row.title} (skipped)", *[NONE] * 6, *map(_or_none, told)])
            continue
        body.append(
            [row.key, row.title, seconds(row.gpu_s), seconds(row.total_s), times(row.gpu_gain),
             times(row.gain), times(row.gpu_step), times(row.step), *map(_or_none, told)]
        )  # fmt: skip
    notes = [f"{row.key} was skipped: {row.skipped}." for row in rows if row.skipped]
    notes += [
        f"{unit}: kernels. Gain: times as fast as the first rung; step: as the rung before.",
        ABOUT,
    ]
    if problem.cells != PUBLISHED_CELLS:
        notes[-1] += f" Here a map has {problem.cells:,} cells and not {PUBLISHED_CELLS:,}."
    said = [
        f"{row.key}: {row.published.note}" for row in rows if row.published and row.published.note
    ]
    if said:
        notes.append(f"Of the published passes: {'; '.join(said)}.")
    whole = [f"{row.key} {seconds(row.run_s)}" for row in rows if row.run_s and row.passes]
    if any(row.run_s and row.total_s and row.run_s > 1.01 * row.total_s for row in rows):
        notes.append(f"The whole problem, all days of year, in seconds: {', '.join(whole)}.")
    return Table(
        "A pass of 12 days: seconds, and how many times as fast",
        ["rung", "what", f"{unit} s", "total s", f"{unit} gain", "total gain", f"{unit} step",
         "total step",
         "publ. GPU s", "publ. total s"],
        body, frozenset({"rung", "what"}), notes,
    )  # fmt: skip


def _where(ran: Sequence[Row]) -> Table:
    return Table(
        "Where the seconds of a pass went",
        ["rung", *PARTS, "largest part"],
        [
            [row.key, *(_part(row, part) for part in PARTS), largest(row)]
            for row in ran
        ],
        frozenset({"rung", "largest part"}),
        [" ".join(f"{part[0].upper()}{part[1:]}: {what}." for part, what in PARTS.items())],
    )  # fmt: skip


def _accuracy(ran: Sequence[Row]) -> Table:
    held = [(row, row.accuracy) for row in ran if row.accuracy]
    limits = list(held[0][1].within) if held else []
    notes = ["Published of moments: usually within 0.5, and 90 % of cells within 0.3 degrees."]
    if lacking := [f"{row.key} {each.disagree:,}" for row, each in held if each.disagree]:
        notes.append(f"Values that only one of the two has: {', '.join(lacking)}.")
    return Table(
        "Differences from the exact threshold, of all cells and days",
        ["rung", *(f"within {limit}" for limit in limits), "largest", "root mean square",
         "largest of mean", "promise kept"],
        [
            [row.key, *(percent(accuracy.within.get(limit, 0.0)) for limit in limits),
             seconds(accuracy.largest), seconds(accuracy.root_mean_square),
             seconds(accuracy.largest_of_mean), _promise(row, accuracy)]
            for row, accuracy in held
        ],
        frozenset({"rung", "promise kept"}),
        notes,
    )  # fmt: skip


def _predicted(ran: Sequence[Row], folder: str, unit: str) -> Table:
    body, links = [], []
    for row in ran:
        record = row.experiment.partition("-")[0] or NONE
        links.append(f"{folder}/{row.experiment}" if row.experiment else "")
        wait = row.predicted.get("hidden_wait_s")
        body.append(
            [row.key, _range(row.predicted.get("gpu_s")), seconds(row.gpu_s),
             _range(row.predicted.get("total_s")), seconds(row.total_s), seconds(wait),
             seconds(row.parts["hidden wait"]), row.verdict or "not judged",
             row.decision or NONE, record]
        )  # fmt: skip
    return Table(
        "Predicted before the run, and measured: seconds of a pass",
        ["rung", f"{unit}, predicted", unit, "total, predicted", "total", "wait, predicted", "wait",
         "verdict", "conclusion", "record"],
        body, frozenset({"rung", "verdict", "conclusion", "record"}),
        [
            "Verdict: whether the figure that the record names (kernels, or the whole pass; mostly "
            "divided by that of the rung before) came out in the range that was predicted. It says "
            "nothing of whether results are right: 'confirmed' may be a program that is quickly "
            "wrong. Conclusion: whether the change is kept (accept) or not (roll back), for right "
            f"results and for time; the reason is in the record, in {folder}/.",
        ],
        links,
    )  # fmt: skip


def _kernels(rows: Sequence[Row], device: str) -> Table:
    """On a processor only what a compiler for gfx906 says: it has no kernels of its own."""
    on_cpu = device == "cpu"
    body = []
    for row in rows:
        for kernel in row.kernels:
            here = kernel.here
            mine = [] if on_cpu else [NOT_TOLD] * 4
            if here and not on_cpu:
                mine = [f"{here.registers}", f"{here.local_bytes}", f"{here.block}",
                        percent(here.occupancy)]  # fmt: skip
            share = kernel.occupancy_gfx906
            body.append(
                [row.key, kernel.name, *mine, _count(kernel.registers_gfx906),
                 _count(kernel.scratch_gfx906), NOT_TOLD if share is None else percent(share)]
            )  # fmt: skip
    return Table(
        f"What compilers made of the kernels: {'' if on_cpu else f'{device}, and '}gfx906 in "
        "blocks of 256",
        ["rung", "kernel",
         *([] if on_cpu else ["registers", "scratch B", "block", "occupancy"]),
         "gfx906 VGPR", "gfx906 scratch B", "gfx906 occupancy"],
        body, frozenset({"rung", "kernel"}),
        ["VGPR: vector registers a thread. Scratch: bytes a thread has in memory instead. "
         "Occupancy: of all wavefronts that a compute unit can hold, how many find registers. "
         "No GPU was needed for gfx906, only a compiler."],
    )  # fmt: skip


def _other_kernels(rows: Sequence[Row], compiled: Sequence[Compiled]) -> Table:
    """Of gfx906, those that studies run, or rungs that were not asked for."""
    shown = {each for row in rows for each in kernels_of(row.key)}
    return Table(
        "Other kernels on gfx906, in blocks of 256",
        ["source", "kernel", "gfx906 VGPR", "gfx906 scratch B", "gfx906 occupancy"],
        [
            [each.text, each.kernel, f"{each.registers}", f"{each.stack_bytes}",
             percent(each.occupancy)]
            for each in compiled
            if each.architecture == GFX906 and (each.text, each.kernel) not in shown
        ],
        frozenset({"source", "kernel"}),
        ["Source: which of the rungs' files, and with what. Bounds: of __launch_bounds__."],
    )  # fmt: skip


def _counters(ran: Sequence[Row]) -> Table:
    names = list(dict.fromkeys(name for row in ran for name in row.counters))
    return Table(
        "Counters of the device",
        ["rung", *names],
        [
            [row.key, *(seconds(row.counters.get(name)) for name in names)]
            for row in ran
            if row.counters
        ],
        frozenset({"rung"}),
    )


def _part(row: Row, part: str) -> str:
    return f"{seconds(row.parts[part])} ({percent(row.share(part))})"


def _promise(row: Row, accuracy: Accuracy) -> str:
    if row.kept is None:
        return "none is made"
    if not row.kept:
        return "NO"
    return "yes, exact" if accuracy.exact else "yes"


def _range(ends: Sequence[float] | None) -> str:
    return NONE if ends is None else " to ".join(map(seconds, ends))


def _count(number: int | None) -> str:
    return NOT_TOLD if number is None else f"{number}"


def _or_none(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _cell(value: Any) -> str:
    """A study's: text as it is, numbers with three figures, whole ones whole."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else seconds(float(value))
