"""The record of an experiment, as values; text.py has it as a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...errors import Refusal
from .prediction import Prediction

SCHEMA = "kuroshio.experiment/1"
SECTIONS = ("observation", "hypothesis", "change", "prediction", "result", "conclusion")

CONFIRMED, REFUTED, UNDECIDED, NOT_JUDGED = "confirmed", "refuted", "undecided", "not judged"
VERDICTS = (CONFIRMED, REFUTED, UNDECIDED, NOT_JUDGED)
DECIDED = (CONFIRMED, REFUTED)
YES, NO, NOT_CHECKED = "yes", "no", "not checked"
CORRECT = (YES, NO, NOT_CHECKED)
ACCEPT, ROLL_BACK, ANOTHER_ROUND = "accept", "roll back", "another round"
DECISIONS = (ACCEPT, ROLL_BACK, ANOTHER_ROUND)

# What an empty section shows in the file; no part of the record.
HINTS = {
    "observation": "<!-- What is seen now: figures, and where they come from. -->",
    "hypothesis": "<!-- Why it is so. It must be possible that this is wrong. -->",
    "change": "<!-- What is changed, and nothing else: the branch or commit. -->",
    "prediction": "<!-- Why these figures (the figures themselves stand above). -->",
    "result": "<!-- Written by `kuroshio perf experiment run`. -->",
    "conclusion": "<!-- Written by `kuroshio perf experiment conclude`. -->",
}
_HEADINGS = frozenset(f"## {name.capitalize()}" for name in SECTIONS)
_HINTS = frozenset(HINTS.values())


@dataclass(frozen=True)
class Seal:
    """What was sealed and when: a hash of all, one a section of prose, the prediction itself."""

    at: datetime
    sha256: str
    sections: Mapping[str, str]
    prediction: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """One measurement and what it says of the prediction.

    `value` lies in `low`..`high` with 95 % confidence, or these are None: why, says `because`.
    `moved` is the direction in which the figure went: "down", "up" or "no difference shown".
    `unstable`: why bench called a side unstable.
    `new` and `old` hold the figures of each side. `seal` is the hash that was valid then.
    """

    at: datetime
    correct: str
    verdict: str
    seal: str
    because: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    moved: str | None = None
    unstable: str | None = None
    how: str | None = None
    sources: tuple[str, ...] = ()
    new: Mapping[str, Any] = field(default_factory=dict)
    old: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conclusion:
    decision: str
    at: datetime


@dataclass(frozen=True)
class Record:
    """An experiment. The six sections of prose are Markdown, without the headings.

    `reasoning`, `remarks` and `reason` are the prose of the sections prediction, result and
    conclusion. `follows` is the number of the experiment of which this is another round. `path`
    is the file it came from, and no part of its value.

    Line ends become \\n; blanks at the ends of lines, empty lines around a section and hints go.
    Refuses prose that holds a heading of a section, and a title of several lines.
    """

    title: str
    created: datetime
    observation: str = ""
    hypothesis: str = ""
    change: str = ""
    prediction: Prediction | None = None
    reasoning: str = ""
    results: tuple[Result, ...] = ()
    remarks: str = ""
    conclusion: Conclusion | None = None
    reason: str = ""
    seal: Seal | None = None
    follows: int | None = None
    path: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        title = clean(self.title).strip()
        if not title or "\n" in title:
            raise Refusal("The title of an experiment is one line that is not empty.")
        object.__setattr__(self, "title", title)
        for name, attribute in PROSE.items():
            text = clean(getattr(self, attribute))
            if clash := _HEADINGS.intersection(text.split("\n")):
                raise Refusal(
                    f"The text of the section {name!r} holds the line {min(clash)!r}, which opens "
                    "a section. Indent it or use ###."
                )
            object.__setattr__(self, attribute, text)

    @property
    def number(self) -> int | None:
        """The number in the name of its file."""
        return None if self.path is None else number_of(self.path)

    @property
    def verdict(self) -> str | None:
        """That of the last measurement."""
        return self.results[-1].verdict if self.results else None

    @property
    def state(self) -> str:
        """draft, sealed, measured or concluded."""
        if self.conclusion:
            return "concluded"
        if self.results:
            return "measured"
        return "sealed" if self.seal else "draft"

    def prose(self, section: str) -> str:
        return str(getattr(self, PROSE[section]))

    def but(self, **changes: Any) -> Record:
        """The record with other values for some names."""
        return replace(self, **changes)


PROSE = {
    "observation": "observation",
    "hypothesis": "hypothesis",
    "change": "change",
    "prediction": "reasoning",
    "result": "remarks",
    "conclusion": "reason",
}


def clean(text: str) -> str:
    """Text as a record holds it, whatever an editor or a checkout did to line ends and blanks."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = [line.rstrip(" \t") for line in lines]
    cleaned = "\n".join(line for line in lines if line not in _HINTS).strip("\n")
    try:
        cleaned.encode()
    except UnicodeEncodeError as error:
        raise Refusal(f"A text cannot be written as UTF-8: {error.reason}.") from error
    return cleaned


def number_of(path: Path) -> int | None:
    found = re.match(r"(\d+)-", path.name)
    return int(found[1]) if found else None


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
