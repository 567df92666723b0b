"""The processor as an engine. Numba, which takes time to import, waits for the first block."""

from __future__ import annotations

from ..archive.plan import Block, Plan
from ..device.llvm import tile_cells
from ..device.memory import ReadyMemory
from .means import Means
from .protocol import BlockDevice, Report

_SURE = 0.6  # of the key buffer is used even where land is left out


class CpuEngine:
    """The crew's threads, with the kernels in vectors; see protocol.Engine."""

    ahead = 0
    device_bytes: int | None = None

    def __init__(self) -> None:
        self.tile_cells = tile_cells()
        self.key_bytes = 0
        self.memory: ReadyMemory | None = None  # for the keys of the first block

    def begin(self, plan: Plan, threads: int) -> None:
        self.key_bytes = plan.key_bytes
        self.memory = ReadyMemory(plan.key_bytes, int(plan.key_bytes * _SURE))

    def block(self, means: Means, block: Block) -> BlockDevice:
        from .cpu_block import CpuBlock

        memory, self.memory = self.memory or ReadyMemory(self.key_bytes, 0), None
        return CpuBlock(means, block, memory)

    def report(self) -> Report:
        return Report()

    def doubt(self) -> None:
        """There is no device."""

    def close(self) -> None:
        if self.memory is not None:
            self.memory.close()
            self.memory = None
