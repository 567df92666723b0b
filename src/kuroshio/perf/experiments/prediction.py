"""A prediction: a figure, the way it moves and the range it will lie in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...errors import Refusal

RATIO, VALUE = "new/old", "new"
DOWN, UP, SAME = "down", "up", "same"
ROW_KEYS = ("case", "size", "dtype", "device")

_GRAMMAR = (
    '"FIGURE new/old in LOW..HIGH" for a ratio or "FIGURE in LOW..HIGH from BEFORE" for a value, '
    'one end of the range may be open, and a figure without noise (a count) ends in "exact". For '
    'example: "host_s.median new/old in 0.70..0.85", "$.registers in ..64 from 72 exact"'
)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_TEXT = re.compile(
    rf"(?P<figure>\S.*?)(?:\s+(?P<compare>new/old|new))?"
    rf"\s+in\s+(?P<low>{_NUMBER})?\s*\.\.\s*(?P<high>{_NUMBER})?"
    rf"(?:\s+from\s+(?P<before>{_NUMBER}))?(?P<exact>\s+exact)?"
)


@dataclass(frozen=True)
class Prediction:
    """What will be measured, and what is held to be true of it beforehand.

    `figure` is a figure of a row of a bench result (`host_s.median`), a path in a JSON document
    (`$.stages[0].seconds`), or a name, whose path is then given when it is measured.
    `compare` is "new/old", the ratio of two measurements, or "new", one value; `before` is then
    what the value was. `direction` is "down", "up" or "same", as seen from 1 or from `before`.
    `low` and `high` bound the range, both ends within; one of them may be None: open.
    `exact`: the figure has no noise, so that one value decides. `new` and `old` pick a row of a
    bench result each, by case, size, dtype and device, where there are several.

    Refuses what contradicts itself, such as "down" with a range above 1.
    """

    figure: str
    low: float | None = None
    high: float | None = None
    direction: str = ""
    compare: str = RATIO
    before: float | None = None
    exact: bool = False
    new: Mapping[str, str | int] = field(default_factory=dict)
    old: Mapping[str, str | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("low", "high", "before"):
            value = getattr(self, name)
            if value is not None:
                if not math.isfinite(value):
                    raise Refusal(f"{name} is {value}; a prediction's numbers are finite.")
                object.__setattr__(self, name, float(value) + 0.0)  # no -0.0
        self._check_words()
        self._check_range()
        if not self.direction:
            object.__setattr__(self, "direction", self._side())
        elif self.direction != self._side():
            raise Refusal(
                f"direction is {self.direction!r}, but the range {self.range} says "
                f"{self._side()!r}, seen from {self.neutral:g}. Correct the one that is wrong."
            )

    @property
    def neutral(self) -> float:
        """Where nothing has changed: a ratio of 1, or the value before."""
        return 1.0 if self.before is None else self.before

    @property
    def range(self) -> str:
        ends = ("" if end is None else f"{end:.12g}" for end in (self.low, self.high))
        return "..".join(ends)

    def __str__(self) -> str:
        words = [self.figure, *(["new/old"] if self.compare == RATIO else []), "in", self.range]
        if self.before is not None:
            words += ["from", f"{self.before:.12g}"]
        return " ".join([*words, *(["exact"] if self.exact else [])])

    def facts(self) -> dict[str, Any]:
        """As plain values, in the order in which they are written; what is not given is absent."""
        facts = asdict(self)
        order = ("figure", "compare", "direction", "low", "high", "before", "exact", "new", "old")
        return {
            name: dict(facts[name]) if name in ("new", "old") else facts[name]
            for name in order
            if facts[name] is not None and facts[name] is not False and facts[name] != {}
        }

    def _check_words(self) -> None:
        if not self.figure.strip() or "\n" in self.figure:
            raise Refusal("A prediction names its figure, in one line: such as host_s.median.")
        if self.compare not in (RATIO, VALUE):
            raise Refusal(
                f'compare is {self.compare!r}; it is "new/old" (a ratio) or "new" (a value).'
            )
        if self.direction not in ("", DOWN, UP, SAME):
            raise Refusal(f'direction is {self.direction!r}; it is "down", "up" or "same".')
        for side, rows in (("new", self.new), ("old", self.old)):
            for key in rows:
                if key not in ROW_KEYS:
                    raise Refusal(
                        f"{side} picks a row by {key!r}; rows are picked by {', '.join(ROW_KEYS)}."
                    )
        if self.compare == VALUE and self.old:
            raise Refusal('old picks a row, but compare is "new": there is no old measurement.')

    def _check_range(self) -> None:
        if self.low is None and self.high is None:
            raise Refusal("A prediction needs a range: low, high, or both.")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise Refusal(f"low ({self.low:g}) lies above high ({self.high:g}): exchange them.")
        if self.compare == VALUE and self.before is None:
            raise Refusal(
                "A prediction of a value says what the value is before the change: "
                'before = ..., or "from ..." on the command line.'
            )
        if self.compare == RATIO and self.before is not None:
            raise Refusal('before is for a value (compare = "new"); a ratio is seen from 1.')

    def _side(self) -> str:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if high <= self.neutral and low < self.neutral:
            return DOWN
        if low >= self.neutral and high > self.neutral:
            return UP
        if math.isinf(low) or math.isinf(high):
            raise Refusal(
                f"The range {self.range} has an open end and holds {self.neutral:g}, which is no "
                "change, so it predicts no direction. Close it, or end it there."
            )
        return SAME


def parse_prediction(
    text: str,
    new: Mapping[str, str | int] | None = None,
    old: Mapping[str, str | int] | None = None,
) -> Prediction:
    """A prediction from a line such as "host_s.median new/old in 0.70..0.85"."""
    found = _TEXT.fullmatch(text.strip())
    if not found:
        hint = " A ratio is a number: 20 % less is 0.8." if "%" in text else ""
        raise Refusal(f"{text!r} is no prediction.{hint} It is written {_GRAMMAR}.")
    numbers: dict[str, Any] = {
        name: None if found[name] is None else float(found[name])
        for name in ("low", "high", "before")
    }
    if found["compare"] is None and numbers["before"] is None:
        raise Refusal(
            f"{text!r} does not say what it is compared with: 'new/old' before the range makes it "
            "a ratio of two measurements, 'from BEFORE' after it a value."
        )
    return Prediction(
        figure=found["figure"],
        compare=found["compare"] or VALUE,
        exact=found["exact"] is not None,
        new=new or {},
        old=old or {},
        **numbers,
    )


def parse_rows(text: str) -> dict[str, str | int]:
    """A choice of row from "case=copy size=4096"; values with blanks in quotation marks."""
    import shlex

    rows: dict[str, str | int] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Refusal(f"{text!r} does not say which row: {error}.") from error
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in ROW_KEYS:
            raise Refusal(
                f"{word!r} does not pick a row; allowed are {', '.join(ROW_KEYS)}, such as "
                '"case=copy size=4096".'
            )
        rows[key] = int(value) if key == "size" and value.lstrip("-").isdecimal() else value
    return rows
