"""The files of a climb: a document for programs, a page for people, and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..perf.environment import environment_with
from ..perf.json_file import write_json, write_text
from ..plot import plot_ladder, why_no_pictures
from .compiled import rows
from .page import page
from .records import FOLDER
from .report import JSON, Report

if TYPE_CHECKING:
    from .climb import Climb

PAGE, PICTURE = "ladder.html", "ladder.png"


def check_folder(folder: Path) -> None:
    """Raise Refusal where what is to be written could not be, before anything is measured."""
    for name, is_folder in ((JSON, False), (PAGE, False), (PICTURE, False), (FOLDER, True)):
        path = folder / name
        if path.exists() and path.is_dir() != is_folder:
            is_now, wanted = ("file", "folder") if is_folder else ("folder", "file")
            raise Refusal(
                f"{path} is a {is_now}, and the ladder makes a {wanted} of this name. Move it "
                "away, or choose another folder with -o."
            )


def report_of(found: Climb, environment: Mapping[str, Any] | None = None) -> Report:
    """A climb with its account; `environment` is None for that of now."""
    if environment is None:
        on_gpu = found.device != "cpu"
        environment = environment_with({found.device: found.model} if on_gpu else {})
    return Report(
        found.problem, found.device, found.model, found.why, found.machine, environment,
        found.results, found.studies, rows(),
    )  # fmt: skip


def publish(report: Report, folder: Path) -> tuple[list[Path], str]:
    """Write ladder.json, ladder.html and ladder.png; the files, and why there is no picture.

    The second is empty where there is one. Raises Refusal where a file cannot be written.
    """
    made = [folder / JSON, folder / PAGE]
    write_json(made[0], report.as_json())  # before what could fail
    write_text(made[1], page(report))
    bars = {f"{row.key}\n{row.title}": row.parts for row in report.rows if row.total_s}
    absent = why_no_pictures() if bars else "No rung has run, so there is no picture."
    if absent and (folder / PICTURE).exists():
        absent += f" {PICTURE} is of an earlier run."
    if not absent:
        made.append(folder / PICTURE)
        plot_ladder(
            bars,
            made[-1],
            "Where a pass of 12 days goes",
            f"{report.problem.name} scale, {report.device}, {report.model}",
        )
    return made, absent
