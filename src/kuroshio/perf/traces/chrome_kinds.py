"""What the categories and names of Chrome's events mean, profiler by profiler."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .events import ABSENT, Direction, Kind

# Categories; torch.profiler's are lower case today and were capitalised until 2021.
_TORCH = {
    "kernel": Kind.KERNEL, "Kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY, "Memcpy": Kind.COPY,
    "gpu_memset": Kind.SET, "Memset": Kind.SET,
    "cuda_runtime": Kind.CALL, "cuda_driver": Kind.CALL, "Runtime": Kind.CALL,
    "hip_runtime": Kind.CALL, "hip_driver": Kind.CALL,
    "overhead": Kind.CALL,  # what the profiler did in the program's time
    "cpu_op": Kind.OPERATOR, "Operator": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    "cuda_sync": Kind.WAIT,
}  # fmt: skip
_HIPPROF = {
    "HIPOPS": Kind.KERNEL,
    "HIPCOPY": Kind.COPY,
    "HIP": Kind.CALL,
    "HIPTX": Kind.ANNOTATION,
}
_KUROSHIO = {
    "kuroshio.stage": Kind.STAGE,
    "kuroshio.device": Kind.KERNEL,
    "kuroshio.run": Kind.ANNOTATION,
}
ROCPROF = "rocprof"  # has no categories: a process each
OURS = "Kuroshio"
FORMS = ("torch.profiler (Kineto)", "hipprof", OURS, ROCPROF)
# What a category means, as a plain number, which compares and looks up faster: the kind, and the
# form's place in FORMS times this.
A_FORM = 16
CODES: dict[object, int] = {
    category: kind + A_FORM * form
    for form, kinds in enumerate((_TORCH, _HIPPROF, _KUROSHIO))
    for category, kind in kinds.items()
}
# Drawn besides other events, or of no length: nothing is missed without them.
DERIVED = frozenset({"gpu_user_annotation", "Trace", "cpu_instant_event"})
PYTHON = "python_function"

_ROCPROF_LABELS = (
    (re.compile(r"COPY", re.IGNORECASE), Kind.COPY),
    (re.compile(r"\bAPI", re.IGNORECASE), Kind.CALL),
    (re.compile(r"Marker", re.IGNORECASE), Kind.ANNOTATION),
    (re.compile(r"GPU", re.IGNORECASE), Kind.KERNEL),
)
_ROCPROF_PROCESSES = {0: Kind.ANNOTATION, 1: Kind.COPY, 2: Kind.CALL, 3: Kind.CALL}
_ROCPROF_FIRST_DEVICE = 6

# Until 2021 torch's annotations were operators; these it makes itself.
_ANNOTATIONS = re.compile(r"(ProfilerStep|enumerate\(DataLoader\)|Optimizer\.\w+)#")
_SETS = re.compile(r"set|fill", re.IGNORECASE)
_HOST = r"h(?:ost)?(?:\(\w+\))?"
_DEVICE = r"d(?:ev(?:ice)?)?"
_TO = r"[\s_]*(?:to|2|->)[\s_]*"
_DIRECTIONS = (
    (re.compile(rf"{_HOST}{_TO}{_DEVICE}\b|device copy", re.IGNORECASE), Direction.TO_DEVICE),
    (re.compile(rf"{_DEVICE}{_TO}{_HOST}\b|device fetch", re.IGNORECASE), Direction.TO_HOST),
    (re.compile(rf"p(?:eer)?{_TO}p(?:eer)?\b", re.IGNORECASE), Direction.BETWEEN_DEVICES),
    (re.compile(rf"{_DEVICE}{_TO}{_DEVICE}\b", re.IGNORECASE), Direction.ON_DEVICE),
    (re.compile(rf"{_HOST}{_TO}{_HOST}\b", re.IGNORECASE), Direction.ON_HOST),
)


def of_rocprof(process: object, label: str | None) -> Kind | None:
    """Of a process of rocprof's, by its label, or by its number where it has none."""
    if label is not None:
        return next((kind for text, kind in _ROCPROF_LABELS if text.search(label)), None)
    try:
        number = int(str(process))
    except ValueError:
        return None
    if number >= _ROCPROF_FIRST_DEVICE:
        return Kind.KERNEL
    return _ROCPROF_PROCESSES.get(number)


def are_annotations(names: Sequence[str]) -> list[bool]:
    return [bool(_ANNOTATIONS.match(name)) for name in names]


def are_sets(names: Sequence[str]) -> list[bool]:
    """Of what is called a copy, such as hipprof's of SET."""
    return [bool(_SETS.search(name)) and direction(name) == ABSENT for name in names]


def are_copies(names: Sequence[str]) -> list[bool]:
    """Of what our own pipeline calls work of a device."""
    return [name in ("device copy", "device fetch") for name in names]


def direction(name: str) -> int:
    """Of a copy, by its name, such as 'Memcpy HtoD (Pageable -> Device)' or 'CopyHostToDevice'."""
    return next((way for text, way in _DIRECTIONS if text.search(name)), ABSENT)
