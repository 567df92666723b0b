"""What a climatology file holds and how it was made: for a terminal, or as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from .console import Output
from .messages import printable
from .output import cell_dims, days_text, latitude_longitude, open_climatology, units_text
from .sizes import size_text

# A NetCDF file hands back its attributes in no order; this is the one in which they make sense.
ORDER = (
    "convention", "references", "baseline", "percentile", "estimator", "window_days",
    "half_width_days", "smoothing", "smooth_width_days", "feb29", "min_valid_share",
    "max_pad_days", "calendar", "source_variable", "source_files", "source_file_count",
    "source_first_file", "source_last_file", "source_first_day", "source_last_day",
    "source_day_count", "baseline_missing_days", "skipped_files", "notes", "kuroshio_version",
    "history",
)  # fmt: skip


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The facts of a climatology file, ready for JSON; reads no values of the variables.

    Keys: path, format, size_bytes, title, variables (name -> long_name, units, dims, shape, dtype,
    chunks), grid (dims, shape, latitude, longitude), days, made (the global attributes).
    """
    path = Path(path)
    with open_climatology(path) as dataset:
        stored = (path,) if path.is_file() else (p for p in path.rglob("*") if p.is_file())
        made = {
            key: _plain(value)
            for key, value in sorted(dataset.attrs.items(), key=_place)
            if key not in ("title", "Conventions")
        }
        return {
            "path": str(path),
            "format": "Zarr 3" if path.suffix == ".zarr" else "NetCDF-4",
            "size_bytes": sum(file.stat().st_size for file in stored),
            "title": dataset.attrs.get("title", ""),
            "variables": {
                str(name): _variable(variable)
                for name, variable in dataset.data_vars.items()
                if "dayofyear" in variable.dims
            },
            "grid": _grid(dataset),
            "days": {
                "text": days_text(dataset),
                "dayofyear": dataset.dayofyear.values.tolist(),
            },
            "made": made,
        }


def print_info(
    path: str | os.PathLike[str], *, as_json: bool = False, console: Console | None = None
) -> None:
    """Show a climatology file's facts on a terminal, or print them as JSON."""
    info = read_info(path)
    console = console or Output()
    if as_json:
        console.out(json.dumps(info, indent=2, ensure_ascii=False), highlight=False)
    else:
        console.print(render(info))


def render(info: dict[str, Any]) -> Group:
    """The facts of `read_info` as tables for rich."""
    holds = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("variable", "what", "units", "type", "shape"):
        holds.add_column(heading, overflow="fold")
    for name, facts in info["variables"].items():
        holds.add_row(
            name,
            facts["long_name"],
            units_text(facts["units"]),
            facts["dtype"],
            " x ".join(map(str, facts["shape"])),
        )
    return Group(
        Text(info["title"], style="bold"),
        Text(
            f"{printable(info['path'])}  {info['format']}, {size_text(info['size_bytes'])}",
            style="dim",
        ),
        Text(),
        holds,
        Text(),
        _pairs([("days", info["days"]["text"]), ("grid", _grid_text(info["grid"]))]),
        Text(),
        Text("How it was made", style="bold"),
        _pairs((key.replace("_", " "), _text(value)) for key, value in info["made"].items()),
    )


def _variable(variable: xr.DataArray) -> dict[str, Any]:
    chunks = variable.encoding.get("chunksizes") or variable.encoding.get("chunks")
    return {
        "long_name": variable.attrs.get("long_name", ""),
        "units": variable.attrs.get("units", ""),
        "dims": [str(dim) for dim in variable.dims],
        "shape": list(variable.shape),
        "dtype": str(variable.dtype),
        "chunks": list(chunks) if chunks else None,
    }


def _grid(dataset: xr.Dataset) -> dict[str, Any]:
    dims = cell_dims(dataset)
    grid: dict[str, Any] = {"dims": list(dims), "shape": [dataset.sizes[dim] for dim in dims]}
    for name, coordinate in zip(
        ("latitude", "longitude"), latitude_longitude(dataset) or (), strict=False
    ):
        values = coordinate.values.astype(np.float64)
        grid[name] = {"first": float(values.flat[0]), "last": float(values.flat[-1])}
        steps = np.diff(values) if values.ndim == 1 else np.array([])
        if (
            coordinate.dims == (coordinate.name,)
            and steps.size
            and np.allclose(steps, steps[0], rtol=1e-3)
        ):
            grid[name]["step"] = float(round(steps.mean(), 6))
    return grid


def _grid_text(grid: dict[str, Any]) -> str:
    sizes = " x ".join(
        f"{size} {dim}" for dim, size in zip(grid["dims"], grid["shape"], strict=True)
    )
    parts = [sizes]
    for name in ("latitude", "longitude"):
        if name in grid:
            facts = grid[name]
            step = f" by {facts['step']:g}" if "step" in facts else ""
            parts.append(f"{name} {facts['first']:g} to {facts['last']:g}{step}")
    return "; ".join(parts)


def _pairs(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in rows:
        # Text, not markup: a pattern such as [0-9]*.nc is to be seen as it is.
        table.add_row(key, Text(value))
    return table


def _place(attribute: tuple[Any, Any]) -> int:
    """Where an attribute stands; unknown ones last."""
    return ORDER.index(attribute[0]) if attribute[0] in ORDER else len(ORDER)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
