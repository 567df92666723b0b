"""Raw deflate streams inflated on a device of CuPy's, by the library nvCOMP."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from . import nvcomp
from .gpu import DeviceArray, GpuError

if TYPE_CHECKING:
    from .cuda import CupyGpu


class Nvcomp:
    """An inflater: the library nvCOMP, and the memory that it wants for itself."""

    def __init__(self, gpu: CupyGpu, streams: int, most_bytes: int) -> None:
        with gpu.use():
            nbytes = nvcomp.scratch_bytes(streams, most_bytes)
        self._scratch = gpu.empty((nbytes,), np.uint8) if nbytes else None
        self._scratch_nbytes = nbytes

    def __call__(
        self, stream: Any, count: int, *, sources: DeviceArray, nbytes: DeviceArray,
        targets: DeviceArray, room: DeviceArray, inflated: DeviceArray, statuses: DeviceArray,
    ) -> None:  # fmt: skip
        nvcomp.inflate(
            stream.ptr, count, sources=sources.data.ptr, nbytes=nbytes.data.ptr,
            targets=targets.data.ptr, room=room.data.ptr, inflated=inflated.data.ptr,
            statuses=statuses.data.ptr,
            scratch=0 if self._scratch is None else self._scratch.data.ptr,
            scratch_nbytes=self._scratch_nbytes,
        )  # fmt: skip


def works(gpu: CupyGpu) -> bool:
    """Whether what comes out of it is what went in: the library may not know the device."""
    said = b"what comes out is what went in"
    raw = np.frombuffer(zlib.compress(said)[2:-4], np.uint8)
    try:
        stream, source = gpu.stream(), gpu.array(raw)
        target, numbers = gpu.zeros((len(said),), np.uint8), np.array([raw.size, len(said)])
        places = np.array([source.data.ptr, target.data.ptr])
        sources, targets = (gpu.array(each.astype(np.uint64)) for each in np.split(places, 2))
        nbytes, room = (gpu.array(each.astype(np.uint64)) for each in np.split(numbers, 2))
        inflated, statuses = gpu.zeros((1,), np.uint64), gpu.zeros((1,), np.int32)
        inflate = Nvcomp(gpu, 1, len(said))
        with gpu.use():
            inflate(
                stream, 1, sources=sources, nbytes=nbytes, targets=targets, room=room,
                inflated=inflated, statuses=statuses,
            )  # fmt: skip
            stream.synchronize()
            return bytes(target.get()) == said and int(statuses.get()[0]) == 0
    except (GpuError, nvcomp.NvcompFailed):
        return False
