"""What `kuroshio perf occupancy` found, as plain numbers and words for JSON and the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..device.occupancy import Limits
from . import occupancy
from .compiled.kernel import Kernel
from .occupancy import Row, Takes

SCHEMA = "kuroshio.perf.occupancy/1"


def report(kernels: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"schema": SCHEMA, "kernels": list(kernels)}


def of_numbers(
    limits: Limits, takes: Takes, *, block: int | None, minimum: int | None
) -> dict[str, Any]:
    """Of what was typed."""
    facts: dict[str, Any] = {
        "kernel": None,
        "file": None,
        "architecture": limits.name,
        "takes": asdict(takes),
        "remarks": [],
    }
    return facts | _occupancy(limits, takes, block, minimum)


def of_kernel(
    limits: Limits,
    kernel: Kernel,
    path: str,
    kind: str,
    *,
    dynamic_bytes: int,
    block: int | None,
    minimum: int | None,
) -> dict[str, Any]:
    """Of what a compiler said."""
    most = limits.max_threads_per_block
    limits = occupancy.bounded(limits, kernel.max_threads)
    # Without a launch bound HIP's compiler writes down the largest size there is.
    bound = limits.max_threads_per_block if limits.max_threads_per_block < most else None
    takes = Takes(
        registers=kernel.registers,
        scalar_registers=kernel.scalar_registers,
        shared_bytes=kernel.shared_bytes + dynamic_bytes,
    )
    said = asdict(kernel)
    facts = {
        "kernel": said.pop("name"),
        "file": path,
        "kind": kind,
        "architecture": limits.name,
        "takes": asdict(takes),
        "compiler": {k: v for k, v in said.items() if k != "architecture"},
        "remarks": kernel.remarks(),
    }
    return facts | _occupancy(limits, takes, block, minimum, bound)


def _occupancy(
    limits: Limits, takes: Takes, block: int | None, minimum: int | None, bound: int | None = None
) -> dict[str, Any]:
    """`bound`: the block size that the kernel was compiled for, where that is known."""
    by = "--block" if block else "launch bound" if bound else "most waves"
    # A size is shown even where nothing can be launched, with the reason.
    shown = block or bound or occupancy.best(limits, takes) or limits.max_threads_per_block
    bounds = occupancy.bounds(limits, shown)
    if minimum is not None:
        bounds = [occupancy.bound(limits, shown, minimum)]
    return {
        "multiprocessor": {
            "wave_size": limits.wave_size,
            "max_waves": limits.max_waves,
            "simds": limits.simds,
            "max_registers_per_thread": limits.max_registers_per_thread,
            "max_threads_per_block": limits.max_threads_per_block,
            "assumed": limits.assumed or None,
        },
        "chosen": {
            **_row(limits, occupancy.row(limits, takes, shown)),
            "by": by,
            "for_more": occupancy.for_more(limits, takes, shown),
        },
        "blocks": [_row(limits, each) for each in occupancy.table(limits, takes, block)],
        "launch_bounds": {
            "block": shown,
            "minimum_is": _minimum(limits),
            "rows": [asdict(each) for each in bounds],
        },
    }


def _minimum(limits: Limits) -> str:
    return "waves a SIMD" if occupancy.is_amd(limits) else "blocks a multiprocessor"


def _row(limits: Limits, row: Row) -> dict[str, Any]:
    return {
        "block": row.block,
        "blocks": row.got.blocks,
        "waves": row.got.waves,
        "occupancy": round(row.got.share, 4),
        "lanes": round(row.lanes, 4),
        "limited_by": row.got.limited_by,
        "why": row.why,
        "max_waves": limits.max_waves,
    }
