"""A device's context, made in a thread beside imports and the search for files.

It takes the driver 0.2 s. CuPy's calls that count devices or tell of free memory keep the
interpreter's lock meanwhile, and nothing else runs; the one that frees, here nothing, does not.
"""

from __future__ import annotations

import threading
from typing import Any

_threads: list[threading.Thread] = []


def begin(runtime: Any) -> None:
    """Begin to make the context of device 0; `runtime` is CuPy's.

    What goes wrong is not told here: it does again for whoever asks for the device.
    """
    # Not a daemon: the process must not end while the driver is at it.
    thread = threading.Thread(target=_make, args=(runtime,), name="kuroshio-context")
    thread.start()
    _threads.append(thread)


def wait() -> None:
    """Until what was begun is done."""
    for thread in tuple(_threads):
        thread.join()
    _threads[:] = [thread for thread in _threads if thread.is_alive()]


def _make(runtime: Any) -> None:
    try:
        runtime.free(0)
    except runtime.CUDARuntimeError:
        return
