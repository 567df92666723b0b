"""How fast do the usual tools compute a daily percentile threshold, and do they agree?

    python benchmarks/peers.py --json benchmarks/results/peers.json

One synthetic grid (16-bit hundredths of a degree, no gaps), 30 years, all days of year, 11-day
window, 90th percentile, no smoothing. The tools run one after the other, each in the same process
with a rest before each run, on the same processors. Every tool is optional: one that is not
installed is skipped and the reason printed (`pip install -r benchmarks/requirements-peers.txt`).

What is timed is the call that a user makes, on the input that the tool takes: an array in memory,
or a NetCDF file in the page cache. One run before, not counted, loads libraries and compiles.

The bar is NumPy as well as it can be written: contiguous windows gathered for many cells at once,
on the 16-bit codes, two threads over the days of year. `np.partition` takes the two order
statistics between which the percentile lies; asked for one of them, with the minimum of the rest
as the other, it takes another path that uses vector instructions, as `np.sort` does.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import xarray as xr

YEARS = (1991, 2020)
HALF_WIDTH, PERCENTILE, SCALE = 5, 90.0, 0.01
LENGTH, LEAP_DAY = 366, 60
SLOW_S = 15  # a run that takes longer needs no median
BAR = "np.partition, 2 threads"
# Days of year where all definitions of the window and of the day of year agree: no year's end, no
# 29 February near, and no leap year has shifted the count yet.
COMMON = slice(6 - 1, 54)


class Absent(Exception):
    """The tool is not installed; the message says what is missing."""


@dataclass
class World:
    """The same data in every form that a tool takes. Cells are (lat, lon), values degC."""

    codes: np.ndarray  # int16 (cell, time), contiguous in time
    sst: xr.DataArray  # float32 (time, lat, lon)
    path: Path  # NetCDF of the same
    folder: Path  # for what tools write
    threads: int

    @property
    def cells(self) -> int:
        return len(self.codes)


@dataclass
class Result:
    """A tool's speed, and its largest distance from the first exact result."""

    tool: str
    version: str
    input: str
    runs_s: list[float] = field(default_factory=list)
    cells_per_s: float = float("nan")
    ratio_to_bar: float = float("nan")
    max_difference: float = float("nan")  # degC, all days of year
    max_difference_common_days: float = float("nan")  # degC, COMMON
    note: str = ""


def make_world(side: int, folder: Path, threads: int) -> World:
    """Seasonal cycle, slow anomalies and noise of the size of the ocean's, from a fixed seed."""
    rng = np.random.default_rng(20160227)
    time_ = np.arange(f"{YEARS[0]}-01-01", f"{YEARS[1] + 1}-01-01", dtype="datetime64[D]")
    n, cells = len(time_), side * side
    phase = 2 * np.pi * np.arange(n) / 365.2425
    codes = np.empty((cells, n), np.int16)
    memory = 0.95  # of one day in the next
    for cell in range(cells):
        noise = rng.standard_normal(n)
        for day in range(1, n):
            noise[day] = memory * noise[day - 1] + np.sqrt(1 - memory**2) * noise[day]
        celsius = rng.uniform(2, 27) + rng.uniform(0.5, 6) * np.cos(phase - rng.uniform(0, 6.28))
        codes[cell] = np.rint((celsius + rng.uniform(0.3, 1.5) * noise) * 100)
    values = (codes.T * SCALE).astype(np.float32).reshape(n, side, side)
    sst = xr.DataArray(
        values,
        {
            "time": time_.astype("datetime64[ns]"),
            "lat": ("lat", -40 + 0.25 * np.arange(side), {"units": "degrees_north"}),
            "lon": ("lon", 150 + 0.25 * np.arange(side), {"units": "degrees_east"}),
        },
        ("time", "lat", "lon"),
        "sst",
        {"units": "degC", "standard_name": "sea_surface_temperature"},
    )
    path = folder / "sst.nc"
    sst.to_netcdf(path, encoding={"time": {"units": "days since 1970-01-01"}})
    return World(codes, sst, path, folder, threads)


# --- NumPy ---------------------------------------------------------------------------------------


def windows() -> list[list[tuple[int, int]]]:
    """For each day of year but 29 February, where its windows begin and end in the series."""
    start = np.datetime64(f"{YEARS[0]}-01-01")
    n = int((np.datetime64(f"{YEARS[1] + 1}-01-01") - start).astype(int))
    out: list[list[tuple[int, int]]] = [[] for _ in range(LENGTH)]
    for year in range(YEARS[0], YEARS[1] + 1):
        first = int((np.datetime64(f"{year}-01-01") - start).astype(int))
        leap = year % 4 == 0  # 1991 to 2020
        for doy in (d for d in range(1, LENGTH + 1) if d != LEAP_DAY):
            centre = first + doy - 1 - (doy > LEAP_DAY and not leap)
            low, high = max(0, centre - HALF_WIDTH), min(n, centre + HALF_WIDTH + 1)
            out[doy - 1].append((low, high))
    return out


