"""A kernel with the block size that suits the device: from what the compiler made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...device.gpu import Gpu, GpuError, Kernel
from ...device.occupancy import Launch, choose_block

MOST_THREADS = 256  # of a block; the kernels' texts promise their compilers no more


@dataclass(frozen=True)
class Chosen:
    """A kernel, how it is launched for a number of items, and why."""

    name: str
    kernel: Kernel
    launch: Launch
    shared_bytes: int

    def __call__(self, stream: Any, *args: Any) -> None:
        self.kernel(stream, self.launch.grid, self.launch.block, args, self.shared_bytes)


def chosen(
    gpu: Gpu, name: str, kernel: Kernel, items: int, threads: int = 0, shared_bytes: int = 0
) -> Chosen:
    """The best launch of a thread for each item; GpuError where the device has no room for it.

    threads       of a block, if the text is made for that number
    shared_bytes  a block asks for at its launch
    """
    try:
        launch = choose_block(
            gpu.limits,
            registers=kernel.registers,
            shared_fixed_bytes=shared_bytes,
            work_items=items,
            max_block=threads or MOST_THREADS,
        )
    except ValueError as problem:
        raise GpuError(
            f"The kernel {name} cannot be launched on {gpu.name} ({gpu.model}): {problem}.",
            "Use --device cpu.",
        ) from problem
    return Chosen(name, kernel, launch, shared_bytes)


def texts(ways: Sequence[Chosen]) -> dict[str, str]:
    """What was chosen for each kernel, in words."""
    return {f"{way.name}, {way.kernel.registers} registers": way.launch.text for way in ways}
