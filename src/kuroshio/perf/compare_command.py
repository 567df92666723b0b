"""`kuroshio perf compare`: what a change has changed, between two traces or diagnoses."""

from __future__ import annotations

import argparse

SUMMARY = "compare two traces, or two diagnoses that were kept: what appeared, vanished, changed"
EXAMPLES = """examples:
  kuroshio perf compare before.json.gz after.json.gz
  kuroshio perf diagnose rank*.json.gz -o before.json     # of several ranks, or to keep
  kuroshio perf compare before.json after.json --json

Traces of different devices, profilers or numbers of ranks are refused, and what differs is named.
Times of kuroshio perf bench are compared by kuroshio perf bench before.json --vs after.json."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name in ("before", "after"):
        parser.add_argument(
            name, metavar=name.upper(), help="a trace, or what kuroshio perf diagnose -o has kept"
        )
    parser.add_argument(
        "--anyway", action="store_true", help="compare what is not alike, and say what differs"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the differences as JSON; times are ns"
    )


def run(arguments: argparse.Namespace) -> None:
    import json

    from ..console import Output
    from .changes import changes, load
    from .changes_text import text
    from .output import doing

    names = (arguments.before, arguments.after)
    with doing() as say:
        before, after = (load(name, say) for name in names)
    found = changes(names, before, after, anyway=arguments.anyway)
    if arguments.json:
        print(json.dumps(found.as_json(), indent=1))
        return
    output = Output()
    output.print(text(found, output.width) if output.is_terminal else text(found), soft_wrap=True)
