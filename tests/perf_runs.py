"""`kuroshio perf` in this process; a clock to script."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

from cli_runs import Result, run_here
from kuroshio import perf
from kuroshio.perf.bench_case import measure
from kuroshio.perf.bench_effort import Effort
from kuroshio.perf.bench_subject import Subject
from kuroshio.perf.clocks import HostClock, Sample

QUICK = {"seconds": 0.4, "warm_up_s": 0.2}  # of `bench`
SHORT = Effort(most=60, warm_up_s=0)

CASES = '''
"""Cases for tests."""
import numpy as np
from kuroshio import perf

@perf.case(sizes=[1000, 3000], dtypes=["float32", "float64"])
def add(size, dtype):
    a = np.ones(size, dtype)
    return perf.Case(lambda: a + a, bytes=3 * a.nbytes, flops=size,
                     operations=f"{dtype} add", check=2 * a)

def wrong(size=1000):
    a = np.ones(size)
    return {"fn": lambda: a + a, "check": 2 * a + 1e-3, "tolerance": 1e-6}

def raises():
    def work():
        raise ZeroDivisionError("nothing to divide by")
    return work

def work(turns):
    a = np.ones(20_000)
    def run():
        for _ in range(turns):
            total = a.sum()
        return total
    return run

def ten():
    return work(10)

def also_ten():
    return work(10)

def eleven():
    return work(11)

def speaks():
    return lambda: print("hello")

def no_case():
    return 3

def cannot_be_made(size):
    raise MemoryError("no room")

def long_output(output):
    return len(output) > 100

NUMBER = 7
'''


def run_perf(*arguments: object) -> Result:
    """main() with `perf ...`, its streams caught."""
    return run_here("perf", *arguments)


def write_cases(folder: Path, name: str) -> Path:
    """The cases above as a module of that name; a name of its own for every test that imports."""
    path = folder / f"{name}.py"
    path.write_text(CASES, encoding="utf-8")
    return path


class Scripted(HostClock):
    """A clock that shows what it is told, whatever the callable takes."""

    def __init__(self, times, device: str = "cpu") -> None:
        self.times, self.device = iter(times), device

    def time(self, call, calls, **_) -> Sample:
        return Sample(next(self.times), None, (call(),))


def scripted(times, effort: Effort = SHORT, case: perf.Case | None = None):
    """A row of samples that take these seconds, after one call of warm-up."""
    case = case or perf.Case(lambda: 1, name="scripted")
    subject = Subject(case, Scripted(chain([1.0], times)))
    return measure(subject, effort)


def kept_ceilings(path: Path, *ceilings: dict) -> Path:
    """A file as `ceilings -o` leaves it."""
    shown = {"level": None, "low": 1.0, "high": 1e4, "n": 9, "how": "in a test"}
    said = {"schema": "kuroshio.perf.ceilings/1", "device": "hip:0", "model": "a card",
            "ceilings": [{**shown, **each} for each in ceilings]}  # fmt: skip
    path.write_text(json.dumps(said))
    return path
