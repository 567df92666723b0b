"""CF packing attributes -> `Packing`, as the decimals the producer meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import Refusal
from .model import Packing

# Attributes that describe the stored codes and not the field: they do not outlive unpacking.
STORAGE_ATTRS = frozenset({
    "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned", "valid_min",
    "valid_max", "valid_range", "actual_range", "_ChunkSizes", "_Storage", "_Endianness",
    "_DeflateLevel", "_Shuffle", "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME",
    "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_ARRAY_DIMENSIONS",
    "least_significant_digit", "_QuantizeBitGroomNumberOfSignificantDigits",
    "_QuantizeGranularBitRoundNumberOfSignificantDigits",
    "_QuantizeBitRoundNumberOfSignificantBits",
})  # fmt: skip
PACKING_ATTRS = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")


def packing(attrs: Mapping[str, Any], dtype: np.dtype, name: str, origin: str) -> Packing:
    """The packing of a variable from its attributes.

    Refused: scale_factor or add_offset on floats (they would need a second rounding), and
    _Unsigned against the stored type.
    """
    scale = decimal(attrs.get("scale_factor", 1.0))
    offset = decimal(attrs.get("add_offset", 0.0))
    unsigned = attrs.get("_Unsigned")
    if unsigned is not None and dtype.kind in "iu":
        wanted = "u" if str(unsigned).strip().lower() == "true" else "i"
        if wanted != dtype.kind:
            raise Refusal(
                f"The variable {name} of {origin} is stored as {dtype.name} with the attribute "
                f"_Unsigned = {unsigned!r}, which is not read here. Open it with xarray and pass "
                "the DataArray, or rewrite the file with the type it means."
            )
    scaled = (scale, offset) != (1.0, 0.0)
    if scaled and dtype.kind == "f":
        raise Refusal(
            f"The variable {name} of {origin} holds {dtype.name} numbers with scale_factor "
            f"{scale:g} and add_offset {offset:g}. Only integers may be packed; open it with "
            "xarray, which unpacks it, and pass the DataArray."
        )
    if not (np.isfinite(scale) and np.isfinite(offset)) or scale == 0:
        raise Refusal(
            f"The variable {name} of {origin} has scale_factor {scale:g} and add_offset "
            f"{offset:g}: no value can be recovered. Repair the file."
        )
    codes: list[float] = []
    for key in ("_FillValue", "missing_value"):
        for code in np.asarray(attrs.get(key, ())).reshape(-1):
            stored = _as_stored(code, dtype)
            if stored is not None and stored not in codes:
                codes.append(stored)
    return Packing(scale, offset, tuple(codes), packed=scaled)


def decimal(value: Any) -> float:
    """The number a producer wrote: a float32 0.01 is 0.01, not the float32 nearest to it."""
    number = np.asarray(value).reshape(-1)[0]
    return float(str(number)) if isinstance(number, np.floating) else float(number)


def _as_stored(code: Any, dtype: np.dtype) -> float | None:
    """A missing code as it compares with stored values; None where no stored value can equal it."""
    try:
        number = float(code)
    except (TypeError, ValueError):
        return None
    if np.isnan(number):
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return float(np.asarray(code, np.float64).astype(dtype))
    limits = np.iinfo(dtype)
    return number if number.is_integer() and limits.min <= number <= limits.max else None
