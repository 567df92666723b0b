"""Files to file: how close is a whole run to the work that cannot be avoided?

    python benchmarks/endtoend.py /big/disk/oisst --layout oisst --case season full --rounds 3

The bound is the bare inflation of the chunks that the run must read plus the bare compression of
the output it makes: the same libraries, the same threads, nothing else and nothing overlapped,
measured in turns with the runs. A run is a whole process, from the start of the interpreter to the
renamed output; `first` has no index of the files yet, the others have. Memory is the peak of the
process.
The archive is made in the folder if it is not there (0.25 degree, 30 years: 7 GB for oisst).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import deflate
import h5py
import numpy as np

from kuroshio.archive.catalog import open_archive
from kuroshio.archive.compress import compress_chunks
from kuroshio.archive.describe import package_version
from kuroshio.archive.needs import Needs
from kuroshio.archive.synthetic import make_archive
from kuroshio.request import Request

CASES = {
    "season": (
        ["--doys", "152:243", "--no-smooth"],
        {"doys": tuple(range(152, 244)), "smooth_width": 1},
    ),
    "full": ([], {}),
}
SEASON_FILES = range(147, 249)  # the season's days of year and half a window around
TOGETHER = 6  # chunks that a thread compresses in one go, about as a run does
GROUP = 400  # chunks held in memory while they are inflated
REST_S = 5.0  # shared processors throttle under sustained load: what comes after it must not pay


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layout", choices=("oisst", "era5", "f8"), default="oisst")
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--grid", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--output", type=Path, help="folder for the outputs (default: beside the archive)"
    )
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    if not any(options.folder.glob("*.nc")):
        season = SEASON_FILES if options.case == ["season"] else None
        make_archive(options.folder, (1991, 2020), options.grid, options.layout, season)
    results = [measure(options, case) for case in options.case]
    record = {
        "date": date.today().isoformat(),
        "processor": processor(),
        "threads": options.threads,
        "layout": options.layout,
        "grid_degrees": options.grid,
        "versions": {"python": platform.python_version(), "kuroshio": package_version(),
                     "numpy": np.__version__, "deflate": deflate.__version__},
        "cases": results,
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


def measure(options: argparse.Namespace, case: str) -> dict:
    """Runs and bounds in turns; prints and returns medians and their ratio."""
    arguments, request = CASES[case]
    output = (options.output or options.folder.parent) / f"bench_{options.layout}_{case}.nc"
    archive = open_archive(str(options.folder))
    chunks = chunks_to_read(archive, Request(**request))
    first = run(options, arguments, output, fresh_cache=True)
    runs, inflates, compressions = [], [], []
    for _ in range(options.rounds):
        time.sleep(REST_S)
        inflates.append(inflate_bound(chunks, options.threads))
        time.sleep(REST_S)
        runs.append(run(options, arguments, output))
        time.sleep(REST_S)
        compressions.append(compress_bound(output, options.threads))
    seconds = statistics.median(r["wall_s"] for r in runs)
    bound = statistics.median(i + c for i, c in zip(inflates, compressions, strict=True))
    ratios = [r["wall_s"] / (i + c) for r, i, c in zip(runs, inflates, compressions, strict=True)]
    result = {
        "case": case,
        "files": len(chunks),
        "wall_s": round(seconds, 2),
        "wall_first_s": round(first["wall_s"], 2),
        "cpu_s": round(statistics.median(r["cpu_s"] for r in runs), 2),
        "bound_inflate_s": round(statistics.median(inflates), 2),
        "bound_compress_s": round(statistics.median(compressions), 2),
        "bound_s": round(bound, 2),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(r, 3) for r in ratios],
        "peak_memory_gb": round(max(r["peak_gb"] for r in [first, *runs]), 2),
        "output_gb": round(output.stat().st_size / 1e9, 3),
        "stages": runs[-1]["account"]["stages"],
    }
    print(json.dumps({k: v for k, v in result.items() if k != "stages"}), flush=True)
    output.unlink()
    return result


def run(
    options: argparse.Namespace, arguments: list[str], output: Path, fresh_cache: bool = False
) -> dict:
    """One whole process, into a file that does not exist: removing gigabytes takes time, too."""
    output.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, **({"KUROSHIO_CACHE_DIR": empty} if fresh_cache else {})}
        command = [
            sys.executable, "-m", "kuroshio", "climatology", str(options.folder),
            "-o", str(output), "--json", "--threads", str(options.threads),
            *arguments,
        ]  # fmt: skip
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return {
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_gb": usage.ru_maxrss * 1024 / 1e9,
        "account": json.loads(text),
    }


def chunks_to_read(archive, request: Request) -> list:
    """The byte ranges of the pieces that hold a day the request needs."""
    steps = Needs(archive, request, years_per_word=32).windows.steps
    needed = set(steps[steps >= 0].tolist())
    return [p.where for p in archive.pieces if needed & set(p.steps)]


def inflate_bound(chunks: list, threads: int) -> float:
    """Seconds of libdeflate alone on the chunks' bytes, read beforehand."""
    total = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(chunks), GROUP):
            group = []
            for where in chunks[start : start + GROUP]:
                with open(where.path, "rb") as file:
                    file.seek(where.offset)
                    size = int(np.prod(where.shape)) * np.dtype(where.dtype).itemsize
                    group.append((file.read(where.nbytes), size))
            begin = time.perf_counter()
            for _ in pool.map(lambda item: len(deflate.zlib_decompress(*item)), group):
                pass
            total += time.perf_counter() - begin
    return total


def compress_bound(path: Path, threads: int) -> float:
    """Seconds of the writer's compression alone on the chunks of an output."""
    total, spare = 0.0, deque()
    with h5py.File(path) as file, ThreadPoolExecutor(threads) as pool:
        for name in ("seas", "thresh"):
            data = file[name]
            offsets = [
                data.id.get_chunk_info(i).chunk_offset for i in range(data.id.get_num_chunks())
            ]
            for start in range(0, len(offsets), GROUP):
                group = []
                for offset in offsets[start : start + GROUP]:
                    chunk = np.full(data.chunks, np.nan, np.float32)
                    part = data[
                        tuple(slice(o, o + c) for o, c in zip(offset, data.chunks, strict=True))
                    ]
                    chunk[tuple(slice(0, n) for n in part.shape)] = part
                    group.append(chunk)
                stacks = [np.stack(group[i : i + TOGETHER]) for i in range(0, len(group), TOGETHER)]
                begin = time.perf_counter()
                for _, memory in pool.map(compress_chunks, stacks, [spare] * len(stacks)):
                    spare.append(memory)
                total += time.perf_counter() - begin
    return total


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii") as lines:
            return next(
                line.split(":")[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    main()
