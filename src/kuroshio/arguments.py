"""What Python callers give, checked: numbers, years, days, names."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from .errors import Refusal
from .request import check_doys, parse_doys


def days_of_year(doys: Sequence[int] | str | None) -> tuple[int, ...] | None:
    """Days of year as numbers or as the command line writes them: '153:244'."""
    if doys is None:
        return None
    if isinstance(doys, str):
        return parse_doys(doys, 366)
    if not is_several(doys):
        raise Refusal(
            f"doys is {doys!r}; it must be a list such as range(153, 245), or the text '153:244'."
        )
    return check_doys([whole("doys", d) for d in doys], 366)


def whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise Refusal(f"{name} is {value!r}; it must be a whole number, such as 5.")
    return int(value)


def number(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or np.ndim(value):
        raise Refusal(f"{name} is {value!r}; it must be a number.")
    return float(value)


def is_several(given: Any) -> bool:
    return hasattr(given, "__iter__") and not isinstance(given, (str, bytes)) and np.ndim(given) > 0


def baseline_years(given: Any) -> tuple[int, int]:
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != 2:
        raise Refusal(f"The baseline is {given!r}; it must be two years such as (1991, 2020).")
    return whole("The baseline's first year", given[0]), whole("The baseline's last", given[1])


def extra_names(given: Any) -> tuple[str, ...]:
    if not is_several(given):
        raise Refusal(f"extras is {given!r}; it must be a list such as ['count', 'std'].")
    return tuple(given)


def name_of(source: Any) -> str:
    if isinstance(source, (str, PathLike)):
        return str(source)
    if isinstance(source, (list, tuple)) and all(isinstance(s, (str, PathLike)) for s in source):
        return f"{source[0]} and {len(source) - 1} more" if len(source) > 1 else str(source[0])
    return f"an xarray {type(source).__name__}"
