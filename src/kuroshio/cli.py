"""The command line: arguments to one call each, no logic.

argparse and not a framework on top of it: options take several values (`--percentile 10 90 99`),
and help must appear at once, so nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Sequence

from . import commands
from .errors import Refusal
from .interrupt import FAREWELL, Stopped, stopping_on_signals
from .messages import complain, forget
from .numba_cache import cache_trouble
from .perf import command_line

SIZES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


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
    _add_climatology(subparsers)
    _add_plan(subparsers)
    _add_info(subparsers)
    _add_plot(subparsers)
    _add_synth(subparsers)
    command_line.add(subparsers)
    return parser


def _add_climatology(subparsers) -> None:  # type: ignore[no-untyped-def]
    parser = _command(
        subparsers,
        "climatology",
        commands.climatology,
        "the climatological mean `seas` and the percentile threshold `thresh` of every cell and "
        "day of year, from decades of daily files to one CF file",
        """examples:
  kuroshio climatology 'oisst/*.nc' --baseline 1991 2020 -o clim.nc
  kuroshio climatology archive.zarr --var sst --doys 153:244 --percentile 10 90 99 -o season.zarr
  kuroshio climatology oisst/ --no-smooth --min-valid 0.8 --extra count std -o clim.nc --overwrite
  kuroshio climatology list.txt --sel depth=0 --memory 4G --threads 8 -o clim.nc --json
  kuroshio climatology 'oisst/*.nc' --device cuda:0 --pinned-memory 2G -o clim.nc""",
        "kuroshio climatology SOURCE [SOURCE ...] -o FILE [--baseline FIRST LAST] [options]",
    )
    _add_source(parser)
    _add_request(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="clim.nc or clim.zarr"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace FILE once the new one is complete"
    )
    _add_means(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no account")
    parser.add_argument("--json", action="store_true", help="print the account as JSON")


def _add_plan(subparsers) -> None:  # type: ignore[no-untyped-def]
    parser = _command(
        subparsers,
        "plan",
        commands.plan,
        "what a climatology would read, in which order, with how much memory, and about how long; "
        "reads no data",
        """examples:
  kuroshio plan 'oisst/*.nc'
  kuroshio plan archive.zarr --var sst --doys 153:244 --memory 2G --json
  kuroshio plan 'oisst/*.nc' --device cuda:0""",
        "kuroshio plan SOURCE [SOURCE ...] [--baseline FIRST LAST] [options]",
    )
    _add_source(parser)
    _add_request(parser)
    _add_means(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _add_info(subparsers) -> None:  # type: ignore[no-untyped-def]
    parser = _command(
        subparsers,
        "info",
        commands.info,
        "what a climatology file holds and how it was made",
        "example:\n  kuroshio info clim.nc",
    )
    parser.add_argument("file", help="a .nc or .zarr made by kuroshio climatology")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _add_plot(subparsers) -> None:  # type: ignore[no-untyped-def]
    parser = _command(
        subparsers,
        "plot",
        commands.plot,
        "maps of seas and thresh, and the year at a point (needs kuroshio[plot])",
        """examples:
  kuroshio plot clim.nc
  kuroshio plot clim.nc --doys 15,197 --point -29.4 112.6 --archive 'oisst/*.nc' -o pictures/""",
    )
    parser.add_argument("file", help="a .nc or .zarr made by kuroshio climatology")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="where the pictures go (default: beside FILE)"
    )
    parser.add_argument(
        "--doys", metavar="DAYS", help="days of year to map, such as 15,106,197,289"
    )
    parser.add_argument(
        "--point", type=float, nargs=2, metavar=("LAT", "LON"), help="where to draw the year"
    )
    parser.add_argument(
        "--archive",
        nargs="+",
        metavar="SOURCE",
        help="the daily files, to show the values behind the lines at the point",
    )
    parser.add_argument("--var", metavar="NAME", help="the variable in the daily files")
    parser.add_argument(
        "--percentile",
        type=float,
        metavar="P",
        help="which threshold, where the file holds several (default: 90 if held, else the "
        "highest)",
    )


def _add_synth(subparsers) -> None:  # type: ignore[no-untyped-def]
    parser = _command(
        subparsers,
        "synth",
        commands.synth,
        "make an invented archive of daily files to try things on",
        """examples:
  kuroshio synth demo/ --grid 2 --years 1991-2020
  kuroshio synth big/ --grid 0.25 --layout era5 --doys 153:244""",
    )
    parser.add_argument("folder", metavar="DIR", help="where the files go")
    parser.add_argument(
        "--years", default="1991-2020", metavar="FIRST-LAST", help="default 1991-2020"
    )
    parser.add_argument(
        "--grid", type=float, default=2.0, metavar="DEGREES", help="size of a cell (default 2)"
    )
    parser.add_argument(
        "--layout",
        choices=("oisst", "era5", "f8"),
        default="oisst",
        help="oisst: int16; era5: int16 whose scale differs from file to file; f8: float64",
    )
    parser.add_argument("--doys", metavar="DAYS", help="only these days of year, such as 153:244")
    parser.add_argument("--seed", type=int, default=0, help="another world (default 0)")
    parser.add_argument("--threads", type=int, metavar="N", help="default: all")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def _command(subparsers, name, run, what, examples, usage=None):  # type: ignore[no-untyped-def]
    # A usage of its own where there are many options: it heads every error message.
    parser = subparsers.add_parser(
        name, help=what, description=what[0].upper() + what[1:] + ".", epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter, usage=usage,
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "source",
        nargs="+",
        metavar="SOURCE",
        help="a folder, a quoted pattern, files, a .txt list of files, or a Zarr store",
    )
    group.add_argument("--var", metavar="NAME", help="the variable, where it is not obvious")
    group.add_argument(
        "--sel",
        action="append",
        default=[],
        type=_selection,
        metavar="DIM=INDEX",
        help="take one index (from 0) of a dimension such as depth",
    )
    group.add_argument(
        "--duplicates",
        choices=("error", "last", "first"),
        default="error",
        help="which file counts where a date comes twice (default: refuse)",
    )
    group.add_argument(
        "--skip-bad", action="store_true", help="go on without damaged files and record them"
    )
    group.add_argument(
        "--no-cache",
        action="store_true",
        help="forget and do not keep what was learned of the files",
    )


def _add_request(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to compute")
    group.add_argument(
        "--baseline",
        type=int,
        nargs=2,
        default=(1991, 2020),
        metavar=("FIRST", "LAST"),
        help="years, both included (default 1991 2020)",
    )
    group.add_argument(
        "--percentile",
        type=_percent,
        nargs="+",
        default=[90.0],
        metavar="P",
        help="0 to 100, in percent: 90 and not 0.9 (default 90)",
    )
    # No defaults here: argparse takes a value equal to the default for one that was not given.
    width = group.add_mutually_exclusive_group()
    width.add_argument(
        "--half-width",
        type=int,
        metavar="DAYS",
        help="days on either side of the centre (default 5)",
    )
    width.add_argument(
        "--window", type=int, metavar="DAYS", help="the same as a whole window, odd (11)"
    )
    group.add_argument(
        "--doys",
        metavar="DAYS",
        help="days of year, counted on a leap year: 153:244 (June to August), 336:60 (December to "
        "February) or 1,60; default: all",
    )
    smooth = group.add_mutually_exclusive_group()
    smooth.add_argument(
        "--smooth-width",
        type=int,
        metavar="DAYS",
        help="odd length of the running mean (default 31)",
    )
    smooth.add_argument(
        "--no-smooth", action="store_true", help="leave the daily results as they are"
    )
    group.add_argument(
        "--feb29",
        choices=("mean", "pool"),
        default="mean",
        help="29 February: mean of its neighbours (default), or its own pool of leap years",
    )
    group.add_argument(
        "--min-valid",
        type=float,
        default=0.0,
        metavar="FRACTION",
        help="least share of a pool's days that must be valid, else missing (default 0)",
    )
    group.add_argument(
        "--max-pad",
        type=int,
        default=0,
        metavar="DAYS",
        help="fill gaps up to so long in time first (default 0, at most 366)",
    )
    group.add_argument(
        "--extra",
        nargs="+",
        default=[],
        choices=("count", "std", "skewness", "kurtosis"),
        help="further statistics of the pool (all days of the window in all years)",
    )


def _add_means(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("means")
    group.add_argument(
        "--memory",
        type=_size,
        metavar="SIZE",
        help="what may be used, such as 4G (default: half of what is free)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="default: all processors")
    group.add_argument(
        "--device",
        type=_device,
        default="auto",
        metavar="DEVICE",
        help="auto (default: a GPU where there is one and the job is worth it), cpu, cuda:0, "
        "hip:0, cuda:all or hip:all; a GPU needs CuPy",
    )
    group.add_argument(
        "--pinned-memory",
        type=_size,
        metavar="SIZE",
        help="host memory from which a GPU copies, at most, such as 2G (default: 512 MiB)",
    )


def _selection(text: str) -> tuple[str, int]:
    name, _, index = text.partition("=")
    if not name or not re.fullmatch(r"-?\d+", index):
        raise argparse.ArgumentTypeError(f"{text!r} is not DIM=INDEX such as depth=0")
    return name, int(index)


def _percent(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from 0 to 100 (the input goes before --percentile)"
        ) from None


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 4G or 800M")
    return int(float(match[1]) * SIZES[match[2].upper()])


def _device(text: str) -> str:
    from .device.names import check_device

    try:
        return check_device(text)
    except Refusal as refusal:  # a ValueError, for which argparse has words of its own
        raise argparse.ArgumentTypeError(str(refusal)) from None


class _Version(argparse.Action):
    def __call__(self, parser, *_):  # type: ignore[no-untyped-def]
        from .archive.describe import package_version

        print(f"kuroshio {package_version()}")
        parser.exit()
