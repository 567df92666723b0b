"""`kuroshio perf occupancy` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..console import Output
from ..messages import printable
from .output import fitting, left_out_says

Facts = dict[str, Any]

_NAME = 16  # columns that the names of kernels have at least
_ALL_VECTOR = 256  # registers that ordinary instructions reach on AMD's devices


def show(kernels: Sequence[Facts]) -> None:
    """One kernel in full; of several a line each, and how to see one in full."""
    output = Output()
    if len(kernels) == 1:
        _show_one(output, kernels[0])
        return
    table, left_out = _overview(kernels, output.width)
    output.print(table)
    if left_out:
        output.say(left_out_says(left_out))
    for facts in kernels:
        for remark in facts["remarks"]:
            output.say(f"{facts['kernel']} ({facts['architecture']}): {remark}")
    output.say("For the table of block sizes of one of them: --kernel NAME.")


def _show_one(output: Output, facts: Facts) -> None:
    if facts["kernel"] is not None:
        output.say(f"{facts['kernel']}, of {facts['file']} ({facts['kind']})")
        output.say(_takes(facts))
    for remark in facts["remarks"]:
        output.say(remark)
    chosen = facts["chosen"]
    output.say(f"{facts['architecture']}, block {chosen['block']}: {_line(chosen)}")
    if chosen["for_more"]:
        output.say(f"For {chosen['for_more']}.")
    if assumed := facts["multiprocessor"]["assumed"]:
        output.say(f"Assumed: {assumed}.")
    output.print(_blocks(facts))
    bounds = facts["launch_bounds"]
    if not bounds["rows"]:
        return
    output.say(
        f"__launch_bounds__({bounds['block']}, M) leaves a thread; M is "
        f"{_of_minimum(bounds['minimum_is'])}:"
    )
    output.print(_bounds(facts))
    if any(row["registers"] > _ALL_VECTOR for row in bounds["rows"]):
        output.say(
            f"Of more than {_ALL_VECTOR} registers the others are accumulation registers, for "
            "matrix instructions and for what is spilled."
        )


def _of_minimum(minimum_is: str) -> str:
    if minimum_is == "waves a SIMD":
        return "taken by HIP's compiler as waves a SIMD, not as blocks"
    return minimum_is


def _takes(facts: Facts) -> str:
    takes, told = facts["takes"], facts["compiler"]
    parts = [f"{takes['registers']} registers a thread"]
    if told["accumulation_registers"]:
        parts[0] += f" ({told['accumulation_registers']} accumulation registers)"
    if takes["scalar_registers"]:
        parts.append(f"{takes['scalar_registers']} scalar registers a wave")
    parts.append(f"{takes['shared_bytes']:,} bytes of shared memory a block")
    if told["max_threads"]:
        parts.append(f"compiled for blocks of at most {told['max_threads']:,} threads")
    if told["registers_allowed"]:
        parts.append(f"allowed {told['registers_allowed']} registers")
    if told["waves_per_simd"]:
        parts.append(f"{told['waves_per_simd']} waves a SIMD by the compiler's reckoning")
    return f"It takes {', '.join(parts)}."


def _line(row: Facts) -> str:
    if not row["blocks"]:
        return f"cannot be launched, because of {row['why']}."
    blocks = "1 block" if row["blocks"] == 1 else f"{row['blocks']} blocks"
    return (
        f"{blocks}, {row['waves']} of {row['max_waves']} waves a multiprocessor "
        f"({row['occupancy']:.0%}), limited by {row['why']}; {row['lanes']:.0%} of lanes in use."
    )


def _blocks(facts: Facts) -> Table:
    table = _table("block", "blocks", "waves", "of all", "lanes in use")
    table.add_column("limited by")
    for row in facts["blocks"]:
        chosen = row["block"] == facts["chosen"]["block"]
        table.add_row(
            str(row["block"]),
            str(row["blocks"]),
            f"{row['waves']} of {row['max_waves']}",
            f"{row['occupancy']:.0%}",
            f"{row['lanes']:.0%}",
            ("" if row["blocks"] else "no launch: ") + row["limited_by"],
            style="bold" if chosen else None,
        )
    return table


def _bounds(facts: Facts) -> Table:
    scalars = facts["launch_bounds"]["minimum_is"] == "waves a SIMD"
    names = ["M", "waves", "blocks", "registers"]
    table = _table(*names, *(["scalar registers"] if scalars else []), "shared bytes a block")
    for row in facts["launch_bounds"]["rows"]:
        cells = [row["minimum"], row["waves"], row["blocks"], row["registers"] or "cannot be kept"]
        cells += [row["scalar_registers"]] if scalars else []
        table.add_row(*map(str, cells), f"{row['shared_bytes']:,}")
    return table


def _overview(kernels: Sequence[Facts], width: int) -> tuple[Table, list[str]]:
    """A line a kernel; names of columns for which there is no room come with the table."""
    cells: dict[str, Sequence[str]] = {
        "for": [facts["architecture"] for facts in kernels],
        "registers": [str(facts["takes"]["registers"]) for facts in kernels],
        "spilled": [_spilled(facts["compiler"]["spilled"]) for facts in kernels],
        "scratch": [_scratch(facts["compiler"]) for facts in kernels],
        "shared": [f"{facts['takes']['shared_bytes']:,}" for facts in kernels],
        "block": [str(facts["chosen"]["block"]) for facts in kernels],
        "waves": ["{waves}/{max_waves}".format(**facts["chosen"]) for facts in kernels],
        "limit": [facts["chosen"]["limited_by"].removesuffix(" memory") for facts in kernels],
    }
    if len(set(cells["for"])) == 1:
        del cells["for"]
    gap = 2
    cells, left_out = fitting(cells, width - _NAME, gap, ("spilled", "shared", "block", "scratch"))
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    table.add_column("kernel", overflow="fold")
    for name in cells:
        table.add_column(
            name, justify="left" if name in ("for", "limit") else "right", no_wrap=True
        )
    for number, facts in enumerate(kernels):
        row = [column[number] for column in cells.values()]
        style = "yellow" if facts["remarks"] else None
        table.add_row(Text(printable(facts["kernel"])), *row, style=style)
    return table, left_out


def _spilled(told: dict[str, int] | None) -> str:
    return "?" if told is None else str(sum(told.values()))


def _scratch(told: Facts) -> str:
    return f"{told['stack_bytes']:,}{'+' if told['dynamic_stack'] else ''}"


def _table(*names: str) -> Table:
    table = Table()
    for name in names:
        table.add_column(name, justify="right", min_width=max(map(len, name.split())))
    return table
