"""How many blocks of a kernel live on a multiprocessor at once, and which block size is best.

A multiprocessor (NVIDIA: SM, AMD: CU, compute unit) hides the latency of memory by switching
between waves (warps, wavefronts). How many it holds is arithmetic on what a block needs: places
for waves and blocks, registers, shared memory. All functions here are pure; no device is asked.

Where the rules and numbers come from:

- NVIDIA: sizes are those of "Technical Specifications per Compute Capability" in the CUDA C++
  Programming Guide (of CUDA 13 for 7.5 and later, of CUDA 12 for 7.0 and 7.2). Granules (256
  registers a warp; 256 bytes of shared memory before compute capability 8.0, 128 from then on),
  the four sub-partitions among which warps and registers are divided and the 1 KB reserved a block
  from 8.0 on are those of the toolkit's cuda_occupancy.h. Shared memory is taken at its largest
  carve-out, which is what a launcher can ask for.
- AMD: LLVM's AMDGPUBaseInfo.cpp. Four SIMDs a compute unit. 256 vector registers a lane on each
  and 10 waves before gfx90a, 512 and 8 from then on, in granules of 4 and 8 a lane. 800 scalar
  registers a SIMD in granules of 16, of which a wave can name 102. 64 KB of shared memory (LDS)
  in granules of 512 bytes. 16 blocks that use barriers; blocks of one wave need none. LLVM prints
  9 waves for 81 to 88 scalar registers and 8 for 97 to 100; by its own granule they are 8 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

Limit = Literal["registers", "shared memory", "waves", "blocks", "block size"]

BLOCK_STEP = 64
"""Block sizes are multiples of this: whole waves on every device, of 32 lanes or of 64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one multiprocessor has. Registers are of 32 bits; sizes are in bytes."""

    name: str
    """The architecture, as its compiler calls it: sm_90, gfx906."""
    wave_size: int
    max_waves: int
    max_blocks: int
    """Blocks of more than one wave."""
    max_single_wave_blocks: int
    max_threads_per_block: int = 1024
    simds: int = 4
    """Parts among which registers and waves are divided evenly; a wave lives on one."""
    registers: int
    """Of all SIMDs together, counted a lane: a wave takes wave_size x registers a thread."""
    register_granule: int
    """A wave's registers (of all its lanes) are rounded up to a multiple of this."""
    max_registers_per_thread: int
    scalar_registers: int = 0
    """A SIMD's; 0 where they are not shared between waves (NVIDIA)."""
    scalar_granule: int = 16
    max_scalar_registers: int = 0
    """A wave's that instructions can name."""
    shared_bytes: int
    shared_granule: int
    shared_reserved: int = 0
    """The driver's own, in every block."""
    max_shared_per_block: int
    multiprocessors: int = 1
    """On the device; 1 where it is not known, and then little work is not spread."""
    assumed: str = ""
    """What was not known and is taken to be as on a relative; empty if nothing."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What lives on one multiprocessor at once; 0 blocks mean that the launch would fail."""

    blocks: int
    waves: int
    limited_by: Limit
    share: float
    """waves / max_waves, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A chosen block size, and what it gets on one multiprocessor."""

    block: int
    """Threads."""
    grid: int
    """Blocks that cover the work."""
    blocks: int
    waves: int
    share: float
    limited_by: Limit
    text: str
    """All that in one line."""


