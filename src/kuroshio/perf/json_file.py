"""JSON files that people name: read, or refused with what to give instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import Refusal


def read_json(path: Path, advice: str) -> Any:
    """What a file holds; Refusal, with the advice, where it cannot be read or is no whole JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}. {advice}") from problem
    except ValueError as problem:
        raise Refusal(
            f"{path} is no whole JSON ({problem}); it may be cut off. {advice}"
        ) from problem
