"""What rungs are held to take, counted by hand for a pass of the globe."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kuroshio.ladder.catalogue import RUNGS
from kuroshio.ladder.machine import Machine
from kuroshio.ladder.predictions import engine, predicted
from kuroshio.ladder.problem import SCALES

PASS = SCALES["pass"]
CELLS = 721 * 1440
VISITS, MAPS, BATCHES = 12 * 11 * 30, 22 * 30, 6
RATES = {"float32 fma": 4e4, "float64 fma": 2e4, "int32 min/max": 1e4}
MACHINE = Machine(4000.0, 50.0, RATES, 2.0, 10.0, 0.1, 2)

# Bytes beside the maps: four sums and a count, read and written at every batch; of a heap its 34
# values, a count and a sum. Operations: four fused multiply-adds of two each; of a list a minimum
# and a maximum at each of its 34 places; of a heap a comparison a value, and six a step of those
# that enter it: of n values 34 (1 + ln(n / 34)).
STEPS = 12 * 34 * (1 + math.log(330 / 34)) * math.log2(34)
SLACK = {"baseline": 20}
BY_HAND = {
    "baseline": (VISITS, 12 * BATCHES * 2 * (4 * 34 + 4 + 8), (VISITS + 6 * STEPS) / 1e13),
    "A": (VISITS, 0, 2 * 34 * VISITS / 1e13),
    "B": (VISITS, 2 * 5 * 4 * 12 * BATCHES, 8 * VISITS / 4e13),
    "C": (VISITS, 2 * 5 * 4 * 12 * BATCHES, 8 * VISITS / 4e13),
    "D": (MAPS, 2 * 5 * 4 * 22 * BATCHES, 8 * MAPS / 4e13),
    "D+": (MAPS, 2 * 5 * 8 * 22 * BATCHES, 8 * MAPS / 2e13),
}


def of(key: str, machine: Machine):
    rung = next(rung for rung in RUNGS if rung.key == key)
    passing = next(PASS.passes())
    return predicted(rung.costs(PASS, passing), rung.rings, PASS, passing, machine)


@pytest.mark.parametrize("memory_gb", [4000.0, 4e6])  # memory bounds the kernels, or arithmetic
@pytest.mark.parametrize("key", BY_HAND)
def test_kernels_by_hand(key, memory_gb):
    machine, memory = replace(MACHINE, memory_gb=memory_gb), 1e9 * memory_gb
    visits, besides, at_work = BY_HAND[key]
    low = CELLS * max((8 * MAPS + besides) / memory, at_work)
    high = SLACK.get(key, 4) * CELLS * max((8 * visits + besides) / memory, at_work)
    found = of(key, machine)
    assert found.gpu_s == pytest.approx((low, high))
    assert found.io_s == pytest.approx(110 * 8 * CELLS / 2e9)
    assert found.copy_s == pytest.approx(110 * 8 * CELLS / 50e9)
    on_cpu = of(key, replace(machine, link_gb=0.0))
    assert on_cpu.gpu_s == pytest.approx((low, 8 * high))
    assert on_cpu.copy_s == 0


@pytest.mark.parametrize("key", BY_HAND)
def test_a_pass_by_hand(key):
    """The reader is the slower side by far, so what else is done hides behind it: but for the last
    batch, and for A's kernels, which wait for all maps."""
    found = of(key, MACHINE)
    io, copy = 110 * 8 * CELLS / 2e9, 110 * 8 * CELLS / 50e9
    end = 0.1 + 2 * 4 * 12 * CELLS / 50e9  # means and thresholds come back and are written
    totals, waits = [], []
    for kernels, slower in zip(found.gpu_s, (0.85, 1.15), strict=True):
        each = 0 if key == "A" else kernels / BATCHES
        totals.append(BATCHES * slower * io + copy + (kernels if key == "A" else each) + end)
        waits.append((BATCHES - 1) * (slower * io - copy - each))
    assert found.total_s == pytest.approx(totals)
    assert found.hidden_wait_s == pytest.approx(sum(waits) / 2)


def test_the_engine_by_hand():
    """22 days of 30 years, read once; at most twice reading, copying and writing in turn."""
    nbytes = 22 * 30 * 8 * CELLS
    read, copy = nbytes / 10e9, nbytes / 50e9
    found = engine(PASS, MACHINE)
    assert found.total_s == pytest.approx((0.85 * read, 2 * (read + copy + 0.1)))
    assert engine(PASS, replace(MACHINE, link_gb=0.0)).total_s[1] == pytest.approx(2 * (read + 0.1))
