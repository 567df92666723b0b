"""Experiments as records: what was predicted before a change, and what the measurement said of it.

A record is a plain text file in the user's repository. It is written, sealed, measured and
concluded, in this order, and what failed stays:

    record = create("experiments", Record(title=..., created=now(), observation=..., ...,
                    prediction=parse_prediction("host_s.median new/old in 0.70..0.85")))
    update(record.path, sealed)
    new, old = read("new.json"), read("old.json")      # results of kuroshio perf bench
    update(record.path, lambda r: with_result(r, result_of(r, [new], [old])))
    update(record.path, lambda r: concluded(r, "roll back", "slower on all shapes"))

`record.py` says what a record holds, `text.py` how it is written, `sealing.py` what cannot be
changed, `judging.py` the rule.
"""

from .commands import measure, passes, read
from .folder import create, default_folder, find, load, records, update
from .judging import judge
from .measured import incorrect, result_of
from .prediction import Prediction, parse_prediction, parse_rows
from .record import Conclusion, Record, Result, Seal, now
from .sealing import broken, sealed
from .sides import Document
from .steps import concluded, require_open, sentence, with_result
from .text import from_text, to_text

__all__ = [
    "Conclusion",
    "Document",
    "Prediction",
    "Record",
    "Result",
    "Seal",
    "broken",
    "concluded",
    "create",
    "default_folder",
    "find",
    "from_text",
    "incorrect",
    "judge",
    "load",
    "measure",
    "now",
    "parse_prediction",
    "parse_rows",
    "passes",
    "read",
    "records",
    "require_open",
    "result_of",
    "sealed",
    "sentence",
    "to_text",
    "update",
    "with_result",
]
