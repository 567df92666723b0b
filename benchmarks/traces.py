"""A trace of a million events: seconds and memory to read it, beside HTA on the same file.

    python benchmarks/traces.py --hta VENV/bin/python --rounds 3 --json out.json

The file is made here, as torch.profiler writes one: operators within operators, each with a launch,
two arrows and a kernel or a copy; the same bytes every time. Each reading is a process of its own,
in turns with the others, and tells its largest resident memory (ru_maxrss). Ours ends with the
table of events of kuroshio.perf.traces.read, HTA's (Holistic Trace Analysis, in an environment of
its own) with the data frame of parse_trace_dataframe, as it is configured when it is installed. A
process that reads a tiny file is measured beside, so that what imports take can be told apart. On
a machine that others use, the processor's seconds say more than the clock's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

EVENTS = 1_000_000
EVENTS_A_LAUNCH = 7
BEGIN_NS = 1_712_195_495_505_543_140
STEP_NS = 40_003
KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::Half>, "
    f"at::detail::Array<char*, {i}> >(int, at::native::FillFunctor<c10::Half>, at::detail::Array"
    f"<char*, {i}>)"
    for i in range(60)
]
MEASURE = """
import json, resource, sys, time
begin = time.perf_counter()
{imports}
imported, used = time.perf_counter(), time.process_time()
number = {read}
end, used = time.perf_counter(), time.process_time() - used
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(
    dict(import_s=imported - begin, read_s=end - imported, cpu_s=used, peak_mib=peak, events=number)
))
"""
READERS = {
    "kuroshio": MEASURE.format(
        imports="from kuroshio.perf.traces.read import read",
        read="len(read(sys.argv[1]).events)",
    ),
    "hta": MEASURE.format(
        imports="from hta.common.trace_parser import parse_trace_dataframe\n"
        "from hta.configs.parser_config import ParserConfig",
        read="len(parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())[1])",
    ),
}
ONLY_IMPORTS = "a tiny file"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hta", help="the Python that has HolisticTraceAnalysis")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    pythons = {"kuroshio": sys.executable, **({"hta": options.hta} if options.hta else {})}
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "trace.json", Path(folder) / "trace.json.gz"
        write(plain, options.events)
        # A process begins with its parent's largest memory, so this one stays small.
        with open(plain, "rb") as source, gzip.open(packed, "wb", 6) as target:
            shutil.copyfileobj(source, target)
        sizes = {path.name: round(path.stat().st_size / (1 << 20), 1) for path in (plain, packed)}
        tiny = Path(folder) / "tiny.json"
        write(tiny, EVENTS_A_LAUNCH)
        for _ in range(options.rounds):
            for path in (plain, packed):
                for name, python in pythons.items():
                    found.setdefault(f"{name}, {path.name}", []).append(read(name, python, path))
        for name, python in pythons.items():
            found[f"{name}, {ONLY_IMPORTS}"] = [read(name, python, tiny)]
    record = {
        "date": date.today().isoformat(),
        "machine": {"cpu": cpu(), "python": platform.python_version()},
        "versions": {name: versions(python) for name, python in pythons.items()},
        "elements_of_the_file": options.events,
        "mib": sizes,
        "rounds": options.rounds,
        "readings": {name: summary(rounds) for name, rounds in found.items()},
    }
    if options.hta:
        record["times_faster_than_hta"] = {
            path: {
                what: round(
                    record["readings"][f"hta, {path}"][what]["median"]
                    / record["readings"][f"kuroshio, {path}"][what]["median"],
                    1,
                )
                for what in ("seconds", "processor_seconds")
            }
            for path in sizes
        }
    text = json.dumps(record, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")


def write(path: Path, events: int) -> None:
    """A file of so many elements, laid out as torch.profiler does."""
    with open(path, "w", encoding="ascii") as file:
        file.write(
            '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": '
            '"NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42297524224, "computeMajor": 8, '
            '"computeMinor": 0, "warpSize": 32, "numSms": 108\n    }\n  ],\n  "traceEvents": [\n'
        )
        for number, event in enumerate(elements(events)):
            file.write(("" if number == 0 else ",\n") + event)
        file.write('\n  ],\n  "traceName": "trace.json",\n  "displayTimeUnit": "ms"\n}\n')


def elements(number: int) -> Iterator[str]:
    launch = 0
    while number > 0:
        yield from one_launch(launch)[:number]
        number -= EVENTS_A_LAUNCH
        launch += 1


def one_launch(i: int) -> list[str]:
    """Three operators, a call, an arrow's two ends, and what the call began."""
    at, correlation, operator = BEGIN_NS + i * STEP_NS, 100_000 + i, 3 * i + 1
    made = [
        f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "aten::{name}", "pid": 1102, "tid": 1102,\n'
        f'    "ts": {us(at + 1_501 * depth)}, "dur": {us(30_007 - 3_001 * depth)},\n'
        f'    "args": {{\n      "External id": {operator + depth},'
        f'"Record function id": 0, "Ev Idx": {operator + depth}\n    }}\n  }}'
        for depth, name in enumerate((f"linear_{i % 40}", f"addmm_{i % 30}", "copy_"))
    ]
    copy = i % 20 == 0
    call = "cudaMemcpyAsync" if copy else "cudaLaunchKernel"
    made.append(
        f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "{call}", "pid": 1102, "tid": 1102,\n'
        f'    "ts": {us(at + 6_113)}, "dur": {us(4_999 + i % 977)},\n    "args": {{\n'
        f'      "External id": {operator + 2},      "cbid": 211, "correlation": {correlation}\n'
        "    }\n  }"
    )
    began = at + 15_361
    for phase, where, ts in (
        ("s", '"pid": 1102, "tid": 1102', at + 6_113),
        ("f", '"pid": 0, "tid": 7', began),
    ):
        made.append(
            f'  {{\n    "ph": "{phase}", "id": {correlation}, {where}, "ts": {us(ts)},\n'
            '    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }'
        )
    head = f'"External id": {operator + 2},      "device": 0, "context": 1,      "stream": 7, '
    head += f'"correlation": {correlation},      '
    if copy:
        category, name = "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"
        tail = f'"bytes": {4096 + i % 512}, "memory bandwidth (GB/s)": {1 + i % 97 / 7}'
    else:
        category, name = "kernel", KERNELS[i % len(KERNELS)]
        tail = (
            f'"queued": 0, "registers per thread": {16 + i % 48},      "shared memory": 0,      '
            f'"blocks per SM": {i % 50 / 8:.6f},      "warps per SM": {i % 50 / 2:.6f},      '
            f'"grid": [{1 + i % 500}, 1, 1],      "block": [128, 1, 1],      '
            f'"est. achieved occupancy %": {i % 50}'
        )
    made.append(
        f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": 0, "tid": 7,\n'
        f'    "ts": {us(began)}, "dur": {us(2_017 + i % 30_011)},\n    "args": {{\n'
        f"      {head}{tail}\n    }}\n  }}"
    )
    return made


def us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def read(name: str, python: str, path: Path) -> dict[str, float]:
    """What one process of a reader says of itself, in its last line."""
    done = subprocess.run(
        [python, "-c", READERS[name], str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def summary(rounds: list[dict[str, float]]) -> dict[str, object]:
    return {
        "seconds": spread([each["read_s"] for each in rounds]),
        "processor_seconds": spread([each["cpu_s"] for each in rounds]),
        "import_s": round(statistics.median(each["import_s"] for each in rounds), 3),
        "peak_mib": round(max(each["peak_mib"] for each in rounds)),
        "events_kept": int(rounds[0]["events"]),
    }


def spread(seconds: list[float]) -> dict[str, object]:
    return {
        "median": round(statistics.median(seconds), 3),
        "all": [round(each, 3) for each in seconds],
    }


def versions(python: str) -> dict[str, str]:
    """Of what a reader is made of."""
    program = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.name: d.version for d in m.distributions() if d.name.lower() in "
        "('kuroshio', 'numpy', 'msgspec', 'isal', 'pandas', 'holistictraceanalysis')}))"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
