"""What a person sees in the terminal: the plan, the account. The progress bar is in bar.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from . import calendar as cal
from .account import Account, peak_memory_bytes
from .console import Output
from .engines.worth import Task, gpu_saves_s
from .keys import AFFINE16, AFFINE32, FLOAT32, YEARS_PER_WORD, Keys
from .messages import printable

if TYPE_CHECKING:
    from .archive.model import Archive
    from .archive.plan import Plan
    from .engines.choose import Choice
    from .job import Done, Job

_KEYS = {
    AFFINE16: "16-bit codes",
    AFFINE32: "32-bit codes",
    FLOAT32: "32-bit floats",
}


# What the facts of a plan are called on a terminal, where the name in JSON does not say.
_LABELS = {
    "method": "method of the percentiles",
    "pieces_to_read": "pieces (files or chunks) to read",
    "read_amplification": "each piece is read",
    "decoded_gb": "data once inflated",
    "keys": "values held as",
    "exact": "values exact",
    "days_of_year_at_a_time": "days of year in memory at a time",
    "blocks": "blocks of the grid",
    "rows_a_block": "rows of a block",
    "memory_gb": "memory needed",
    "memory_allowed_gb": "memory allowed",
    "device_why": "why this device",
    "sharing": "how they share",
    "estimated_seconds": "time",
}


def show_account(output: Any, done: Done) -> None:
    """Where the time went, and what bounds the run."""
    console = Output()
    console.say(f"{output}: {done.seconds:.1f} s on {done.choice.device}, {_threads(done)}")
    if done.choice.line:
        console.say(done.choice.line)
    if sharing := _sharing(done.choice, done.plan):
        console.say(sharing)
    console.print(_stages(done.account, done.seconds))
    device = done.device_rows
    if device:
        console.print(_device_table(device))
    if done.report.rings:
        console.say(_rings(done.report.rings))
    if done.report.inflation:
        console.say(_inflation(done.report.inflation))
    peak = peak_memory_bytes()
    memory = "" if peak is None else f"Peak memory {peak / 1e9:.1f} GB. "
    days = "1 day" if len(done.plan.doys) == 1 else f"{len(done.plan.doys)} days"
    console.say(
        f"{done.plan.days_read:,} days read ({done.plan.read_bytes / 1e9:.1f} GB decoded), "
        f"{days} of year written. {memory}"
        f"This run was bound by {done.account.bound(done.seconds)}."
    )


def show_stages(output: Any, seconds: float, account: Account) -> None:
    """Where the time of a run went that was the processor's alone."""
    console = Output()
    threads = "1 thread" if account.threads == 1 else f"{account.threads} threads"
    console.say(f"{output}: {seconds:.1f} s, {threads}")
    console.print(_stages(account, seconds))
    console.say(f"This run was bound by {account.bound(seconds)}.")


