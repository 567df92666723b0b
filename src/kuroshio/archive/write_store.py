"""What the writer of an output asks of its file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np


class Encoded(NamedTuple):
    """The stored bytes of chunks; `memory` is what they lie in if it is to be used again."""

    chunks: Sequence[bytes | memoryview]
    memory: np.ndarray | None = None


class Store(Protocol):
    """What a file format does: make the empty file, encode chunks, store them, finish."""

    def encode(self, name: str, chunks: np.ndarray) -> Encoded:
        """The stored bytes of whole chunks (chunk, *its shape); called from many threads."""

    def store(self, name: str, indices: Sequence[tuple[int, ...]], encoded: Encoded) -> None:
        """Put encoded chunks at their places (counted in chunks); called from many threads."""

    def finish(self, late_attrs: Mapping[str, str]) -> None:
        """Add global attributes learned on the way, complete and close the file."""

    def abandon(self) -> None:
        """Close without caring for the content."""
