"""Threads that run a compiled loop at the same time, sample by sample, and the rate of them all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

_REST_S = 0.002  # between samples: two virtual processors are often throttled to one under load


def rates(
    kernel: Callable[..., Any], make: Callable[[], tuple], threads: int, amount: float,
    samples: int, passes: int,
) -> list[float]:  # fmt: skip
    """`amount` a pass and thread, in a second: one rate a sample.

    kernel  kernel(*arguments, passes), without the interpreter's lock
    make    a thread's own arguments; made, and so touched, by the thread
    passes  of a sample, as `passes_for` finds them
    """
    barrier = threading.Barrier(threads)
    spans = [[(0.0, 0.0)] * threads for _ in range(samples)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            arguments = make()
            kernel(*arguments, 1)
            for sample in range(samples):
                sleep(_REST_S)
                barrier.wait()
                start = perf_counter()
                kernel(*arguments, passes)
                spans[sample][number] = start, perf_counter()
        except BaseException as failure:
            failures.append(failure)
            barrier.abort()

    crew = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    first = [f for f in failures if not isinstance(f, threading.BrokenBarrierError)]
    if first:
        raise first[0]
    return [
        threads * amount * passes / (max(e for _, e in span) - min(s for s, _ in span))
        for span in spans
    ]


def passes_for(kernel: Callable[..., Any], arguments: tuple, sample_s: float) -> int:
    """So many that a sample takes about sample_s; the first call compiles."""
    kernel(*arguments, 1)
    passes = 1
    while True:
        start = perf_counter()
        kernel(*arguments, passes)
        took = perf_counter() - start
        if took > sample_s / 4:
            return max(1, round(passes * sample_s / took))
        passes *= 4
