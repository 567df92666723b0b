"""What AMD's profilers have in common, whatever format they write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .events import ABSENT, Column, Direction, Events, Kind
from .trace import Device

# The runtime copies and sets by kernels of its own, too.
_OWN_KERNELS = (("__amd_rocclr_copyBuffer", Kind.COPY), ("__amd_rocclr_fillBuffer", Kind.SET))
_KERNEL_SUFFIXES = (" [clone .kd]", " (.kd)", ".kd")  # of the descriptor, not of the kernel
_DIRECTIONS = {
    "HOST_TO_DEVICE": Direction.TO_DEVICE,
    "DEVICE_TO_HOST": Direction.TO_HOST,
    "DEVICE_TO_DEVICE": Direction.ON_DEVICE,
    "HOST_TO_HOST": Direction.ON_HOST,
}
NO_KERNELS = "No kernels were traced, or there were none (rocprofv3 --kernel-trace traces them)"
NO_LAUNCHES = (
    "No calls of the runtime were traced, so it is not told which one launched a kernel, and when "
    "(rocprofv3 --hip-trace traces them)"
)
NO_COPIES = "No copies were traced, or there were none (rocprofv3 --memory-copy-trace traces them)"


def kernel_name(name: str) -> str:
    for suffix in _KERNEL_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def kernel_kinds(names: Sequence[str], codes: np.ndarray) -> np.ndarray:
    """Of dispatches: kernels, or the runtime's own, which are copies and sets."""
    kinds = [
        next((kind for start, kind in _OWN_KERNELS if name.startswith(start)), Kind.KERNEL)
        for name in names
    ]
    return np.array([*kinds, Kind.KERNEL], np.uint8)[codes]


def copied(
    names: Sequence[str], codes: np.ndarray, sources: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Directions, and the device that is an end of each copy: of two devices the one that is read.

    By the operation's name: MEMORY_COPY_HOST_TO_DEVICE, or without the first part. Sources and
    targets are devices' numbers, ABSENT for the host.
    """
    found = [
        next((way for text, way in _DIRECTIONS.items() if name.endswith(text)), ABSENT)
        for name in names
    ]
    direction = np.array([*found, ABSENT], np.int8)[codes]
    device = np.where(direction == Direction.TO_DEVICE, targets, sources)
    device = np.where(direction == Direction.ON_HOST, ABSENT, device)
    apart = (direction == Direction.ON_DEVICE) & (sources != targets)
    apart &= (sources >= 0) & (targets >= 0)
    return np.where(apart, Direction.BETWEEN_DEVICES, direction), device


def blocks(items: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Workgroups along each axis: AMD's grids are counted in work-items."""
    known = (items >= 0) & (block > 0)
    size = np.maximum(block, 1)
    return np.where(known, -(-items // size), ABSENT)


def call_kind(category: str) -> Kind:
    """Of what happened on the host, by its domain: HIP_RUNTIME_API, MARKER_CORE_RANGE_API."""
    category = category.lower()
    if "marker" in category or "roctx" in category:
        return Kind.ANNOTATION
    if re.search("hip|hsa|rccl|nccl|rocdecode|rocjpeg|_api", category):
        return Kind.CALL
    return Kind.ANNOTATION  # a function or range that the program was instrumented with


def no_zeros(numbers: np.ndarray) -> np.ndarray:
    """Correlations: they count from 1, and 0 stands for none."""
    return np.where(numbers > 0, numbers, ABSENT)


def last_number(column: Column) -> np.ndarray:
    """Of texts such as 'Agent 4' or '4': the number that they end in."""
    numbers = []
    for value in column.values:
        found = re.search(r"([0-9]{1,9})\s*$", value)
        numbers.append(int(found.group(1)) if found else ABSENT)
    return np.array([*numbers, ABSENT], np.int64)[column.codes]


def described(events: Events, devices: Mapping[int, Device]) -> dict[int, Device]:
    """The devices that worked, by number; of those that nothing describes the maker is known."""
    numbers = [number for number in np.unique(events.device).tolist() if number != ABSENT]
    return {number: devices.get(number, Device(number, maker="AMD")) for number in numbers}


def lacks(events: Events) -> Iterator[str]:
    """What was not traced, a sentence each."""
    if not events.of_kind(Kind.KERNEL).any():
        yield NO_KERNELS
    elif not (events.of_kind(Kind.CALL) & (events.correlation != ABSENT)).any():
        yield NO_LAUNCHES
    if not events.of_kind(Kind.COPY).any():
        yield NO_COPIES
