"""`kuroshio moments ...`: each of its commands brings its own arguments."""

from __future__ import annotations

import argparse

from .. import command_line

SUMMARY = "moments that are kept: years added and removed without reading the others"
EXAMPLES = """examples:
  kuroshio moments new 'oisst/*.nc' --baseline 1991 2020 -o moments.zarr
  kuroshio moments update moments.zarr 'oisst/*.nc' --add 2021 --remove 1991
  kuroshio moments climatology moments.zarr -o clim.nc --percentile 90

Each command explains itself: kuroshio moments new --help"""
# Name -> module of this package (see kuroshio.command_line).
COMMANDS = {
    "new": "moments_new",
    "update": "moments_update",
    "climatology": "moments_climatology",
    "info": "moments_info",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command_line.add(commands, "kuroshio.commands", COMMANDS)


def run(arguments: argparse.Namespace) -> None:
    """A command of its own is always given, and takes this place."""
