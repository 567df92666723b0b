"""From what the user names to an `Archive`: which files, which variable, which days, which pieces.

sources.py    what was named -> files, Zarr stores, objects
scan.py       one file -> facts (layout.py, choose.py, timeaxis.py, packing.py, hdf5.py)
index.py      facts kept between runs;  workers.py  many files scanned at once
arrays.py     Zarr and xarray -> the same
timeline.py   the parts put together: one grid, every day once
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..collector import collector_paused
from ..errors import Refusal
from .badfile import BadFile
from .facts import FileFacts, Form
from .index import Index, Rows, request_key
from .layout import Layout
from .model import Archive
from .pieces import Cut
from .sources import find_sources
from .timeline import DUPLICATES, Part, assemble

if TYPE_CHECKING:
    from .workers import Result, Workers

Progress = Callable[[int, int], None]
MANY_FILES = 500  # from so many on, worker processes are worth their start


@collector_paused()
def open_archive(
    source: Any,
    *,
    variable: str | None = None,
    select: Mapping[str, int] | None = None,
    duplicates: str = "error",
    skip_bad: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> Archive:
    """Describe an archive of daily data without reading its values.

    source      a folder, a file, a pattern, a text file of paths, a Zarr store, a list of these, or
                an xarray Dataset or DataArray
    variable    its name or CF standard_name; None: the obvious one
    select      dimension -> index (from 0) for dimensions that are neither time nor horizontal;
                those of size one are dropped without asking
    duplicates  what to do where a date appears twice: 'error' refuses, naming both files; 'last'
                and 'first' go by the order of the file names. A file named *_preliminary.nc
                (OISST) gives way to any other under both.
    skip_bad    leave out unreadable and truncated files and list them in `Archive.skipped`
    cache       keep what is learned of files in the user's cache folder (see index.py)
    progress    called with (files scanned, files to scan) while files are scanned

    Days come from the time coordinate, never from names: the date part of each time. Files may come
    in any order and may lack days; what is absent is counted in `Archive.notes`.

    Raises Refusal where there is nothing to read, where the variable is not plain, where parts
    differ in grid, type, units or calendar, where dates repeat, where data are not daily; its
    subclass BadFile where a file is unreadable.
    """
    if duplicates not in DUPLICATES:
        raise Refusal(f"duplicates is {duplicates!r}; it must be one of {', '.join(DUPLICATES)}.")
    chosen = _whole_numbers(select or {})
    files, others = find_sources(source)
    parts, skipped = _file_parts(files, variable, chosen, skip_bad, cache, progress)
    if others:
        from .arrays import array_part  # xarray and zarr are slow to import

        for other in others:
            try:
                parts.append(array_part(other, variable, chosen))
            except BadFile as bad:
                if not skip_bad:
                    raise
                skipped.append(f"{bad.path}: {bad.reason}")
    if skipped and not parts:
        raise Refusal(f"None of the {len(skipped)} files can be used. The first: {skipped[0]}.")
    return assemble(parts, duplicates, skipped)


def _whole_numbers(select: Mapping[str, Any]) -> dict[str, int]:
    if not isinstance(select, Mapping):
        raise Refusal(
            f"select is {select!r}; it must be a dictionary of dimensions and indices such as "
            "{'depth': 0}."
        )
    for dim, index in select.items():
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise Refusal(
                f"The selection {dim}={index!r} is not a whole number. Give the index along the "
                "dimension, counted from 0."
            )
    return {str(dim): int(index) for dim, index in select.items()}


def _file_parts(
    paths: Sequence[str],
    variable: str | None,
    select: Mapping[str, int],
    skip_bad: bool,
    cache: bool,
    progress: Progress | None,
) -> tuple[list[Part], list[str]]:
    """The parts that files are, in the order of `paths`, and what was skipped."""
    if not paths:
        return [], []
    facts, layouts, bad = _scan_all(paths, variable, select, skip_bad, cache, progress)
    cuts: dict[Form, Cut] = {}
    parts = []
    form = cut = None
    for path in paths:
        fact = facts.get(path)
        if fact is None:
            continue
        if cut is None or fact.form is not form:  # a form takes long to compare
            form = fact.form
            cut = cuts.get(form)
            if cut is None:
                cut = cuts[form] = Cut(form, layouts[form.fingerprint])
        parts.append(Part(path, cut.layout, fact.seconds, partial(cut.pieces, fact)))
    return parts, [f"{path}: {bad[path]}" for path in paths if path in bad]


def _scan_all(
    paths: Sequence[str],
    variable: str | None,
    select: Mapping[str, int],
    skip_bad: bool,
    cache: bool,
    progress: Progress | None,
) -> tuple[dict[str, FileFacts], dict[str, Layout], dict[str, str]]:
    """Facts by path, layouts by fingerprint, and reasons by path of what was skipped.

    The first usable file decides which variable is meant; the others must have that one.
    """
    index = Index() if cache else None
    facts: dict[str, FileFacts] = {}
    layouts: dict[str, Layout] = {}
    bad: dict[str, str] = {}
    with ExitStack() as at_end:
        workers: Workers | None = None
        done = 0
        for path in paths:
            done += 1
            known, shapes = _known(index, [path], variable, select)
            layouts.update(shapes)
            found: Result | None = known.get(path)
            if found is None:
                if workers is None and len(paths) > MANY_FILES:  # the others will not be known
                    workers = _start_workers(at_end)
                found = _scan([path], index, layouts, variable, select)[path]
            if isinstance(found, FileFacts):
                facts[path] = found
                variable = layouts[found.form.fingerprint].variable
                break
            _skip(found, skip_bad, bad)
        rest = paths[done:]
        known, shapes = _known(index, rest, variable, select)
        facts.update(known)
        layouts.update(shapes)
        missing = [path for path in rest if path not in known]
        if len(missing) < MANY_FILES:
            workers = None
        elif workers is None:
            workers = _start_workers(at_end)
        if missing:
            scanned = _scan(missing, index, layouts, variable, select, progress, workers)
            for path in missing:
                found = scanned[path]
                if isinstance(found, FileFacts):
                    facts[path] = found
                else:
                    _skip(found, skip_bad, bad)
    return facts, layouts, bad


def _start_workers(at_end: ExitStack) -> Workers:
    """Processes that import the file libraries while this one does so, or has a look at a file."""
    from .workers import Workers

    workers = Workers()
    at_end.callback(workers.stop)
    return workers


def _known(
    index: Index | None, paths: Sequence[str], variable: str | None, select: Mapping[str, int]
) -> tuple[dict[str, FileFacts], dict[str, Layout]]:
    return index.load(paths, request_key(variable, select)) if index and paths else ({}, {})


def _scan(
    paths: Sequence[str],
    index: Index | None,
    layouts: dict[str, Layout],
    variable: str | None,
    select: Mapping[str, int],
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> dict[str, Result]:
    """Scan files; what they teach is put in `layouts` and in the index, also if interrupted."""
    from .scan import Scanner, size_and_mtime  # the file libraries are slow to import
    from .workers import scan_here

    if workers is not None:
        results = workers.scan(paths, variable, select, layouts)
    else:
        here = Scanner(variable, select)
        here.layouts = layouts
        results = scan_here(here, paths)
    found: dict[str, Result] = {}
    states: dict[str, tuple[int, int]] = {}
    if index:  # before: facts of a file that is replaced meanwhile must not count for the new one
        for path in paths:
            with suppress(OSError):  # the scan will say why
                states[path] = size_and_mtime(path)
    rows = Rows(request_key(variable, select))
    try:
        for path, result in _counted(results, progress, len(paths)):
            found[path] = result
            if path in states and isinstance(result, FileFacts):
                rows.add(result, *states[path])
    finally:
        if index and rows.files:
            index.save(rows, layouts)
    return found


def _counted(
    results: Iterator[tuple[str, Result]], progress: Progress | None, total: int
) -> Iterator[tuple[str, Result]]:
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done, total)
        yield result


def _skip(refusal: Result, skip_bad: bool, bad: dict[str, str]) -> None:
    """Note an unusable file that may be skipped; raise for all others."""
    if skip_bad and isinstance(refusal, BadFile):
        bad[refusal.path] = refusal.reason
        return
    assert isinstance(refusal, Refusal)
    raise refusal
