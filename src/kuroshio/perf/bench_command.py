"""`kuroshio perf bench`: times cases or a command, alone or one against another."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bench_effort import Effort
    from .bench_subject import Subject
    from .compare import Comparison
    from .results import Results

SUMMARY = "time a Python callable or a command, check its result, say whether the time is stable"
EXAMPLES = """examples:
  kuroshio perf bench work.py:case --size 512 4096 --dtype float32 -o old.json
  kuroshio perf bench work.py:case --vs work.py:other --size 4096
  kuroshio perf bench --command 'python a.py' --vs 'python b.py' --seconds 20
  kuroshio perf bench old.json --vs new.json

CASE is module:function or file.py:function, or a module or file alone whose
cases are marked with @perf.case. The function is called with the size and
dtype if it takes them, and returns perf.Case(fn, bytes=, flops=, check=), a
dict of the same, or just what is to be timed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", nargs="?", metavar="CASE", help="what makes the case; see below")
    parser.add_argument("--command", metavar="TEXT", help="time this command instead; no shell")
    parser.add_argument(
        "--vs",
        metavar="OTHER",
        help="another case (with --command: command), timed in turn with the first; or "
        "saved results, of the same environment",
    )
    what = parser.add_argument_group("what is timed")
    what.add_argument("--size", type=int, nargs="+", default=[], metavar="N", help="sizes")
    what.add_argument("--dtype", nargs="+", default=[], metavar="TYPE", help="such as float32")
    what.add_argument(
        "--device", metavar="DEVICE", help="cpu, cuda:0, hip:0: only if the arrays do not tell"
    )
    what.add_argument(
        "--check",
        metavar="MODULE:FUNCTION",
        help="of a command: is given its output as bytes and says whether it is right",
    )
    what.add_argument(
        "--no-flush", action="store_true", help="leave a GPU's caches as they are between samples"
    )
    effort = parser.add_argument_group("how long")
    effort.add_argument(
        "--spread", type=float, metavar="SHARE",
        help="repeat until half of the median's 95 %% interval is this share of it (default 0.02)",
    )  # fmt: skip
    effort.add_argument(
        "--repeats",
        type=int,
        nargs=2,
        metavar=("LEAST", "MOST"),
        help="samples of a case (default 20 2000)",
    )
    effort.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="of samples a case at most (default 3); of commands give more",
    )
    effort.add_argument(
        "--warm-up",
        type=float,
        metavar="S",
        help="before, until steady, at most so long (default 5)",
    )
    effort.add_argument(
        "--rounds", type=int, metavar="N",
        help="of --vs: so often at least both cases are made anew, in turn (default 8)",
    )  # fmt: skip
    effort.add_argument(
        "--resolution", type=float, metavar="SHARE",
        help="of --vs: so small a share is no difference (default 0.01; of saved results 0.05)",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", help="results as JSON, environment too")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(arguments: argparse.Namespace) -> None:
    from ..errors import Refusal
    from .json_file import check_writable

    if (arguments.case is None) == (arguments.command is None):
        raise Refusal(
            f"{'Neither a case nor' if arguments.case is None else 'Both a case and'} --command "
            "given. "
            "Give one: module:function, or --command 'program arguments'."
        )
    if arguments.check and arguments.command is None:
        raise Refusal(
            "--check is for a --command, and a case was given. Give a case its check in the code: "
            "perf.Case(fn, check=...)."
        )
    if arguments.command is not None and (arguments.size or arguments.dtype):
        raise Refusal(
            "--size and --dtype are for a case, and --command was given. Write them into the "
            "command, or name a case as module:function."
        )
    if arguments.case and arguments.case.endswith(".json"):
        _compare_saved(arguments)
        return
    if arguments.output is not None:
        check_writable(arguments.output, _files(arguments))
        arguments.output = os.path.abspath(arguments.output)  # a case may go to another folder
    # What a case prints must not stand among the JSON.
    with redirect_stdout(sys.stderr) if arguments.json else nullcontext():
        results, comparisons = _measure(arguments)
    _show(arguments, results, comparisons)


def _measure(arguments: argparse.Namespace) -> tuple[Results, list[Comparison]]:
    from .bench_case import environment_of, measure
    from .bench_turns import in_turn, pairs
    from .case_module import check_apart
    from .compare import check_same, compare_results
    from .output import doing
    from .results import Results, load_results

    effort = _effort(arguments)
    name = arguments.command if arguments.case is None else arguments.case
    first = _subjects(arguments, name)
    saved = None
    if _is_saved(arguments.vs, arguments):
        saved = load_results(arguments.vs)
        check_same(saved.environment, environment_of(saved.rows))  # before anything is timed
    if arguments.vs is None or saved is not None:
        rows = []
        with doing() as say:
            for number, make in enumerate(first, start=1):
                subject = make()
                say(f"timing {number} of {len(first)}: {subject.case.label}")
                rows.append(measure(subject, effort))
                del subject  # its arrays go before others are made
        results = Results(name, environment_of(rows), rows)
        if saved is None:
            return results, []
        return results, compare_results(saved, results, _saved_resolution(arguments))
    rows, comparisons = [], []
    both_sides = pairs(first, _subjects(arguments, arguments.vs))
    with doing() as say:
        for number, (a, b) in enumerate(both_sides, start=1):
            say(f"timing {number} of {len(both_sides)} in turn with its other")
            both, comparison = in_turn(a, b, effort)
            rows += both
            comparisons.append(comparison)
    check_apart()  # also what was imported late
    return Results(f"{name} and {arguments.vs}", environment_of(rows), rows), comparisons


def _subjects(arguments: argparse.Namespace, which: str) -> list[Any]:
    """A maker of each subject, so that one case's arrays are gone when the next is made."""
    from dataclasses import replace

    from ..device.names import check_device
    from ..errors import Refusal
    from .bench_program import program_case
    from .bench_subject import Subject
    from .cases import load, make
    from .clocks import CommandClock

    if arguments.command is not None:
        check = load(arguments.check)[0] if arguments.check else None
        device = check_device(arguments.device) if arguments.device else "cpu"
        if device == "auto" or device.endswith(":all"):
            raise Refusal(
                f"Of a command nobody sees where it works, and --device {device} does not say. "
                "Give the one device that it works on, such as cuda:0, or leave it away."
            )
        return [lambda: Subject(program_case(which, check), CommandClock(device))]

    def subject(build: Any) -> Subject:
        case = build()
        if arguments.device:
            case = replace(case, device=arguments.device)
        return Subject(replace(case, flush=False) if arguments.no_flush else case)

    builds = [
        build for made_by in load(which) for build in make(made_by, arguments.size, arguments.dtype)
    ]
    return [lambda build=build: subject(build) for build in builds]


def _effort(arguments: argparse.Namespace) -> Effort:
    from .bench_effort import Effort

    least, most = arguments.repeats or (None, None)
    given = {
        "spread": arguments.spread, "least": least, "most": most, "seconds": arguments.seconds,
        "warm_up_s": arguments.warm_up, "resolution": arguments.resolution,
        "rounds": arguments.rounds if arguments.command is None else 1,  # each is a new process
    }  # fmt: skip
    return Effort(**{key: value for key, value in given.items() if value is not None})


def _compare_saved(arguments: argparse.Namespace) -> None:
    import json

    from ..errors import Refusal
    from .compare import compare_results
    from .results import load_results

    first = load_results(arguments.case)
    if not _is_saved(arguments.vs, arguments):
        raise Refusal(
            f"{arguments.case} holds saved results, which are compared with others: give them with "
            "--vs other.json, or a case to time as module:function."
        )
    if arguments.output is not None:
        raise Refusal("Nothing is measured where saved results are compared: leave -o away.")
    found = compare_results(first, load_results(arguments.vs), _saved_resolution(arguments))
    if arguments.json:
        print(json.dumps({"comparisons": [each.to_json() for each in found]}, indent=1))
        return
    for each in found:
        print(each.verdict)
    print("These were not timed in turn; --vs with cases does that.")


def _files(arguments: argparse.Namespace) -> list[str]:
    """What may be read of what was named: a case's file or module, or saved results."""
    names = [each for each in (arguments.case, arguments.vs) if each is not None]
    parts = [part for name in names for part in (name, name.rpartition(":")[0]) if part]
    return [*parts, *(f"{part.replace('.', '/')}.py" for part in parts)]


def _is_saved(name: str | None, arguments: argparse.Namespace) -> bool:
    """Whether --vs names results; the last word of a command may end as they do."""
    if name is None or not name.endswith(".json"):
        return False
    return arguments.command is None or len(name.split()) == 1


def _saved_resolution(arguments: argparse.Namespace) -> float:
    from .bench_effort import RESOLUTION_SAVED

    return RESOLUTION_SAVED if arguments.resolution is None else _effort(arguments).resolution


def _show(arguments: argparse.Namespace, results: Results, comparisons: list[Comparison]) -> None:
    import json

    from ..messages import printable
    from .json_file import write_json
    from .output import terminal_width, wrapped
    from .results import table

    content = results.to_json()
    if comparisons:
        content["comparisons"] = [each.to_json() for each in comparisons]
    try:
        if arguments.output is not None:
            write_json(arguments.output, content)
    finally:  # the work was not for nothing, should the file not be written after all
        if arguments.json:
            print(json.dumps(content, indent=1))
        else:
            width = terminal_width()
            print(table(results.rows, width))
            for each in comparisons:
                print(wrapped(printable(each.verdict), width))
