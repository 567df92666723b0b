"""What is drawn in which colour: one for each reason, the same in bars, holes and events.

The colours (page.css) are told apart by people who see fewer of them, by day and by night: near
those of Okabe and Ito, moved until a test found no two alike that stand in one bar or key. None is
the only sign: bars, holes and events have words too.
"""

from __future__ import annotations

from ..timeline.holes import Cause
from ..timeline.stages import Role
from ..timeline.steps import Part

COMPUTE, COMMUNICATION, COPY, READING = "compute", "communication", "copy", "reading"
WAITING, HOST, ALLOCATION, UNKNOWN, TRACER = "waiting", "host", "allocation", "unknown", "tracer"
SET, OPERATOR, CALL, ANNOTATION, STAGE = "set", "operator", "call", "annotation", "stage"
COLOURS = (
    COMPUTE, COMMUNICATION, COPY, READING, WAITING, HOST, ALLOCATION, UNKNOWN, TRACER, SET,
    OPERATOR, CALL, ANNOTATION, STAGE,
)  # fmt: skip

OF_PART = {
    Part.COMPUTE: COMPUTE, Part.COMMUNICATION: COMMUNICATION, Part.COPIES: COPY,
    Part.READING: READING, Part.WAITING: WAITING, Part.PREPARATION: HOST, Part.UNKNOWN: UNKNOWN,
}  # fmt: skip
OF_CAUSE = {
    Cause.READING: READING, Cause.HOST: HOST, Cause.SYNCHRONISATION: WAITING,
    Cause.ALLOCATION: ALLOCATION, Cause.COPY: COPY, Cause.COMMUNICATION: COMMUNICATION,
    Cause.TRACER: TRACER, Cause.UNKNOWN: UNKNOWN,
}  # fmt: skip
OF_ROLE = {
    Role.KERNEL: COMPUTE, Role.LINK: COPY, Role.READING: READING, Role.PREPARATION: HOST,
    Role.OUTPUT: STAGE, Role.COMPILING: ALLOCATION, Role.START: SET, Role.OTHER: UNKNOWN,
    Role.WAITING: WAITING,
}  # fmt: skip
