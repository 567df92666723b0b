"""`kuroshio moments climatology`: mean and estimated percentiles of what is kept."""

from __future__ import annotations

import argparse
import gc
from typing import Any

from .given import note_fractions, smooth_width_of
from .moments_given import add_output, means_of, show
from .options import add_memory_and_threads, add_statistics

SUMMARY = "the climatology of a file of moments, as kuroshio climatology --method moments makes it"
EXAMPLES = """examples:
  kuroshio moments climatology moments.zarr -o clim.nc
  kuroshio moments climatology moments.zarr -o season.nc --doys 153:244 --percentile 10 90
  kuroshio moments climatology moments.nc -o clim.zarr --no-smooth --extra count skewness"""
USAGE = "kuroshio moments climatology FILE -o FILE [options]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="made by kuroshio moments new")
    add_statistics(parser.add_argument_group("what to compute"))
    add_output(parser, "clim.nc or clim.zarr", required=True)
    add_memory_and_threads(parser.add_argument_group("means"))


def run(arguments: argparse.Namespace) -> None:
    gc.disable()
    from ..bar import Bar
    from ..calendar import template_length
    from ..moments import request_of
    from ..moments.job import estimate
    from ..request import Request, parse_doys

    def wanted(state: Any) -> Request:
        length = template_length(state.archive.calendar)
        return request_of(state, {
            "percentiles": tuple(arguments.percentile),
            "doys": None if arguments.doys is None else parse_doys(arguments.doys, length),
            "smooth_width": smooth_width_of(arguments),
            "feb29": arguments.feb29,
            "min_valid": arguments.min_valid,
            "extras": tuple(dict.fromkeys(arguments.extra)),
        })  # fmt: skip

    means = means_of(arguments, [])
    with Bar(arguments.quiet or arguments.json) as bar:
        means.progress = bar.update
        done = estimate(
            arguments.file, wanted, means, output=arguments.output, overwrite=arguments.overwrite
        )
    note_fractions(arguments.percentile)
    show(arguments, arguments.output, (), done)
