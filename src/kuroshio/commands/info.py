"""`kuroshio info`: what a climatology file holds."""

from __future__ import annotations

import argparse

SUMMARY = "what a climatology file holds and how it was made"
EXAMPLES = """example:
  kuroshio info clim.nc"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a .nc or .zarr made by kuroshio climatology")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> None:
    from ..info import print_info

    print_info(arguments.file, as_json=arguments.json)
