"""An interrupt just as the thread starts that makes an output's file: nothing of it is left."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cli_runs import left_over
from kuroshio.archive.write_chunks import OutputWriter


def test_an_interrupt_while_the_file_is_being_made(place, monkeypatch):
    """Whether it has begun to be made or not."""
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt  # as where `start` waits for the thread

    def not_started(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    def make(path, *_: object) -> None:
        time.sleep(0.2)
        path.write_bytes(b"something")

    with ThreadPoolExecutor(1) as pool:
        for interrupted in (started, not_started):
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    OutputWriter(place / "clim.nc", None, (8, 1), pool, make)
            time.sleep(0.4)
            assert left_over(place) == []
