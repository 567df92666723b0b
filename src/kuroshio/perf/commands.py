"""`kuroshio perf ...`: each of its commands brings its own arguments."""

from __future__ import annotations

from .. import command_line

# Name -> module of this package (see kuroshio.command_line).
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
    command_line.add(commands, "kuroshio.perf", COMMANDS)
