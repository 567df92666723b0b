"""A trace for each row of the decision table, made event by event, and its healthy twin.

A twin does the same work and differs in the one thing that the rule is about.
"""

from __future__ import annotations

from collections.abc import Callable

from kuroshio.perf.traces.events import Direction
from kuroshio.perf.traces.trace import Device, Trace
from traces_made import MS, US, Made, healthy

H100 = {0: Device(0, "made device", "NVIDIA", "sm_90", 100)}
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WIDE = (400, 1, 1)
BLOCK = (256, 1, 1)
Maker = Callable[[bool], Trace]


def data_loading(ill: bool) -> Trace:
    """Batches are loaded by the launching thread, or by another one meanwhile."""
    made, at = Made(), 1 * MS
    for _ in range(6):
        made.operator(LOADER, at, at + 4 * MS, thread=1 if ill else 2)
        at += 4 * MS + 20 * US if ill else 20 * US
        begin = at
        for number in range(40):
            at += 10 * US
            end = made.launch(f"kernel{number % 4}", at, 100 * US)
        at = at + 20 * US if ill else max(begin + 4 * MS - 100 * US, at)
        at = max(at, end - 200 * US)
    return made.trace()


def host_late(ill: bool) -> Trace:
    """Each launch comes after 300 us of the host's own work, or ahead of time."""
    made, at = Made(), 1 * MS
    for number in range(60):
        gap = 300 * US if ill else 60 * US
        made.operator(f"aten::op{number % 5}", at, at + gap)
        at += gap
        made.launch(f"kernel{number % 5}", at - 10 * US, 100 * US)
    return made.trace()


def untold(ill: bool) -> Trace:
    """Kernels without anything of the host, apart or back to back."""
    made = Made()
    for number in range(60):
        made.kernel("kernel", 1 * MS + number * (400 * US if ill else 101 * US), 100 * US)
    return made.trace()


def synchronisation(ill: bool) -> Trace:
    """After every kernel, or once at the end."""
    return _waiting("cudaDeviceSynchronize" if ill else "")


def read_back(ill: bool) -> Trace:
    """A number is read after every kernel, or never."""
    return _waiting("item" if ill else "")


def blocking_copy(ill: bool) -> Trace:
    """A short copy after every kernel, that the host waits for or not."""
    made, at, end = Made(), 1 * MS, 0
    for _ in range(60):
        end = made.launch("kernel", at, 100 * US)
        at += 10 * US
        begins = max(at + 5 * US, end)
        made.copy(
            Direction.TO_HOST, at, 3 * US, begins=begins, blocks=ill,
            call="cudaMemcpy" if ill else None,
        )  # fmt: skip
        at = begins + 3 * US + 50 * US if ill else at + 20 * US
    return made.trace()


def _waiting(how: str) -> Trace:
    made, at = Made(), 1 * MS
    for _ in range(60):
        end = made.launch("kernel", at, 100 * US)
        at += 10 * US
        if how == "item":
            begin = at
            begins = max(at + 20 * US, end)
            made.copy(Direction.TO_HOST, at + 10 * US, 2 * US, begins=begins, bytes=4)
            at = made.wait("cudaStreamSynchronize", at + 15 * US)
            made.operator("aten::item", begin, at + 1 * US)
            at += 50 * US
        elif how:
            at = made.wait(how, at) + 50 * US
        else:
            at += 20 * US
    made.wait("cudaDeviceSynchronize", at)
    return made.trace()


def allocation(ill: bool) -> Trace:
    """A long one before every launch, or none."""
    made, at = Made(), 1 * MS
    for _ in range(60):
        if ill:
            made.call("cudaMalloc", at, at + 300 * US)
            at += 310 * US
        else:
            at += 50 * US
        made.launch("kernel", at, 100 * US)
        at += 5 * US
    return made.trace()


def tiny_kernels(ill: bool) -> Trace:
    """Of 3 us, launched every 15; or of 20 us, as many."""
    made, at = Made(), 1 * MS
    for number in range(400):
        made.operator("aten::add", at, at + 14 * US)
        made.launch(f"kernel{number % 3}", at + 8 * US, 3 * US if ill else 20 * US)
        at += 15 * US
    return made.trace()


def exposed_copies(ill: bool) -> Trace:
    """In the stream that computes, or in one of their own."""
    made, at = Made(), 1 * MS
    for _ in range(10):
        made.copy(Direction.TO_DEVICE, at, 500 * US, stream=7 if ill else 20)
        for _ in range(10):
            at += 20 * US
            made.launch("kernel", at, 100 * US)
        at += 600 * US
    return made.trace()


def communication(ill: bool) -> Trace:
    """After the computation of each step, or beside it."""
    made, at, end = Made(), 1 * MS, 0
    for _ in range(10):
        begin = max(at, end)
        for _ in range(10):
            at += 10 * US
            end = made.launch("kernel", at, 100 * US)
        begins = end if ill else begin + 20 * US
        done = made.launch("ncclDevKernel_AllReduce", at, 700 * US, stream=9, begins=begins)
        at += 50 * US
        if ill:  # the next step's first kernel needs what was sent
            end = made.launch("kernel", at, 100 * US, begins=done)
        at = max(at, end - 300 * US)
    return made.trace()


