"""`kuroshio plot`: pictures of a climatology."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import Refusal
from ..messages import note
from ..request import parse_doys
from .given import one_or_list

SUMMARY = "maps of seas and thresh, and the year at a point (needs kuroshio[plot])"
EXAMPLES = """examples:
  kuroshio plot clim.nc
  kuroshio plot clim.nc --doys 15,197 --point -29.4 112.6 --archive 'oisst/*.nc' -o pictures/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def run(arguments: argparse.Namespace) -> None:
    from ..bar import Bar
    from ..plot import plot_climatology

    doys = None if arguments.doys is None else parse_doys(arguments.doys, 366)
    point = tuple(arguments.point) if arguments.point else None
    samples = None
    if arguments.archive:
        if point is None:
            raise Refusal("--archive shows the daily values at a point: give --point LAT LON, too.")
        with Bar(False) as bar:
            samples = _samples(arguments, point, bar)
    if point is not None:
        _note_if_far(arguments.file, point)
    for path in plot_climatology(
        arguments.file, arguments.output, doys, point, samples, arguments.percentile
    ):
        print(path)


def _note_if_far(file: str, point: tuple) -> None:
    """The year is drawn at the nearest cell with values: said where that is not where one asked."""
    from ..output import far_from_cells, open_climatology

    with open_climatology(file) as dataset:
        far = far_from_cells(dataset, point)
    if far:
        note(far)


def _samples(arguments: argparse.Namespace, point: tuple, bar: Any) -> tuple:
    """Days and daily values at the cell of a climatology nearest to a point."""
    from ..archive.catalog import open_archive
    from ..archive.point import series_at
    from ..device.cpu import available_threads
    from ..output import nearest_cell, open_climatology

    archive = open_archive(one_or_list(arguments.archive), variable=arguments.var)
    with open_climatology(arguments.file) as dataset:
        index, _ = nearest_cell(dataset, point)
        shape = tuple(dataset.seas.sizes[dim] for dim in dataset.seas.dims if dim != "dayofyear")
    if archive.grid.shape != shape or set(archive.grid.dims) != set(index):
        found = dict(zip(archive.grid.dims, archive.grid.shape, strict=True))
        raise Refusal(
            f"The archive's grid is {found} and the climatology's is another. Give the archive "
            f"that {arguments.file} was made from."
        )
    cell = tuple(index[dim] for dim in archive.grid.dims)
    return series_at(
        archive,
        cell,
        threads=available_threads(),
        progress=lambda done, total: bar.update("point", done, total),
    )
