"""Options that the commands of `kuroshio moments` share, and how they end."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..messages import note
from .given import few
from .options import add_memory_and_threads

if TYPE_CHECKING:
    from ..moments.job import Done, Means


def add_output(parser: argparse.ArgumentParser, what: str, required: bool) -> None:
    parser.add_argument("-o", "--output", required=required, metavar="FILE", help=what)
    parser.add_argument(
        "--overwrite", action="store_true", help="replace FILE once the new one is complete"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no account")
    parser.add_argument("--json", action="store_true", help="print the account as JSON")


def add_reading(parser: argparse.ArgumentParser) -> None:
    add_memory_and_threads(parser.add_argument_group("means"))


def means_of(arguments: argparse.Namespace, sources: list[str]) -> Means:
    from ..moments.job import Means

    words = few(sys.argv[1:], sources) if sources else sys.argv[1:]
    return Means(
        arguments.memory, arguments.threads, getattr(arguments, "skip_bad", False),
        "kuroshio " + shlex.join(words),
    )  # fmt: skip


def show(arguments: argparse.Namespace, output: str, notes: Iterable[str], done: Done) -> None:
    """What should be known, and the account."""
    for message in [*notes, *done.notes, *(f"Skipped {s}" for s in done.skipped)]:
        note(message)
    if arguments.json:
        print(json.dumps({"output": output, **done.summary()}, indent=1))
    elif not arguments.quiet:
        from ..terminal import show_stages

        show_stages(output, done.seconds, done.account)
