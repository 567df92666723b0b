"""`kuroshio synth`: an invented archive."""

from __future__ import annotations

import argparse

from ..errors import Refusal
from ..request import parse_doys

SUMMARY = "make an invented archive of daily files to try things on"
EXAMPLES = """examples:
  kuroshio synth demo/ --grid 2 --years 1991-2020
  kuroshio synth big/ --grid 0.25 --layout era5 --doys 153:244"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="where the files go")
    parser.add_argument(
        "--years", default="1991-2020", metavar="FIRST-LAST", help="default 1991-2020"
    )
    parser.add_argument(
        "--grid", type=float, default=2.0, metavar="DEGREES", help="size of a cell (default 2)"
    )
    parser.add_argument(
        "--layout",
        choices=("oisst", "era5", "f8", "f8-plain"),
        default="oisst",
        help="oisst: int16; era5: int16 whose scale differs from file to file; f8: float64; "
        "f8-plain: float64, not deflated",
    )
    parser.add_argument("--doys", metavar="DAYS", help="only these days of year, such as 153:244")
    parser.add_argument("--seed", type=int, default=0, help="another world (default 0)")
    parser.add_argument("--threads", type=int, metavar="N", help="default: all")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def run(arguments: argparse.Namespace) -> None:
    from ..archive.synthetic import make_archive
    from ..bar import Bar

    first, _, last = arguments.years.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        raise Refusal(f"The years {arguments.years!r} could not be read. Write 1991-2020.")
    doys = None if arguments.doys is None else parse_doys(arguments.doys, 366)
    with Bar(arguments.quiet) as bar:
        paths = make_archive(
            arguments.folder, (int(first), int(last or first)), arguments.grid, arguments.layout,
            doys, seed=arguments.seed, threads=arguments.threads, overwrite=arguments.overwrite,
            progress=lambda done, total: bar.update("make", done, total),
        )  # fmt: skip
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths):,} files, {size / 1e9:.2f} GB, in {arguments.folder}")
