"""Chrome's JSON of events: torch.profiler (Kineto), hipprof, old rocprof, and our own pipeline."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from ...errors import Refusal
from . import chrome_links, chrome_said, kineto
from .chrome_rows import Rows
from .json_stream import Elements
from .sound import sound
from .source import PIECE, pieces
from .trace import Trace

_EVENTS = "traceEvents"
_DOCUMENTS = {
    "kuroshio.diagnosis/": (
        "holds what was found in a trace already. Give the trace itself, or compare two of these: "
        "kuroshio perf compare before.json after.json"
    ),
    "kuroshio.timeline/": (
        "holds what is in a trace already, without findings. Give the trace itself; what is to be "
        "compared is kept by kuroshio perf diagnose TRACE --json"
    ),
    "kuroshio.perf.result/": (
        "holds times of kuroshio perf bench, and no trace. What bounds them: kuroshio perf "
        "roofline. For a trace: kuroshio perf record -- PROGRAM"
    ),
}
_Text = str | int | float | None


class Event(msgspec.Struct, gc=False):
    """An element of the list; numbers whose every digit counts, and `args`, are left as text."""

    ph: _Text = None
    cat: _Text = None
    name: _Text = None
    pid: _Text = None
    tid: _Text = None
    id: Any = None
    ts: msgspec.Raw = msgspec.Raw()
    dur: msgspec.Raw = msgspec.Raw()
    args: msgspec.Raw = msgspec.Raw(b"{}")


def _ours(schema: object) -> str | None:
    """What a document is that Kuroshio wrote, which is no trace, and who takes it."""
    if not isinstance(schema, str) or not schema.startswith("kuroshio."):
        return None
    for begin, what in _DOCUMENTS.items():
        if schema.startswith(begin):
            return what
    return f"is no trace, but a document of Kuroshio's ({schema[:40]}). Give a profiler's own file."


def recognise(path: Path, head: bytes) -> bool:
    """Any JSON: what is not a trace is told while it is read."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def read(path: Path, piece: int = PIECE) -> Trace:
    """The trace; `piece` bytes of the file are held at a time."""
    rows = Rows(path)
    decoder = msgspec.json.Decoder(list[Event])
    with closing(pieces(path, piece)) as text:
        stream = Elements(str(path), text, decoder, frozenset({_EVENTS}), piece)
        for batch in stream:
            rows.add(batch)
    if not stream.found:
        if ours := _ours(stream.metadata.get("schema")):
            raise Refusal(f"{path} {ours}")
        names = ", ".join(repr(key[:40]) for key in list(stream.metadata)[:5])
        raise Refusal(
            f"{path} is JSON, but no trace: it has {names or 'nothing in it'}, and no "
            f"{_EVENTS!r}. Give a profiler's own file, such as torch.profiler's "
            "export_chrome_trace writes."
        )
    if not rows.kept:
        raise Refusal(
            f"{path} has no event of a profiler that is known: {chrome_said.instead(rows, stream)}."
            " Record it again, or give another file."
        )
    form = rows.form
    gathered = rows.gathered(kineto.base_ns(stream.metadata))
    events, left_out = sound(chrome_links.linked(gathered))
    devices = kineto.devices(stream.metadata, events, form)
    rank, ranks = kineto.ranks(stream.metadata)
    return Trace(
        path,
        form,
        events,
        devices,
        rank,
        ranks,
        (*left_out, *chrome_said.cannot_tell(events, rows, stream, form)),
        kineto.facts(stream.metadata),
    )
