"""Files to file on a GPU: where does the time of a whole process go, and what bounds it?

    python benchmarks/gpu_run.py /disk/oisst --device cuda:0 --json benchmarks/results/h200.json

A run is a process of its own, from the start of the interpreter to its end; the files are in the
page cache and an index knows them, but for the runs called `first_run`. Its moments and stages are
the account's own (recorded_run.py). *Start-up* ends when the first file of the job is read, the
*work* when the output has its name.

Measured in turns with the runs are the stages alone: libdeflate on all chunks that a run reads, on
all threads, in memory; the link, from pinned memory, for the decoded bytes and for the compressed
ones; and the compression of the output. The `ratio` is the work to the longest of inflating, the
link (decoded bytes) and compressing.

Other than endtoend.py, which holds whole processes of the processor to the sum of what cannot be
avoided, this takes a run apart: what overlaps is as long as its longest part.

The archive is made in the folder if it is not there. Medians are of all rounds. What is in the JSON
file already stays, but for `end_to_end`. Arguments that are not known here go to `kuroshio
climatology`, such as --pinned-memory 2G.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from endtoend import CASES, SEASON_FILES, chunks_to_read, compress_bound, processor

from kuroshio.account import COPY, DEVICE_STAGES, READING
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.describe import package_version
from kuroshio.archive.libdeflate import libdeflate
from kuroshio.archive.synthetic import make_archive
from kuroshio.intervals import Intervals
from kuroshio.request import Request

RUN = Path(__file__).with_name("recorded_run.py")
COPIED_BYTES = 64 << 20  # at a time, by the link alone
COPIES = 4  # of them in pinned memory, in turn
KERNELS = [stage for stage in DEVICE_STAGES if stage not in (COPY, "device fetch")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", nargs="+", default=["cuda:0"], help="measured in turns")
    parser.add_argument("--case", nargs="+", choices=CASES, default=["season"])
    parser.add_argument("--grid", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rest", type=float, default=0.5, help="seconds before each measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="put the figures there, under end_to_end")
    options, options.more = parser.parse_known_args()
    if not any(options.folder.glob("*.nc")):
        season = SEASON_FILES if options.case == ["season"] else None
        make_archive(options.folder, (1991, 2020), options.grid, "oisst", season)
    cases = [measure(options, case) for case in options.case]
    record = {
        "date": date.today().isoformat(),
        "what": "whole processes, OISST-layout files in the page cache to the written file; "
        "medians of the rounds (benchmarks/gpu_run.py)",
        "rounds": options.rounds,
        "threads": options.threads,
        "grid_degrees": options.grid,
        "arguments": options.more,
        "processor": processor(),
        "versions": {"python": platform.python_version(), "kuroshio": package_version(),
                     "numpy": np.__version__},
        "cases": cases,
    }  # fmt: skip
    if options.json:
        put(options.json, record, cases)


def put(path: Path, record: dict, cases: list[dict]) -> None:
    """The record into a file of results, whose other keys stay."""
    models = [run["device_model"] for case in cases for run in case["runs"].values()]
    kept = {"device": next(filter(None, models), "cpu")}
    if path.exists():
        kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "end_to_end": record}, indent=1) + "\n")


def measure(options: argparse.Namespace, case: str) -> dict:
    """Runs and bounds in turns; prints and returns medians."""
    arguments, request = CASES[case]
    output = options.folder.parent / f"gpu_run_{case}.nc"
    archive = open_archive(str(options.folder), cache=False)
    chunks = chunks_to_read(archive, Request(**request))
    decoded = sum(decoded_bytes(where) for where in chunks)
    compressed = sum(where.nbytes for where in chunks)
    rounds = []
    with tempfile.TemporaryDirectory() as known:
        command = ["climatology", str(options.folder), "-o", str(output), "--json",
                   "--threads", str(options.threads), *arguments, *options.more]  # fmt: skip
        for device in options.device:  # compiles, learns of the files
            run([*command, "--device", device], output, known)
        compress_bound(output, options.threads)  # loads what was compiled
        for _ in range(options.rounds):
            found: dict[str, Any] = {"bounds": {}, "runs": {}}
            time.sleep(options.rest)
            found["bounds"]["inflate_s"] = inflate_bound(chunks, options.threads)
            for device in options.device:
                time.sleep(options.rest)
                with tempfile.TemporaryDirectory() as empty:
                    first = run([*command, "--device", device], output, empty)
                time.sleep(options.rest)
                again = run([*command, "--device", device], output, known)
                again["first_run"] = {
                    "total_s": first["total_s"], "index_s": first["start_up"]["catalog_s"]
                }  # fmt: skip
                found["runs"][device] = again
            time.sleep(options.rest)
            found["bounds"]["compress_s"] = compress_bound(output, options.threads)
            found["bounds"].update(link_bounds(options.device[0], decoded, compressed))
            judge(found)
            rounds.append(found)
            show(found)
    result = {
        "case": case,
        "files": len(chunks),
        "decoded_gb": round(decoded / 1e9, 3),
        "compressed_gb": round(compressed / 1e9, 3),
        "output_gb": round(output.stat().st_size / 1e9, 3),
        **median(rounds),
        "work_s_of_rounds": {device: [round(found["runs"][device]["work_s"], 3)
                                      for found in rounds] for device in options.device},
    }  # fmt: skip
    output.unlink()
    print(json.dumps(result, indent=1), flush=True)
    return result


def show(found: dict) -> None:
    """A round in a line for each device, while the others are still to come."""
    print("bounds", json.dumps(median([found["bounds"]])), flush=True)
    for device, each in found["runs"].items():
        brief = {k: each[k] for k in ("total_s", "start_up_s", "work_s", "ratio", "first_run")}
        print(device, json.dumps(median([brief])), flush=True)


# -- a run -----------------------------------------------------------------------------------------


def run(arguments: list[str], output: Path, cache: str) -> dict:
    """One process, into a file that does not exist: removing gigabytes takes time, too."""
    output.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        moments = Path(folder) / "moments.json"
        command = [sys.executable, str(RUN), str(moments), *arguments]
        environment = {**os.environ, "KUROSHIO_CACHE_DIR": cache}
        start = perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
        stop = perf_counter()
        if done.returncode:
            raise SystemExit(f"{command} failed")
        return taken_apart(json.loads(moments.read_text()), json.loads(done.stdout), start, stop)


def taken_apart(record: dict, account: dict, start: float, stop: float) -> dict:
    """What a run's moments and intervals say, in seconds."""
    moments = record["moments"]
    times = {stage: Intervals(map(tuple, spans)) for stage, spans in record["intervals"].items()}
    reading = Intervals(span for stage in READING for span in times.get(stage, ()))
    first_read, renamed = next(iter(reading))[0], moments["renamed"]
    (opened,) = times["index"]
    copies = times.get(COPY, Intervals())
    kernels = Intervals(span for stage in KERNELS for span in times.get(stage, ()))
    found = {
        "device_model": account["device_model"],
        "total_s": stop - start,
        "start_up_s": first_read - start,
        "start_up": {
            "interpreter_s": moments["python"] - start,
            "imports_s": moments["account"] - moments["python"],
            "catalog_s": opened[1] - opened[0],
            "device_and_rest_s": first_read - opened[1],
        },
        "work_s": renamed - first_read,
        "end_s": stop - renamed,
        "first_copy_s": next(iter(copies))[0] - start if copies else None,
        "stages": {
            stage: {
                "busy_s": times[stage].seconds,
                **({} if stage in DEVICE_STAGES else {"thread_s": record["seconds"][stage]}),
            }
            for stage in times
            if stage != "wait"
        },
        "copies": None,
        "peak_memory_gb": account["peak_memory_gb"],
        # What the engine of a device reports.
        **{k: v for k, v in account.items() if isinstance(v, dict) and k != "launches"},
    }
    if copies:
        found["copies"] = {
            "gb": record["nbytes"][COPY] / 1e9,
            "gb_per_s": record["nbytes"][COPY] / copies.seconds / 1e9,
            "beside_reading_s": copies.overlap_s(reading),
            "beside_kernels_s": copies.overlap_s(kernels),
            "kernels_s": kernels.seconds,
            "kernels_beside_reading_or_copies_s": kernels.overlap_s(Intervals([*reading, *copies])),
        }
    return found


