"""Where a figure lies in a JSON document: `$.stages[0].seconds`, `$.stages[stage=read].seconds`."""

from __future__ import annotations

import json
import re
from typing import Any

from ...errors import Refusal

MOST = 1e308  # a greater whole number is no float
_STEP = re.compile(
    r"""\.?(?:
        (?P<key>[^.\[\]]+)
      | \[(?P<index>-?\d+)\]
      | \["(?P<quoted>[^"]*)"\]
      | \[(?P<name>[^\[\]="]+)=(?P<value>[^\[\]]*)\]
    )""",
    re.VERBOSE,
)


def at_path(document: Any, path: str) -> Any:
    """What lies at a path; refuses a path that leads nowhere, naming what is there.

    Steps are `.key`, `["any key"]`, `[0]` (of a list; -1 is its last) and `[key=value]` (the only
    object of a list that has it). A leading `$` is the document.
    """
    rest, value, walked = path.strip().removeprefix("$"), document, "$"
    while rest:
        step = _STEP.match(rest)
        if step is None:
            raise Refusal(
                f"{path!r} is no path in JSON, from {rest[:30]!r} on. Paths look like "
                '$.stages[0].seconds, $.stages[stage=read].seconds or $["odd key"].'
            )
        value = _take(value, step, path, walked)
        walked, rest = walked + step[0], rest[step.end() :]
    return value


def number_at(document: Any, path: str) -> float:
    """The finite number at a path."""
    value = at_path(document, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST:
        inside = f", which holds {_inside(value)}" if isinstance(value, dict | list) else ""
        raise Refusal(
            f"At {path} there is {_short(value)}{inside}, and no finite number. Give the path of "
            "a number."
        )
    return float(value)


def _take(value: Any, step: re.Match[str], path: str, walked: str) -> Any:
    if step["index"] is not None and isinstance(value, list):
        index = int(step["index"])
        if -len(value) <= index < len(value):
            return value[index]
    elif step["name"] is not None and isinstance(value, list):
        fits = [
            each
            for each in value
            if isinstance(each, dict)
            and step["name"] in each
            and _plain(each[step["name"]]) == step["value"]
        ]
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise Refusal(
                f"The path {path!r} leads to {len(fits)} objects: {step[0]} fits all of them. "
                "Choose by a key that only one has, or by place, such as [0]."
            )
    elif isinstance(value, dict):
        key = step["key"] if step["key"] is not None else step["quoted"]
        if key in value:
            return value[key]
    raise Refusal(
        f"The path {path!r} leads nowhere: there is no {step[0]} at {walked}, which holds "
        f"{_inside(value)}. Correct the path."
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _inside(value: Any) -> str:
    if isinstance(value, dict):
        return "the keys " + (", ".join(map(str, list(value)[:20])) or "none")
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return _short(value)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