def occupancy(
    limits: Limits,
    *,
    block: int,
    registers: int,
    shared_bytes: int,
    scalar_registers: int = 0,
) -> Occupancy:
    """How many blocks of `block` threads fit on a multiprocessor.

    `registers` a thread (AMD: vector registers, accumulation registers included from gfx90a on),
    `shared_bytes` a block (static and dynamic), `scalar_registers` a wave (AMD; 0 if not known).
    Where two resources allow equally few blocks, the one that cannot be given back is named:
    waves, then blocks, registers, shared memory. ValueError if a number is negative or the block
    is empty.
    """
    if block < 1 or min(registers, shared_bytes, scalar_registers) < 0:
        raise ValueError(
            f"a block of {block} threads, {registers} registers a thread, {scalar_registers} "
            f"scalar registers and {shared_bytes} bytes of shared memory is no launch"
        )
    if block > limits.max_threads_per_block:
        return Occupancy(0, 0, "block size", 0.0)
    waves = -(-block // limits.wave_size)
    fits: dict[Limit, int] = {
        "waves": limits.max_waves // waves,
        "blocks": limits.max_single_wave_blocks if waves == 1 else limits.max_blocks,
        "registers": _waves_by_registers(limits, registers, scalar_registers) // waves,
        "shared memory": _blocks_by_shared(limits, shared_bytes),
    }
    limited_by = min(fits, key=lambda what: fits[what])
    blocks = fits[limited_by]
    return Occupancy(blocks, blocks * waves, limited_by, blocks * waves / limits.max_waves)


def _waves_by_registers(limits: Limits, registers: int, scalar_registers: int) -> int:
    """Waves whose registers fit; a wave lives on one SIMD and takes them from that one."""
    if registers > limits.max_registers_per_thread:
        return 0
    granule = limits.register_granule
    a_simd = limits.max_waves
    if registers:
        a_wave = _round_up(registers * limits.wave_size, granule)
        a_simd = limits.registers // limits.simds // a_wave
    if limits.scalar_registers and scalar_registers:
        scalars = _round_up(scalar_registers, limits.scalar_granule)
        if scalars > _round_up(limits.max_scalar_registers, limits.scalar_granule):
            return 0  # a wave can name some, and has a few that are not named
        a_simd = min(a_simd, limits.scalar_registers // scalars)
    return a_simd * limits.simds


def _blocks_by_shared(limits: Limits, shared_bytes: int) -> int:
    if shared_bytes > limits.max_shared_per_block:
        return 0
    taken = _round_up(shared_bytes + limits.shared_reserved, limits.shared_granule)
    return limits.shared_bytes // taken if taken else limits.max_single_wave_blocks


def choose_block(
    limits: Limits,
    *,
    registers: int,
    shared_per_thread_bytes: int = 0,
    shared_fixed_bytes: int = 0,
    work_items: int,
    scalar_registers: int = 0,
    max_block: int = 1024,
) -> Launch:
    """The block size, a multiple of 64, that keeps most waves of `work_items` threads in flight.

    With work enough for the whole device that is the best occupancy. With less, every size may
    have all of it in flight, and then the one is taken whose blocks reach most multiprocessors.
    Of equals the smallest: its blocks end and begin at a finer grain. `max_block` is for a
    kernel compiled with a launch bound. ValueError, with the numbers, if no size fits.
    """
    if work_items < 1:
        raise ValueError(f"{work_items} work items are nothing to launch; at least 1")
    largest = min(max_block, limits.max_threads_per_block)
    best: tuple[tuple[int, int], int, int, Occupancy] | None = None
    all_waves = -(-work_items // limits.wave_size)
    for block in range(BLOCK_STEP, largest + 1, BLOCK_STEP):
        shared = shared_fixed_bytes + block * shared_per_thread_bytes
        got = occupancy(
            limits,
            block=block,
            registers=registers,
            shared_bytes=shared,
            scalar_registers=scalar_registers,
        )
        in_flight = min(all_waves, got.waves * limits.multiprocessors)
        busy = min(-(-work_items // block), limits.multiprocessors)
        if got.blocks and (best is None or (in_flight, busy) > best[0]):
            best = (in_flight, busy), block, shared, got
    if best is None:
        raise ValueError(
            f"no block of {BLOCK_STEP} to {largest} threads fits {limits.name}: registers "
            f"{registers} a thread (at most {limits.max_registers_per_thread}, "
            f"{limits.registers:,} a multiprocessor), shared memory {shared_fixed_bytes:,} bytes "
            f"a block and {shared_per_thread_bytes:,} a thread (at most "
            f"{limits.max_shared_per_block:,} a block)"
        )
    (_, busy), block, shared, got = best
    text = (
        f"block {block}: {got.waves} of {limits.max_waves} waves a multiprocessor, "
        f"limited by {why(limits, got, registers, scalar_registers, shared)}"
    )
    if busy < limits.multiprocessors:
        text += f"; the work reaches {busy} of {limits.multiprocessors} multiprocessors"
    return Launch(
        block=block,
        grid=-(-work_items // block),
        blocks=got.blocks,
        waves=got.waves,
        share=got.share,
        limited_by=got.limited_by,
        text=text,
    )


def why(limits: Limits, got: Occupancy, registers: int, scalars: int, shared: int) -> str:
    """The limit with the number that sets it."""
    if got.limited_by == "registers":
        if _waves_by_registers(limits, registers, 0) > (
            _waves_by_registers(limits, registers, scalars)
        ):
            return f"registers ({scalars} scalar ones a wave)"
        return f"registers ({registers} a thread)"
    if got.limited_by == "shared memory":
        return f"shared memory ({shared:,} bytes a block)"
    if got.limited_by == "block size":
        return f"block size ({limits.max_threads_per_block:,} threads at most)"
    if got.limited_by == "blocks":
        return f"blocks ({got.blocks} a multiprocessor)"
    return f"waves ({got.waves // got.blocks} a block)"


def registers_for_waves(limits: Limits, waves: int) -> int:
    """The most registers a thread may take where `waves` waves live on a multiprocessor.

    0 if so many never do. AMD: vector registers, accumulation registers included from gfx90a on.
    """
    if waves > limits.max_waves:
        return 0
    a_wave = limits.registers // limits.simds // _waves_a_simd(limits, waves)
    a_wave -= a_wave % limits.register_granule
    return min(a_wave // limits.wave_size, limits.max_registers_per_thread)


def scalar_registers_for_waves(limits: Limits, waves: int) -> int:
    """AMD: the most scalar registers that each of `waves` waves may take; elsewhere 0."""
    if waves > limits.max_waves:
        return 0
    a_wave = limits.scalar_registers // _waves_a_simd(limits, waves)
    return min(a_wave - a_wave % limits.scalar_granule, limits.max_scalar_registers)


def shared_for_blocks(limits: Limits, blocks: int) -> int:
    """The most bytes of shared memory that each of `blocks` blocks on a multiprocessor may take.

    Static and dynamic together; 0 also where not even the driver's own bytes have room.
    """
    a_block = limits.shared_bytes // blocks
    a_block -= a_block % limits.shared_granule + limits.shared_reserved
    return max(0, min(a_block, limits.max_shared_per_block))


def _waves_a_simd(limits: Limits, waves: int) -> int:
    return -(-waves // limits.simds)


def _round_up(number: int, granule: int) -> int:
    return -(-number // granule) * granule


def _nvidia(
    name: str, warps: int, blocks: int, shared_kb: int, *, granule: int = 128, reserved: int = 1024
) -> Limits:
    return Limits(
        name=name,
        wave_size=32,
        max_waves=warps,
        max_blocks=blocks,
        max_single_wave_blocks=blocks,
        registers=65_536,
        register_granule=256,
        max_registers_per_thread=255,
        shared_bytes=shared_kb * 1024,
        shared_granule=granule,
        shared_reserved=reserved,
        max_shared_per_block=shared_kb * 1024 - reserved,
    )


def _amd(name: str, waves_a_simd: int, vector_registers: int, granule: int) -> Limits:
    return Limits(
        name=name,
        wave_size=64,
        max_waves=4 * waves_a_simd,
        max_blocks=16,
        max_single_wave_blocks=4 * waves_a_simd,
        registers=4 * 64 * vector_registers,
        register_granule=64 * granule,
        max_registers_per_thread=vector_registers,
        scalar_registers=800,
        max_scalar_registers=102,
        shared_bytes=65_536,
        shared_granule=512,
        max_shared_per_block=65_536,
    )


ARCHITECTURES: Mapping[str, Limits] = MappingProxyType(
    {
        limits.name: limits
        for limits in (
            _nvidia("sm_70", 64, 32, 96, granule=256, reserved=0),
            _nvidia("sm_72", 64, 32, 96, granule=256, reserved=0),
            _nvidia("sm_75", 32, 16, 64, granule=256, reserved=0),
            _nvidia("sm_80", 64, 32, 164),
            _nvidia("sm_86", 48, 16, 100),
            _nvidia("sm_87", 48, 16, 164),
            _nvidia("sm_89", 48, 24, 100),
            _nvidia("sm_90", 64, 32, 228),
            _nvidia("sm_100", 64, 32, 228),
            _nvidia("sm_120", 48, 24, 100),
            _amd("gfx906", 10, 256, 4),
            _amd("gfx908", 10, 256, 4),
            _amd("gfx90a", 8, 512, 8),
            _amd("gfx942", 8, 512, 8),
        )
    }
)
"""Devices whose numbers are published. Others are asked: `limits_of_device`."""


def limits_of_device(architecture: str, attributes: Mapping[str, int]) -> Limits:
    """The limits of a device, by its architecture (sm_90, gfx90a:sramecc+:xnack-) or its answers.

    `attributes` are what the runtime says, under the names CuPy gives them
    (`cupy.cuda.Device().attributes`). Of an architecture in the table only the number of
    multiprocessors is taken from them. Any other device is believed in what it says of sizes; its
    granules, which no runtime tells, are taken as on its relatives (`Limits.assumed` says so).
    ValueError if the device is not known and does not tell its wave size.
    """
    name = architecture.partition(":")[0]

    def told(attribute: str, otherwise: int) -> int:
        # A runtime that does not know answers 0, or leaves the name out.
        return int(attributes.get(attribute, 0)) or otherwise

    count = told("MultiProcessorCount", 1)
    if name in ARCHITECTURES:
        return replace(ARCHITECTURES[name], multiprocessors=count)
    wave = told("WarpSize", 0)
    if wave not in (32, 64):
        raise ValueError(
            f"{architecture} is not in the table ({', '.join(ARCHITECTURES)}) and tells a wave "
            f"size of {wave}; 32 or 64 are known"
        )
    # Granules differ within a family; these are its larger ones, so what is said to fit, fits.
    amd = name.startswith("gfx")
    kin = ARCHITECTURES["gfx90a" if amd else "sm_90"]
    waves = told("MaxThreadsPerMultiProcessor", 1024) // wave
    blocks = told("MaxBlocksPerMultiprocessor", 16)
    shared = told("MaxSharedMemoryPerMultiprocessor", told("MaxSharedMemoryPerBlock", 49_152))
    reserved = told("ReservedSharedMemoryPerBlock", kin.shared_reserved)
    return replace(
        kin,
        name=name,
        wave_size=wave,
        max_waves=waves,
        max_blocks=min(blocks, 16) if amd else blocks,
        max_single_wave_blocks=waves if amd else blocks,
        max_threads_per_block=told("MaxThreadsPerBlock", 1024),
        registers=told("MaxRegistersPerMultiprocessor", told("MaxRegistersPerBlock", 65_536)),
        max_registers_per_thread=256 if amd else 255,
        scalar_registers=kin.scalar_registers if wave == 64 else 0,
        max_scalar_registers=kin.max_scalar_registers if wave == 64 else 0,
        shared_bytes=shared,
        shared_reserved=reserved,
        max_shared_per_block=told(
            "MaxSharedMemoryPerBlockOptin", told("MaxSharedMemoryPerBlock", shared - reserved)
        ),
        multiprocessors=count,
        assumed=f"{name} is not in the table: granules and SIMDs as on {kin.name}",
    )
