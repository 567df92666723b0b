"""`with perf.record() as r: ...`: a piece of this process under torch.profiler."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...errors import Refusal

if TYPE_CHECKING:
    from ..report.diagnosis import Diagnosis
    from ..traces.trace import Trace


class Recording:
    """What `record` gives: while the block runs nothing, and then its trace.

    path  of the trace; None before the block has ended, and where it raised an exception
    """

    def __init__(self, output: Path | None) -> None:
        self.path: Path | None = None
        self._output = output
        self._profiler: Any = None

    def __enter__(self) -> Recording:
        torch = _torch()
        profiler = torch.profiler
        self._profiler = profiler.profile(
            activities=profiler.supported_activities(),
            schedule=lambda step: profiler.ProfilerAction.RECORD,  # so that steps are named
        )
        try:
            self._profiler.start()
        except RuntimeError as problem:
            raise Refusal(
                f"torch.profiler cannot begin: {problem}. It may be at work already: one at a time."
            ) from problem
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._profiler.stop()
        if kind is None:
            self._write()
        self._profiler = None

    def step(self) -> None:
        """Say that a step of the program's has ended, so that the trace is told step by step."""
        if self._profiler is None:
            raise Refusal("A step can end only while it is recorded: within `with perf.record()`.")
        self._profiler.step()

    def trace(self) -> Trace:
        """The events."""
        from ..traces.read import read

        return read(self._recorded())

    def diagnose(self) -> Diagnosis:
        """What they say; see `perf.diagnose`."""
        from ..diagnosing import diagnose

        return diagnose(self._recorded())

    def _recorded(self) -> Path:
        if self.path is None:
            raise Refusal(
                "Nothing has been recorded: the block has not ended, or it raised an exception."
            )
        return self.path

    def _write(self) -> None:
        if self._output is None:
            folder = tempfile.mkdtemp(prefix="kuroshio-record-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            target = Path(folder) / "trace.json.gz"
        else:
            target = self._output
        part = target.with_name(f".{os.getpid()}-{target.name}")
        try:
            self._profiler.export_chrome_trace(str(part))
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        self.path = target


def record(output: str | os.PathLike[str] | None = None) -> Recording:
    """Record what a `with` block does, with torch.profiler, on the processor and on devices.

        with perf.record() as r:
            for batch in batches:
                train(batch)
                r.step()  # if there are steps
        r.diagnose()

    output  a .json or .json.gz path for the trace; None: it is kept as long as the recording

    Refusal where torch cannot be imported, or the path cannot be written. Of a program without
    torch, `kuroshio perf record -- PROGRAM` records all of it with the profiler that is installed.
    """
    if output is None:
        return Recording(None)
    from ..json_file import check_writable

    path = Path(output)
    if not path.name.endswith((".json", ".json.gz")):
        raise Refusal(
            f"The trace {path} must end in .json or .json.gz. Call it trace.json.gz, for example."
        )
    check_writable(path)
    return Recording(path)


def _torch() -> Any:
    if find_spec("torch") is None:
        raise Refusal(
            "perf.record() records with torch.profiler, and this Python has no torch. Install it "
            "(pip install torch) if the program computes with it; of another program, kuroshio "
            "perf record -- PROGRAM records all, with nsys, rocprofv3, hipprof or rocprof."
        )
    return import_module("torch")
