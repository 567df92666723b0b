"""What each command does: calls the library and says what came of it."""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .errors import Refusal
from .messages import note
from .request import Request, parse_doys

if TYPE_CHECKING:
    from .archive.model import Archive

MANY_SOURCES = 8  # named one by one in the output's attributes


def climatology(arguments: argparse.Namespace) -> None:
    gc.disable()  # what is imported and learned of files stays: garbage is looked for in vain
    from .account import Account
    from .api import Job
    from .bar import Bar

    job = Job(
        _request(arguments, 366),
        output=arguments.output,
        overwrite=arguments.overwrite,
        memory_bytes=arguments.memory,
        threads=arguments.threads,
        device=arguments.device,
        pinned_memory_bytes=arguments.pinned_memory,
        skip_bad=arguments.skip_bad,
        command="kuroshio " + shlex.join(_few(sys.argv[1:], arguments.source)),
    )
    job.check()
    job.begin()
    account = Account()
    with Bar(arguments.quiet or arguments.json) as bar:
        archive = _open(arguments, bar, account)
        job.request = _request(arguments, _year_length(archive))
        done = job.run(
            archive,
            sources=" ".join(_few(arguments.source, arguments.source)),
            progress=bar.update,
            account=account,
        )
    for message in [*archive.notes, *done.warnings, *(f"Skipped {s}" for s in done.skipped)]:
        note(message)
    _note_fractions(arguments.percentile)
    if arguments.json:
        print(json.dumps({"output": arguments.output, **done.summary()}, indent=1))
    elif not arguments.quiet:
        from .terminal import show_account

        show_account(arguments.output, done)


def plan(arguments: argparse.Namespace) -> None:
    gc.disable()
    from .account import Account
    from .api import Job
    from .bar import Bar
    from .terminal import plan_facts, show_plan

    with Bar(arguments.json) as bar:
        archive = _open(arguments, bar, Account())
    job = Job(
        _request(arguments, _year_length(archive)),
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
    _note_fractions(arguments.percentile)


def info(arguments: argparse.Namespace) -> None:
    from .info import print_info

    print_info(arguments.file, as_json=arguments.json)


def plot(arguments: argparse.Namespace) -> None:
    from .bar import Bar
    from .plot import plot_climatology

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
    from .output import far_from_cells, open_climatology

    with open_climatology(file) as dataset:
        far = far_from_cells(dataset, point)
    if far:
        note(far)


def _samples(arguments: argparse.Namespace, point: tuple, bar: Any) -> tuple:
    """Days and daily values at the cell of a climatology nearest to a point."""
    from .archive.catalog import open_archive
    from .archive.point import series_at
    from .device.cpu import available_threads
    from .output import nearest_cell, open_climatology

    archive = open_archive(_one_or_list(arguments.archive), variable=arguments.var)
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


def synth(arguments: argparse.Namespace) -> None:
    from .archive.synthetic import make_archive
    from .bar import Bar

    first, _, last = arguments.years.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        raise Refusal(f"The years {arguments.years!r} could not be read. Write 1991-2020.")
    doys = None if arguments.doys is None else parse_doys(arguments.doys, 366)
    with Bar(arguments.quiet) as bar:
        paths = make_archive(
            arguments.folder, (int(first), int(last or first)), arguments.grid, arguments.layout,
            doys, seed=arguments.seed, threads=arguments.threads, overwrite=arguments.overwrite,
            progress=lambda done, total: bar.update("make", done, total),
        )  # fmt: skip
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths):,} files, {size / 1e9:.2f} GB, in {arguments.folder}")


def _open(arguments: argparse.Namespace, bar: Any, account: Any) -> Archive:
    from .archive.catalog import open_archive

    start = perf_counter()
    archive = open_archive(
        _one_or_list(arguments.source),
        variable=arguments.var,
        select=dict(arguments.sel),
        duplicates=arguments.duplicates,
        skip_bad=arguments.skip_bad,
        cache=not arguments.no_cache,
        progress=lambda done, total: bar.update("index", done, total),
    )
    account.span("index", start, perf_counter(), 0)
    return archive


def _note_fractions(percentiles: list[float]) -> None:
    for percentile in percentiles:
        if 0 < percentile < 1:
            note(
                f"--percentile {percentile:g} is below the first percentile. "
                f"If a fraction was meant, write {percentile * 100:g}."
            )


def _request(arguments: argparse.Namespace, year_length: int) -> Request:
    half_width = 5 if arguments.half_width is None else arguments.half_width
    smooth_width = 31 if arguments.smooth_width is None else arguments.smooth_width
    if arguments.window is not None:
        if arguments.window < 1 or arguments.window % 2 == 0:
            raise Refusal(
                f"The window of {arguments.window} days has no middle: it must be an odd number of "
                "days such as 11. Or give --half-width, the days on either side."
            )
        half_width = arguments.window // 2
    return Request(
        baseline=tuple(arguments.baseline),
        percentiles=tuple(arguments.percentile),
        half_width=half_width,
        doys=None if arguments.doys is None else parse_doys(arguments.doys, year_length),
        smooth_width=1 if arguments.no_smooth else smooth_width,
        feb29=arguments.feb29,
        min_valid=arguments.min_valid,
        max_pad=arguments.max_pad,
        extras=tuple(dict.fromkeys(arguments.extra)),
        method=arguments.method,
    )


def _year_length(archive: Archive) -> int:
    from .calendar import template_length

    return template_length(archive.calendar)


def _few(words: list[str], sources: list[str]) -> list[str]:
    """The words without most of the sources: a shell may have made 10,000 names of a pattern."""
    if len(sources) <= MANY_SOURCES or sources[0] not in words:  # main() may be called with others
        return words
    between = set(sources[1:-1])
    first = words.index(sources[0]) + 1
    more = f"({len(sources) - 2:,} more)"
    return [*words[:first], more, *(w for w in words[first:] if w not in between)]


def _one_or_list(source: list[str]) -> str | list[str]:
    return source[0] if len(source) == 1 else source
