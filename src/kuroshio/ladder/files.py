"""The files of a problem: invented ones, a day each, made once and read map by map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import calendar
from ..archive.catalog import open_archive
from ..archive.model import Archive, ByteRange
from ..archive.synthetic import make_archive
from ..archive.synthetic_layouts import LAYOUTS
from ..archive.whole_map import read_by_library, read_bytes
from ..errors import Refusal
from .problem import Problem

LAYOUT = "f8-plain"
LIBRARY, BYTES = "library", "bytes"  # how a map is read
Progress = Callable[[str, int, int], None]  # (stage, done, total)


@dataclass(frozen=True)
class Files:
    """Where each map of the problem lies: `paths[year][slot]`, slots as days of year."""

    folder: Path
    archive: Archive
    places: dict[int, dict[int, ByteRange]]

    def read(self, year: int, slot: int, out: np.ndarray, how: str) -> None:
        """A map, float64 (cell,), NaN missing, to contiguous `out`; BadFile if it is damaged."""
        where = self.places[year][slot]
        if how == LIBRARY:
            read_by_library(where.path, self.archive.variable, out)
        else:
            read_bytes(where, out)

    def read_cells(
        self, slots: Sequence[int], years: Sequence[int], cells: np.ndarray
    ) -> np.ndarray:
        """Values of some cells, float64 (slot, year, cell)."""
        found = np.empty((len(slots), len(years), cells.size))
        whole = np.empty(self.archive.grid.cells)
        for i, slot in enumerate(slots):
            for j, year in enumerate(years):
                self.read(year, slot, whole, LIBRARY)
                found[i, j] = whole[cells]
        return found


def files_of(
    problem: Problem, folder: Path, progress: Progress, threads: int | None = None
) -> Files:
    """The problem's files in a folder; made there if it is empty or was not filled to the end.

    Raises Refusal where the folder holds something else, cannot be written or has not the room.
    """
    names = _names(problem)
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    foreign = sorted(name for name in found if not name.startswith("sst_f8_"))
    if foreign:
        raise Refusal(
            f"{folder} holds {foreign[0]}, which is none of the ladder's files. Give an empty "
            "folder, one that is not there yet, or one that the ladder has filled (--files)."
        )
    if not names <= found:
        make_archive(
            folder, problem.years, problem.grid, LAYOUT, problem.slots, threads=threads,
            overwrite=bool(found), progress=lambda done, total: progress("make", done, total),
        )  # fmt: skip
    archive = open_archive(
        folder, variable="sst", progress=lambda done, total: progress("index", done, total)
    )
    return Files(folder, archive, _places(problem, folder, archive))


def _names(problem: Problem) -> set[str]:
    days = (
        calendar.iso_date("standard", int(calendar.day_number("standard", year, slot)))
        for year in range(problem.years[0], problem.years[1] + 1)
        for slot in problem.slots
    )
    return {LAYOUTS[LAYOUT].file_name.format(date=day.replace("-", "")) for day in days}


def _places(problem: Problem, folder: Path, archive: Archive) -> dict[int, dict[int, ByteRange]]:
    if archive.grid.shape != problem.shape or archive.dtype != np.float64:
        raise _refused(problem, folder, f"{archive.dtype} maps of {archive.grid.shape} cells")
    of_day = {
        int(archive.days[piece.steps[0]]): piece.where
        for piece in archive.pieces
        if isinstance(piece.where, ByteRange) and not piece.where.deflate
    }
    places: dict[int, dict[int, ByteRange]] = {}
    for year in range(problem.years[0], problem.years[1] + 1):
        for slot in problem.slots:
            where = of_day.get(int(calendar.day_number(archive.calendar, year, slot)))
            if where is None:
                raise _refused(problem, folder, f"nothing of day {slot} of {year}")
            places.setdefault(year, {})[slot] = where
    return places


def _refused(problem: Problem, folder: Path, what: str) -> Refusal:
    return Refusal(
        f"{folder} holds {what}; the scale {problem.name!r} needs float64 maps of "
        f"{problem.shape[0]} x {problem.shape[1]} cells of days {problem.slots[0]} to "
        f"{problem.slots[-1]} of {problem.years[0]} to {problem.years[1]}. Remove the folder, or "
        "give another one with --files."
    )
