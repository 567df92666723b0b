"""Results as what JSON holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from os import PathLike, fspath
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Dataclasses and mappings as objects, sequences as lists, numbers as Python's."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, PathLike):
        return fspath(value)
    return value
