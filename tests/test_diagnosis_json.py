"""docs/how-to/perf-diagnose-json.md lists every field of the documents, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli_runs import run_here
from diagnosis_cases import CASES
from kuroshio.perf.report.diagnosis import diagnose
from test_findings import LARGE, ranks, sending
from traces_made import US, Made

PAGE = Path(__file__).parent.parent / "docs/how-to/perf-diagnose-json.md"
# Which section tells of the objects in a field; others' names are their own (by_cause: causes).
SECTIONS = {
    ("diagnosis", "findings"): "finding", ("finding", "places"): "place",
    ("diagnosis", "ranks"): "ranks", ("ranks", "ranks"): "rank",
    ("ranks", "imbalance"): "imbalance", ("ranks", "messages"): "message",
    ("ranks", "stragglers"): "straggler", ("diagnosis", "traces"): "analysis",
    ("analysis", "trace"): "trace", ("trace", "devices"): "device", ("analysis", "work"): "work",
    ("analysis", "devices"): "work", ("work", "by_direction"): "direction",
    ("analysis", "steps"): "steps", ("steps", "steps"): "step", ("steps", "durations"): "spread",
    ("analysis", "launches"): "launches", ("launches", "calls"): "spread",
    ("launches", "delays"): "spread", ("launches", "depth"): "depth",
    ("analysis", "holes"): "holes", ("holes", "brief"): "sum", ("holes", "longest"): "hole",
    ("analysis", "kernels"): "kernels", ("kernels", "kernels"): "kernel",
    ("kernel", "times"): "spread", ("analysis", "waits"): "waits", ("waits", "groups"): "group",
    ("waits", "longest"): "wait", ("analysis", "host"): "host", ("host", "names"): "name",
    ("name", "times"): "spread", ("analysis", "pipeline"): "pipeline",
    ("pipeline", "stages"): "stage",
}  # fmt: skip
NAMED = {("steps", "bounds"): "bound", ("holes", "by_cause"): "sum"}
FREE = {("finding", "figures"), ("trace", "facts"), ("step", "parts"), ("pipeline", "parts"),
        ("diagnosis", "roofline")}  # fmt: skip


def told() -> dict[str, set[str]]:
    """Fields by section of the page."""
    found: dict[str, set[str]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        section, _, rest = part.partition("\n")
        heads = re.findall(r"^\| (`[^|]*) \|", rest, re.MULTILINE)
        found[section] = {name for head in heads for name in re.findall(r"`(\w+)`", head)}
    return found


def fields(document: dict, section: str, found: dict[str, set[str]]) -> None:
    """Fields by section of a document."""
    found.setdefault(section, set()).update(document)
    for field, value in document.items():
        at = section, field
        if at in FREE:
            continue
        inner = (
            list(value.values()) if at in NAMED else value if isinstance(value, list) else [value]
        )
        for each in inner:
            if isinstance(each, dict):
                fields(each, NAMED.get(at) or SECTIONS[at], found)


def documents() -> list[dict]:
    made = Made()
    for step in range(4):
        made.operator("aten::item", step * 1000 * US, step * 1000 * US + 100 * US)
    cases = [[CASES[key](True)] for key in CASES]
    cases += [ranks(500, 500, 1000, 500), sending((100, 4000, 50 * US), LARGE), [made.trace()]]
    return [json.loads(json.dumps(diagnose(each).as_json())) for each in cases]


def test_the_page_lists_what_documents_have():
    found: dict[str, set[str]] = {}
    for document in documents():
        fields(document, "diagnosis", found)
    assert found == told()


@pytest.mark.parametrize(
    ("words", "schema"), [(("diagnose",), "diagnosis"), (("timeline",), "timeline")]
)
def test_each_document_says_what_it_is(shared, words, schema):
    trace = shared / "traces" / "kineto" / "mi250_toy_training.json.gz"
    document = json.loads(run_here("perf", *words, trace, "--json").out)
    assert document["schema"] == f"kuroshio.{schema}/1"
    assert document["traces"][0]["schema"] == "kuroshio.analysis/1"
    page = PAGE.read_text(encoding="utf-8")
    assert f"`{document['schema']}`" in page
    assert "`kuroshio.analysis/1`" in page
