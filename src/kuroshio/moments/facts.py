"""What a file of moments holds, for a person or as JSON."""

from __future__ import annotations

import os
from typing import Any

from ..calendar import iso_date
from .state import EXACT, ROUNDED, read_state, years_text


def facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file of moments holds, as plain numbers and words."""
    state, stored = read_state(path)
    with stored:
        archive, (first, last) = state.archive, state.series.span
        scale = {"scale": state.keys.scale, "offset": state.keys.offset} if state.keys else {}
        return {
            "path": str(path),
            "title": str(stored.attrs.get("title", "")),
            "years": years_text(state.years),
            "half_width_days": state.half_width,
            "variable": archive.variable,
            "units": str(archive.attrs.get("units", "")),
            "grid": ", ".join(
                f"{size} {dim}"
                for dim, size in zip(archive.grid.dims, archive.grid.shape, strict=True)
            ),
            "calendar": archive.calendar,
            "series": f"{iso_date(archive.calendar, first)} to {iso_date(archive.calendar, last)}",
            "days_known": int(state.series.days.size),
            "sums": EXACT if state.keys else ROUNDED,
            **scale,
            **{
                name: getattr(value, "item", lambda v=value: v)()
                for name, value in state.sources.items()
            },
            "history": state.history,
        }
