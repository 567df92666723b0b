"""The seal: what was said before the measurement cannot be changed after it unnoticed.

Sealed are the observation, the hypothesis, the change and the prediction, with its prose. The seal
lies in the record itself: it keeps honest people honest, and the repository's history the others.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import Any

from ...errors import Refusal
from .record import Record, Seal, now

SEALED = ("observation", "hypothesis", "change", "prediction")
_NEEDED = ("observation", "hypothesis", "change")


def sealed(record: Record) -> Record:
    """The record with a seal. Refuses one that is not complete, or sealed already."""
    if record.seal:
        raise Refusal(
            f"{_name(record)} has been sealed already, at {record.seal.at}. To predict "
            "something else, begin another round: kuroshio perf experiment new --follows NUMBER."
        )
    missing = [f"the section {name!r}" for name in _NEEDED if not record.prose(name).strip()]
    if record.prediction is None:
        missing.append("the prediction's figure and range ([prediction] in the front matter)")
    if missing:
        raise Refusal(
            f"{_name(record)} cannot be sealed: missing are {', '.join(missing)}. "
            "All that is claimed is written before it is measured."
        )
    return record.but(seal=_seal(record))


def broken(record: Record) -> list[str]:
    """What has changed since the record was sealed, each in words; empty if nothing has."""
    if record.seal is None:
        return ["the seal: it is gone, though there are results"] if record.results else []
    actual = _seal(record)
    changes = [
        f"the section {name!r}"
        for name in SEALED
        if actual.sections[name] != record.seal.sections.get(name)
    ]
    was, now_is = dict(record.seal.prediction), dict(actual.prediction)
    changes += [
        f"prediction.{name}: sealed {_shown(was, name)}, now {_shown(now_is, name)}"
        for name in dict.fromkeys([*was, *now_is])
        if was.get(name) != now_is.get(name)
    ]
    if not changes and actual.sha256 != record.seal.sha256:
        changes = ["the seal itself"]
    changes += [
        f"the seal: result {place} was measured under another"
        for place, result in enumerate(record.results, 1)
        if result.seal != record.seal.sha256
    ]
    return changes


def require_whole(record: Record) -> None:
    """Refuses a record whose sealed part has changed, naming what changed."""
    if changes := broken(record):
        raise Refusal(
            f"{_name(record)} was changed after it was sealed: {'; '.join(changes)}. Take the "
            "sealed text back (git log -p shows it), or begin another round: kuroshio perf "
            "experiment new --follows NUMBER."
        )


def _seal(record: Record) -> Seal:
    sections = {name: _hash(record.prose(name))[:16] for name in SEALED}
    prediction = record.prediction.facts() if record.prediction else {}
    at = record.seal.at if record.seal else now()
    whole: dict[str, Any] = {name: record.prose(name) for name in SEALED}
    whole |= {"figures": prediction, "at": at.astimezone(UTC).isoformat()}
    return Seal(at, _hash(json.dumps(whole, sort_keys=True)), sections, prediction)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(facts: dict[str, Any], name: str) -> str:
    return repr(facts[name]) if name in facts else "none"


def _name(record: Record) -> str:
    return f"The experiment {record.path.name if record.path else record.title!r}"
