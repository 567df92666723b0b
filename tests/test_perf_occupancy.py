"""The table of block sizes and what launch bounds leave: against the rules, and the compilers."""

import argparse
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kuroshio.device import cuda
from kuroshio.device.occupancy import (
    ARCHITECTURES,
    limits_of_device,
    occupancy,
    registers_for_waves,
    scalar_registers_for_waves,
    shared_for_blocks,
)
from kuroshio.errors import Refusal
from kuroshio.perf import occupancy_command
from kuroshio.perf.compiled import cubin
from kuroshio.perf.occupancy import Takes, bound, bounds, for_more, limits_of, row, table
from perf_occupancy import HUNGRY, kernel, kernels_of
from perf_occupancy import occupancy as command

architectures = st.sampled_from(sorted(ARCHITECTURES))
takes = st.builds(
    Takes,
    registers=st.integers(0, 600),
    scalar_registers=st.just(0) | st.integers(0, 112),
    shared_bytes=st.integers(0, 70_000),
)


@given(architectures, st.integers(1, 40))
def test_registers_for_waves_are_the_most(name, waves):
    limits = ARCHITECTURES[name]
    assume(waves <= limits.max_waves)

    def living(registers, scalars=0):
        # A block of one wave each; blocks are not what limits here.
        found = occupancy(
            limits,
            block=limits.wave_size,
            registers=registers,
            scalar_registers=scalars,
            shared_bytes=0,
        )
        return found.waves

    assume(waves <= limits.max_single_wave_blocks)
    most = registers_for_waves(limits, waves)
    assert living(most) >= waves
    assert living(most + 1) < waves or most == limits.max_registers_per_thread
    if limits.scalar_registers:
        scalars = scalar_registers_for_waves(limits, waves)
        assert living(0, scalars) >= waves
        assert living(0, scalars + 1) < waves or scalars == limits.max_scalar_registers


@given(architectures, st.integers(1, 1024), st.integers(1, 10**9))
def test_a_launch_bound_that_cannot_be_kept_leaves_nothing(name, block, minimum):
    found = bound(ARCHITECTURES[name], block, minimum)
    assert found.registers or not (found.scalar_registers or found.shared_bytes)


@given(st.sampled_from(["gfx906", "gfx90a"]), st.integers(113, 1000), st.integers(1, 256))
def test_more_scalar_registers_than_a_wave_has(name, scalars, registers):
    """A wave names 102 of them, and with what the compiler adds there are never more than 112."""
    limits = ARCHITECTURES[name]
    got = row(limits, Takes(registers=registers, scalar_registers=scalars), 64)
    assert (got.got.blocks, got.got.limited_by) == (0, "registers")
    assert f"{scalars} scalar ones" in got.why
    assert row(limits, Takes(registers=registers, scalar_registers=112), 64).got.blocks


@given(architectures, st.integers(1, 40))
def test_shared_for_blocks_is_the_most(name, blocks):
    limits = ARCHITECTURES[name]
    assume(blocks <= limits.max_single_wave_blocks)

    def living(nbytes):
        return occupancy(limits, block=32, registers=0, shared_bytes=nbytes).blocks

    most = shared_for_blocks(limits, blocks)
    assert living(most) >= blocks
    assert living(most + 1) < blocks


@given(architectures, takes, st.integers(1, 1024))
def test_what_for_more_needs_is_enough(name, taken, block):
    limits = ARCHITECTURES[name]
    advice = for_more(limits, taken, block)
    now = row(limits, taken, block).got
    if advice is None:
        assert now.limited_by in ("waves", "blocks")
        return
    numbers = [
        int(n.replace(",", "")) for n in re.findall(r"[\d,]+(?= (?:regi|scal|byte))", advice)
    ]
    whats = re.findall(r"(?<=\d )(registers|scalar|bytes)", advice)
    change = dict(zip(whats, numbers, strict=True))
    shrunk = Takes(
        registers=change.get("registers", taken.registers),
        scalar_registers=change.get("scalar", taken.scalar_registers),
        shared_bytes=change.get("bytes", taken.shared_bytes),
    )
    assert shrunk != taken
    then = row(limits, shrunk, block).got.blocks
    assert then == int(advice.partition(" ")[0]) > now.blocks
    for what, name_of in (("registers", "registers"), ("bytes", "shared_bytes")):
        if what in change:
            assert change[what] < getattr(taken, name_of)


