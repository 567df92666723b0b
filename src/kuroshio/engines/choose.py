"""Which engine carries out a run: the processor's or a GPU's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..device import cuda, nvcomp
from ..device.gpu import Gpu, GpuError
from ..device.names import check_device
from .cpu import CpuEngine
from .protocol import Engine
from .worth import Task, gpu_saves_s

AS_ASKED = "as asked"
NO_CUPY = "CuPy is not installed"


@dataclass(frozen=True)
class Choice:
    """An engine, its devices and why it was taken.

    `instead` is what is to be told of a GPU that failed at its start, in whose place it is.
    """

    engine: Engine
    why: str
    gpus: tuple[Gpu, ...] = ()  # none: the processor
    auto: bool = False  # whether the processor may take its place
    instead: str = ""

    @property
    def device(self) -> str:
        """As --device calls it."""
        return ", ".join(gpu.name for gpu in self.gpus) or "cpu"

    @property
    def model(self) -> str | None:
        return self.gpus[0].model if self.gpus else None

    @property
    def inflates(self) -> bool:
        """Whether the devices can inflate files."""
        return bool(self.gpus) and all(gpu.inflates() for gpu in self.gpus)

    @property
    def line(self) -> str:
        """What was taken and why; empty where nobody wonders."""
        if self.gpus:
            return f"Device: {self.device} ({self.model}), {self.why}"
        return "" if self.why in (AS_ASKED, NO_CUPY) else f"Device: cpu; {self.why}"


def start_device(device: str) -> None:
    """Begin to make a GPU that is asked for ready, before the job is known; raises nothing."""
    if device not in ("auto", "cpu"):
        cuda.start(device)


def choose_engine(
    device: str,
    pinned_bytes: int | None,
    task: Task,
    meanwhile: Callable[[], None] | None = None,
) -> Choice:
    """The engine for a device as --device calls it; 'auto' never fails.

    GpuError for a GPU that was asked for and cannot be used. `pinned_bytes` is for a GPU's engine,
    None for what it likes. `meanwhile` is done while a GPU is made ready.
    """
    if check_device(device) == "cpu":
        return Choice(CpuEngine(), AS_ASKED)
    if device != "auto":
        if meanwhile:
            meanwhile()
        return _on_gpus(cuda.named(device), pinned_bytes, task, AS_ASKED)
    if not cuda.installed():
        return Choice(CpuEngine(), NO_CUPY)
    inflates = task.inflatable_bytes > 0 and nvcomp.library() is not None
    if gpu_saves_s(task, inflates=inflates) <= 0:
        return Choice(CpuEngine(), "the job is too small for a GPU to pay")
    threads = "1 thread" if task.threads == 1 else f"{task.threads} threads"
    seconds = task.compute_s + (task.inflate_s if inflates else 0.0)
    what = "the windows and inflating" if inflates else "the windows"
    why = f"for {what} would take {threads} of the processor about {seconds:,.0f} s"
    cuda.start()
    if meanwhile:
        meanwhile()
    try:
        return _on_gpus([cuda.first()], pinned_bytes, task, why, auto=True)
    except GpuError as error:
        return Choice(CpuEngine(), f"no GPU can be used: {error.what.rstrip('.')}")


def processor_instead(failed: Choice, error: GpuError) -> Choice:
    """The processor, where a GPU that nobody asked for failed before it had done anything."""
    instead = f"{failed.device} could not be used, and the processor did its work: {error.what}"
    if error.log:
        instead += f" With --device {failed.device} the compiler's messages are shown."
    return Choice(CpuEngine(), f"{failed.device} failed at its start", instead=instead)


def _on_gpus(
    gpus: Sequence[Gpu], pinned_bytes: int | None, task: Task, why: str, *, auto: bool = False
) -> Choice:
    from .gpu import GpuEngine

    engine = GpuEngine(gpus, pinned_bytes, task.key_bytes)
    return Choice(engine, why, tuple(gpus), auto)