# -- the stages alone ------------------------------------------------------------------------------


def judge(found: dict) -> None:
    """Of a round: the longest of the stages alone, and how the runs compare to it."""
    bounds = found["bounds"]
    longest = max(("inflate_s", "link_decoded_s", "compress_s"), key=lambda n: bounds.get(n) or 0.0)
    found["longest"] = longest
    for each in found["runs"].values():
        each["ratio"] = each["work_s"] / bounds[longest]
        if each["copies"] and bounds["link_gb_per_s"]:
            each["copies"]["of_link"] = each["copies"]["gb_per_s"] / bounds["link_gb_per_s"]


def decoded_bytes(where: Any) -> int:
    return int(np.prod(where.shape)) * np.dtype(where.dtype).itemsize


def inflate_bound(chunks: list, threads: int) -> float:
    """Seconds of libdeflate alone, each thread its share of the chunks, to memory it has."""
    library, held = libdeflate(), []
    inflate = library.libdeflate_zlib_decompress
    for where in chunks:
        with open(where.path, "rb") as file:
            file.seek(where.offset)
            held.append((file.read(where.nbytes), decoded_bytes(where)))
    todo = iter(held)  # taking the next one is atomic

    def work(to: np.ndarray) -> None:
        own = ctypes.c_void_p(library.libdeflate_alloc_decompressor())
        at = ctypes.c_void_p(to.ctypes.data)
        for data, size in todo:
            got = ctypes.c_size_t(0)
            status = inflate(
                own, data, ctypes.c_size_t(len(data)), at, ctypes.c_size_t(size), ctypes.byref(got)
            )
            if status or got.value != size:
                raise SystemExit("a chunk does not inflate")
        library.libdeflate_free_decompressor(own)

    memory = np.ones((threads, max(size for _, size in held)), np.uint8)
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(time.sleep, [0.01] * threads):
            pass  # all threads are there
        begin = perf_counter()
        for _ in pool.map(work, memory):
            pass
        return perf_counter() - begin