@given(architectures, takes, st.none() | st.integers(1, 1024))
def test_the_table_has_every_size_once(name, taken, block):
    limits = ARCHITECTURES[name]
    rows = table(limits, taken, block)
    sizes = [each.block for each in rows]
    assert sizes == sorted(set(sizes))
    assert set(range(64, 1025, 64)) | {limits.wave_size} <= set(sizes)
    assert block is None or block in sizes
    for each in rows:
        lanes = -(-each.block // limits.wave_size) * limits.wave_size
        assert each.lanes == each.block / lanes
        assert each.got.limited_by in each.why


def test_lanes_without_a_thread():
    assert row(ARCHITECTURES["sm_90"], Takes(registers=32), 100).lanes == 100 / 128
    assert row(ARCHITECTURES["gfx906"], Takes(registers=32), 65).lanes == 65 / 128


@given(st.sampled_from([n for n in ARCHITECTURES if n.startswith("sm")]), st.integers(1, 1024))
def test_bounds_on_nvidia_count_blocks(name, block):
    limits = ARCHITECTURES[name]
    rows = bounds(limits, block)
    assert [each.minimum for each in rows] == list(range(1, len(rows) + 1))
    for each in rows:
        asked = Takes(registers=each.registers, shared_bytes=each.shared_bytes)
        assert row(limits, asked, block).got.blocks >= each.minimum
    assert bound(limits, block, len(rows) + 1).registers == 0


@settings(max_examples=20)
@given(
    st.sampled_from(["sm_70", "sm_90"]),
    st.lists(
        st.tuples(st.integers(1, 1024), st.integers(1, 32)).filter(
            lambda pair: -(-pair[0] // 32) * pair[1] <= 64
        ),
        min_size=12,
        max_size=12,
        unique=True,
    ),
)
def test_ptxas_leaves_as_many_registers(nvrtc, arch, pairs):
    text = "".join(kernel(f"k_{block}_{least}", f"{block}, {least}") for block, least in pairs)
    found = {each.name: each for each in cubin.kernels(nvrtc(text, arch).code)}
    for block, least in pairs:
        left = found[f"k_{block}_{least}"]
        assert left.max_threads == block
        assert left.registers_allowed == bound(ARCHITECTURES[arch], block, least).registers


@pytest.mark.parametrize(
    ("compiled_for", "arch"),
    # Debian's compiler knows of the MI300 family only its first samples, gfx940.
    [("gfx906", "gfx906"), ("gfx90a", "gfx90a"), ("gfx940", "gfx942")],
)
def test_hipcc_takes_as_many_registers(hipcc, compiled_for, arch):
    """HIP's second argument is waves a SIMD: blocks would give other numbers but of 256 threads."""
    pairs = [(256, 1), (512, 4), (1024, 2)]
    text = "".join(kernel(f"k_{b}_{m}", f"{b}, {m}", HUNGRY) for b, m in pairs)
    found = hipcc(text, compiled_for).kernels
    for block, least in pairs:
        taken = found[f"k_{block}_{least}"]
        assert taken.max_threads == block
        assert taken.registers == bound(ARCHITECTURES[arch], block, least).registers


@pytest.mark.parametrize(
    ("given_name", "found"),
    [("sm_90a", "sm_90"), ("gfx90a:sramecc+:xnack-", "gfx90a"), (" GFX906 ", "gfx906")],
)
def test_names_of_architectures(given_name, found):
    assert limits_of(given_name).name == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gfx928", "Hygon publishes no such figures"),
        ("9.0", "Did you mean sm_90?"),
        ("compute_80", "Did you mean sm_80?"),
        ("sm_61", "Known are sm_70"),
        ("", "Known are sm_70"),
    ],
)
def test_unknown_architectures_are_refused(name, said):
    with pytest.raises(Refusal, match=re.escape(said)):
        limits_of(name)


def test_numbers_of_the_issue():
    """By hand: 54 registers are 56, 256 // 56 = 4 waves a SIMD; 8,704 bytes would let in 7."""
    (found,) = kernels_of(
        "--arch", "gfx906", "--block", 256, "--vgpr", 54, "--sgpr", 42, "--lds", 8704
    )
    chosen = found["chosen"]
    assert (chosen["blocks"], chosen["waves"], chosen["occupancy"]) == (4, 16, 0.4)
    assert (chosen["limited_by"], chosen["by"]) == ("registers", "--block")
    assert chosen["for_more"] == "5 blocks: at most 48 registers a thread (now 54)"
    assert [each["block"] for each in found["blocks"]] == list(range(64, 1025, 64))
    left = {each["minimum"]: each["registers"] for each in found["launch_bounds"]["rows"]}
    assert left == {1: 256, 2: 128, 3: 84, 4: 64, 5: 48, 6: 40, 7: 36, 8: 32, 9: 28, 10: 24}
    assert found["launch_bounds"]["minimum_is"] == "waves a SIMD"


