"""`kuroshio perf record`: a program under the profiler that is there, and what its trace says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Refusal
from .diagnose_command import add_evidence
from .recording.profilers import NAMES, TORCH

if TYPE_CHECKING:
    from .recording.choose import Chosen
    from .recording.torch_hook import Limits

SUMMARY = "run a program under the profiler that is installed, then diagnose what it recorded"
EXAMPLES = """examples:
  kuroshio perf record -- python train.py --epochs 1
  kuroshio perf record --skip 10 --steps 20 -- torchrun --nproc_per_node 4 train.py
  kuroshio perf record --profiler nsys --seconds 30 -o traces -- ./simulate

The program is not changed and no shell reads it; its output, the signals that end it and its exit
status are as without a profiler. A Python program whose Python has torch is recorded with
torch.profiler (processes that multiprocessing spawns are not), any other with nsys, rocprofv3,
hipprof or rocprof, whichever is installed."""
USAGE = "kuroshio perf record [options] -- PROGRAM [ARGUMENT ...]"
_SECONDS = 60.0  # of torch.profiler, which holds what it records in memory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument(
        "-o", "--output", metavar="FOLDER",
        help="for the trace and report.html: a new or empty one (default: trace-DATE-TIME)",
    )  # fmt: skip
    parser.add_argument(
        "--profiler", choices=("auto", *NAMES), default="auto", help="default: one that suits"
    )
    parser.add_argument(
        "--skip", type=_count, default=0, metavar="N",
        help="begin after N steps of the optimizer (torch)",
    )  # fmt: skip
    parser.add_argument(
        "--steps", type=_count, default=0, metavar="N",
        help="end after so many steps of the optimizer (torch)",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=_seconds, metavar="S",
        help=f"end after so many seconds; the program goes on (torch: {_SECONDS:g} unless --steps "
        "is given; nsys, rocprofv3: no limit)",
    )  # fmt: skip
    add_evidence(parser)
    parser.add_argument(
        "--json", action="store_true",
        help="print the diagnosis as JSON (times are ns); what the program writes goes to "
        "standard error",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    import sys

    from .recording.choose import choose
    from .recording.torch_hook import Limits

    words = arguments.program[arguments.program[:1] == ["--"] :]
    if not words:
        raise Refusal(
            "There is no program to record. Give one after two dashes: kuroshio perf record -- "
            "python train.py"
        )
    limits = Limits(arguments.skip, arguments.steps, arguments.seconds or 0.0)
    chosen = choose(arguments.profiler, words, limits)
    if chosen.path is None and arguments.seconds is None and not arguments.steps:
        limits = Limits(limits.skip, 0, _SECONDS)
    folder, made = _folder(arguments.output)
    try:
        status = _record(arguments, chosen, words, limits, folder)
    finally:
        if made and not any(folder.iterdir()):
            folder.rmdir()
    if status:
        sys.exit(status)


def _record(
    arguments: argparse.Namespace, chosen: Chosen, words: list[str], limits: Limits, folder: Path
) -> int:
    """Run, find the traces, say what they say; the program's status."""
    import os
    import sys
    import time

    from ..messages import complain, note
    from .diagnose_command import show, write_page
    from .diagnosing import diagnosis_of
    from .output import doing
    from .recording import found, launch, profilers, torch_hook

    environment = dict(os.environ)
    if chosen.path is None:
        environment = torch_hook.environment(folder.absolute(), limits)
    else:
        profiler = profilers.named(chosen.name)
        words = [*profiler.command(chosen.path, folder.absolute(), limits.seconds or None), *words]
    begun = time.time()
    stdout = sys.stderr.fileno() if arguments.json else None
    status = launch.launch(words, environment, stdout)
    notes = torch_hook.notes(folder) if chosen.path is None else []
    for each in notes or []:
        note(f"{each[0].upper()}{each[1:]}.")
    traces = found.traces(chosen.name, folder, begun)
    if not traces:
        return _nothing(chosen, folder, status, imported=notes is not None)
    if status:
        note(f"The program ended with status {status}. What had been recorded until then:")
    try:
        with doing() as say:
            diagnosis = diagnosis_of(
                traces, arguments.ceilings, arguments.counters, arguments.experiments, say
            )
            report = folder / "report.html"
            write_page(str(report), diagnosis)
    except Refusal as refusal:
        said = f"{refusal.message} What was recorded is kept in {folder}."
        if not status:
            raise Refusal(said, refusal.log) from refusal
        complain(said)
        return status
    show(diagnosis, as_json=arguments.json)
    if not arguments.json:
        print(f"\nTrace: {', '.join(map(str, traces))}\nReport: {report}", flush=True)
    return status


def _nothing(chosen: Chosen, folder: Path, status: int, *, imported: bool) -> int:
    """Say that there is no trace; the program's status, where it failed."""
    from ..messages import complain

    why = f"{chosen.name} wrote no trace into {folder}"
    if chosen.name == TORCH:
        why = (
            "recording had not begun when it ended, or it was ended without a chance to write"
            if imported
            else "it did not import torch (a Python with -I, -E or -S cannot be recorded so)"
        )
    said = (
        f"Nothing was recorded of the program: {why}. Take another --profiler, or less --skip; "
        "what it wrote itself is above."
    )
    if not status:
        raise Refusal(said)
    complain(f"{said} It ended with status {status}.")
    return status


def _folder(name: str | None) -> tuple[Path, bool]:
    """The folder, and whether it was made here; a Refusal of one that holds anything."""
    import time

    folder = Path(name if name is not None else time.strftime("trace-%Y%m%d-%H%M%S"))
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise Refusal(
                    f"{folder} is not empty, and a recording needs a folder of its own. Give "
                    "another -o."
                )
            return folder, False
        folder.mkdir()
    except OSError as problem:
        raise Refusal(
            f"The folder {folder} cannot be made: {problem.strerror}. Give another -o, in a folder "
            "that exists and may be written."
        ) from problem
    return folder, True


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of steps, such as 10")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, such as 30")
    return seconds
