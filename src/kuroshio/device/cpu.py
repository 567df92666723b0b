"""The processor as a device: how many threads, how much memory, and a crew that shares the work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from threading import Lock
from time import perf_counter
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
    """Tasks that a crew shares: its threads take item by item, under the crew's lock.

    A future for every item would cost as much as reading a tenth of a small file.
    """

    def __init__(self, task: Callable[..., Any], items: Iterable[tuple], urgent: bool) -> None:
        self.task, self.urgent = task, urgent
        self.items = deque(enumerate(items))  # those that nobody has taken
        self.results: list[Any] = [None] * len(self.items)
        self.unfinished = len(self.items)
        self.done: Future[None] = Future()  # once all items are, or one has failed

    def end_item(self) -> None:
        self.unfinished -= 1
        if self.unfinished == 0:
            self.done.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Leave no item for anybody; the first failure is the work's."""
        self.items.clear()
        if not self.done.done():
            self.done.set_exception(error)


class Crew:
    """Threads for tasks that release the interpreter lock; a failure stops the rest of its work.

    A thread that is free takes the next item of urgent work if there is any, else of what was
    started earliest. Leaving the context drops what has not begun and waits for what has, so no
    thread outlives it.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="kuroshio")
        self._lock = Lock()
        self._works: list[Work] = []  # with items, in the order in which they are taken
        self.urgent_s = 0.0  # that threads have spent on urgent work

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """Drop what has not begun and wait for what has; works that lose items end as cancelled."""
        self.executor.shutdown(wait=False, cancel_futures=True)  # from now on nothing is started
        with self._lock:
            for work in self._works:
                if work.items:
                    work.fail(CancelledError())
        self.executor.shutdown(wait=True)

    def start(self, task: Callable[..., Any], items: Iterable[tuple], urgent: bool = False) -> Work:
        """Begin task(*item) for every item, in this order; urgent work overtakes what is not."""
        work = Work(task, items, urgent)
        if not work.items:
            work.done.set_result(None)
            return work
        with self._lock:
            self._works = sorted([*self._works, work], key=lambda each: not each.urgent)
        # A hand goes on until no work has items: any that begins now leaves none of this one.
        for _ in range(min(self.threads, len(work.results))):
            self.executor.submit(self._lend_a_hand)
        return work

    def finish(self, *works: Work) -> None:
        """Wait for works; a failure in any is raised at once."""
        done, _ = wait([work.done for work in works], return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()

    def run(self, task: Callable[..., Any], items: Iterable[tuple]) -> list[Any]:
        """The results of task(*item), in the order of the items."""
        work = self.start(task, items)
        self.finish(work)
        return work.results

    def _lend_a_hand(self) -> None:
        """Take items until no work has any."""
        while taken := self._next():
            work, number, item = taken
            start = perf_counter()
            try:
                work.results[number] = work.task(*item)
            except BaseException as error:
                with self._lock:
                    work.fail(error)
            else:
                with self._lock:
                    self.urgent_s += (perf_counter() - start) * work.urgent
                    work.end_item()

    def _next(self) -> tuple[Work, int, tuple] | None:
        with self._lock:
            while self._works and not self._works[0].items:
                del self._works[0]
            if not self._works:
                return None
            return self._works[0], *self._works[0].items.popleft()
