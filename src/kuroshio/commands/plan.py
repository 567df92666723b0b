"""`kuroshio plan`: what a climatology would read, and how long it would take."""

from __future__ import annotations

import argparse
import gc
import json

from ..messages import note
from .given import note_fractions, open_source, request_of, year_length
from .options import add_means, add_request, add_source

SUMMARY = (
    "what a climatology would read, in which order, with how much memory, and about how long; "
    "reads no data"
)
EXAMPLES = """examples:
  kuroshio plan 'oisst/*.nc'
  kuroshio plan archive.zarr --var sst --doys 153:244 --memory 2G --json
  kuroshio plan 'oisst/*.nc' --device cuda:0"""
USAGE = "kuroshio plan SOURCE [SOURCE ...] [--baseline FIRST LAST] [options]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_request(parser)
    add_means(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> None:
    gc.disable()
    from ..account import Account
    from ..bar import Bar
    from ..job import Job
    from ..terminal import plan_facts, show_plan

    with Bar(arguments.json) as bar:
        archive = open_source(arguments, bar, Account())
    job = Job(
        request_of(arguments, year_length(archive)),
        memory_bytes=arguments.memory,
        threads=arguments.threads,
        device=arguments.device,
        pinned_memory_bytes=arguments.pinned_memory,
    )
    keys, made, choice = job.plan(archive)
    facts = plan_facts(archive, job, keys, made, choice)
    if arguments.json:
        print(json.dumps(facts, indent=1))
    else:
        show_plan(facts)
    for message in [*archive.notes, *made.warnings]:
        note(message)
    note_fractions(arguments.percentile)
