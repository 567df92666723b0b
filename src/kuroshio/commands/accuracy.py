"""`kuroshio accuracy`: how far an estimated threshold is from the exact one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..accuracy import Accuracy

SUMMARY = "how far the threshold of one climatology is from that of another: table, maps, histogram"
EXAMPLES = """example:
  kuroshio climatology 'oisst/*.nc' -o exact.nc
  kuroshio climatology 'oisst/*.nc' --method moments -o moments.nc
  kuroshio accuracy exact.nc moments.nc -o accuracy.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exact", help="a .nc or .zarr made by kuroshio climatology")
    parser.add_argument("estimate", help="another of the same cells and days")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the picture, .png (needs kuroshio[plot])"
    )
    parser.add_argument(
        "--within", type=float, nargs="+", default=[0.1, 0.3, 0.5], metavar="LIMIT",
        help="of which differences the shares are shown (default 0.1 0.3 0.5)",
    )  # fmt: skip
    parser.add_argument(
        "--percentile", type=float, metavar="P",
        help="which, where the files hold several (default: 90 if held, else the highest)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> None:
    import json

    from ..accuracy import compare
    from ..messages import note, printable
    from ..plot import check_picture, plot_accuracy

    if arguments.output:
        check_picture(arguments.output)
    found = compare(arguments.exact, arguments.estimate, arguments.within, arguments.percentile)
    if found.unlike:
        note(
            "Differences are not of the estimate alone, for the two files differ in more: "
            f"{'; '.join(map(printable, found.unlike))}."
        )
    if arguments.output:
        plot_accuracy(found, arguments.output)
    if arguments.json:
        print(json.dumps(found.as_json(), indent=1))
    else:
        _show(found)
        if arguments.output:
            print(arguments.output)


def _show(found: Accuracy) -> None:
    """A table of shares, and a line of the differences themselves."""
    from rich.table import Table

    from ..accuracy import percent
    from ..console import Output
    from ..messages import printable
    from ..output import units_text

    units = units_text(found.units)
    table = Table(
        title=f"{printable(found.estimate)} less {printable(found.exact)}, {found.percentile:g}th "
        "percentile",
        title_justify="left",
    )
    table.add_column("within")
    for name in ("of all values", "of cells, mean of their days", "of cells, on every day"):
        table.add_column(name, justify="right")
    for limit, *shares in zip(found.limits, found.share, found.of_cells, found.always, strict=True):
        table.add_row(f"{limit:g} {units}", *map(percent, shares))
    console = Output()
    console.print(table)
    console.print(
        f"Mean difference {found.mean:.3g} {units}, mean absolute {found.mean_absolute:.3g}, root "
        f"mean square {found.root_mean_square:.3g}, largest {found.largest:.3g} on "
        f"{found.largest_on}; {found.cells:,} cells, {found.values:,} values.",
        soft_wrap=not console.is_terminal,
    )
