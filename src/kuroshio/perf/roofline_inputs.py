"""Whose roofs count, and where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Refusal

if TYPE_CHECKING:
    from .ceilings.ceiling import Ceiling
    from .counters.counted import Counted


def device_of(device: str | None, counted: list[Counted], given: bool) -> str | None:
    """Whose roofs count: the rows', else the counters'; None: those of the ceilings given."""
    kinds = {each.kind for each in counted}
    gpu = sorted(kinds - {"cpu"})
    if device and kinds and (device == "cpu") != (not gpu):
        raise Refusal(
            f"The counters are of a {'GPU' if gpu else 'processor'} and the results of {device}. "
            "Give counters of the same device, or --device."
        )
    if device or given:
        return device
    return f"{gpu[0]}:0" if gpu else "cpu"


def ceilings_of(files: list[str], device: str | None) -> tuple[str, list[Ceiling]]:
    """The model and the ceilings, of the files that are of this device, or of those kept."""
    model, ceilings = _read_ceilings(files, device)
    for each in ceilings:
        if not all(1e-9 < value < 1e15 for value in (each.value, each.low, each.high)):
            raise Refusal(
                f"The ceiling {each.name} is {each.value} {each.unit} ({each.low} to {each.high}), "
                "which cannot be. Measure again: kuroshio perf ceilings --save"
            )
    return model, ceilings


def _read_ceilings(files: list[str], device: str | None) -> tuple[str, list[Ceiling]]:
    from .ceilings import store

    if files:
        read = [store.read(Path(name)) for name in files]
        of = [each for each in read if device is None or _kin(each[0].get("device"), device)]
        if not of:
            raise Refusal(
                f"None of the ceilings given is of {device}; they are of "
                f"{', '.join(str(said.get('device')) for said, _ in read)}."
            )
        return str(of[0][0].get("model", "unknown")), of[0][1]
    device = device or "cpu"
    model = None
    if device != "cpu":
        from ..device import cuda
        from ..device.gpu import GpuError

        try:
            model = cuda.by_name(device).model
        except GpuError as problem:
            raise Refusal(
                f"The roofs of {device} are kept on the machine that has it, and here it cannot be "
                f"used: {problem.what} Give the file that was measured there with --ceilings."
            ) from problem
    said, ceilings = store.saved(device, model)
    return str(said.get("model", "unknown")), ceilings


def _kin(one: Any, other: str) -> bool:
    """cuda:0 and cuda:1 of a file measured elsewhere are the same kind of thing."""
    return str(one).partition(":")[0] == other.partition(":")[0]
