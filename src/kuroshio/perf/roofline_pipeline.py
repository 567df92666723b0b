"""The roofline of a recorded run: each stage's rate against the roof that it works under.

Fed by the account that `kuroshio climatology --json` prints: stages with the seconds of their
threads, the seconds in which any was at it, and GB/s a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import Refusal
from .ceilings.ceiling import GB, Ceiling
from .roofline import AT_ROOF

# Stage -> beginnings of the names of its roof, the level of it. What may be nearer comes first.
_ROOFS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "read": (("disk read cold", "disk"), ("disk read warm", "disk")),
    "inflate": (("inflate", None),),
    "decode": (("memory copy", "memory"),),
    "fill": (("memory copy", "memory"),),
    "compute": (("memory read", "memory"),),
    "collect": (("memory copy", "memory"),),
}
_DEVICE_ROOFS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "device copy": (("host to device, pinned", "link"),),
    "device inflate": (("inflate on the device", None),),
    "device compute": (("memory read", "memory"),),
    "device fetch": (("device to host, pinned", "link"),),
}
_FELT = 0.02  # of a run


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage's rate while anybody was at it, and its roof.

    of_roof  attained / roof; None where there is no such roof
    least_s  seconds that its bytes take at the roof: it cannot be quicker
    """

    stage: str
    what: str
    busy_s: float
    share: float
    gb: float | None
    gb_per_s: float | None
    roof: str | None
    roof_gb_per_s: float | None
    of_roof: float | None
    least_s: float | None
    says: str


def is_account(said: dict[str, Any]) -> bool:
    return isinstance(said.get("stages"), list) and "seconds" in said


def device_of(said: dict[str, Any]) -> str | None:
    """The GPU that a run used, the first of several; None for the processor alone."""
    device = str(said.get("device", "cpu")).split(",")[0].strip()
    return None if device == "cpu" else device.replace(":all", ":0")


def stages(
    path: Path, said: dict[str, Any], host: Sequence[Ceiling], device: Sequence[Ceiling] = ()
) -> list[Stage]:
    """Those of the host and those of the device, in the order of the account."""
    try:
        wall = _positive(said["seconds"])
        threads = int(said.get("threads", 1))
        rows = [_host_stage(row, wall, threads, host) for row in said["stages"]]
        rows += [_device_stage(row, wall, device) for row in said.get("device_stages") or []]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as problem:
        raise Refusal(
            f"{path} is no whole account ({type(problem).__name__}: {problem}). Record it again: "
            "kuroshio climatology SOURCE -o FILE --json > account.json"
        ) from problem
    found = [row for row in rows if row is not None]
    if all(row.gb is None for row in found):
        raise Refusal(
            f"{path} has no stage that moved enough bytes to have a rate: the run was too small. "
            "Record one of a larger archive."
        )
    return found


def verdict(found: Sequence[Stage], wall_s: float) -> str:
    """What the whole run could be at best under these roofs, and which is the lowest."""
    bounded = [each for each in found if each.least_s is not None]
    if not bounded:
        return "None of its stages has a measured roof."
    tight = max(bounded, key=lambda each: each.least_s or 0.0)
    least = tight.least_s or 0.0
    if least >= wall_s:
        return (
            f"The lowest roof is that of {tight.what} ({tight.roof}), but its bytes would take "
            f"{least:.3g} s there and the whole run took {wall_s:.3g} s: this roof was measured "
            "under load, or with other data. Measure the ceilings again."
        )
    besides = [each for each in found if each.gb is None]
    of_those = ""
    if besides:
        named = ", ".join(f"{each.what} {each.busy_s:.3g} s" for each in besides)
        of_those = f" Of these, stages that move no bytes and have no roof: {named}."
    return (
        f"The lowest roof is that of {tight.what} ({tight.roof}): if all else were hidden behind "
        f"it, the run would take {least:.3g} s instead of {wall_s:.3g} s.{of_those}"
    )


def as_json(each: Stage) -> dict[str, Any]:
    return asdict(each)


def _host_stage(row: dict, wall: float, threads: int, host: Sequence[Ceiling]) -> Stage | None:
    if not row.get("gb_per_s"):
        return _without_bytes(row, wall)
    if not row.get("busy_seconds"):
        return None
    busy, of_threads = _positive(row["busy_seconds"]), _positive(row["thread_seconds"])
    gb = _positive(row["gb_per_s"]) * of_threads
    # Stages that few threads work at are held to what so many can do.
    working = min(threads, max(1.0, of_threads / busy))
    return _stage(row, wall, gb, busy, _ROOFS.get(row["stage"], ()), host, working)


def _without_bytes(row: dict, wall: float) -> Stage | None:
    """Finding files, compiling: where it took long enough to be felt. Waiting is no work."""
    busy = float(row.get("busy_seconds") or 0.0)
    if row["stage"] == "wait" or not _FELT * wall <= busy < 1e15:
        return None
    return Stage(
        stage=row["stage"], what=row["what"], busy_s=busy, share=busy / wall, gb=None,
        gb_per_s=None, roof=None, roof_gb_per_s=None, of_roof=None, least_s=None,
        says="moves no bytes",
    )  # fmt: skip


def _device_stage(row: dict, wall: float, device: Sequence[Ceiling]) -> Stage | None:
    if not row.get("gb_per_s") or not row.get("busy_seconds"):
        return None
    busy = _positive(row["busy_seconds"])
    gb = _positive(row["gb_per_s"]) * busy
    names = _DEVICE_ROOFS.get(row["stage"], ())
    return _stage(row, wall, gb, busy, names, device, None)


def _positive(said: Any) -> float:
    value = float(said)
    if not 0 < value < 1e15:
        raise ValueError(f"{said} cannot be")
    return value


def _stage(
    row: dict, wall: float, gb: float, busy: float, names: tuple[tuple[str, str | None], ...],
    ceilings: Sequence[Ceiling], working: float | None,
) -> Stage:  # fmt: skip
    rate = gb / busy
    says = "no roof of its kind is measured"
    roof: Ceiling | None = None
    for name, level in names:
        roof = _best(name, level, ceilings, working) or roof
        if roof is not None and rate <= 1.05 * roof.value:
            break
    of_roof = None
    if roof is not None:
        of_roof = rate / roof.value
        says = "at its roof" if of_roof >= AT_ROOF else "below its roof: not what holds it up"
        if of_roof > 1.05:
            says = "above what was measured: other data, or the ceiling was measured under load"
    roof_name: str | None = None
    if roof is not None:
        crew = "" if roof.threads is None else f", {roof.threads} thread{'s' * (roof.threads > 1)}"
        roof_name = f"{roof.name}{crew}"
    return Stage(
        stage=row["stage"], what=row["what"], busy_s=busy, share=busy / wall,
        gb=gb, gb_per_s=rate, roof=roof_name, roof_gb_per_s=roof.value if roof else None,
        of_roof=of_roof, least_s=gb / roof.value if roof else None, says=says,
    )  # fmt: skip


def _best(
    name: str, level: str | None, ceilings: Sequence[Ceiling], working: float | None
) -> Ceiling | None:
    """The highest of that name, by no more threads than the next number that was measured."""
    mine = [
        each for each in ceilings
        if each.unit == GB and each.level == level and each.name.startswith(name)
    ]  # fmt: skip
    counts = sorted({each.threads for each in mine if each.threads is not None})
    if working is not None and counts:
        enough = [count for count in counts if count >= working - 0.2]
        threads = enough[0] if enough else counts[-1]
        mine = [each for each in mine if each.threads == threads]
    return max(mine, key=lambda each: each.value, default=None)
