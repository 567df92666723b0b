"""How close are a GPU's percentile kernels to reading their input once?

    python benchmarks/kernels.py --device cuda:0 --json benchmarks/results/h200.json

The season problem: 102 days of year of 30 years on 1440 x 720 cells, 16-bit keys that lie in the
device's memory -> mean and 90th percentile of the 11-day windows of 92 days of year; and the full
year's 366. A third of the cells is land and left out, as the reader leaves it out; of the sea some
lacks many days (ice) and all a few. Every kernel's result is checked against NumPy on a sample
before it is timed. The bound is a kernel that reads the same bytes once, in the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from datetime import date
from pathlib import Path

import cupy as cp
import numpy as np

from kuroshio.device import cuda
from kuroshio.kernels.gpu import programs
from kuroshio.keys import AFFINE16, Keys

YEARS, WORDS, QUANTILE = 30, 11, 0.9
GRID = (720, 1440)
KEYS = Keys(AFFINE16, 0.01, 0.0)
LAND_SHARE, ICE_SHARE, ICE_GAPS, GAPS = 0.29, 0.1, 0.4, 0.002
REPEATS = 9
READ = """
extern "C" __global__ void read_once(const uint4* x, long long n, unsigned* out) {
    unsigned sum = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += 4 * step) {
        uint4 v[4];
        for (int k = 0; k < 4; k++)
            v[k] = i + k * step < n ? x[i + k * step] : make_uint4(0, 0, 0, 0);
        for (int k = 0; k < 4; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 0x12345678) *out = sum;
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--days", type=int, nargs="+", default=[92, 366])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpu = cuda.by_name(options.device)
    with gpu.use():
        cases = [measure(gpu, days) for days in options.days]
    if options.json:
        record = {
            "date": date.today().isoformat(), "device": gpu.model,
            "versions": {"cupy": cp.__version__, "driver": cp.cuda.runtime.driverGetVersion(),
                         "runtime": cp.cuda.runtime.runtimeGetVersion()},
            "kernels": cases,
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n")


def measure(gpu: cuda.CupyGpu, days: int) -> dict:
    """Every way through one problem: checked, then timed beside the bound."""
    words = days + WORDS - 1
    keys, cells = random_keys(words)
    rows = 1 + np.arange(words * YEARS, dtype=np.int32).reshape(words, YEARS)
    problem = Problem(gpu, keys, cells, rows, days)
    nbytes = words * YEARS * cells * 2
    bound = timed(problem.read)
    print(f"{days} days, {cells:,} cells, {nbytes / 1e9:.2f} GB: read once {bound:.3f} ms, "
          f"{nbytes / bound / 1e6:.0f} GB/s", flush=True)  # fmt: skip
    ways = []
    for name, way in problem.ways().items():
        problem.results.fill(7)
        way.run()
        if wrong := problem.check():
            raise SystemExit(f"{name}: {wrong}")
        between = timed(problem.read)
        ms = timed(way.run)
        ways.append({"kernel": name, "ms": round(ms, 3), "ratio": round(ms / between, 2),
                     "read_ms": round(between, 3), **way.facts})  # fmt: skip
        print(json.dumps(ways[-1]), flush=True)
    return {"days": days, "cells": cells, "read_gb": round(nbytes / 1e9, 3),
            "read_ms": round(bound, 3), "ways": ways}  # fmt: skip


def random_keys(words: int, ice_share: float = ICE_SHARE) -> tuple[cp.ndarray, int]:
    """(row, sea cell) keys with a season, land left out, gaps and ice; row 0 is missing."""
    rng = cp.random.default_rng(1)
    cells = int(GRID[0] * GRID[1] * (1 - LAND_SHARE)) // 64 * 64
    base = rng.random(cells, dtype=cp.float32) * 2800
    ice = cp.arange(cells) < cells * ice_share
    keys = cp.zeros((1 + words * YEARS, cells), cp.uint16)
    for word in range(words):
        season = 250 * np.sin(2 * np.pi * (word + 150) / 366)
        for year in range(YEARS):
            code = base + season + 120 * rng.standard_normal(cells, dtype=cp.float32)
            gone = rng.random(cells, dtype=cp.float32) < cp.where(ice, ICE_GAPS, GAPS)
            key = (code.astype(cp.int32) + KEYS.half).astype(cp.uint16)
            keys[1 + word * YEARS + year] = cp.where(gone, 0, key)
    return keys, cells


class Way:
    """A kernel with its arguments."""

    def __init__(self, kernel, blocks, threads, args, shared=0, **facts) -> None:
        self._call = (blocks, threads, args, shared)
        self._kernel = kernel
        self.facts = {
            "block": threads, "registers": kernel.registers, "local_bytes": kernel.local_bytes,
            "shared_bytes": shared, **facts,
        }  # fmt: skip

    def run(self) -> None:
        self._kernel(cp.cuda.Stream.null, *self._call)


class Problem:
    def __init__(self, gpu, keys, cells, rows, days) -> None:
        self.gpu, self.keys, self.cells, self.days = gpu, keys, cells, days
        self.rows = cp.asarray(rows)
        self.host_rows = rows
        self.first = cp.arange(days, dtype=cp.int32)
        self.least = cp.ones(days, cp.int32)
        self.live = cp.asarray(rows.ravel())
        self.quantiles = cp.array([QUANTILE])
        self.reference = cp.zeros(cells, cp.float32)
        self.results = cp.zeros((2, days, cells), cp.float32)
        self.lowest, self.tops = cp.zeros(cells, cp.uint16), cp.zeros(cells, cp.uint8)
        self.read_kernel = cp.RawKernel(READ, "read_once")
        self.nothing = cp.zeros(1, cp.uint32)

    def read(self) -> None:
        part = self.keys[1:].reshape(-1)
        self.read_kernel((132 * 16,), (256,), (part, np.int64(part.size // 8), self.nothing))

    def ways(self) -> dict[str, Way]:
        """Sorted lists, two launches, and bit planes, which follow a pass for extremes."""
        windows = programs.Windows(WORDS, YEARS, (0,), 1, True, 0)
        full = WORDS * YEARS
        k = full - int((full - 1) * QUANTILE)
        pairs, block = self.cells // 2, programs.BLOCK
        table = cp.asarray(programs.row_table(self.host_rows))
        run = cp.array([[0, self.days, 0]], cp.int32)
        again = cp.zeros(-(-pairs // block), cp.uint8)
        args = (
            self.keys, np.uint32(2 * self.cells), np.int32(pairs), table, run, np.int32(1),
            np.int32(self.days), self.least, self.quantiles, np.float64(KEYS.scale),
            np.float64(KEYS.offset), self.reference, self.results, again,
        )  # fmt: skip
        shared = programs.lists_shared_bytes(WORDS, max(k, YEARS))
        lists = []
        for moves in (False, True):
            program = programs.lists_program(windows, [k], max(k, YEARS), True, moves, 1)
            kernel = self.gpu.kernels(program.text, program.kernels)["windows_by_lists"]
            lists.append(Way(kernel, -(-pairs // block), block, args, shared))
        found: dict[str, Way] = {"lists": Both(*lists, before=lambda: again.fill(0))}
        for planes, in_registers in ((12, True), (16, False)):
            program = programs.planes_program(AFFINE16, windows, (0, planes), in_registers)
            kernels = self.gpu.kernels(program.text, program.kernels)
            size = WORDS * programs.word_size(AFFINE16, planes)
            memory = None if in_registers else cp.zeros(size * self.cells, cp.uint32)
            args = (
                self.keys, np.int64(self.cells), np.int32(self.cells), np.int32(0),
                np.int32(self.cells), self.rows, self.first, np.int32(self.days), self.least,
                self.lowest, self.tops, self.quantiles, np.float64(KEYS.scale),
                np.float64(KEYS.offset), self.reference, self.results, memory,
            )  # fmt: skip
            extremes = Way(
                kernels["extremes"], -(-self.cells // 256), 256,
                (self.keys, np.int64(self.cells), np.int32(self.cells), self.live,
                 np.int32(self.live.size), self.lowest, self.tops),
            )  # fmt: skip
            way = Way(kernels["windows_by_planes"], -(-self.cells // block), block, args)
            where = "registers" if in_registers else "memory"
            found[f"planes {planes} in {where}"] = Both(extremes, way)
        return found

    def check(self) -> str | None:
        """What is wrong on a sample of cells and days."""
        pick = np.unique(np.random.default_rng().integers(0, self.cells, 200))
        values = KEYS.values(cp.asnumpy(self.keys[:, pick]))
        for day in (0, 1, 10, 11, self.days // 2, self.days - 1):
            pool = values[self.host_rows[day : day + WORDS].ravel()]
            expected = np.nanquantile(pool, QUANTILE, axis=0), np.nanmean(pool, axis=0)
            for i, what in enumerate(expected):
                got = cp.asnumpy(self.results[i, day, pick])
                if not np.allclose(got, what, atol=1e-4, rtol=0):
                    return f"statistic {i}, day {day} is wrong: {got} {what}"
        return None


class Both(Way):
    def __init__(self, first: Way, second: Way, before=lambda: None) -> None:
        self.first, self.second, self.before = first, second, before
        self.facts = {"first": first.facts, "second": second.facts}

    def run(self) -> None:
        self.before()
        self.first.run()
        self.second.run()


def timed(work) -> float:
    """Median milliseconds by the device's clock."""
    work()
    times = []
    for _ in range(REPEATS):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, stop))
    return statistics.median(times)


if __name__ == "__main__":
    main()
