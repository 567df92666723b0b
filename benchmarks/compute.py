"""Compute only: the engine against np.partition, full year, 30 years, 16-bit codes, no files.

    python benchmarks/compute.py --rounds 5 --json out.json

Both start from the same int16 array in memory and end with the unsmoothed 90th percentile of every
cell and day of year (the engine with the mean as well). The bar, `np.partition` on gathered windows
that lie contiguously, is that of peers.py, and is measured on fewer cells in turns with the engine:
it takes about a second for two thousand cells. `windows` is the engine's selection alone, without
the conversion of the codes and the collection of results.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from contextlib import nullcontext
from datetime import date
from pathlib import Path

import numba
import numpy as np
import peers

from kuroshio import pipeline
from kuroshio.account import Account
from kuroshio.archive.describe import describe, package_version
from kuroshio.archive.model import Archive, ArraySlice, Grid, Packing, Piece
from kuroshio.memory_output import MemoryOutput
from kuroshio.request import Request

BAR_SIDE = 32  # cells on a side for NumPy
REST_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, default=16, help="of the bar's cells, for the engine")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = peers.make_world(BAR_SIDE, Path(folder), options.threads)
    large = enlarged(small, options.copies)
    archive = archive_of(large)
    engine(archive, options.threads)  # compiles
    rates: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, select in (
            ("np.partition, 2 threads", peers.by_pair),
            ("np.partition at one rank, 2 threads", peers.by_one_rank),
            ("np.sort, 2 threads", peers.by_sort),
        ):
            time.sleep(REST_S)
            begin = time.perf_counter()
            peers.numpy_threshold(small, select, options.threads)
            rates.setdefault(name, []).append(small.cells / (time.perf_counter() - begin))
        time.sleep(REST_S)
        whole_s, windows_s, thresh = engine(archive, options.threads)
        rates.setdefault("kuroshio in memory", []).append(large.cells / whole_s)
        rates.setdefault("kuroshio, windows", []).append(large.cells / windows_s)
    check(large, thresh)
    bar = rates["np.partition, 2 threads"]
    record = {
        "date": date.today().isoformat(),
        "machine": peers.machine(options.threads),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "kuroshio": package_version(),
        },
        "cells": {"kuroshio": large.cells, "numpy": small.cells},
        "cells_per_s": {name: round(statistics.median(r)) for name, r in rates.items()},
        "ratio_to_np_partition": {
            name: round(statistics.median(a / b for a, b in zip(r, bar, strict=True)), 1)
            for name, r in rates.items()
        },
    }
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


def enlarged(world: peers.World, copies: int) -> peers.World:
    """The same series again and again, each time a little warmer or colder."""
    shift = np.random.default_rng(1).integers(-200, 200, (copies, 1, 1))
    codes = (world.codes + shift).astype(np.int16).reshape(-1, world.codes.shape[1])
    return peers.World(codes, world.sst, world.path, world.folder, world.threads)


def archive_of(world: peers.World) -> Archive:
    """The codes in memory, time first, in pieces of about a year as an array's own chunks are."""
    shape = (world.cells // BAR_SIDE, BAR_SIDE)
    stored = np.ascontiguousarray(world.codes.T).reshape(-1, *shape)
    days = world.sst.time.values.astype("datetime64[D]").astype(np.int64)
    box = tuple(slice(0, n) for n in shape)
    packing = Packing(0.01, 0.0, (), packed=True)
    pieces = []
    for start in range(0, len(days), 365):
        steps = tuple(range(start, min(start + 365, len(days))))
        where = ArraySlice(stored, (slice(start, start + len(steps)), *box))
        pieces.append(Piece(steps, box, packing, where))
    grid = Grid(("lat", "lon"), shape)
    return Archive("sst", {}, stored.dtype, grid, "standard", days, tuple(pieces))


def engine(archive: Archive, threads: int) -> tuple[float, float, np.ndarray]:
    """Seconds of the whole, of the windows alone (a thread's share), and the thresholds."""
    request = Request(peers.YEARS, smooth_width=1)
    account = Account(threads=threads)
    memory = MemoryOutput(describe(archive, request, tuple(range(1, 367))))
    begin = time.perf_counter()
    pipeline.run(
        archive, request, lambda *_: nullcontext(memory), memory_bytes=8 << 30, threads=threads,
        spans=account.span,
    )  # fmt: skip
    whole_s = time.perf_counter() - begin
    return whole_s, account.seconds["compute"] / threads, memory.fields["thresh"]


def check(world: peers.World, thresh: np.ndarray) -> None:
    """The first cells of the timed output against NumPy."""
    few = peers.World(world.codes[:64], world.sst, world.path, world.folder, 1)
    flat = thresh.reshape(len(thresh), -1)[:, :64]
    expected = numpy_rows(few)
    inside = np.delete(np.arange(366), 59)  # 29 February is made of its neighbours
    worst = np.nanmax(np.abs(flat[inside] - expected[inside]))
    if not worst < 4e-6:  # a float32 at 40 degrees
        raise SystemExit(f"the thresholds differ from NumPy's by {worst}")


def numpy_rows(world: peers.World) -> np.ndarray:
    table = peers.windows()
    out = np.full((366, world.cells), np.nan)
    for doy in range(366):
        if table[doy]:
            pool = np.concatenate([world.codes[:, a:b] for a, b in table[doy]], axis=1)
            out[doy] = np.percentile(pool.astype(np.float64) * 0.01, 90, axis=1)
    return out


if __name__ == "__main__":
    main()
