"""A strategy looked at singly: what is claimed of it, what was predicted, what was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

CONFIRMED, REFUTED, UNDECIDED, NOT_JUDGED = "confirmed", "refuted", "undecided", "not judged"


@dataclass(frozen=True)
class Study:
    """A table with a claim before it and a finding after it; `rows` hold text and numbers."""

    key: str
    title: str
    claim: str
    prediction: str
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    finding: str = ""
    verdict: str = NOT_JUDGED

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
