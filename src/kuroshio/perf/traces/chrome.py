"""Chrome's JSON of events: torch.profiler (Kineto), hipprof, old rocprof, and our own pipeline."""

from __future__ import annotations

from pathlib import Path

from .trace import Trace


def recognise(path: Path, head: bytes) -> bool:
    """Any JSON: what is not a trace is told while it is read."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def read(path: Path) -> Trace:
    raise NotImplementedError