def _stages(account: Account, seconds: float) -> Table:
    table = Table()
    for name, justify in (
        ("stage", "left"),
        ("thread s", "right"),
        ("share", "right"),
        ("GB/s a thread", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for row in account.rows(seconds):
        rate = row["gb_per_s"]
        table.add_row(
            row["what"],
            f"{row['thread_seconds']:.1f}",
            f"{row['share']:.0%}",
            "" if rate is None or row["stage"] in ("compute", "smooth") else f"{rate:.2f}",
        )
    return table


def plan_facts(
    archive: Archive, job: Job, keys: Keys, plan: Plan, choice: Choice
) -> dict[str, Any]:
    """What would be done, as plain numbers and words."""
    from .device.cpu import available_threads

    threads = job.threads or available_threads()
    cells = archive.grid.cells
    return {
        "variable": archive.variable,
        "grid": dict(zip(archive.grid.dims, archive.grid.shape, strict=True)),
        "cells": cells,
        "calendar": archive.calendar,
        "baseline": list(job.request.baseline),
        "method": job.request.method,
        "first_day": cal.iso_date(archive.calendar, int(archive.days[0])),
        "last_day": cal.iso_date(archive.calendar, int(archive.days[-1])),
        "days_in_archive": int(archive.days.size),
        "days_to_read": plan.days_read,
        "pieces_to_read": plan.pieces,
        "read_amplification": round(plan.amplification, 3),
        "decoded_gb": round(plan.read_bytes / 1e9, 3),
        "read_order": _order(archive, plan),
        "keys": _KEYS.get(keys.kind, "64-bit floats"),
        "exact": "to the stored value" if keys.lossless else f"to {keys.scale / 2:.1e}",
        "days_of_year_written": len(plan.doys),
        "days_of_year_computed": plan.computed,
        "days_of_year_at_a_time": plan.batch,
        "blocks": plan.blocks,
        "rows_a_block": plan.block_rows,
        "memory_gb": round(plan.memory_bytes / 1e9, 3),
        "memory_allowed_gb": round(job.budget_bytes / 1e9, 3),
        "threads": threads,
        "device": choice.device,
        "device_model": choice.model,
        "device_why": choice.why,
        "sharing": _sharing(choice, plan),
        "estimated_seconds": round(_estimate(job, plan, keys, choice, cells, threads), 1),
    }


def show_plan(facts: dict[str, Any]) -> None:
    table = Table(title="Plan (nothing has been read)", show_header=False, title_justify="left")
    table.add_column()
    table.add_column()
    for name, value in facts.items():
        if value is None:
            continue
        table.add_row(_LABELS.get(name, name.replace("_", " ")), Text(_shown(name, value)))
    Output().print(table)


def _sharing(choice: Choice, plan: Plan) -> str | None:
    """What several devices have to do each, and how often files are read for them all."""
    number = len(choice.gpus)
    if number < 2:
        return None
    once = round(plan.amplification, 2) == 1
    read = "every file is read once" if once else "no file is read more often than for one"
    return (
        f"{number} devices share the cells evenly; {read} (read amplification "
        f"{plan.amplification:.2f})"
    )


def _threads(done: Done) -> str:
    return "1 thread" if done.account.threads == 1 else f"{done.account.threads} threads"


def _device_table(rows: list[dict[str, Any]]) -> Table:
    """What the device did on its own: a column for all, and what copies were hidden behind."""
    table = Table()
    table.add_column("device")
    for name in ("s", "share", "GB/s", "meanwhile read or computed"):
        table.add_column(name, justify="right")
    for row in rows:
        overlapped = row.get("overlapped_seconds")
        table.add_row(
            row["what"],
            f"{row['busy_seconds']:.3f}",
            f"{row['share']:.0%}",
            f"{row['gb_per_s']:.1f}",
            "" if overlapped is None else f"{overlapped:.3f} s",
        )
    return table


def _rings(rings: dict[str, Any]) -> str:
    maps = "1 map" if rings["maps"] == 1 else f"{rings['maps']} maps"
    return (
        f"Rings: {rings['rings']} of {maps} a thread, {rings['pinned_gb']:.2f} GB pinned; waiting "
        f"for them: predicted {rings['predicted_wait_s']:.2f} s, measured "
        f"{rings['measured_wait_s']:.2f} s"
    )


def _inflation(inflation: dict[str, Any]) -> str:
    return (
        f"Inflated on the device: {inflation['maps_on_device']:,} of {inflation['maps']:,} maps, "
        f"predicted {inflation['device_predicted_s']:.2f} s, measured "
        f"{inflation['device_measured_s']:.2f} s"
    )


def _shown(name: str, value: Any) -> str:
    """A fact with its unit, for people."""
    if isinstance(value, dict):
        return printable(", ".join(f"{k} {v:,}" for k, v in value.items()))
    if name == "baseline":
        return f"{value[0]} to {value[1]}"
    if name.endswith("_gb"):
        return "under 0.01 GB" if value < 0.01 else f"{value:,.2f} GB"
    if name == "estimated_seconds":
        return "under a second" if value < 1 else f"about {value:,.0f} s (a guess)"
    if name == "read_amplification":
        return "once" if value == 1 else f"{value:g} times"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _order(archive: Archive, plan: Plan) -> str:
    months, days = cal.month_day(archive.calendar, np.array([plan.walk[0], plan.walk[-1]]))
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    first, last = (f"{d} {names[m - 1]}" for m, d in zip(months, days, strict=True))
    return f"by day of year, {first} to {last}, all years of a day together"


def _estimate(job: Job, plan: Plan, keys: Keys, choice: Choice, cells: int, threads: int) -> float:
    """Seconds from the rates of an ordinary processor's thread; a guess, and called one."""
    words = job.request.window * -(-job.request.years // YEARS_PER_WORD)
    task = Task(cells, plan.computed, words, keys.bits // 8, threads, plan.read_bytes)
    decode = plan.read_bytes / 0.6e9
    write = len(plan.doys) * cells * 8 / 0.8e9
    saved = gpu_saves_s(task, inflates=choice.inflates) if choice.gpus else 0.0
    return (decode + write) / threads + task.compute_s - saved
