"""Work that an interrupt must not leave half done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any


def shielded(task: Callable[..., Any], *args: Any) -> Any:
    """The task's result; an interrupt is heard once it has ended, or before it begins.

    Zarr works in a thread of its own, which an exception here would leave writing. An executor
    does not do: interrupted while it starts its thread, it forgets a task that goes on.
    """
    future: Future[Any] = Future()

    def work() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(task(*args))
            except BaseException as error:
                future.set_exception(error)

    try:
        threading.Thread(target=work, name="kuroshio-shielded").start()
        return future.result()
    except BaseException:
        if not future.cancel():
            wait([future])
        raise
