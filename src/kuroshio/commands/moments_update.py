"""`kuroshio moments update`: years added to a file of moments, others taken away."""

from __future__ import annotations

import argparse
import gc

from .given import few, open_source
from .moments_given import add_output, add_reading, means_of, show
from .options import add_source

SUMMARY = "years added to a file of moments and others removed; reads the files of these years only"
EXAMPLES = """examples:
  kuroshio moments update moments.zarr 'oisst/*.nc' --add 2021 2022 --remove 1991 1992
  kuroshio moments update moments.nc 'oisst/*.nc' --add 2021 -o with2021.nc

Sources may name all files. Read are those of the years given, and of the days about them that
windows reach. The old file stays whole until the new one is complete and takes its name."""
USAGE = (
    "kuroshio moments update FILE SOURCE [SOURCE ...] [--add YEAR ...] [--remove YEAR ...] "
    "[options]"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="made by kuroshio moments new")
    add_source(parser)
    group = parser.add_argument_group("what to change")
    group.add_argument("--add", type=int, nargs="+", default=[], metavar="YEAR", help="to add")
    group.add_argument(
        "--remove", type=int, nargs="+", default=[], metavar="YEAR", help="to take away"
    )
    add_output(parser, "another file, and leave FILE as it is", required=False)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    gc.disable()
    from ..bar import Bar
    from ..moments.job import update

    means = means_of(arguments, arguments.source)
    with Bar(arguments.quiet or arguments.json) as bar:
        means.progress = bar.update
        archive = open_source(arguments, bar, means.account)
        done = update(
            arguments.file, archive, arguments.add, arguments.remove, means,
            output=arguments.output, overwrite=arguments.overwrite,
            sources=" ".join(few(arguments.source, arguments.source)),
        )  # fmt: skip
    show(arguments, arguments.output or arguments.file, archive.notes, done)
