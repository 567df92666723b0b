"""The processor as a device: how many threads, how much memory, and a crew that shares the work."""

from __future__ import annotations

import os
from collections import deque
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


class Work:
    """Tasks that a crew shares: each thread takes the next item until there is none.

    A future for every item would cost as much as reading a tenth of a small file.
    """

    def __init__(self, task: Callable[..., Any], items: Iterable[tuple]) -> None:
        self.task, self.items = task, deque(enumerate(items))
        self.results: list[Any] = [None] * len(self.items)
        self.futures: list[Future] = []

    def carry_out(self) -> None:
        """Take items until none is left; a failure leaves none for the others."""
        while self.items:
            try:
                number, item = self.items.popleft()
            except IndexError:  # another thread took it
                return
            try:
                self.results[number] = self.task(*item)
            except BaseException:
                self.items.clear()
                raise


class Crew:
    """Threads for tasks that release the interpreter lock; the first failure stops the rest.

    Leaving the context drops what has not begun and waits for what has, so no thread outlives it.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="kuroshio")
        self._works: list[Work] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """Drop what has not begun and wait for what has."""
        for work in self._works:
            work.items.clear()
        self.executor.shutdown(wait=True, cancel_futures=True)

    def start(self, task: Callable[..., Any], items: Iterable[tuple]) -> Work:
        """Begin task(*item) for every item, in this order, after what was started before."""
        work = Work(task, items)
        self._works = [*(w for w in self._works if w.items), work]
        hands = min(self.threads, len(work.items))
        work.futures = [self.executor.submit(work.carry_out) for _ in range(hands)]
        return work

    def finish(self, *works: Work) -> None:
        """Wait for works; a failure in any is raised at once."""
        done, _ = wait([f for w in works for f in w.futures], return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()

    def run(self, task: Callable[..., Any], items: Iterable[tuple]) -> list[Any]:
        """The results of task(*item), in the order of the items."""
        work = self.start(task, items)
        self.finish(work)
        return work.results
