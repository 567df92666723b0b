"""What cannot be done with moments, and is refused in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose, isfinite
from pathlib import Path

import numpy as np

from .. import calendar as cal
from ..archive.key_kind import choose_keys, widest_keys
from ..archive.model import Archive
from ..archive.stored import Stored
from ..archive.timeline import difference
from ..errors import Refusal
from ..keys import Keys
from .changes import Series
from .state import State, years_text

# As far as sums of floats agree that were made in another order, and of values that were put on
# another lattice (archive.key_kind).
_SAME, _SAME_ON_LATTICE = 1e-9, 1e-7


def check_archive(archive: Archive, output: str | os.PathLike[str]) -> None:
    if not archive.grid.dims:
        raise Refusal(
            "Moments of a single series, without any dimension of cells, are not kept. Give it a "
            "cell: series.expand_dims('station', axis=1)."
        )
    path = os.path.realpath(output)
    if any(os.path.basename(source) == os.path.basename(path) and os.path.realpath(source) == path
           for source in archive.sources):  # fmt: skip
        raise Refusal(
            f"The output {output} is one of the files to be read, and would be replaced. Choose "
            "another name."
        )


def check_years(path: Path, state: State, add: list[int], remove: list[int]) -> None:
    held = f"{path} holds {years_text(state.years)}"
    if not add and not remove:
        raise Refusal(f"Nothing is to be done: {held}. Give years to --add or to --remove.")
    both = sorted({*add} & {*remove})
    if both:
        raise Refusal(f"{both[0]} is to be added and removed. Give each year once.")
    again = sorted({*add} & {*state.years})
    if again:
        raise Refusal(
            f"{again[0]} is there already: {held}. Leave it out of --add; a year whose files have "
            "changed cannot be replaced, make the moments anew."
        )
    absent = sorted({*remove} - {*state.years})
    if absent:
        raise Refusal(f"{absent[0]} cannot be removed: {held}.")
    if not add and {*remove} >= {*state.years}:
        raise Refusal(f"No year would be left: {held}. Delete the file instead.")


def keys_for(path: Path, state: State, archive: Archive) -> Keys:
    """The keys to read an archive's values in, or a refusal where they are not the state's."""
    unlike = difference(state.archive, archive)
    if unlike:
        raise Refusal(
            f"{path} and the data given do not belong together: {unlike}. Give files of the "
            "product that the moments were made of."
        )
    if state.keys is None:
        # Floats as they are: taken for codes they may be another by a unit in the last place.
        floats = archive.dtype.kind == "f"
        return widest_keys(archive) if floats else choose_keys(archive, [], padded=False)
    if archive.dtype.kind in "iu":
        for packing in {piece.packing for piece in archive.pieces}:
            if (packing.scale, packing.offset) != (state.keys.scale, state.keys.offset):
                raise Refusal(
                    f"{path} holds sums of codes with scale_factor {state.keys.scale:g} and "
                    f"add_offset {state.keys.offset:g}, and data given have {packing.scale:g} and "
                    f"{packing.offset:g}. Sums of one cannot take codes of the other: make the "
                    "moments anew of all the files."
                )
    return state.keys


def check_data(years: list[int], series: Series, calendar: str) -> None:
    first, last = (int(y) for y in cal.year_and_dayofyear(calendar, np.array(series.span))[0])
    for year in years:
        if not first <= year <= last:
            raise Refusal(
                f"{year} cannot be added: the data cover the years {first} to {last}. Give its "
                "files."
            )


def check_same(
    path: Path, state: State, year: int, found: tuple[int, float], lossless: bool
) -> None:
    """Whether what is to be taken away is what was added."""
    number, total = state.totals[year]
    if not isfinite(total):
        raise Refusal(
            f"The files of {year} hold infinite values, or sums beyond float64, which cannot be "
            f"taken away again from {path}. Make the moments anew, of files without them."
        )
    same = found[0] == number
    if state.keys:
        same &= found[1] == total
    else:
        share = _SAME if lossless else _SAME_ON_LATTICE
        same &= isclose(found[1], total, rel_tol=share, abs_tol=share * max(number, 1))
    if not same:
        raise Refusal(
            f"The files of {year} are not what they were when the year was added to {path}: its "
            f"pools then held {number:,} values with the sum {total:,}, and now {found[0]:,} with "
            f"{found[1]:,}. Taking these away would leave neither. Make the moments anew with "
            "`kuroshio moments new`."
        )


def stamp(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Tells a file, or a store, from one that takes its place."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def check_unchanged(path: str | os.PathLike[str], was: tuple[int, int] | None) -> None:
    if stamp(path) != was:
        raise Refusal(
            f"{path} was changed by another program while it was read, perhaps by another update. "
            "It was left as that made it; run this command again."
        )


@contextmanager
def reading(path: str | os.PathLike[str], was: tuple[int, int] | None) -> Iterator[None]:
    """Of a file that was replaced meanwhile nothing is called damaged."""
    try:
        yield
    except Refusal:
        check_unchanged(path, was)
        raise


def check_whole(state: State, stored: Stored, number: int) -> None:
    """Whether the pools hold as many values as their years brought."""
    expected = sum(values for values, _ in state.totals.values())
    if number != expected:
        raise Refusal(
            f"{stored.path} is damaged: its pools hold {number:,} values, and its years brought "
            f"{expected:,}. Make it anew with `kuroshio moments new`."
        )


def no_multiples(keys: Keys) -> Refusal:
    """For values that sums of codes cannot take."""
    return Refusal(
        f"The data hold values that are not {keys.offset:g} and {keys.scale:g} times a whole "
        "number from -32767 to 32767, as all were when the moments were made: their sums are kept "
        "in such steps. Make them anew of all the files."
    )
