"""The command line: the commands, and what becomes of errors and interruptions.

argparse and not a framework on top of it: options take several values (`--percentile 10 90 99`),
and help must appear at once, so nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from . import command_line
from .commands import COMMANDS
from .errors import Refusal
from .interrupt import FAREWELL, Stopped, stopping_on_signals
from .messages import complain, forget
from .numba_cache import cache_trouble
from .perf import commands as perf_commands


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; exits 0, 2 for a request that cannot be served, 130 when interrupted.

    Other signals that end it give 128 and their number: 143 for SIGTERM.
    """
    with contextlib.suppress(AttributeError):  # file names need not be text in any encoding
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        arguments = build_parser().parse_args(argv)
        with stopping_on_signals():
            arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        if argv is None:
            _leave()
    except Refusal as refusal:
        complain(refusal.message, refusal.log)
        sys.exit(2)
    except KeyboardInterrupt as stopped:
        complain(FAREWELL)
        sys.exit(stopped.status if isinstance(stopped, Stopped) else 130)
    except BrokenPipeError:  # `kuroshio info ... | head`: what was asked for has been shown
        forget(sys.stdout)
        sys.exit(0)
    except Exception as error:
        if (trouble := cache_trouble(error) or _output_trouble(error)) is None:
            raise
        complain(trouble)
        sys.exit(2)


def _output_trouble(error: Exception) -> str | None:
    """What to say where standard output takes no more; None where it is something else."""
    if not isinstance(error, OSError) or error.filename is not None or sys.stdout is None:
        return None
    try:
        os.write(sys.stdout.fileno(), b"\n")  # what is in its buffer may be gone
    except OSError as problem:
        forget(sys.stdout)
        return f"What was to be shown could not be written: {problem.strerror}."
    return None


def _leave() -> None:
    """End the process at once: all is written, and taking everything apart takes 0.05 s."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(0)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "kuroshio",
        description="Exact climatological means and percentile thresholds of daily gridded data.",
        epilog="Each command explains itself: kuroshio climatology --help",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    command_line.add(subparsers, "kuroshio.commands", COMMANDS)
    perf_commands.add(subparsers)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser, *_):  # type: ignore[no-untyped-def]
        from .archive.describe import package_version

        print(f"kuroshio {package_version()}")
        parser.exit()
