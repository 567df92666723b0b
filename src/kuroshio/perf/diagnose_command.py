"""`kuroshio perf diagnose`: a profiler's trace to findings with evidence."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report.diagnosis import Diagnosis

SUMMARY = "find in a profiler's trace why a device is not busy, with evidence, most to save first"
EXAMPLES = """examples:
  kuroshio perf diagnose trace.json.gz
  kuroshio perf diagnose trace.json.gz --html report.html
  kuroshio perf diagnose rank*.json.gz --json
  kuroshio perf diagnose trace.json.gz -o before.json     # for kuroshio perf compare

Files are those of torch.profiler (Chrome JSON, .gz too), nsys (--export sqlite), rocprofv3 (a
folder of CSV, JSON or rocpd), rocprof, hipprof and kuroshio climatology --trace; the format is
told by content. To record one: kuroshio perf record -- PROGRAM"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces", nargs="+", metavar="TRACE",
        help="a profiler's file or folder; several: one of each rank of a job",
    )  # fmt: skip
    parser.add_argument(
        "--html", metavar="FILE", help="also a page with the timeline, to be opened in a browser"
    )
    add_evidence(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="keep the diagnosis as JSON")
    parser.add_argument(
        "--json", action="store_true", help="print the diagnosis as JSON; times are ns"
    )


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """What a diagnosis may take besides the traces."""
    parser.add_argument(
        "--counters", nargs="+", default=[], metavar="CSV",
        help="what a profiler counted of the kernels, to place them under roofs",
    )  # fmt: skip
    parser.add_argument(
        "--ceilings", nargs="+", default=[], metavar="FILE",
        help="roofs of these files (kuroshio perf ceilings -o), not those that were kept; of "
        "several ranks also what messages attain",
    )  # fmt: skip
    parser.add_argument(
        "--experiments", metavar="FOLDER", help="show the records of this folder in the page"
    )


def run(arguments: argparse.Namespace) -> None:
    from ..errors import Refusal
    from .diagnosing import diagnosis_of
    from .json_file import check_writable, write_json
    from .output import doing

    inputs = [*arguments.traces, *arguments.counters, *arguments.ceilings]
    outputs = [each for each in (arguments.html, arguments.output) if each is not None]
    for path in outputs:
        check_writable(path, inputs)
    if len({*map(os.path.realpath, outputs)}) < len(outputs):
        raise Refusal(f"The page and the JSON are both {arguments.html}. Name them apart.")
    with doing() as say:
        diagnosis = diagnosis_of(
            arguments.traces, arguments.ceilings, arguments.counters, arguments.experiments, say
        )
        if arguments.html is not None:
            say("drawing")
            write_page(arguments.html, diagnosis)
    if arguments.output is not None:
        write_json(arguments.output, diagnosis.as_json())
    show(diagnosis, as_json=arguments.json)


def write_page(path: str, diagnosis: Diagnosis) -> None:
    """The page of a diagnosis into a file; a Refusal where that cannot be."""
    from .json_file import write_text
    from .report.page import page

    write_text(path, page(diagnosis))


def show(diagnosis: Diagnosis, *, as_json: bool) -> None:
    """On standard output: for people, or as JSON."""
    import json

    from ..console import Output
    from .report.terminal import text

    if as_json:
        print(json.dumps(diagnosis.as_json(), indent=1))
        return
    output = Output()
    output.print(text(diagnosis, output.width if output.is_terminal else None), soft_wrap=True)
