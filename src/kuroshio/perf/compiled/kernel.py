"""What one kernel takes, whichever compiler said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """None means: this kind of file does not tell."""

    name: str
    architecture: str | None
    """sm_90, gfx906: as `ARCHITECTURES` calls it."""
    registers: int
    """A thread; AMD: vector registers, accumulation registers included from gfx90a on."""
    accumulation_registers: int | None = None
    """AMD: those of them that only matrix instructions and copies reach."""
    scalar_registers: int = 0
    """AMD: a wave."""
    stack_bytes: int
    """A thread's memory outside registers: AMD scratch, NVIDIA stack. Arrays land here too."""
    dynamic_stack: bool = False
    """More stack than stack_bytes, how much is not known."""
    spilled: Mapping[str, int] | None
    """What did not fit into registers. NVIDIA: bytes stored and loaded, AMD: registers."""
    shared_bytes: int
    """A block's, without what the launch adds and what the driver reserves."""
    max_threads: int | None = None
    """Of a block, as __launch_bounds__ said."""
    registers_allowed: int | None = None
    """NVIDIA: what the launch bounds or -maxrregcount left a thread."""
    waves_per_simd: int | None = None
    """AMD: the compiler's own idea of the occupancy that registers and shared memory allow."""

    @property
    def spills(self) -> int:
        """All that was spilled, 0 too where it is not told."""
        return sum((self.spilled or {}).values())

    def remarks(self) -> list[str]:
        """What deserves a look, each in a sentence."""
        found = []
        memory = f"{self.stack_bytes:,} bytes a thread"
        if self.stack_bytes and self.spills:
            found.append(f"Scratch: {memory}; spilled: {_named(self.spilled)}.")
        elif self.stack_bytes and self.spilled is None:
            found.append(
                f"Scratch: {memory}. This kind of file does not tell spilled registers from "
                "arrays with addresses that are known only at run time."
            )
        elif self.stack_bytes:
            found.append(
                f"Scratch: {memory} although nothing was spilled: an array whose addresses are "
                "known only at run time, or a call that was not inlined."
            )
        elif self.spills:
            found.append(f"Spilled: {_named(self.spilled)}, into other registers.")
        if self.dynamic_stack:
            found.append(
                "Stack of unknown size: the compiler does not know how deep calls go (recursion, "
                "function pointers)."
            )
        return found


def _named(spilled: Mapping[str, int] | None) -> str:
    return " and ".join(f"{count:,} {what}" for what, count in (spilled or {}).items() if count)
