"""The processor as a device: how many threads, how much memory, and a crew that shares the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any


def available_threads() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int:
    """Memory that can still be had without swapping, control group limits included."""
    free = 4 << 30
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    free = int(line.split()[1]) * 1024
                    break
    except OSError:  # not Linux
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    for limit_file, used_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            with (
                open(limit_file, encoding="ascii") as limit,
                open(used_file, encoding="ascii") as used,
            ):
                free = min(free, max(int(limit.read()) - int(used.read()), 0))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return free


class Crew:
    """Threads for tasks that release the interpreter lock; the first failure stops the rest.

    Leaving the context cancels what has not begun and waits for what has, so no thread outlives it.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="kuroshio")

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """Cancel what has not begun and wait for what has."""
        self.executor.shutdown(wait=True, cancel_futures=True)

    def start(self, task: Callable[..., Any], items: Iterable[tuple]) -> list[Future]:
        """Submit task(*item) for every item."""
        return [self.executor.submit(task, *item) for item in items]

    def finish(self, futures: list[Future]) -> list[Any]:
        """Wait for all and return their results; on a failure cancel the rest and raise it."""
        done, pending = wait(futures, return_when=FIRST_EXCEPTION)
        if pending:
            for future in pending:
                future.cancel()
            for future in done:
                future.result()
        return [future.result() for future in futures]

    def run(self, task: Callable[..., Any], items: Iterable[tuple]) -> list[Any]:
        return self.finish(self.start(task, items))
