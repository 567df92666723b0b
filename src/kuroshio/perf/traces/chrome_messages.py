"""How many bytes a collective moves, and in how many ranks, as the host's records of it tell.

torch writes a range nccl:all_reduce with its inputs' shapes, within c10d::allreduce_ with inputs
and outputs, and between them record_param_comms, which in later versions has the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from .events import ABSENT

if TYPE_CHECKING:
    from .chrome import Event

GROUP = "Group size"  # ranks that take part; of kernels, too
RECORD = re.compile(r"nccl:|c10d::|record_param_comms$")
_INPUTS_ONLY = "nccl:"
_MOST = 1 << 62  # bytes; more is no message
_DEEPEST = 64  # dimensions of a tensor
_ITEM = {
    "byte": 1, "char": 1, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "int16": 2,
    "float": 4, "float32": 4, "int": 4, "int32": 4,
    "double": 8, "float64": 8, "long": 8, "int64": 8,
}  # fmt: skip


class _Told(msgspec.Struct, gc=False):
    shapes: Any = msgspec.field(default=None, name="Input Dims")
    types: Any = msgspec.field(default=None, name="Input type")
    sent: Any = msgspec.field(default=None, name="In msg nelems")
    received: Any = msgspec.field(default=None, name="Out msg nelems")
    dtype: Any = None
    group: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name=GROUP)


_DECODER = msgspec.json.Decoder(_Told)


def item_bytes(dtype: object) -> int | None:
    """Of an element of such a type, by torch's or by NCCL's name: Float, c10::Half, signed char."""
    return _item_bytes(dtype) if isinstance(dtype, str) else None


@lru_cache(1024)
def _item_bytes(dtype: str) -> int | None:
    plain = dtype.lower().rpartition("::")[2]
    return _ITEM.get(re.sub(r"^(?:un)?signed ", "", plain))


def larger_side(sides: Sequence[int | None], dtype: object) -> int | None:
    """Bytes of it: an all-gather makes it of many, a reduce-scatter takes it apart."""
    items = [side for side in sides if side is not None]
    item = item_bytes(dtype) if items else None
    return max(items) * item if item else None


def messages(
    events: Sequence[Event], which: np.ndarray
) -> tuple[np.ndarray, dict[int, msgspec.Raw]]:
    """Of those that are RECORDs, a mask: bytes, and ranks that take part, as the file has them.

    Bytes are int64 (event,), ABSENT of others and of silent ones; groups are by number of event.
    """
    found, groups = np.full(len(events), ABSENT, np.int64), {}
    for row in np.flatnonzero(which).tolist():
        event = events[row]
        try:
            told = _DECODER.decode(event.args)
        except msgspec.DecodeError:
            continue
        size = larger_side([_whole(told.sent), _whole(told.received)], told.dtype)
        if size is None:
            size = _of_tensors(told, whole=str(event.name).startswith(_INPUTS_ONLY))
        if size is not None and 0 <= size <= _MOST:
            found[row] = size
        if bytes(told.group):
            groups[row] = told.group
    return found, groups


def _of_tensors(told: _Told, whole: bool) -> int | None:
    """All tensors, where they are the inputs; else the largest, since some are the outputs."""
    if not (isinstance(told.shapes, list) and isinstance(told.types, list)):
        return None
    sizes = []
    for shape, dtype in zip(told.shapes, told.types, strict=False):
        item = item_bytes(dtype)
        if item and _is_shape(shape):
            sizes.append(math.prod(shape) * item)
    if not sizes:
        return None
    return sum(sizes) if whole else max(sizes)


def _is_shape(shape: Any) -> bool:
    """Of a tensor: of none it is empty."""
    return (
        isinstance(shape, list)
        and 0 < len(shape) <= _DEEPEST
        and all(isinstance(each, int) and each >= 0 for each in shape)
    )


def _whole(number: object) -> int | None:
    return number if isinstance(number, int) and number >= 0 else None
