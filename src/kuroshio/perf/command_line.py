"""`kuroshio perf ...`: each of its commands brings its own arguments."""

from __future__ import annotations

import argparse
from importlib import import_module

# Name -> module of this package with `SUMMARY`, `add_arguments(parser)` and `run(arguments)`.
COMMANDS = {
    "env": "env_command",
    "bench": "bench_command",
    "ceilings": "ceilings_command",
    "roofline": "roofline_command",
    "occupancy": "occupancy_command",
    "experiment": "experiment_command",
}


def add(subparsers) -> None:  # type: ignore[no-untyped-def]
    """The command `perf` with its commands, to those of `kuroshio`."""
    parser = subparsers.add_parser(
        "perf",
        help="measure performance: environment, timing, ceilings, roofline, occupancy, experiments",
        description="Measure any program's performance, on a processor or a GPU.",
        epilog="Each command explains itself: kuroshio perf bench --help",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = import_module(f".{module}", __package__)
        own = commands.add_parser(
            name,
            help=command.SUMMARY,
            description=command.SUMMARY,
            epilog=getattr(command, "EXAMPLES", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(own)
        own.set_defaults(run=command.run)
