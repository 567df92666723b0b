"""GPUs as an engine: what they may use, and the blocks on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..archive.plan import Block, Plan
from ..device.gpu import Gpu
from ..device.llvm import tile_cells
from .means import RING_BYTES, TOGETHER, Means
from .pinned import Pinned
from .protocol import BlockDevice

if TYPE_CHECKING:
    from .gpu_block import GpuBlock
    from .rings import Clock, Rings

PINNED_BYTES = 512 << 20  # of the host, unless the user says otherwise
_SHARE = 0.85  # of the device's free memory for keys and results: kernels need some of their own
_KERNELS_BYTES = 1 << 30  # at most


class GpuEngine:
    """Devices of one host, fed by the crew; see protocol.Engine.

    Each has a stretch of the cells of every block, so that no file is read and no window computed
    twice, however many there are.
    """

    ahead = 1

    def __init__(self, gpus: Sequence[Gpu], pinned_bytes: int | None = None) -> None:
        self.gpus = tuple(gpus)
        self.pinned_bytes = PINNED_BYTES if pinned_bytes is None else pinned_bytes
        self.tile_cells = tile_cells()
        free = min(gpu.free_bytes() for gpu in gpus)
        usable = int(max(free * _SHARE - _KERNELS_BYTES, free * _SHARE / 2))
        self.device_bytes: int | None = usable * len(self.gpus)
        self._rings: Rings | None = None
        self._clocks: list[Clock] = []
        self._block: GpuBlock | None = None
        self._pinned: Pinned | None = None

    def begin(self, plan: Plan, threads: int) -> None:
        """Begin to pin memory for the rings of all threads and for results."""
        rings = min(2 * threads * min(TOGETHER * plan.row_bytes, RING_BYTES), self.pinned_bytes)
        self._pinned = Pinned(self.gpus[0], rings + plan.memory_bytes - plan.key_bytes)

    def block(self, means: Means, block: Block) -> BlockDevice:
        from .gpu_block import GpuBlock  # with Numba
        from .rings import Clock, Rings

        if self._rings is None:
            assert self._pinned is not None
            self._clocks = [Clock(gpu) for gpu in self.gpus]
            self._rings = Rings(self._pinned, means.spans, means.crew.threads, self.pinned_bytes)
        self._block = GpuBlock(means, block, self.gpus, self._clocks, self._rings)
        return self._block

    def launch_texts(self) -> dict[str, str]:
        return self._block.launches if self._block is not None else {}

    def rings_report(self) -> dict[str, Any] | None:
        return self._rings.report() if self._rings is not None else None

    def close(self) -> None:
        """Everything on the device, and pinned memory, is given back."""
        if self._block is not None:
            self._block.release()
        self._block = self._rings = None
        self._clocks = []
        if self._pinned is not None:
            self._pinned.close()
            self._pinned = None
