"""Which device is cuda:0: CUDA numbers the fastest first, the management library by the bus.

The driver is asked through ctypes; no context is made.
"""

from __future__ import annotations

import ctypes
import os

BY_BUS = "PCI_BUS_ID"


def by_bus() -> bool:
    """Whether the user has CUDA number devices by their places on the bus."""
    return os.environ.get("CUDA_DEVICE_ORDER") == BY_BUS


def bus_id(number: int) -> str | None:
    """Where cuda:number is, of those that CUDA_VISIBLE_DEVICES shows; None if nobody tells."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, text = ctypes.c_int(), ctypes.create_string_buffer(32)
    told = (
        cuda.cuInit(0) == 0
        and cuda.cuDeviceGet(ctypes.byref(device), number) == 0
        and cuda.cuDeviceGetPCIBusId(text, len(text), device) == 0
    )
    return text.value.decode(errors="replace") if told else None
