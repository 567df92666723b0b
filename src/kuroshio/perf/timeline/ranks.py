"""Several ranks of one job side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .plain import plain

if TYPE_CHECKING:
    from .analysis import Analysis


@dataclass(frozen=True)
class Rank:
    """total = compute + communication + waiting - overlapped, ns.

    waiting   neither compute nor communication, copies and sets among it
    covered   overlapped over communication; None without communication
    """

    rank: int
    path: str
    total: int
    compute: int
    communication: int
    waiting: int
    overlapped: int
    communication_share: float
    covered: float | None


@dataclass(frozen=True)
class Imbalance:
    """Of the ranks' compute: fastest and slowest, and (slowest - fastest) / slowest."""

    fastest: int
    slowest: int
    spread: float
    lost: int  # ns: slowest compute less the mean, what balance could save at most


@dataclass(frozen=True)
class Message:
    """Collectives of one name and size. Bandwidths are GB/s (1e9) by the median duration.

    bytes       of a rank's message; None where the trace does not tell
    algorithm   bytes over time
    bus         times the factor of the collective: what the slowest link carries, as nccl-tests
    ceiling     measured all-reduce bandwidth of messages about as large, GB/s of the bus
    """

    name: str
    bytes: int | None
    group: int | None  # ranks that take part
    calls: int
    median: int  # ns
    algorithm: float | None
    bus: float | None
    ceiling: float | None


@dataclass(frozen=True)
class Straggler:
    """A collective that every rank has, matched by name and order.

    durations by rank, ns: the shortest is of the rank that came last, since it did not wait
    waited     longest less shortest
    """

    name: str
    order: int
    last: int
    waited: int
    durations: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Ranks:
    """analyses: in order of rank. last: how often each rank came last, by rank."""

    analyses: tuple[Analysis, ...]
    ranks: tuple[Rank, ...]
    imbalance: Imbalance | None
    messages: tuple[Message, ...]
    stragglers: tuple[Straggler, ...]  # the most waited for first
    last: tuple[int, ...] | None
    limits: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Without the analyses, which have documents of their own."""
        return {
            "ranks": plain(self.ranks), "imbalance": plain(self.imbalance),
            "messages": plain(self.messages), "stragglers": plain(self.stragglers[:200]),
            "last": plain(self.last), "limits": list(self.limits),
        }  # fmt: skip


def compare(analyses: Sequence[Analysis]) -> Ranks:
    """Of one trace too: its decomposition and its messages."""
    raise NotImplementedError
