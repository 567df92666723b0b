"""The page's tables: what was found out of kernels, holes, waits, ranks; and what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..findings import figures
from ..roofline import Judgement
from ..roofline_axes import mark
from ..timeline.analysis import Analysis
from ..timeline.holes import Hole
from ..timeline.ranks import Ranks
from . import page_parts as parts
from .diagnosis import Diagnosis
from .page_data import title
from .page_parts import NOT_RECORDED, Cell, Column
from .palette import OF_CAUSE, OF_ROLE

if TYPE_CHECKING:
    from ..experiments.record import Record

# Traces of which there is more than a line in tables and their lanes; all are in the JSON.
MOST_TRACES = 16
_MOST_KERNELS, _MOST_HOST, _MOST_HOLES, _MOST_WAITS = 200, 100, 30, 50


def _ns(value: int | None) -> Cell:
    return NOT_RECORDED if value is None else (figures.time(value), value)


def _share(part: float, of: float) -> Cell:
    return figures.share(part, of), part / of if of else 0.0


def kernels(diagnosis: Diagnosis) -> str:
    """By name, sortable, of all traces."""
    several = len(diagnosis.analyses) > 1
    columns = [
        Column("kernel", number=False, name=True), Column("total"), Column("share"),
        Column("calls"), Column("median"), Column("p90"), Column("longest"),
        Column("p90 / median"), Column("registers"), Column("grid"), Column("block"),
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    in_all = 0
    most = max(1, _MOST_KERNELS // len(diagnosis.analyses))
    for number, analysis in enumerate(diagnosis.analyses):
        if analysis.kernels is None:
            continue
        in_all += len(analysis.kernels.kernels)
        for each in analysis.kernels.kernels[:most]:
            times = each.times
            name = f"{title(diagnosis, number)}: {each.name}" if several else each.name
            rows.append(
                [
                    figures.clipped(name, 160), _ns(times.total), _share(each.share, 1),
                    (f"{times.count:,}", times.count), _ns(times.median), _ns(times.p90),
                    _ns(times.most),
                    ("" if each.jitter is None else f"{each.jitter:.2f}", each.jitter),
                    ("" if each.registers is None else str(each.registers), each.registers),
                    *map(_sizes, (each.grid, each.block)),
                ]
            )  # fmt: skip
    left = in_all - len(rows)
    note = f"The {len(rows)} with most time; {left:,} more are in the JSON. " if left else ""
    empty = [[cell[0] == "" for cell in row[-3:]] for row in rows]
    if any(any(column) and not all(column) for column in zip(*empty, strict=True)):
        note += "Registers, grid or block empty: not recorded, or not the same in all its runs."
    return parts.table("Kernels", columns, rows, sortable=True) + (
        parts.paragraph(note, "note") if note else ""
    )


def host(diagnosis: Diagnosis) -> str:
    """What host threads did, by name, of all traces."""
    several = len(diagnosis.analyses) > 1
    columns = [
        Column("name", number=False, name=True), Column("own"), Column("share"), Column("total"),
        Column("calls"), Column("median"), Column("longest"), Column("what", number=False),
    ]  # fmt: skip
    most = max(1, _MOST_HOST // len(diagnosis.analyses))
    rows: list[list[Cell]] = []
    for number, analysis in enumerate(diagnosis.analyses):
        for each in analysis.host.names[:most] if analysis.host else ():
            name = f"{title(diagnosis, number)}: {each.name}" if several else each.name
            rows.append(
                [
                    figures.clipped(name, 160), _ns(each.own), _share(each.share, 1),
                    _ns(each.times.total), (f"{each.times.count:,}", each.times.count),
                    _ns(each.times.median), _ns(each.times.most), each.kind,
                ]
            )  # fmt: skip
    return parts.table("Host", columns, rows, sortable=True)


def _sizes(sizes: tuple[int, ...] | None) -> Cell:
    if sizes is None:
        return "", None
    product = 1.0
    for each in sizes:
        product *= each
    return " x ".join(map(str, sizes)), product


def holes(diagnosis: Diagnosis) -> str:
    """By cause, and the longest."""
    said = []
    for number, analysis in enumerate(diagnosis.analyses[:MOST_TRACES]):
        table = analysis.holes
        if table is None or not len(table):
            continue
        if len(diagnosis.analyses) > 1:
            said.append(f"<h3>{title(diagnosis, number)}</h3>")
        span = sum(each.span for each in analysis.devices)
        sums = table.by_cause
        rows: list[list[Cell]] = [
            [str(cause), (f"{sum_.count:,}", sum_.count), _ns(sum_.time), _share(sum_.time, span)]
            for cause, sum_ in sums.items()
        ]
        if table.brief.count:
            brief = table.brief
            rows.append(
                [
                    f"{figures.time(table.threshold)} or shorter", (f"{brief.count:,}", 0),
                    _ns(brief.time), _share(brief.time, span),
                ]
            )  # fmt: skip
        columns = [Column("cause", number=False), *map(Column, ("holes", "time", "share"))]
        keys = [*(OF_CAUSE[cause] for cause in sums), *(["tracer"] if table.brief.count else [])]
        said.append(parts.table("Holes by cause", columns, rows, keys=keys))
        said.append(_longest(analysis, table.longest(_MOST_HOLES)))
    return "\n".join(said)


def _longest(analysis: Analysis, found: Sequence[Hole]) -> str:
    origin = int(analysis.trace.events.start[0])
    columns = [
        Column("longest"), Column("from"), Column("device"), Column("cause", number=False),
        Column("host at", number=False, name=True),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            _ns(each.duration), _ns(each.start - origin), (str(each.device), each.device),
            str(each.cause), figures.named(each.who or ""),
        ]
        for each in found
    ]  # fmt: skip
    inside = parts.table("The longest holes", columns, rows, sortable=True)
    return f"<details><summary>The {len(found)} longest</summary>{inside}</details>"


def waits(diagnosis: Diagnosis) -> str:
    """Groups of waits, the most time first."""
    columns = [
        Column("why", number=False), Column("call", number=False, name=True),
        Column("because of", number=False, name=True), Column("calls"), Column("host waits"),
        Column("device idle"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            str(each.how), figures.named(each.call), figures.named(each.cause),
            (f"{each.count:,}", each.count), _ns(each.time), _ns(each.idle),
        ]
        for analysis in diagnosis.analyses[:MOST_TRACES]
        if analysis.waits
        for each in analysis.waits.groups[:_MOST_WAITS]
    ]  # fmt: skip
    return parts.table("Waits", columns, rows, sortable=True)


def ranks(found: Ranks) -> str:
    """Decomposition by rank, and messages."""
    columns = [Column("rank"), *map(Column, (
        "total", "compute", "communication", "neither", "overlapped", "covered"))]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            (str(each.rank), each.rank), _ns(each.total), _ns(each.compute),
            _ns(each.communication), _ns(each.waiting), _ns(each.overlapped),
            NOT_RECORDED if each.covered is None else _share(each.covered, 1),
        ]
        for each in found.ranks
    ]  # fmt: skip
    messages: list[list[Cell]] = [
        [
            each.kind,
            NOT_RECORDED if each.bytes is None else (f"{each.bytes:,}", each.bytes),
            (f"{each.calls:,}", each.calls), _ns(each.median),
            NOT_RECORDED if each.bus is None else (f"{each.bus:.3g}", each.bus),
            NOT_RECORDED if each.ceiling is None else (f"{each.ceiling:.3g}", each.ceiling),
        ]
        for each in found.messages[:_MOST_WAITS]
    ]  # fmt: skip
    of_messages = [
        Column("collective", number=False), Column("bytes"), Column("calls"),
        Column("median"), Column("bus, GB/s"), Column("roof, GB/s"),
    ]  # fmt: skip
    said = parts.table("Ranks", columns, rows, sortable=True)
    if messages:
        said += f"<h3>Messages</h3>{parts.table('Messages', of_messages, messages, sortable=True)}"
    return said


def pipeline(analysis: Analysis) -> str:
    """Stages of a pipeline."""
    found = analysis.pipeline
    if found is None:
        return ""
    columns = [
        Column("stage", number=False), Column("role", number=False), Column("busy"),
        Column("share"), Column("work"), Column("threads or streams"), Column("spans"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            each.name, str(each.role), _ns(each.busy), _share(each.busy, found.total),
            _ns(each.work), (str(each.lanes), each.lanes), (f"{each.spans:,}", each.spans),
        ]
        for each in found.stages
    ]  # fmt: skip
    pieces = [(str(role), OF_ROLE[role], ns) for role, ns in found.parts.items()]
    whose = "" if found.on_device else f" of {figures.count(found.threads, 'thread')}"
    legend = parts.legend([(colour, role) for role, colour, ns in pieces if ns > 0])
    shown = parts.bars([parts.bar(f"time{whose}", pieces, found.of, found.of, " all")])
    return f"{legend}{shown}{parts.table('Stages', columns, rows, sortable=True)}"


def roofline(judged: Sequence[Judgement]) -> str:
    """Where kernels lie under the roofs, if counters or ceilings are there."""
    columns = [
        Column("point", number=False), Column("kernel", number=False, name=True),
        Column("bound", number=False),
        Column("of roof"), Column("Gop/s"), Column("GB/s"), Column("op/byte"),
        Column("counted / needed bytes"), Column("share"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            mark(number), figures.clipped(each.point.name, 160), each.kind,
            NOT_RECORDED if each.of_roof is None else _share(each.of_roof, 1),
            *((NOT_RECORDED if v is None else (f"{v:.3g}", v))
              for v in (each.rate, each.bandwidth, each.intensity, each.ratio)),
            _share(each.point.share, 1),
        ]
        for number, each in enumerate(judged)
    ]  # fmt: skip
    return parts.table("Roofline", columns, rows, sortable=True)


def experiments(records: Sequence[Record]) -> str:
    """What was tried, failures included."""
    columns = [
        Column("no."), Column("experiment", number=False, name=True),
        Column("predicted", number=False), Column("verdict", number=False),
        Column("conclusion", number=False),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            (str(each.number or ""), each.number), each.title, str(each.prediction or ""),
            each.verdict or each.state, each.conclusion.decision if each.conclusion else "",
        ]
        for each in records
    ]  # fmt: skip
    return parts.table("Experiments", columns, rows)
