"""`kuroshio climatology`: daily files to mean and threshold of every cell and day of year."""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import sys

from ..messages import note
from .given import few, note_fractions, open_source, request_of, year_length
from .options import add_means, add_request, add_source

SUMMARY = (
    "the climatological mean `seas` and the percentile threshold `thresh` of every cell and day "
    "of year, from decades of daily files to one CF file"
)
EXAMPLES = """examples:
  kuroshio climatology 'oisst/*.nc' --baseline 1991 2020 -o clim.nc
  kuroshio climatology archive.zarr --var sst --doys 153:244 --percentile 10 90 99 -o season.zarr
  kuroshio climatology oisst/ --no-smooth --min-valid 0.8 --extra count std -o clim.nc --overwrite
  kuroshio climatology list.txt --sel depth=0 --memory 4G --threads 8 -o clim.nc --json
  kuroshio climatology 'oisst/*.nc' --device cuda:0 --pinned-memory 2G -o clim.nc
  kuroshio climatology 'oisst/*.nc' -o clim.nc --trace trace.json.gz"""
USAGE = "kuroshio climatology SOURCE [SOURCE ...] -o FILE [--baseline FIRST LAST] [options]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_request(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="clim.nc or clim.zarr"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace FILE once the new one is complete"
    )
    add_means(parser)
    parser.add_argument(
        "--trace", metavar="FILE",
        help="keep the run's timeline as trace.json or trace.json.gz, for Perfetto and kuroshio "
        "perf diagnose",
    )  # fmt: skip
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no account")
    parser.add_argument("--json", action="store_true", help="print the account as JSON")


def run(arguments: argparse.Namespace) -> None:
    gc.disable()  # what is imported and learned of files stays: garbage is looked for in vain
    from ..bar import Bar
    from ..job import Job

    job = Job(
        request_of(arguments, 366),
        output=arguments.output,
        overwrite=arguments.overwrite,
        memory_bytes=arguments.memory,
        threads=arguments.threads,
        device=arguments.device,
        pinned_memory_bytes=arguments.pinned_memory,
        skip_bad=arguments.skip_bad,
        command="kuroshio " + shlex.join(few(sys.argv[1:], arguments.source)),
        trace=arguments.trace,
    )
    job.check()
    job.begin()
    account = job.account()
    with Bar(arguments.quiet or arguments.json) as bar:
        archive = open_source(arguments, bar, account)
        job.request = request_of(arguments, year_length(archive))
        done = job.run(
            archive,
            sources=" ".join(few(arguments.source, arguments.source)),
            progress=bar.update,
            account=account,
        )
    for message in [*archive.notes, *done.warnings, *(f"Skipped {s}" for s in done.skipped)]:
        note(message)
    note_fractions(arguments.percentile)
    if arguments.json:
        print(json.dumps({"output": arguments.output, **done.summary()}, indent=1))
    elif not arguments.quiet:
        from ..terminal import show_account

        show_account(arguments.output, done)
