"""What do several GPUs of a host gain, where reading does not limit them?

    python benchmarks/devices.py --devices 1 2 --json benchmarks/results/h200x2.json

Copy and compute of a season of global maps: shuffled 16-bit codes that lie in pinned memory are
sent to the devices, each its part, made keys, and the windows of 92 days of year come back; by the
engine's own parts (engines/gpu_share.py), without a reader. Beside it the bound: the same bytes
copied in the same pieces by all devices at once, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import deque
from datetime import date
from pathlib import Path
from time import perf_counter

import cupy as cp
import numpy as np

from kuroshio.archive.plan import Batch, Block
from kuroshio.archive.sea import runs_of
from kuroshio.device import cuda
from kuroshio.engines.gpu_share import GpuShare, Part, places_of, stretches
from kuroshio.engines.rings import TABLE_BYTES, Clock, Ring
from kuroshio.kernels.gpu.windows import MAP, Job
from kuroshio.keys import AFFINE16, Keys

GRID = (720, 1440)
CELLS = GRID[0] * GRID[1]
YEARS, WORDS, BATCH, DAYS = 30, 11, 8, 92
MAPS = 16  # of a ring
RINGS = 6
REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kind", default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpus = [cuda.by_name(f"{options.kind}:{i}") for i in range(max(options.devices))]
    maps = made_maps()
    found = [measure(gpus[:number], maps) for number in options.devices]
    for each in found:
        each["gain"] = round(found[0]["ms"] / each["ms"], 3)
        print(json.dumps(each), flush=True)
    if options.json:
        record = {"date": date.today().isoformat(), "device": gpus[0].model,
                  "cupy": cp.__version__, "copy_and_compute": found}  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n")


def made_maps() -> np.ndarray:
    """(map, plane, cell) bytes of codes, a third of them land."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-180, 3200, (MAPS, CELLS)).astype(np.int16)
    codes[:, np.arange(CELLS) % 9000 < 2600] = -999
    return codes.view(np.uint8).reshape(MAPS, CELLS, 2).swapaxes(1, 2).copy()


class Case:
    def __init__(self, gpus: list, maps: np.ndarray) -> None:
        valid = (maps[0, 0].astype(np.uint16) | maps[0, 1].astype(np.uint16) << 8) != 0xFC19
        runs = runs_of(valid, 32)
        rows = 1 + (DAYS + WORDS - 1) * YEARS
        cells = -(-runs.cells // 32) * 32
        block = Block(slice(0, GRID[0]), runs, cells, cells // 32, rows, BATCH, ())
        job = Job(Keys(AFFINE16, 0.01), (0.9,), (), WORDS, YEARS, 1, rows, cells, BATCH, 1)
        clocks = [Clock(gpu) for gpu in gpus]
        cut = stretches(block, cells, len(gpus))
        places = places_of(block)
        self.shares = []
        for gpu, clock, stretch in zip(gpus, clocks, cut, strict=True):
            mine = slice(0, CELLS) if len(gpus) == 1 else stretch.grid
            share = GpuShare(gpu, clock, job, stretch, Part(2, CELLS, mine), places, RINGS * MAPS)
            share.compile()
            self.shares.append(share)
        self.kept = gpus[0].pinned((2, BATCH, cells), np.float32)
        self.reference = gpus[0].pinned((cells,), np.float32)
        self.seen = gpus[0].pinned((len(gpus),), np.uint32)
        self.rings: deque[Ring] = deque()
        for _ in range(RINGS):
            memory = gpus[0].pinned((TABLE_BYTES + maps.nbytes,), np.uint8)
            ring = Ring(memory, [share.lane(MAPS) for share in self.shares])
            ring.maps[:] = maps.reshape(-1)
            self.rings.append(ring)

    def run(self) -> float:
        """Milliseconds for the whole season."""
        start = perf_counter()
        words = np.arange(DAYS + WORDS - 1)
        sent = 0
        for first in range(0, DAYS, BATCH):
            days = np.arange(first, min(first + BATCH, DAYS))
            needed = (days[-1] + WORDS) * YEARS
            while sent < needed:
                number = min(MAPS, needed - sent)
                self._send(1 + np.arange(sent, sent + number))
                sent += number
            self._launch(batch_of(words, days))
        for share in self.shares:
            share.gpu.wait(share.fetched)
        return 1e3 * (perf_counter() - start)

    def _send(self, rows: np.ndarray) -> None:
        ring = self.rings[0]
        self.rings.rotate(-1)
        if ring.busy:
            for lane in ring.lanes:
                lane.gpu.wait(lane.free)
        table = np.zeros(rows.size, MAP)
        table["row"], table["fill"], table["filled"] = rows, 0xFC19, 1
        ring.write_table(table)
        ring.busy = True
        for share, lane in zip(self.shares, ring.lanes, strict=True):
            share.send(ring, lane, rows.size)

    def _launch(self, batch: Batch) -> None:
        for i, share in enumerate(self.shares):
            share.gpu.wait(share.fetched)  # the results' memory is used again
            first = int(batch.doys[0]) == 0
            share.launch(batch, first, self.kept, self.reference, self.seen[i : i + 1])


def batch_of(words: np.ndarray, days: np.ndarray) -> Batch:
    mine = words[days[0] : days[-1] + WORDS]
    word_rows = (1 + mine[:, None] * YEARS + np.arange(YEARS)).astype(np.int32)
    return Batch(
        loads=(), clear=(), fills=(), doys=days, first_word=days - days[0], word_rows=word_rows,
        live=np.unique(word_rows), gaps=False, least=np.ones(days.size, np.int32),
        result_rows=np.arange(days.size, dtype=np.int32), leap_day=None, outputs=(),
    )  # fmt: skip


def measure(gpus: list, maps: np.ndarray) -> dict:
    case = Case(gpus, maps)
    case.run()
    times = [case.run() for _ in range(REPEATS)]
    nbytes = (DAYS + WORDS - 1) * YEARS * 2 * CELLS
    bound = bound_ms(case)
    for share in case.shares:
        share.close()
    ms = statistics.median(times)
    return {"devices": len(gpus), "ms": round(ms, 2), "copy_gb": round(nbytes / 1e9, 2),
            "copies_alone_ms": round(bound, 2), "ratio": round(ms / bound, 3),
            "gb_per_s": round(nbytes / ms / 1e6, 1)}  # fmt: skip


def bound_ms(case: Case) -> float:
    """The copies of all maps alone, whole rings of them, on all devices at once."""
    times = []
    rounds = -(-(DAYS + WORDS - 1) * YEARS // MAPS)
    for _ in range(REPEATS):
        start = perf_counter()
        for turn in range(rounds):
            ring = case.rings[turn % RINGS]
            for share, lane in zip(case.shares, ring.lanes, strict=True):
                part = share.part
                with share.gpu.use():
                    if part.whole:
                        share.gpu.upload(lane.there, ring.memory, share.copying)
                    else:
                        planes = ring.maps.reshape(-1, part.row_bytes)[:, part.bytes]
                        share.gpu.upload_parts(lane.maps, planes, share.copying)
        for share in case.shares:
            share.copying.synchronize()
        times.append(1e3 * (perf_counter() - start))
    return statistics.median(times)


if __name__ == "__main__":
    main()