def communication_holes(ill: bool) -> Trace:
    """The host is in a collective of another library, and the device has nothing."""
    made, at = Made(), 1 * MS
    for _ in range(20):
        for _ in range(5):
            at += 20 * US
            end = made.launch("kernel", at, 100 * US)
        if ill:
            made.operator("gloo:all_reduce", end - 5 * US, end + 900 * US)
            at = end + 905 * US
        else:
            at = end - 100 * US
    return made.trace()


def few_blocks(ill: bool) -> Trace:
    """Fewer than the device has multiprocessors, or enough."""
    made, at = Made(), 1 * MS
    for _ in range(60):
        made.launch("kernel", at, 100 * US, grid=(4, 1, 1) if ill else WIDE, block=BLOCK)
        at += 50 * US
    return made.trace(devices=H100)


def beyond_registers(ill: bool) -> Trace:
    """Threads have memory of their own, or none."""
    made, at = Made(), 1 * MS
    for _ in range(60):
        made.launch(
            "kernel", at, 100 * US, grid=WIDE, block=BLOCK, registers=255,
            scratch=128 if ill else 0,
        )  # fmt: skip
        at += 50 * US
    return made.trace(devices=H100)


def jitter(ill: bool) -> Trace:
    """Every fifth step takes twice as long, or all alike."""
    made, at, end = Made(), 1 * MS, 0
    for step in range(20):
        begin = at
        slow = ill and step % 5 == 2
        for number in range(10):
            at += 20 * US
            lasts = (100 + 10 * number) * (2 if slow else 1) * US
            end = made.launch(f"kernel{number % 4}", at, lasts, grid=WIDE, block=BLOCK)
        at = made.wait("cudaEventSynchronize", at + 10 * US, until=max(at, end - 1 * MS))
        made.annotation(f"ProfilerStep#{step}", begin, at)
        at += 10 * US
    return made.trace()


def no_device_work(ill: bool) -> Trace:
    """Operators only."""
    if not ill:
        return healthy().trace()
    made = Made()
    for number in range(50):
        made.operator("aten::mm", number * 100 * US, number * 100 * US + 90 * US)
    return made.trace()


def pipeline_reading(ill: bool) -> Trace:
    """The device computes when a piece was read, or while the next one is read."""
    return _pipeline(1 * MS, 100 * US, 1 * MS, overlapped=not ill)


def pipeline_link(ill: bool) -> Trace:
    return _pipeline(100 * US, 1 * MS, 1 * MS, overlapped=not ill)


def pipeline_kernel(ill: bool) -> Trace:
    return _pipeline(100 * US if ill else 900 * US, 50 * US, 1 * MS, overlapped=True)


def pipeline_compiling(ill: bool) -> Trace:
    return _pipeline(900 * US, 50 * US, 1 * MS, overlapped=True, before=("compile", 60 * MS * ill))


def pipeline_start(ill: bool) -> Trace:
    return _pipeline(900 * US, 50 * US, 1 * MS, overlapped=True, before=("start", 60 * MS * ill))


def _pipeline(
    read: int, copy: int, compute: int, *, overlapped: bool, before: tuple[str, int] = ("start", 0)
) -> Trace:
    """before: a stage, and how long it lasts."""
    made, begins = Made(), 1 * MS
    if before[1]:
        made.stage(before[0], begins, begins + before[1], thread=3)
        begins += before[1]
    reads = copies = free = begins
    for _ in range(40):
        start = reads if overlapped else max(reads, free)
        reads = start + read
        made.stage("read", start, reads, thread=1)
        copies = max(reads, copies if overlapped else free)
        made.copy(Direction.TO_DEVICE, copies, copy, begins=copies, stream=1)
        copies += copy
        begins = max(copies, free)
        free = made.kernel("windows", begins, compute, stream=2)
    return made.trace()


def pipeline_inflating(ill: bool) -> Trace:
    """Threads without a device, most of their time at one thing or not."""
    made = Made()
    for thread in range(4):
        at = 1 * MS
        for _ in range(20):
            for name, lasts in (("read", 2), ("inflate", 20 if ill else 2), ("compute", 4)):
                made.stage(name, at, at + lasts * 100 * US, thread=thread)
                at += lasts * 100 * US
    return made.trace()


CASES: dict[str, Maker] = {
    "data-loading": data_loading,
    "host-late": host_late,
    "idle-untold": untold,
    "synchronisation": synchronisation,
    "read-back": read_back,
    "blocking-copies": blocking_copy,
    "allocation": allocation,
    "tiny-kernels": tiny_kernels,
    "exposed-copies": exposed_copies,
    "communication": communication,
    "communication-holes": communication_holes,
    "few-blocks": few_blocks,
    "beyond-registers": beyond_registers,
    "jitter": jitter,
    "no-device-work": no_device_work,
    "pipeline-reading": pipeline_reading,
    "pipeline-link": pipeline_link,
    "pipeline-kernel": pipeline_kernel,
    "pipeline-compiling": pipeline_compiling,
    "pipeline-start-up": pipeline_start,
}
# Two rules share a key: a pipeline of a device, and one of threads alone.
THREADS = {"pipeline-reading": pipeline_inflating}
