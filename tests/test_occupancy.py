"""Occupancy: published values, the directions in which it may go, and the choice of a block."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.device.occupancy import (
    ARCHITECTURES,
    BLOCK_STEP,
    choose_block,
    limits_of_device,
    occupancy,
)

architectures = st.sampled_from(sorted(ARCHITECTURES))
blocks = st.integers(1, 1024)
register_counts = st.integers(0, 600)
shared_sizes = st.integers(0, 240_000)


@pytest.mark.parametrize(
    ("architecture", "block", "registers", "shared", "expected"),
    [
        # 64 registers x 32 lanes = 2,048 a warp; 16,384 / 2,048 = 8 warps on each of 4 parts.
        ("sm_90", 128, 64, 0, (8, 32, "registers")),
        ("sm_90", 128, 32, 0, (16, 64, "waves")),
        # 33 registers are 40 in granules of 256 a warp: 16,384 // 1,280 = 12 warps, x 4 = 48.
        ("sm_90", 128, 33, 0, (12, 48, "registers")),
        # 80 registers: 6 warps on each part.
        ("sm_90", 128, 80, 0, (6, 24, "registers")),
        # 228 KB; a block takes its 48 KB and 1 KB more.
        ("sm_90", 128, 32, 49_152, (4, 16, "shared memory")),
        ("sm_90", 128, 32, 227 * 1024, (1, 4, "shared memory")),
        ("sm_90", 128, 32, 227 * 1024 + 1, (0, 0, "shared memory")),
        ("sm_90", 32, 32, 0, (32, 32, "blocks")),
        ("sm_90", 1025, 32, 0, (0, 0, "block size")),
        ("sm_90", 1024, 65, 0, (0, 0, "registers")),
        ("sm_90", 64, 256, 0, (0, 0, "registers")),
        # Seven warps a block with 9 warps' registers on each part: 36 // 7.
        ("sm_80", 224, 56, 0, (5, 35, "registers")),
        ("sm_80", 128, 32, 40_960, (4, 16, "shared memory")),
        # Two blocks of 24 warps; a block of 32 warps leaves a third empty.
        ("sm_86", 768, 32, 0, (2, 48, "waves")),
        ("sm_86", 1024, 32, 0, (1, 32, "waves")),
        ("sm_86", 64, 32, 0, (16, 32, "blocks")),
        ("sm_89", 64, 32, 0, (24, 48, "waves")),
        ("sm_75", 256, 32, 0, (4, 32, "waves")),
        ("sm_75", 256, 32, 32_768, (2, 16, "shared memory")),
        # Nothing is reserved before 8.0: two halves of 96 KB fit.
        ("sm_70", 128, 32, 49_152, (2, 8, "shared memory")),
        # 13,900 bytes are 14,080 in granules of 256; of 128 they would be 13,952, and seven fit.
        ("sm_70", 128, 32, 13_900, (6, 24, "shared memory")),
        ("sm_70", 128, 255, 0, (2, 8, "registers")),
        ("sm_100", 128, 64, 0, (8, 32, "registers")),
        ("gfx906", 256, 24, 0, (10, 40, "waves")),
        ("gfx906", 256, 25, 0, (9, 36, "registers")),
        ("gfx906", 64, 24, 0, (40, 40, "waves")),
        ("gfx906", 128, 24, 0, (16, 32, "blocks")),
        # 19 granules of 512 bytes; seven times 9,300 would fit.
        ("gfx906", 256, 16, 9_300, (6, 24, "shared memory")),
        # Four SIMDs with one wave each: a block of five waves cannot start.
        ("gfx906", 256, 256, 0, (1, 4, "registers")),
        ("gfx906", 320, 256, 0, (0, 0, "registers")),
        ("gfx908", 256, 64, 0, (4, 16, "registers")),
        # 512 registers a lane in granules of 8: 50 are 56, 512 // 56 = 9, but 8 places.
        ("gfx90a", 512, 50, 0, (4, 32, "waves")),
        ("gfx90a", 256, 65, 0, (7, 28, "registers")),
        ("gfx942", 256, 128, 0, (4, 16, "registers")),
        ("gfx942", 64, 16, 8_193, (7, 7, "shared memory")),
    ],
)
def test_published_values(architecture, block, registers, shared, expected):
    limits = ARCHITECTURES[architecture]
    found = occupancy(limits, block=block, registers=registers, shared_bytes=shared)
    assert (found.blocks, found.waves, found.limited_by) == expected
    assert found.share == found.waves / limits.max_waves


def test_scalar_registers_count_on_amd():
    # 54 vector registers are 56: 4 waves a SIMD; 42 scalar ones are 48 and would let in 16;
    # 8,704 bytes are 17 granules: 7 blocks. So 4 blocks of 4 waves.
    gfx906 = ARCHITECTURES["gfx906"]
    found = occupancy(gfx906, block=256, registers=54, scalar_registers=42, shared_bytes=8704)
    assert (found.blocks, found.waves, found.limited_by, found.share) == (4, 16, "registers", 0.4)
    # 102 scalar registers are 112: 800 // 112 = 7 waves a SIMD.
    found = occupancy(gfx906, block=64, registers=8, scalar_registers=102, shared_bytes=0)
    assert (found.waves, found.limited_by) == (28, "registers")
    launch = choose_block(gfx906, registers=8, scalar_registers=102, work_items=10**6)
    assert launch.text.endswith("limited by registers (102 scalar ones a wave)")


@pytest.mark.parametrize(
    "wrong",
    [{"block": 0}, {"registers": -1}, {"shared_bytes": -1}, {"scalar_registers": -1}],
)
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match="is no launch"):
        occupancy(
            ARCHITECTURES["sm_90"],
            **{"block": 64, "registers": 32, "shared_bytes": 0, "scalar_registers": 0} | wrong,
        )


@given(architectures, blocks, register_counts, shared_sizes, st.integers(0, 112), st.data())
def test_more_of_anything_never_lets_in_more(name, block, registers, shared, scalars, data):
    limits = ARCHITECTURES[name]
    asked = {
        "block": block,
        "registers": registers,
        "shared_bytes": shared,
        "scalar_registers": scalars,
    }
    before = occupancy(limits, **asked)
    what = data.draw(st.sampled_from(sorted(asked)))
    more = data.draw(st.integers(1, 300))
    after = occupancy(limits, **asked | {what: asked[what] + more})
    assert after.blocks <= before.blocks


@given(architectures, blocks, register_counts, shared_sizes)
def test_what_lives_there_has_room(name, block, registers, shared):
    limits = ARCHITECTURES[name]
    found = occupancy(limits, block=block, registers=registers, shared_bytes=shared)
    assert found.waves == found.blocks * -(-block // limits.wave_size)
    assert 0 <= found.waves <= limits.max_waves
    assert found.waves * limits.wave_size * registers <= limits.registers
    assert found.blocks * (shared + limits.shared_reserved) <= limits.shared_bytes
    # What is said to limit does: with it abundant there is at least as much room, and another
    # resource is named, or the same with the tie gone.
    rich = {
        "registers": {"registers": 0},
        "shared memory": {"shared_bytes": 0},
    }.get(found.limited_by)
    if rich:
        asked = {"block": block, "registers": registers, "shared_bytes": shared} | rich
        assert occupancy(limits, **asked).limited_by != found.limited_by


@given(
    architectures,
    st.integers(1, 270),
    st.integers(0, 800),
    st.integers(0, 60_000),
    st.integers(1, 10**7),
    st.integers(1, 150),
    st.integers(64, 1024),
)
def test_the_choice_is_the_best_of_all(
    name, registers, a_thread, fixed, work, multiprocessors, max_block
):
    limits = replace(ARCHITECTURES[name], multiprocessors=multiprocessors)
    wave = limits.wave_size

    def merit(block):
        got = occupancy(
            limits, block=block, registers=registers, shared_bytes=fixed + a_thread * block
        )
        if not got.blocks:
            return None
        waves_of_work = -(-work // wave)
        blocks_of_work = -(-work // block)
        return (
            min(waves_of_work, got.waves * multiprocessors),
            min(blocks_of_work, multiprocessors),
            -block,
        )

    merits = {
        block: merit(block)
        for block in range(64, max_block + 1)
        if block % 64 == 0 and merit(block)
    }
    asked = {
        "registers": registers,
        "shared_per_thread_bytes": a_thread,
        "shared_fixed_bytes": fixed,
        "work_items": work,
        "max_block": max_block,
    }
    if not merits:
        with pytest.raises(ValueError, match=f"fits {name}: registers {registers} a thread"):
            choose_block(limits, **asked)
        return
    launch = choose_block(limits, **asked)
    assert launch.block == max(merits, key=merits.get)
    assert launch.block % BLOCK_STEP == 0
    assert launch.block % wave == 0
    assert (launch.grid - 1) * launch.block < work <= launch.grid * launch.block
    assert f"block {launch.block}: {launch.waves} of {limits.max_waves} waves" in launch.text
    assert "\n" not in launch.text


@given(architectures, st.integers(1, 128), st.integers(0, 16))
def test_with_work_enough_no_block_has_a_better_share(name, registers, a_thread):
    limits = replace(ARCHITECTURES[name], multiprocessors=120)
    launch = choose_block(
        limits, registers=registers, shared_per_thread_bytes=a_thread, work_items=10**9
    )
    for block in range(64, 1025, 64):
        got = occupancy(limits, block=block, registers=registers, shared_bytes=a_thread * block)
        assert got.share < launch.share or (got.share == launch.share and block >= launch.block)


def test_the_line_says_what_limits():
    sm_90 = replace(ARCHITECTURES["sm_90"], multiprocessors=132)
    many = 10**7
    assert choose_block(sm_90, registers=80, work_items=many).text == (
        "block 64: 24 of 64 waves a multiprocessor, limited by registers (80 a thread)"
    )
    assert choose_block(
        sm_90, registers=32, shared_per_thread_bytes=512, work_items=many
    ).text.endswith("limited by shared memory (229,376 bytes a block)")
    assert choose_block(sm_90, registers=32, work_items=many).text == (
        "block 64: 64 of 64 waves a multiprocessor, limited by waves (2 a block)"
    )
    sm_86 = replace(ARCHITECTURES["sm_86"], max_blocks=4, max_single_wave_blocks=4)
    launch = choose_block(sm_86, registers=32, work_items=many, max_block=128)
    assert launch.text == (
        "block 128: 16 of 48 waves a multiprocessor, limited by blocks (4 a multiprocessor)"
    )


def test_little_work_is_spread():
    # 40 KB whatever the block: large blocks have far more waves, but 8,448 cells are 64 for each
    # multiprocessor, and in blocks of 1,024 they would reach 9 of the 132.
    sm_90 = replace(ARCHITECTURES["sm_90"], multiprocessors=132)
    asked = {"registers": 32, "shared_fixed_bytes": 40_960}
    assert choose_block(sm_90, work_items=10**8, **asked).block == 512
    little = choose_block(sm_90, work_items=8_448, **asked)
    assert (little.block, little.grid) == (64, 132)
    less = choose_block(sm_90, work_items=640, **asked)
    assert less.text.endswith("; the work reaches 10 of 132 multiprocessors")


def test_nothing_fits():
    with pytest.raises(
        ValueError,
        match=r"no block of 64 to 1024 threads fits sm_90: registers 300 a thread \(at most 255, "
        r"65,536 a multiprocessor\), shared memory 0 bytes a block and 0 a thread \(at most "
        r"232,448 a block\)",
    ):
        choose_block(ARCHITECTURES["sm_90"], registers=300, work_items=1)
    with pytest.raises(ValueError, match="at least 1"):
        choose_block(ARCHITECTURES["sm_90"], registers=30, work_items=0)


def test_a_known_device_is_taken_from_the_table():
    found = limits_of_device("gfx90a:sramecc+:xnack-", {"MultiProcessorCount": 104, "WarpSize": 32})
    assert found == replace(ARCHITECTURES["gfx90a"], multiprocessors=104)
    assert limits_of_device("sm_90", {}) == ARCHITECTURES["sm_90"]


def test_an_unknown_device_is_asked():
    # As an H200 answers, under a name that is not in the table.
    answers = {
        "WarpSize": 32,
        "MaxThreadsPerMultiProcessor": 2048,
        "MaxBlocksPerMultiprocessor": 32,
        "MaxThreadsPerBlock": 1024,
        "MaxRegistersPerMultiprocessor": 65_536,
        "MaxRegistersPerBlock": 65_536,
        "MaxSharedMemoryPerMultiprocessor": 233_472,
        "MaxSharedMemoryPerBlock": 49_152,
        "MaxSharedMemoryPerBlockOptin": 232_448,
        "ReservedSharedMemoryPerBlock": 1024,
        "MultiProcessorCount": 132,
    }
    found = limits_of_device("sm_99", answers)
    assert found.assumed.startswith("sm_99 is not in the table")
    assert replace(found, name="sm_90", multiprocessors=1, assumed="") == ARCHITECTURES["sm_90"]


@pytest.mark.parametrize("said", [0, 40])
def test_an_unknown_amd_device_is_not_promised_too_much(said):
    # As the HIP runtime may answer where it does not know: nothing, 0, or waves for blocks.
    answers = {
        "WarpSize": 64,
        "MaxThreadsPerMultiProcessor": 2560,
        "MaxBlocksPerMultiprocessor": said,
        "MaxRegistersPerBlock": 65_536,
        "MaxSharedMemoryPerMultiprocessor": 65_536,
        "MaxSharedMemoryPerBlock": 65_536,
        "MultiProcessorCount": 60,
    }
    found = limits_of_device("gfx928", answers)
    known = ARCHITECTURES["gfx906"]
    assert found.assumed
    assert (found.wave_size, found.max_waves, found.registers) == (64, 40, 65_536)
    for block in range(64, 1025, 64):
        for registers in range(1, 257, 5):
            asked = {"block": block, "registers": registers, "shared_bytes": 20 * block}
            assert occupancy(found, **asked).blocks <= occupancy(known, **asked).blocks


def test_waves_of_32_lanes_on_amd():
    found = limits_of_device("gfx1030", {"WarpSize": 32, "MaxThreadsPerMultiProcessor": 1024})
    assert (found.wave_size, found.max_waves, found.shared_reserved) == (32, 32, 0)


def test_a_device_that_tells_nothing_is_refused():
    with pytest.raises(ValueError, match=r"sm_99 is not in the table .* wave size of 0"):
        limits_of_device("sm_99", {})
