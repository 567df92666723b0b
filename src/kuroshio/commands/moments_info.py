"""`kuroshio moments info`: what a file of moments holds."""

from __future__ import annotations

import argparse

SUMMARY = "which years a file of moments holds, of what, and in which kind of sums"
EXAMPLES = """example:
  kuroshio moments info moments.zarr"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="made by kuroshio moments new")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> None:
    import json

    from ..moments.facts import facts

    found = facts(arguments.file)
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    from rich.table import Table
    from rich.text import Text

    from ..console import Output
    from ..messages import printable

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in found.items():
        lines = map(printable, str(value).splitlines())
        table.add_row(name.replace("_", " "), Text("\n".join(lines)))
    Output().print(table)