def by_pair(pool: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    pool.partition((k, k + 1), axis=1)
    return pool[:, k], pool[:, k + 1]


def by_one_rank(pool: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    pool.partition(k, axis=1)
    return pool[:, k], pool[:, k + 1 :].min(axis=1)


def by_sort(pool: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    pool.sort(axis=1)
    return pool[:, k], pool[:, k + 1]


def numpy_threshold(world: World, select: Callable, threads: int) -> np.ndarray:
    """thresh (dayofyear, lat, lon): gather contiguous windows, select, interpolate."""
    table = windows()
    out = np.empty((LENGTH, world.cells))

    def some_days(doys: range) -> None:
        room = np.empty((world.cells, YEARS[1] - YEARS[0] + 1, 2 * HALF_WIDTH + 1), np.int16)
        room = room.reshape(-1)
        for doy in doys:
            runs = table[doy]
            if not runs:
                continue
            n = sum(high - low for low, high in runs)
            pool = room[: world.cells * n].reshape(world.cells, n)
            at = 0
            for low, high in runs:
                pool[:, at : at + high - low] = world.codes[:, low:high]
                at += high - low
            rank = (n - 1) * PERCENTILE / 100
            low_code, high_code = select(pool, int(rank))
            low_value, high_value = low_code * SCALE, high_code * SCALE
            out[doy] = low_value + (high_value - low_value) * (rank - int(rank))

    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(some_days, [range(t, LENGTH, threads) for t in range(threads)]))
    out[LEAP_DAY - 1] = (out[LEAP_DAY - 2] + out[LEAP_DAY]) / 2
    return out.reshape(LENGTH, *world.sst.shape[1:])


# --- the tools: each returns thresh (dayofyear, lat, lon) ----------------------------------------


def kuroshio(world: World) -> np.ndarray:
    ks = module("kuroshio")
    if not hasattr(ks, "climatology"):
        raise Absent("this kuroshio has no climatology()")
    clim = ks.climatology(world.sst, baseline=YEARS, percentile=PERCENTILE, smooth_width=1)
    return clim.thresh.squeeze().transpose("dayofyear", "lat", "lon").values


def xarray_rolling(world: World) -> np.ndarray:
    module("dask")
    width = 2 * HALF_WIDTH + 1
    with xr.open_mfdataset([world.path]) as opened:
        # Loaded first: on dask arrays the same lines are four times slower.
        pools = opened.sst.load().rolling(time=width, center=True).construct("window")
        grouped = pools.groupby("time.dayofyear")
        thresh = grouped.quantile(PERCENTILE / 100, dim=("time", "window"), skipna=True)
        return thresh.transpose("dayofyear", "lat", "lon").values


def xclim(world: World) -> np.ndarray:
    percentile_doy = module("xclim.core.calendar").percentile_doy
    # alpha = beta = 1 is the linear estimator (type 7); its own default is type 8.
    thresh = percentile_doy(
        world.sst, window=2 * HALF_WIDTH + 1, per=PERCENTILE, alpha=1.0, beta=1.0
    )
    return thresh.squeeze().transpose("dayofyear", "lat", "lon").values


def heatwave3(world: World) -> np.ndarray:
    ts2clm3 = module("heatwave3").ts2clm3
    out = world.folder / "heatwave3"
    ts2clm3(
        str(world.path),
        str(out),
        (f"{YEARS[0]}-01-01", f"{YEARS[1]}-12-31"),
        var_name="sst",
        windowHalfWidth=HALF_WIDTH,
        pctile=PERCENTILE,
        smoothPercentile=False,
        roundClm=False,
        n_threads=world.threads,
        quiet=True,
    )
    (made,) = world.folder.glob("heatwave3*.nc")
    with xr.open_dataset(made) as clim:
        return clim.thresh.transpose("doy", "lat", "lon").values


def cdo(world: World, *options: str, bins: int | None = None) -> np.ndarray:
    if shutil.which("cdo") is None:
        raise Absent("no program cdo on the PATH")
    out, width, source = world.folder / "cdo.nc", 2 * HALF_WIDTH + 1, str(world.path)
    extremes = [f"-ydrunmin,{width}", source, f"-ydrunmax,{width}", source]
    operator = f"ydrunpctl,{PERCENTILE:g},{width}"
    command = ["cdo", "-s", "-O", *options, operator, source, *extremes, str(out)]
    environment = dict(os.environ) | ({"CDO_PCTL_NBINS": str(bins)} if bins else {})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    with xr.open_dataset(out) as thresh:
        return thresh.sst.transpose("time", "lat", "lon").values


def module(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(str(error)) from error


def version(tool: str) -> str:
    if tool == "cdo":
        done = subprocess.run(["cdo", "--version"], capture_output=True, text=True, check=False)
        return (done.stderr + done.stdout).split("version", 1)[-1].split()[0]
    try:
        return importlib.metadata.version(tool)
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
        return "not installed"


ARRAY, FILE = "array in memory", "NetCDF file"
# name -> (package, input, call, note); the two kinds of reference come first.
TOOLS: dict[str, tuple[str, str, Callable[[World], np.ndarray], str]] = {
    "np.partition, 1 thread": ("numpy", ARRAY, lambda w: numpy_threshold(w, by_pair, 1), ""),
    BAR: ("numpy", ARRAY, lambda w: numpy_threshold(w, by_pair, 2), "the bar"),
    "np.partition at one rank, 1 thread": (
        *("numpy", ARRAY, lambda w: numpy_threshold(w, by_one_rank, 1), ""),
    ),
    "np.partition at one rank, 2 threads": (
        *("numpy", ARRAY, lambda w: numpy_threshold(w, by_one_rank, 2), ""),
    ),
    "np.sort, 2 threads": ("numpy", ARRAY, lambda w: numpy_threshold(w, by_sort, 2), ""),
    "kuroshio": ("kuroshio", ARRAY, kuroshio, "mean as well"),
    "xarray rolling + groupby": ("xarray", FILE, xarray_rolling, "true day of year"),
    "xclim percentile_doy": ("xclim", ARRAY, xclim, "365 days stretched to 366"),
    "heatwave3 ts2clm3": ("heatwave3", FILE, heatwave3, "mean as well; clipped at the baseline"),
    "cdo ydrunpctl": ("cdo", FILE, cdo, "histogram of 101 bins"),
    "cdo ydrunpctl, exact": (
        *("cdo", FILE, lambda w: cdo(w, "--percentile", "linear", bins=1001), "1001 bins"),
    ),
}


def measure(world: World, tool: str, repeat: int, rest_s: float) -> tuple[Result, np.ndarray]:
    """Once to warm up, then `repeat` times with rests (slow tools once); the median counts."""
    package, source, call, note = TOOLS[tool]
    began = time.perf_counter()
    thresh = call(world)
    slow = time.perf_counter() - began > SLOW_S
    result = Result(tool, version(package), source, note=note)
    for _ in range(1 if slow else repeat):
        time.sleep(rest_s)
        began = time.perf_counter()
        call(world)
        result.runs_s.append(round(time.perf_counter() - began, 4))
    result.cells_per_s = world.cells / statistics.median(result.runs_s)
    return result, thresh


def compare(result: Result, thresh: np.ndarray, exact: np.ndarray) -> None:
    """Largest distances where both have a value; a shorter day axis is compared on its days."""
    distance = np.abs(thresh[: len(exact)] - exact[: len(thresh)])
    result.max_difference = float(np.nanmax(distance))
    result.max_difference_common_days = float(np.nanmax(distance[COMMON]))


def machine(threads: int) -> dict[str, object]:
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "threads": threads,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def table(results: list[Result]) -> str:
    head = ("tool", "version", "cells/s", "x bar", "max diff", "common days", "input", "note")
    rows = [
        (
            *(r.tool, r.version, f"{r.cells_per_s:,.0f}", f"{r.ratio_to_bar:.2f}"),
            *(f"{r.max_difference:.1e}", f"{r.max_difference_common_days:.1e}", r.input, r.note),
        )
        for r in results
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 2 <= i <= 5 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *rows]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=32, help="cells along each side of the grid")
    parser.add_argument("--repeat", type=int, default=3, help="timed runs of each tool")
    parser.add_argument("--rest", type=float, default=1.5, help="seconds of rest before each run")
    parser.add_argument("--only", nargs="*", help=f"tools to run, of: {'; '.join(TOOLS)}")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    wanted = [tool for tool in TOOLS if not options.only or tool in options.only or tool == BAR]
    threads = 2
    if hasattr(os, "sched_setaffinity"):  # nobody gets more processors than the bar
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    warnings.simplefilter("ignore")  # the tools' own, which a user sees too

    results: list[Result] = []
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(options.side, Path(folder), threads)
        exact = numpy_threshold(world, by_sort, threads)
        for tool in wanted:
            try:
                result, thresh = measure(world, tool, options.repeat, options.rest)
            except Absent as reason:
                skipped[tool] = str(reason)
                print(f"{tool}: skipped, {reason}", file=sys.stderr)
                continue
            except Exception as error:  # a peer that fails must not end the comparison
                skipped[tool] = f"failed: {error}"
                print(f"{tool}: failed, {error!r}", file=sys.stderr)
                continue
            compare(result, thresh, exact)
            results.append(result)
            print(f"{tool}: {result.cells_per_s:,.0f} cells/s", file=sys.stderr)

    bar = next(r.cells_per_s for r in results if r.tool == BAR)
    for result in results:
        result.ratio_to_bar = result.cells_per_s / bar
    print(f"\n{world.cells} cells x {len(world.sst)} days, thresholds of {LENGTH} days of year")
    print(table(results))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "date": date.today().isoformat(),
            "machine": machine(threads),
            "cells": world.cells,
            "days": len(world.sst),
            "results": [asdict(r) for r in results],
            "skipped": skipped,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
