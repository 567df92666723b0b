"""Amounts of bytes, as people read them."""

from __future__ import annotations


def size_text(nbytes: int) -> str:
    """Bytes in the largest decimal unit that they fill: 512 B, 2.0 kB, 1.5 MB, 3.2 GB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.1f} {name}"
    return f"{nbytes} B"
