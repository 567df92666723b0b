"""All ceilings of one device, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...device.names import gpu_name
from . import cpu as processor
from .ceiling import Ceiling, Missing, Peak
from .cpu import FULL, QUICK

Progress = Callable[[str], None]
Parts = list[tuple[str, Iterator[Ceiling | Missing]]]


def processor_ceilings(
    threads: int, quick: bool, folder: Path, only: tuple[str, ...], progress: Progress
) -> Iterator[Ceiling | Missing]:
    """By one thread and by all of them: memory, arithmetic, disk, inflating."""
    from .disk import disk
    from .inflating import inflate

    effort = QUICK if quick else FULL
    parts: Parts = []
    for crew in sorted({1, threads}):
        of_crew: Parts = [
            ("bandwidth", processor.memory(crew, effort)),
            ("arithmetic", processor.compute(crew, effort)),
            ("inflate", inflate(crew, effort)),
            ("disk", disk(folder, crew, effort, (16 if quick else 64) << 20)),
        ]
        by = f", {crew} thread{'s' if crew > 1 else ''}"
        parts += [(name + by, part) for name, part in of_crew if not only or name in only]
    yield from _in_turn(parts, progress)


PARTS = ("bandwidth", "arithmetic", "inflate", "disk")


def gpu_ceilings(
    name: str, quick: bool, only: tuple[str, ...], progress: Progress
) -> tuple[str, Iterator[Ceiling | Missing]]:
    """The device's model, and what is measured of it as it is measured."""
    from ...device import cuda
    from . import gpu, gpu_inflating, gpu_library, gpu_several
    from .gpu_clock import Sizes

    device: Any = cuda.by_name(name)
    sizes = Sizes(link_bytes=64 << 20, launches=200, effort=QUICK) if quick else Sizes()

    def found() -> Iterator[Ceiling | Missing]:
        effort, stream = sizes.effort, device.stream()
        kind, number = gpu_name(name)
        all_of_them = [number or 0, *(n for n in range(cuda.count()) if n != number)]
        parts: Parts = [
            ("memory, arithmetic, latencies, L2, link",
             gpu.measure(device, sizes, gpu_library.l2_bytes(name), only)),
        ]  # fmt: skip
        if gpu.wanted("matrix", only):
            parts.append(("matrix units", gpu_library.matrices(name, effort)))
        if gpu.wanted(gpu_inflating.NAME, only):
            parts.append(("inflating", gpu_inflating.inflate(device, stream, sizes)))
        if gpu.wanted("peer copy", only) or gpu.wanted("all-reduce", only):
            parts.append(("between devices", gpu_several.several(kind, all_of_them, effort)))
        with device.use():
            yield from _in_turn(parts, progress)

    return device.model, found()


def _in_turn(parts: Parts, progress: Progress) -> Iterator[Ceiling | Missing]:
    for number, (what, part) in enumerate(parts, start=1):
        progress(f"measuring, {number} of {len(parts)}: {what}")
        yield from part


def sorted_out(
    found: Iterator[Ceiling | Missing],
) -> tuple[list[Ceiling], list[Missing]]:
    """What was measured and what could not be."""
    ceilings: list[Ceiling] = []
    missing: list[Missing] = []
    for each in found:
        if isinstance(each, Ceiling):
            ceilings.append(each)
        else:
            missing.append(each)
    return ceilings, missing


def beside(ceilings: list[Ceiling], peaks: list[Peak]) -> dict[int, Peak]:
    """Number of a ceiling -> the data sheet's peak for the same."""
    by_name = {(peak.name, peak.level): peak for peak in peaks}
    return {
        number: by_name[each.name, each.level]
        for number, each in enumerate(ceilings)
        if (each.name, each.level) in by_name
    }
