"""Commands that bring their own arguments: a module each."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping
from importlib import import_module


def add(subparsers, package: str, commands: Mapping[str, str]) -> None:  # type: ignore[no-untyped-def]
    """Commands by their names and modules of `package`.

    A module has SUMMARY, `add_arguments(parser)` and `run(arguments)`, and may have EXAMPLES and,
    where there are so many options that argparse's would fill a page, USAGE.
    """
    for name, module in commands.items():
        command = import_module(f"{package}.{module}")
        summary = command.SUMMARY
        parser = subparsers.add_parser(
            name,
            help=summary,
            description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}.", 78),
            epilog=getattr(command, "EXAMPLES", None),
            usage=getattr(command, "USAGE", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(parser)
        parser.set_defaults(run=command.run)
