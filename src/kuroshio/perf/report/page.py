"""A diagnosis as one page that needs nothing else: no network, no fonts, no server.

Its script is allowed by its hash alone, so markup that a trace might smuggle in could not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from ...pages import text, whole
from ..findings import figures
from ..timeline.analysis import Analysis
from ..timeline.stages import Role
from ..timeline.steps import Source
from . import page_parts as parts
from .diagnosis import Diagnosis
from .lanes import Lanes
from .page_data import drawn, page_data, safe, title
from .page_roofline import picture
from .page_tables import (
    MOST_TRACES,
    experiments,
    holes,
    host,
    kernels,
    pipeline,
    ranks,
    roofline,
    waits,
)
from .palette import (
    ANNOTATION,
    CALL,
    COLOURS,
    COMMUNICATION,
    COMPUTE,
    COPY,
    HOST,
    OF_CAUSE,
    OF_ROLE,
    OPERATOR,
    READING,
    SET,
    STAGE,
    WAITING,
)  # fmt: skip

_KINDS = (
    (COMPUTE, "kernel"), (COMMUNICATION, "communication"), (COPY, "copy"), (SET, "set"),
    (ANNOTATION, "range of the program"), (OPERATOR, "operator"), (CALL, "call of the runtime"),
    (READING, "data loading"), (HOST, "preparation"), (WAITING, "waiting"),
    (STAGE, "output and other stages"),
)  # fmt: skip
_KEYS = (
    "Arrows move, + and - zoom, 0 shows all{}. Drag to move; Ctrl and the wheel, two fingers or a "
    "double click zoom."
)
_KEYS_OF_PLACES = ", n and p go to a finding's next and previous place, Escape lets go of it"

_CHOOSE = "Choose a finding to see its places in the timeline, the longest first."
_TIMES_AS_FAST = (
    "The last two columns say how many times as fast all of it would be, at most, if a part took "
    "no time, or half."
)
_NO_PARTS = "Without work of a device it is not told what they consist of."
_HOLE = (
    "A hole is a time without work of a device between two pieces of its work. Shares are of the "
    "time from the first piece to the last."
)
_OWN = (
    "Own is an event's time without what ran within it on its thread, which the total has. Shares "
    "are of all threads' time."
)


def page(diagnosis: Diagnosis) -> str:
    """HTML, whole."""
    shown = drawn(diagnosis)
    script = _script()
    body = "\n".join(part for part in _body(diagnosis, shown) if part)
    data = safe(page_data(diagnosis, shown))
    body += f'\n<script type="application/json" id="data">{data}</script>'
    body += f"\n<script>{script}</script>"
    return whole(
        f"Diagnosis: {_subject(diagnosis.analyses)}", body, _resource("page.css"),
        f"script-src 'sha256-{_hash(script)}'",
    )  # fmt: skip


def _body(diagnosis: Diagnosis, shown: Sequence[Lanes]) -> Iterator[str]:
    analyses = diagnosis.analyses
    yield f"<h1>{text(_subject(analyses))}</h1>"
    yield parts.paragraph(diagnosis.sentence, "lead")
    yield parts.paragraph("; ".join(_facts(each) for each in analyses[:4]), "note")
    if len(analyses) > MOST_TRACES:
        yield parts.paragraph(
            f"Of {len(analyses)} traces the first {MOST_TRACES} are shown one by one; findings and "
            "the table of ranks are of all.",
            "note",
        )
    hint = parts.paragraph(_CHOOSE, "note") if _go(diagnosis) else ""
    yield parts.section("What was found", hint, parts.findings(diagnosis.findings))
    yield parts.section(
        "Where the time goes", *_stages(diagnosis), *map(pipeline, analyses[:MOST_TRACES])
    )
    yield _timeline(diagnosis, shown)
    yield parts.section("Ranks", ranks(diagnosis.ranks) if diagnosis.ranks else "")
    if told := holes(diagnosis):
        yield parts.section("Holes", parts.paragraph(_HOLE, "note"), told)
    yield parts.section("Kernels", kernels(diagnosis))
    yield parts.section("Where the host waits for a device", waits(diagnosis))
    if told := host(diagnosis):
        yield parts.section("What the host does", parts.paragraph(_OWN, "note"), told)
    under = diagnosis.under
    drawn_roofs = picture(diagnosis.judged, under) if under else ""
    yield parts.section("Roofline", drawn_roofs, roofline(diagnosis.judged))
    yield parts.section("Experiments", experiments(diagnosis.experiments))
    yield parts.section("What the traces leave open", parts.items(diagnosis.remarks))


def _stages(diagnosis: Diagnosis) -> Iterator[str]:
    for number, analysis in enumerate(diagnosis.analyses[:MOST_TRACES]):
        steps = analysis.steps
        if steps is None or analysis.pipeline:
            continue
        name = title(diagnosis, number) if len(diagnosis.analyses) > 1 else "all steps"
        if steps.source == Source.WHOLE and len(diagnosis.analyses) == 1:
            name = "whole recording"
        told = parts.stages(steps, name)
        yield told
        count = "" if steps.source == Source.WHOLE else figures.count(len(steps.steps), "step")
        said = f"{f'{count}, from ' if count else 'Of '}{steps.source}."
        yield parts.paragraph(f"{said} {_TIMES_AS_FAST if told else _NO_PARTS}", "note")


def _timeline(diagnosis: Diagnosis, shown: Sequence[Lanes]) -> str:
    if not any(each.lanes for each in shown):
        return ""
    causes = {cause for a in diagnosis.analyses if a.holes for cause in a.holes.by_cause}
    said = [(OF_CAUSE[cause], f"hole: {cause}") for cause in OF_CAUSE if cause in causes]
    drawn_colours = {
        number for each in shown for lane in each.lanes for row in lane.rows
        for number in set(row.colour.tolist())
    }  # fmt: skip
    pipelines = [each.pipeline for each in diagnosis.analyses if each.pipeline]
    ours = len(pipelines) == len(diagnosis.analyses)
    meanings = [(OF_ROLE[role], str(role)) for role in Role] if ours else _KINDS
    kinds = [each for each in meanings if COLOURS.index(each[0]) in drawn_colours]
    go = _go(diagnosis)
    left_out = [note for each in shown for note in each.left_out]
    clocks = ["Each trace begins at 0 of its own clock"] if len(shown) > 1 else []
    buttons = "".join(
        f'<button type="button" id="{key}"{" disabled" if later else ""} '
        f'aria-label="{label}">{sign}</button>'
        for key, sign, label, later in (
            ("nearer", "+", "zoom in", False), ("farther", "\u2212", "zoom out", False),
            ("left", "\u2190", "earlier", False), ("right", "\u2192", "later", False),
            ("whole", "all", "show all", False),
            ("previous", "previous place", "previous place of the finding", True),
            ("next", "next place", "next place of the finding", True),
        )
        if go or not later
    )  # fmt: skip
    inside = (
        f'<div class="tools">{buttons}<output id="range"></output></div>\n'
        '<div id="timeline"><canvas id="axis" aria-hidden="true"></canvas>\n'
        '<div id="lanes"><div id="tall">'
        '<canvas id="canvas" tabindex="0" role="application" aria-describedby="keys" '
        'aria-label="Timeline of devices and host threads"></canvas></div></div>'
        '<div id="tip" hidden></div></div>\n<p id="said" aria-live="polite"></p>\n'
        f'<p class="note" id="keys">{text(_KEYS.format(_KEYS_OF_PLACES if go else ""))}</p>\n'
        "<noscript><p>The timeline is drawn by a script, and scripts are off.</p></noscript>"
    )
    return parts.section(
        "Timeline", parts.legend(said), parts.legend(kinds), inside,
        parts.items([*left_out, *clocks]), identity="timeline-part",
    )  # fmt: skip


def _go(diagnosis: Diagnosis) -> bool:
    """Whether a finding has places to go to."""
    return any(each.places for each in diagnosis.findings)


def _subject(analyses: Sequence[Analysis]) -> str:
    first = analyses[0].trace.path.name
    return first if len(analyses) == 1 else f"{first} and {len(analyses) - 1} more"


def _facts(analysis: Analysis) -> str:
    trace = analysis.trace
    names = dict.fromkeys(each.name for each in trace.devices.values() if each.name)
    said = [trace.path.name, trace.form, figures.count(len(trace.events), "event"), *names]
    if trace.rank is not None:
        said.append(f"rank {trace.rank}{f' of {trace.ranks}' if trace.ranks else ''}")
    return ", ".join(said)


@cache
def _script() -> str:
    return f"{_resource('timeline.js')}\n{_resource('page.js')}"


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
