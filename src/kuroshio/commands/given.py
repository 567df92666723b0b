"""What the options of `options` mean: an archive, a request."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..messages import note
from ..request import Request, parse_doys

if TYPE_CHECKING:
    from ..archive.model import Archive

MANY_SOURCES = 8  # named one by one in the output's attributes


def open_source(arguments: argparse.Namespace, bar: Any, account: Any) -> Archive:
    from ..archive.catalog import open_archive

    start = perf_counter()
    archive = open_archive(
        one_or_list(arguments.source),
        variable=arguments.var,
        select=dict(arguments.sel),
        duplicates=arguments.duplicates,
        skip_bad=arguments.skip_bad,
        cache=not arguments.no_cache,
        progress=lambda done, total: bar.update("index", done, total),
    )
    account.span("index", start, perf_counter(), 0)
    return archive


def request_of(arguments: argparse.Namespace, year_length: int) -> Request:
    return Request(
        baseline=tuple(arguments.baseline),
        percentiles=tuple(arguments.percentile),
        half_width=half_width_of(arguments),
        doys=None if arguments.doys is None else parse_doys(arguments.doys, year_length),
        smooth_width=smooth_width_of(arguments),
        feb29=arguments.feb29,
        min_valid=arguments.min_valid,
        max_pad=arguments.max_pad,
        extras=tuple(dict.fromkeys(arguments.extra)),
        method=arguments.method,
    )


def half_width_of(arguments: argparse.Namespace) -> int:
    if arguments.window is None:
        return 5 if arguments.half_width is None else arguments.half_width
    if arguments.window < 1 or arguments.window % 2 == 0:
        raise Refusal(
            f"The window of {arguments.window} days has no middle: it must be an odd number of "
            "days such as 11. Or give --half-width, the days on either side."
        )
    return arguments.window // 2


def smooth_width_of(arguments: argparse.Namespace) -> int:
    if arguments.no_smooth:
        return 1
    return 31 if arguments.smooth_width is None else arguments.smooth_width


def year_length(archive: Archive) -> int:
    from ..calendar import template_length

    return template_length(archive.calendar)


def note_fractions(percentiles: list[float]) -> None:
    for percentile in percentiles:
        if 0 < percentile < 1:
            note(
                f"--percentile {percentile:g} is below the first percentile. "
                f"If a fraction was meant, write {percentile * 100:g}."
            )


def few(words: list[str], sources: list[str]) -> list[str]:
    """The words without most of the sources: a shell may have made 10,000 names of a pattern."""
    if len(sources) <= MANY_SOURCES or sources[0] not in words:  # main() may be called with others
        return words
    between = set(sources[1:-1])
    first = words.index(sources[0]) + 1
    more = f"({len(sources) - 2:,} more)"
    return [*words[:first], more, *(w for w in words[first:] if w not in between)]


def one_or_list(source: list[str]) -> str | list[str]:
    return source[0] if len(source) == 1 else source