def test_numbers_of_nvidia():
    (found,) = kernels_of(
        *("--arch", "sm_90", "--registers", 80, "--shared", "16,384"),
        *("--dynamic-shared", 1000, "--block", 100, "--min-blocks", 4),
    )
    assert found["takes"] == {"registers": 80, "scalar_registers": 0, "shared_bytes": 17_384}
    chosen = found["chosen"]
    assert (chosen["blocks"], chosen["waves"], chosen["lanes"]) == (6, 24, 0.7812)
    assert 100 in [each["block"] for each in found["blocks"]]
    (left,) = found["launch_bounds"]["rows"]
    assert (left["minimum"], left["registers"]) == (4, 128)


def test_what_a_person_sees():
    shown = command("--arch", "sm_90", "--registers", 80, "--block", 256)
    assert "sm_90, block 256: 3 blocks, 24 of 64 waves a multiprocessor (38%)" in shown
    assert "limited by registers (80 a thread); 100% of lanes in use." in shown
    assert "For 4 blocks: at most 64 registers a thread (now 80)." in shown
    assert "M is blocks a multiprocessor" in shown
    fails = command("--arch", "sm_90", "--registers", 80, "--block", 1024)
    assert "cannot be launched, because of registers (80 a thread)" in fails
    assert "For 1 block: at most 64 registers a thread (now 80)." in fails
    small = command("--arch", "sm_90", "--registers", 8, "--block", 2000)
    assert "cannot be launched, because of block size (1,024 threads at most)" in small
    assert "accumulation" in command("--arch", "gfx90a", "--vgpr", 8, "--block", 256)


def test_a_device_that_is_not_in_the_table_is_asked(monkeypatch):
    """As the DTK's runtime may answer for one of Hygon's."""
    limits = limits_of_device(
        "gfx928",
        {
            "WarpSize": 64,
            "MaxThreadsPerMultiProcessor": 2560,
            "MaxRegistersPerBlock": 65_536,
            "MaxSharedMemoryPerBlock": 65_536,
        },
    )
    monkeypatch.setattr(cuda, "by_name", lambda name: SimpleNamespace(limits=limits))
    shown = command("--device", "hip:0", "--vgpr", 54, "--sgpr", 40, "--block", 256)
    assert "gfx928, block 256: 4 blocks, 16 of 40 waves" in shown
    assert "Assumed: gfx928 is not in the table: granules and SIMDs as on gfx90a." in shown
    assert "taken by HIP's compiler as waves a SIMD" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Of which device?"),
        (["--vgpr", 3], "Of which device?"),
        (["--arch", "sm_90"], "registers of a thread are missing"),
        (["--arch", "sm_90", "--registers", 8, "--sgpr", 8], "--sgpr is for AMD's devices"),
        (["--arch", "sm_90", "--registers", 8, "--block", 0], "--block 0 is nothing to launch"),
        (["--arch", "sm_90", "--registers", 8, "--min-blocks", 0], "--min-blocks 0"),
        (["--arch", "sm_90", "--registers", 8, "--kernel", "a"], "--kernel is for files"),
        (["--arch", "gfx1", "--vgpr", 8], "'gfx1' are not known"),
        (["--device", "cpu", "--vgpr", 8], "not one GPU"),
        (["--device", "cuda:all", "--vgpr", 8], "not one GPU"),
        (["--device", "gpu0", "--vgpr", 8], "no device"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments, said):
    with pytest.raises(Refusal, match=re.escape(said)):
        command(*arguments)


@pytest.mark.parametrize("count", ["-1", "x", "1.5", str(1 << 40)])
def test_counts_are_whole(count, capsys):
    with pytest.raises(SystemExit):
        command("--arch", "sm_90", "--registers", count)
    assert "is no count" in capsys.readouterr().err


def test_help_imports_nothing_heavy():
    code = (
        "import sys, kuroshio.errors\nbefore = set(sys.modules)\n"
        "import argparse\nfrom kuroshio.perf import occupancy_command as c\n"
        "c.add_arguments(argparse.ArgumentParser())\n"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"rich", "cupy", "numba"} & set(ran.stdout.split())


def test_a_summary_and_examples_that_can_be_typed():
    parser = argparse.ArgumentParser()
    occupancy_command.add_arguments(parser)
    assert occupancy_command.SUMMARY
    lines = re.findall(
        r"^ *(?:.*\| )?kuroshio perf occupancy (.*)$", occupancy_command.EXAMPLES, re.M
    )
    assert len(lines) == 6
    for line in lines:
        parser.parse_args(line.split("#")[0].split())
