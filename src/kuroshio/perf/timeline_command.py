"""`kuroshio perf timeline`: what devices did when, holes and overlaps, in the terminal."""

from __future__ import annotations

import argparse

_SCHEMA = "kuroshio.timeline/1"

SUMMARY = "show what devices did when: stages as bars, holes with their causes, overlaps"
EXAMPLES = """examples:
  kuroshio perf timeline trace.json.gz
  kuroshio perf timeline rank0.json.gz rank1.json.gz
  kuroshio perf timeline report.sqlite --json

Files are those of torch.profiler, nsys (--export sqlite), rocprofv3, rocprof, hipprof and
kuroshio climatology --trace. What follows from it: kuroshio perf diagnose"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces", nargs="+", metavar="TRACE", help="a profiler's file or folder; several: ranks"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the analyses as JSON; times are ns"
    )


def run(arguments: argparse.Namespace) -> None:
    import json

    from ..console import Output
    from . import timeline_text
    from .diagnosing import read_all
    from .output import doing
    from .timeline.analysis import analyse

    with doing() as say:
        analyses = [analyse(trace) for trace in read_all(arguments.traces, say)]
    if arguments.json:
        said = {"schema": _SCHEMA, "traces": [each.as_json() for each in analyses]}
        print(json.dumps(said, indent=1))
        return
    output = Output()
    width = output.width if output.is_terminal else 100
    texts = [timeline_text.text(each, width) for each in analyses]
    output.print("\n\n".join(texts), soft_wrap=True)
