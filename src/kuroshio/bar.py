"""The progress bar: shown from the first stage on, so that a quiet run need not import rich."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

_WORDS = {
    "index": "Finding out what the files hold",
    "compile": "Compiling kernels (first run only)",
    "read": "Reading and computing",
    "make": "Making files",
    "ladder": "Machine, rungs, studies",
    "point": "Reading the point's values",
}


class Bar:
    """A progress bar on standard error, a line a stage; silent if asked or where no terminal is."""

    def __init__(self, quiet: bool) -> None:
        self._silent = quiet or sys.stderr is None or not sys.stderr.isatty()
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(self, stage: str, done: int, total: int) -> None:
        """Stage `stage` has done `done` of `total` pieces; safe from several threads."""
        if self._silent:
            return
        with self._lock:
            if self._progress is None:
                self._progress = _progress()
                self._progress.start()
            if stage not in self._tasks:
                self._tasks[stage] = self._progress.add_task(_WORDS[stage], total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total)


def _progress() -> Progress:
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="cyan")

    return progress.Progress(
        progress.TextColumn("{task.description}"), progress.BarColumn(),
        progress.MofNCompleteColumn(), Rate(),
        progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True), refresh_per_second=5,
    )  # fmt: skip
