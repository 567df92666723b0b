"""When results count as exact, and the room that rungs are said to take."""

from __future__ import annotations

import math
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from kuroshio.ladder import run
from kuroshio.ladder.catalogue import RUNGS
from kuroshio.ladder.exact import Errors
from kuroshio.ladder.problem import SCALES
from kuroshio.ladder.run import why_not

RIGHT = np.array([[20.0, 21.0, np.nan], [22.0, 23.0, np.nan]], np.float32)
STEP = np.spacing(np.float32(23))  # of float32, at the largest value


def held(thresholds: np.ndarray, means: np.ndarray = RIGHT, right: np.ndarray = RIGHT, units=2):
    errors = Errors(units)
    errors.add((means, thresholds), (RIGHT, right))
    return errors.accuracy()


@pytest.mark.parametrize("units", [2, 16])
@pytest.mark.parametrize("of", ["threshold", "mean"])
def test_exact_is_to_some_units_of_float32(units, of):
    for off, exact in ((0, True), (units, True), (units + 1, False), (-units - 1, False)):
        found = RIGHT.copy()
        found[1, 1] += off * STEP
        pair = (found, RIGHT) if of == "threshold" else (RIGHT, found)
        assert held(*pair, units=units).exact == exact, off


@pytest.mark.parametrize("of", ["threshold", "mean"])
@pytest.mark.parametrize(("at", "value"), [((0, 0), np.nan), ((0, 2), 20.0)])
def test_a_value_that_only_one_has_is_not_exact(at, value, of):
    found = RIGHT.copy()
    found[at] = value
    accuracy = held(*((found, RIGHT) if of == "threshold" else (RIGHT, found)))
    assert (accuracy.disagree, accuracy.exact) == (1, False)


def test_nothing_held_is_not_exact():
    nothing = np.full_like(RIGHT, np.nan)
    assert not held(nothing, nothing, nothing).exact
    assert not Errors().accuracy().exact


def test_figures_by_hand_over_several_passes():
    right = np.zeros((1, 4))
    errors = Errors()
    errors.add((right, np.array([[0.05, -0.2, 0.4, 0.0]])), (right, right))
    errors.add((right + 0.25, np.array([[-0.6, 0.0, 0.0, 0.0]])), (right, right))
    found = errors.accuracy()
    assert (found.values, found.disagree) == (8, 0)
    assert found.within == {"0.1": 5 / 8, "0.3": 6 / 8, "0.5": 7 / 8}
    assert (found.largest, found.largest_of_mean) == (0.6, 0.25)
    squares = 0.05**2 + 0.2**2 + 0.4**2 + 0.6**2
    assert found.root_mean_square == pytest.approx(math.sqrt(squares / 8))


@pytest.mark.parametrize("rung", [rung for rung in RUNGS if rung.worker], ids=lambda rung: rung.key)
def test_no_rung_takes_more_room_than_it_is_held_to(rung):
    """By which it is skipped on a device that is too small."""
    taken = []

    def zeros(shape, dtype):
        taken.append(math.prod(shape) * np.dtype(dtype).itemsize)
        return np.empty(0, dtype)

    place = SimpleNamespace(
        zeros=zeros, clear=lambda array: None, kernels=lambda *_: defaultdict(lambda: None)
    )
    problem = SCALES["pass"]
    passing = next(problem.passes())
    rung.worker(place, problem).begin(len(passing.slots), len(passing.doys))
    room = rung.room(problem, passing) * problem.cells
    assert sum(taken) <= room
    assert sum(taken) >= 0.99 * room


BATCH = 22 * 5 * 8 * 721 * 1440


@pytest.mark.parametrize("key", ["baseline", "A", "D", "ours"])
@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_a_rung_is_skipped_by_the_bytes_that_it_needs(monkeypatch, key, device):
    """On a GPU two batches lie beside its arrays (A has all maps, the engine sees to itself), and
    on the host its rings; on a processor arrays are the host's, too."""
    rung = next(rung for rung in RUNGS if rung.key == key)
    problem = SCALES["pass"]
    room = rung.room(problem, next(problem.passes())) * problem.cells
    there = room + {"baseline": 2, "D": 2}.get(key, 0) * BATCH
    here = {"baseline": 2, "A": 2, "D": 4}.get(key, 0) * BATCH + (room if device == "cpu" else 0)

    def skipped(there: int, here: int) -> str:
        monkeypatch.setattr(run, "available_memory_bytes", lambda: here)
        place = SimpleNamespace(free_bytes=lambda: there)
        return why_not(rung, SimpleNamespace(problem=problem, device=device, place=place))

    if rung.not_on_cpu and device == "cpu":
        assert "registers" in skipped(there, here)
        return
    assert skipped(there, here) == ""
    assert not here or "of host memory are needed" in skipped(there, here - 1)
    on_device = "are needed on cuda:0" if there and device != "cpu" else ""
    less = skipped(max(there - 1, 0), here)
    assert on_device in less
    assert bool(less) == bool(on_device)
