"""What lives on a multiprocessor, for every block size, and what launch bounds leave a thread.

The rules are those of device/occupancy.py; here they are asked in both directions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..device.occupancy import (
    ARCHITECTURES,
    BLOCK_STEP,
    Limits,
    Occupancy,
    choose_block,
    occupancy,
    registers_for_waves,
    scalar_registers_for_waves,
    shared_for_blocks,
    why,
)
from ..errors import Refusal

_MUCH_WORK = 1 << 40  # so that no device is half empty for want of it


@dataclass(frozen=True, kw_only=True)
class Takes:
    """What a launch of a kernel takes."""

    registers: int
    scalar_registers: int = 0
    shared_bytes: int = 0
    """A block's, static and dynamic."""


@dataclass(frozen=True)
class Row:
    """One block size."""

    block: int
    got: Occupancy
    lanes: float
    """The share of the waves' lanes that have a thread, 0 to 1."""
    why: str
    """The limit with the number that sets it."""


@dataclass(frozen=True)
class Bound:
    """What `__launch_bounds__(block, minimum)` leaves; 0 registers: it cannot be kept."""

    minimum: int
    """As written: blocks a multiprocessor (NVIDIA), waves a SIMD (HIP)."""
    waves: int
    """A multiprocessor's, at least."""
    blocks: int
    registers: int
    """A thread."""
    scalar_registers: int
    shared_bytes: int
    """A block, static and dynamic, that lets in so many blocks."""


def short(name: str) -> str:
    """sm_90 of sm_90a, gfx90a of gfx90a:sramecc+:xnack-: what decides about occupancy."""
    return re.sub(r"^(sm_\d+)[af]$", r"\1", name.strip().lower().partition(":")[0])


def limits_of(name: str, whose: str = "") -> Limits:
    """Of an architecture as compilers call it.

    Refusal, with those that are known, if its rules are not published; `whose` names the file
    that is of it.
    """
    known = ARCHITECTURES.get(short(name))
    if known is not None:
        return known
    hint = ""
    if re.fullmatch(r"gfx9[23]\d", short(name)):
        hint = " Hygon publishes no such figures of its devices."
    elif re.fullmatch(r"(compute_|cc)?\d+[.]?\d*", short(name)):
        number = re.sub(r"\D", "", name)
        hint = f" Did you mean sm_{number}?" if f"sm_{number}" in ARCHITECTURES else ""
    raise Refusal(
        f"The rules of the architecture {name!r}{f' of {whose}' if whose else ''} are not known."
        f"{hint} Known are {', '.join(ARCHITECTURES)}. On a machine that has the device, ask it "
        "with --device cuda:0 or hip:0; of a file for several architectures take one with --arch."
    )


def bounded(limits: Limits, max_threads: int | None) -> Limits:
    """The limits of a kernel that was compiled for blocks of at most `max_threads`."""
    if not max_threads:
        return limits
    return replace(limits, max_threads_per_block=min(max_threads, limits.max_threads_per_block))


def is_amd(limits: Limits) -> bool:
    return limits.scalar_registers > 0 or limits.name.startswith("gfx")


def row(limits: Limits, takes: Takes, block: int) -> Row:
    """What blocks of `block` threads get."""
    got = occupancy(
        limits,
        block=block,
        registers=takes.registers,
        scalar_registers=takes.scalar_registers,
        shared_bytes=takes.shared_bytes,
    )
    waves = -(-block // limits.wave_size)
    said = why(limits, got, takes.registers, takes.scalar_registers, takes.shared_bytes)
    return Row(block, got, block / (waves * limits.wave_size), said)


def table(limits: Limits, takes: Takes, block: int | None = None) -> list[Row]:
    """A row for every block size that is a multiple of 64, for one wave, and for `block`."""
    sizes = {limits.wave_size, *range(BLOCK_STEP, limits.max_threads_per_block + 1, BLOCK_STEP)}
    sizes = {size for size in sizes if size <= limits.max_threads_per_block}
    return [row(limits, takes, size) for size in sorted(sizes | ({block} if block else set()))]


def best(limits: Limits, takes: Takes) -> int | None:
    """The smallest block size, a multiple of 64, with most waves; None if none can be launched."""
    try:
        return choose_block(
            limits,
            registers=takes.registers,
            scalar_registers=takes.scalar_registers,
            shared_fixed_bytes=takes.shared_bytes,
            work_items=_MUCH_WORK,
        ).block
    except ValueError:
        return None


def for_more(limits: Limits, takes: Takes, block: int) -> str | None:
    """What must shrink, and to what, for one more block; None where nothing of it would help.

    Granules may let in several at once; the text says how many.
    """
    waves = -(-block // limits.wave_size)
    blocks = row(limits, takes, block).got.blocks + 1
    most_blocks = limits.max_single_wave_blocks if waves == 1 else limits.max_blocks
    if (
        block > limits.max_threads_per_block
        or blocks > most_blocks
        or blocks * waves > limits.max_waves
    ):
        return None
    registers = registers_for_waves(limits, blocks * waves)
    scalars = scalar_registers_for_waves(limits, blocks * waves)
    shared = shared_for_blocks(limits, blocks)
    needs = []
    if takes.registers > registers:
        needs.append(f"{registers} registers a thread (now {takes.registers})")
    if limits.scalar_registers and takes.scalar_registers > scalars:
        needs.append(f"{scalars} scalar registers a wave (now {takes.scalar_registers})")
    if takes.shared_bytes > shared:
        needs.append(f"{shared:,} bytes of shared memory a block (now {takes.shared_bytes:,})")
    if not needs:
        return None
    shrunk = Takes(
        registers=min(takes.registers, registers),
        scalar_registers=min(takes.scalar_registers, scalars),
        shared_bytes=min(takes.shared_bytes, shared),
    )
    blocks = row(limits, shrunk, block).got.blocks
    return f"{'1 block' if blocks == 1 else f'{blocks} blocks'}: at most {' and '.join(needs)}"


def bound(limits: Limits, block: int, minimum: int) -> Bound:
    """What `__launch_bounds__(block, minimum)` leaves.

    CUDA counts `minimum` in blocks a multiprocessor. HIP's compiler takes it as waves a SIMD
    (amdgpu_waves_per_eu), whatever HIP's header calls it, and never fewer than one block needs.
    """
    a_block = -(-block // limits.wave_size)
    if is_amd(limits):
        waves = max(minimum, -(-a_block // limits.simds)) * limits.simds
        blocks = waves // a_block
    else:
        waves, blocks = minimum * a_block, minimum
    most_blocks = limits.max_single_wave_blocks if a_block == 1 else limits.max_blocks
    if (
        block > limits.max_threads_per_block
        or waves > limits.max_waves
        or (not is_amd(limits) and blocks > most_blocks)
    ):
        return Bound(minimum, waves, blocks, 0, 0, 0)
    return Bound(
        minimum,
        waves,
        blocks,
        registers_for_waves(limits, waves),
        scalar_registers_for_waves(limits, waves),
        shared_for_blocks(limits, min(blocks, most_blocks)),
    )


def bounds(limits: Limits, block: int) -> list[Bound]:
    """For every `minimum` that can be kept."""
    most = limits.max_waves // limits.simds if is_amd(limits) else limits.max_blocks
    found = (bound(limits, block, minimum) for minimum in range(1, most + 1))
    return [each for each in found if each.registers]