def link_bounds(device: str, decoded: int, compressed: int) -> dict:
    """Of copies from pinned memory; in a process of its own, which holds the device as briefly."""
    if device == "cpu":
        return {"link_decoded_s": None, "link_compressed_s": None, "link_gb_per_s": None}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        seconds = [pool.submit(copy_s, device, nbytes).result() for nbytes in (decoded, compressed)]
    return {"link_decoded_s": seconds[0], "link_compressed_s": seconds[1],
            "link_gb_per_s": decoded / seconds[0] / 1e9}  # fmt: skip


def copy_s(device: str, nbytes: int) -> float:
    """Seconds to copy so many bytes to the device, or all of several each their share."""
    from kuroshio.device import cuda

    gpus = cuda.named(device)
    sources = [gpus[0].pinned((COPIED_BYTES,), np.uint8) for _ in range(COPIES)]
    for source in sources:
        source[:] = 1
    lanes = [(gpu, gpu.empty((COPIED_BYTES,), np.uint8), gpu.stream()) for gpu in gpus]

    def copy(total: int) -> float:
        begin, sent = perf_counter(), 0
        while sent < total:
            size = min(COPIED_BYTES, total - sent)
            piece = sent // COPIED_BYTES
            gpu, there, stream = lanes[piece % len(lanes)]
            with gpu.use():
                gpu.upload(there[:size], sources[piece % COPIES][:size], stream)
            sent += size
        for _, _, stream in lanes:
            stream.synchronize()
        return perf_counter() - begin

    copy(COPIED_BYTES * COPIES * len(lanes))
    return copy(nbytes)


def median(rounds: list) -> Any:
    """Of dicts of the same keys the medians of what is numbers, rounded; of the rest the last."""
    last = rounds[-1]
    if isinstance(last, dict):
        dicts = [each for each in rounds if isinstance(each, dict)]
        return {k: median([each[k] for each in dicts if k in each]) for k in last}
    if isinstance(last, bool) or not all(isinstance(each, (int, float)) for each in rounds):
        return last
    return round(statistics.median(rounds), 4)


if __name__ == "__main__":
    main()
