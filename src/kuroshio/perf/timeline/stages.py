"""Our own pipeline's spans: what its threads did, and who starved whom."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """All spans of one name; ns.

    busy      union over its threads
    work      sum over its threads
    threads   that did it
    alone     moments at which no other stage that works was under way
    waits     whether the name says that it waits rather than works
    """

    name: str
    spans: int
    busy: int
    work: int
    threads: int
    share: float  # busy over the whole
    alone: int
    waits: bool


@dataclass(frozen=True)
class Pipeline:
    """total: from the first span to the last, ns. slowest: the stage that bounds it, if any."""

    total: int
    stages: tuple[Stage, ...]
    slowest: str | None
    why: str | None
