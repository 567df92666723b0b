"""Small tables on their way to a device: several in one copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..device.gpu import DeviceArray, Gpu

_LINE = 16  # bytes to which tables are aligned on the device
_USUAL_BYTES = 256 << 10


class Tables:
    """Memory for the tables of one stream; what was sent before is overwritten in its turn."""

    def __init__(self, gpu: Gpu, stream: Any) -> None:
        self._gpu, self._stream = gpu, stream
        self._memory: DeviceArray = gpu.empty((_USUAL_BYTES,), np.uint8)

    def send(self, tables: Mapping[str, np.ndarray]) -> dict[str, DeviceArray]:
        """Begin to copy them; each becomes uint8 on the device."""
        places, size = {}, 0
        for name, table in tables.items():
            places[name] = (size, size + table.nbytes)
            size += -(-table.nbytes // _LINE) * _LINE
        packed = np.zeros(max(size, _LINE), np.uint8)
        for name, table in tables.items():
            packed[slice(*places[name])] = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
        if self._memory.shape[0] < packed.size:
            self._memory = self._gpu.empty((2 * packed.size,), np.uint8)
        self._gpu.upload(self._memory[: packed.size], packed, self._stream)
        return {name: self._memory[slice(*place)] for name, place in places.items()}

    def close(self) -> None:
        """Give the memory back."""
        self._memory = None
