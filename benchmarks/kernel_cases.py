"""The percentile kernels as cases of `kuroshio perf`, with the bytes that they must move.

    kuroshio perf bench benchmarks/kernel_cases.py -o kernels.json
    ncu --csv --page raw --clock-control none --metrics dram__bytes.sum,gpu__time_duration.sum,\\
smsp__inst_executed_pipe_alu.sum -k regex:windows_by \\
        python benchmarks/kernel_cases.py > ncu.csv
    kuroshio perf roofline kernels.json --counters ncu.csv --match lists=windows_by_lists \\
        --match planes=windows_by_planes -o roofline.png

The season problem of kernels.py without ice: lists are launched a second time for blocks of cells
with many gaps, and where there are none the first launch is the whole work. Bit planes follow a
pass for the smallest keys, which is not in the case. As a program this runs each once, which is
what a profiler wants.
"""

from __future__ import annotations

import sys
from functools import cache

import cupy as cp
import kernels
import numpy as np

from kuroshio import perf
from kuroshio.device import cuda

DAYS = 92


@perf.case
def lists() -> perf.Case:
    return _case("lists", "first")


@perf.case
def planes() -> perf.Case:
    return _case("planes 12 in registers", "second")


@cache
def _problem() -> kernels.Problem:
    words = DAYS + kernels.WORDS - 1
    keys, cells = kernels.random_keys(words, ice_share=0)
    rows = 1 + np.arange(words * kernels.YEARS, dtype=np.int32).reshape(words, kernels.YEARS)
    return kernels.Problem(cuda.by_name("cuda:0"), keys, cells, rows, DAYS)


def _case(name: str, launch: str) -> perf.Case:
    problem = _problem()
    both = problem.ways()[name]
    both.run()  # what one of the launches needs of the other
    problem.results.fill(7)  # all of it is to come from the launch that is timed
    timed = getattr(both, launch)

    def run() -> cp.ndarray:
        timed.run()
        return problem.results

    return perf.Case(
        run,
        bytes=problem.keys[1:].nbytes + problem.results.nbytes,
        check=lambda _: problem.check(),
        about=f"{DAYS} days of year, {kernels.YEARS} years, {problem.cells} cells of uint16 keys",
    )


if __name__ == "__main__":
    for case in (lists, planes):
        case().fn()
    cp.cuda.get_current_stream().synchronize()
    sys.exit()
