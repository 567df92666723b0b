"""Options that several commands share, and what their values may look like."""

from __future__ import annotations

import argparse
import re

from ..errors import Refusal

SIZES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def add_source(parser: argparse.ArgumentParser) -> None:
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


def add_request(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to compute")
    add_years(group)
    add_statistics(group)
    group.add_argument(
        "--max-pad",
        type=int,
        default=0,
        metavar="DAYS",
        help="fill gaps up to so long in time first (default 0, at most 366)",
    )
    group.add_argument(
        "--method",
        default="exact",
        choices=("exact", "moments"),
        help="of the percentiles: exact (default), or estimated from mean, standard deviation, "
        "skewness and kurtosis",
    )


def add_years(group: argparse._ArgumentGroup) -> None:
    """Which years are pooled, in which windows."""
    group.add_argument(
        "--baseline",
        type=int,
        nargs=2,
        default=(1991, 2020),
        metavar=("FIRST", "LAST"),
        help="years, both included (default 1991 2020)",
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


def add_statistics(group: argparse._ArgumentGroup) -> None:
    """What is made of the pools."""
    group.add_argument(
        "--percentile",
        type=_percent,
        nargs="+",
        default=[90.0],
        metavar="P",
        help="0 to 100, in percent: 90 and not 0.9 (default 90)",
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
        "--extra",
        nargs="+",
        default=[],
        choices=("count", "std", "skewness", "kurtosis"),
        help="further statistics of the pool (all days of the window in all years)",
    )


def add_means(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("means")
    add_memory_and_threads(group)
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


def add_memory_and_threads(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--memory",
        type=_size,
        metavar="SIZE",
        help="what may be used, such as 4G (default: half of what is free)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="default: all processors")


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
    from ..device.names import check_device

    try:
        return check_device(text)
    except Refusal as refusal:  # a ValueError, for which argparse has words of its own
        raise argparse.ArgumentTypeError(str(refusal)) from None
