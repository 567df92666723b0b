"""`kuroshio perf ...`: each of its commands brings its own arguments."""

from __future__ import annotations

import argparse

from .. import command_line

# Name -> module of this package (see kuroshio.command_line).
COMMANDS = {
    "env": "env_command",
    "bench": "bench_command",
    "ceilings": "ceilings_command",
    "roofline": "roofline_command",
    "occupancy": "occupancy_command",
    "experiment": "experiment_command",
    "record": "record_command",
    "timeline": "timeline_command",
    "diagnose": "diagnose_command",
    "compare": "compare_command",
}
_EPILOG = """from a question to an answer:
  kuroshio perf env                      what times here depend on
  kuroshio perf ceilings --save          what this machine attains, once
  kuroshio perf bench work.py -o work.json            how long it takes
  kuroshio perf roofline work.json       what bounds it
  kuroshio perf experiment new 'TITLE'   what a change should bring, and why
  kuroshio perf experiment seal 1        before it is measured
  kuroshio perf bench work.py:old --vs work.py:new -o ab.json
  kuroshio perf experiment run 1 --new ab.json        whether it did

from a program that is slow to why:
  kuroshio perf record -- python train.py             a profiler's trace, and what it says
  kuroshio perf timeline trace.json.gz   what the device did when
  kuroshio perf diagnose trace.json.gz --html report.html
  kuroshio perf compare before.json.gz after.json.gz  what a change has changed

Each command explains itself: kuroshio perf bench --help"""


def add(subparsers) -> None:  # type: ignore[no-untyped-def]
    """The command `perf` with its commands, to those of `kuroshio`."""
    parser = subparsers.add_parser(
        "perf",
        help="measure performance: timing, ceilings, roofline, occupancy, experiments, traces",
        description="Measure any program's performance, on a processor or a GPU.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command_line.add(commands, "kuroshio.perf", COMMANDS)
