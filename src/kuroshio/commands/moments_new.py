"""`kuroshio moments new`: daily files to a file of moments."""

from __future__ import annotations

import argparse
import gc

from .given import few, half_width_of, open_source
from .moments_given import add_output, add_reading, means_of, show
from .options import add_source, add_years

SUMMARY = "moments of a baseline's pools to a file that years can be added to and removed from"
EXAMPLES = """examples:
  kuroshio moments new 'oisst/*.nc' --baseline 1991 2020 -o moments.zarr
  kuroshio moments new archive.zarr --var sst --half-width 15 -o moments.nc --memory 4G"""
USAGE = "kuroshio moments new SOURCE [SOURCE ...] -o FILE [--baseline FIRST LAST] [options]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_years(parser.add_argument_group("what to keep"))
    add_output(parser, "moments.zarr or moments.nc", required=True)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    gc.disable()
    from ..archive.write import check_output
    from ..bar import Bar
    from ..moments.job import make

    sources = " ".join(few(arguments.source, arguments.source))
    means = means_of(arguments, arguments.source)
    check_output(arguments.output, arguments.overwrite)
    with Bar(arguments.quiet or arguments.json) as bar:
        means.progress = bar.update
        archive = open_source(arguments, bar, means.account)
        done = make(
            archive, tuple(arguments.baseline), half_width_of(arguments), arguments.output, means,
            overwrite=arguments.overwrite, sources=sources,
        )  # fmt: skip
    show(arguments, arguments.output, archive.notes, done)
