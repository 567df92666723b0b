"""GPUs as an engine: what they may use, and the blocks on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..archive.plan import Block, Plan
from ..device.gpu import Gpu
from ..device.llvm import tile_cells
from .means import MOST_RINGS, RING_BYTES, TABLE_BYTES, TOGETHER, Means
from .pinned import Pinned
from .protocol import BlockDevice, Report

if TYPE_CHECKING:
    from .gpu_block import GpuBlock
    from .rings import Clock, Rings

PINNED_BYTES = 512 << 20  # of the host, unless the user says otherwise
_SHARE = 0.85  # of the device's free memory for keys and results: kernels need some of their own
_KERNELS_BYTES = 1 << 30  # at most
_INFLATING = 1 / 3  # of what is left, for maps that are inflated there


class GpuEngine:
    """Devices of one host, fed by the crew; see protocol.Engine.

    Each has a stretch of the cells of every block, so that no file is read and no window computed
    twice, however many there are.
    """

    ahead = 1

    def __init__(
        self, gpus: Sequence[Gpu], pinned_bytes: int | None = None, key_bytes: int = 0
    ) -> None:
        """key_bytes: of those that the run is expected to have, 0: nobody knows."""
        self.gpus = tuple(gpus)
        self.pinned_bytes = PINNED_BYTES if pinned_bytes is None else pinned_bytes
        self.tile_cells = tile_cells()
        free = min(gpu.free_bytes() for gpu in gpus)
        usable = int(max(free * _SHARE - _KERNELS_BYTES, free * _SHARE / 2))
        # Maps of other keys are not inflated on devices.
        inflates = key_bytes == 2 and all(gpu.inflates() for gpu in gpus)
        self.inflating_bytes = int(usable * _INFLATING) if inflates else 0
        self.device_bytes: int | None = (usable - self.inflating_bytes) * len(self.gpus)
        self._rings: Rings | None = None
        self._clocks: list[Clock] = []
        self._block: GpuBlock | None = None
        self._pinned: Pinned | None = None

    def begin(self, plan: Plan, threads: int) -> None:
        """Begin to pin memory for the rings of all threads."""
        map_bytes = plan.row_bytes  # about, and no fewer
        ring_bytes = max(
            min(TOGETHER * map_bytes + TABLE_BYTES, RING_BYTES), map_bytes + TABLE_BYTES
        )
        most = min(MOST_RINGS * threads, self.pinned_bytes // ring_bytes)
        self._pinned = Pinned(self.gpus[0], ring_bytes, most)

    def block(self, means: Means, block: Block) -> BlockDevice:
        from .gpu_block import GpuBlock  # with Numba
        from .rings import Clock, Rings

        if self._rings is None:
            assert self._pinned is not None
            self._clocks = [Clock(gpu) for gpu in self.gpus]
            self._rings = Rings(self._pinned, means.spans, means.crew.threads, self.pinned_bytes)
        self._block = None  # its results make room
        self._block = GpuBlock(
            means, block, self.gpus, self._clocks, self._rings, self.inflating_bytes
        )
        return self._block

    def report(self) -> Report:
        if self._block is None or self._rings is None:
            return Report()
        return Report(self._rings.report(), self._block.inflation, self._block.launches)

    def doubt(self) -> None:
        if self._block is not None:
            self._block.doubt()

    def close(self) -> None:
        """Everything on the device, and pinned memory, is given back."""
        if self._block is not None:
            self._block.release()
        self._block = self._rings = None
        self._clocks = []
        if self._pinned is not None:
            self._pinned.close()
            self._pinned = None
