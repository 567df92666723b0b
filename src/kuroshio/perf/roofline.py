"""The roofline model: what a piece of work attains, and what the machine would let it attain.

attainable = min(peak, intensity x bandwidth), for each level of memory. Intensity is operations a
byte. Ceilings are measured ones only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import Refusal
from .ceilings.ceiling import BANDWIDTHS, GB, GOP, LEVELS, Ceiling

AT_ROOF = 0.6
"""From this share of a roof on, work is called bound by it."""
_OVER = 1.1  # so much above a measured ceiling is not to be believed
_ABOVE = 1.05  # so much above the highest sample of a level, and bytes came from a nearer one
_OTHER_NAMES = {
    "int popcount": ("int64 popcount", "int32 popcount"),
    "popcount": ("int64 popcount", "int32 popcount"),
    "int min/max": ("int32 min/max",),
    "int16 min/max": ("uint16 min/max",),
}
_INTEGERS = "int32 min/max"
_FLOATS = ("float64", "float32", "float16")

BANDWIDTH_BOUND, COMPUTE_BOUND, NEITHER = "bandwidth-bound", "compute-bound", "neither"


@dataclass(frozen=True)
class Roofs:
    """Ceilings of one device: bandwidths by level, nearest first, and peaks by operation."""

    device: str
    bandwidths: dict[str, tuple[Ceiling, ...]]
    peaks: dict[str, Ceiling]
    threads: int | None = None

    def best(self, level: str) -> Ceiling:
        """The highest of reading, copying and triad: the roof."""
        return max(self.bandwidths[level], key=lambda each: each.value)

    def exceeded(self, level: str, bandwidth: float) -> bool:
        """Whether that is more than the level ever gave while it was measured."""
        return bandwidth > _ABOVE * max(each.high for each in self.bandwidths[level])

    def least(self, level: str) -> Ceiling:
        """The lowest of them: what another mix of reads and writes may be held to."""
        return min(self.bandwidths[level], key=lambda each: each.value)

    def peak(self, operations: str | None) -> Ceiling | None:
        """That of the same operations; of other ones on floats ("float64 add") that of fma."""
        asked = operations or ""
        kind = asked.split(" ")[0]
        names = _OTHER_NAMES.get(asked, (asked,)) + ((f"{kind} fma",) if kind in _FLOATS else ())
        return next((self.peaks[name] for name in names if name in self.peaks), None)


@dataclass(frozen=True, kw_only=True)
class Point:
    """A piece of work: seconds, bytes and operations of one launch, as declared and as counted.

    all_seconds  of all launches; None: there is one
    share        of the time of all points
    processors   that it kept busy; None: not known, or it is no processor's work
    counted_integers  instead of counted_flops where they are nearer to their roof (see `judge`)
    """

    name: str
    seconds: float | None
    bytes: float | None = None
    flops: float | None = None
    operations: str | None = None
    counted_bytes: float | None = None
    counted_flops: float | None = None
    counted_integers: float | None = None
    all_seconds: float | None = None
    share: float = 1.0
    processors: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def traffic(self) -> float | None:
        """Bytes: counted ones where there are any, else declared ones."""
        return self.bytes if self.counted_bytes is None else self.counted_bytes

    @property
    def work(self) -> float | None:
        """Operations: declared ones, which know what is useful, else counted ones."""
        return self.counted_flops if self.flops is None else self.flops


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Where a point lies under the roofs.

    of_roof   attained / attainable
    roof      in words: which ceiling is met first
    rate      attained, Gop/s; None without operations
    bandwidth attained, GB/s; None without bytes
    """

    point: Point
    kind: str
    of_roof: float | None
    roof: str
    level: str | None
    attainable: float | None
    rate: float | None
    bandwidth: float | None
    intensity: float | None
    declared_intensity: float | None
    ratio: float | None
    ratio_says: str
    notes: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        p = self.point
        return {
            "name": p.name, "class": self.kind, "of_roof": self.of_roof, "roof": self.roof,
            "level": self.level, "attainable": self.attainable, "gop_per_s": self.rate,
            "gb_per_s": self.bandwidth, "seconds": p.seconds,
            "seconds_of_all_launches": p.all_seconds, "share_of_time": p.share,
            "declared_bytes": p.bytes, "counted_bytes": p.counted_bytes,
            "counted_to_declared": self.ratio, "counted_to_declared_says": self.ratio_says,
            "declared_operations": p.flops, "counted_operations": p.counted_flops,
            "operations": p.operations, "intensity_declared": self.declared_intensity,
            "intensity": self.intensity, "notes": [*p.notes, *self.notes],
        }  # fmt: skip


def roofs(device: str, ceilings: Iterable[Ceiling], threads: int | None = None) -> Roofs:
    """Of so many threads (None: the most measured); Refusal where memory's are missing."""
    listed = list(ceilings)
    counts = sorted({each.threads for each in listed if each.threads and each.name in BANDWIDTHS})
    if threads is None and counts:
        threads = counts[-1]
    if counts and threads not in counts:
        raise Refusal(
            f"Ceilings of {threads} threads have not been measured, only of "
            f"{', '.join(map(str, counts))}. Give one of these with --threads, or measure: "
            f"kuroshio perf ceilings --threads {threads}"
        )
    mine = [each for each in listed if each.threads in (None, threads)]
    by_level = {
        level: tuple(
            each for each in mine
            if each.level == level and each.name in BANDWIDTHS and each.unit == GB
        )
        for level in LEVELS
    }  # fmt: skip
    if not by_level["memory"]:
        raise Refusal(
            f"The ceilings of {device} hold no memory bandwidth, so there is no roof. Measure all: "
            f"kuroshio perf ceilings --device {device} --save"
        )
    peaks = {each.name: each for each in mine if each.unit == GOP and each.level is None}
    return Roofs(device, {k: v for k, v in by_level.items() if v}, peaks, threads)


def attainable(intensity: float, bandwidth: float, peak: float) -> float:
    """Gop/s of so many operations a byte, under GB/s and Gop/s."""
    return min(peak, intensity * bandwidth)


def judge(point: Point, under: Roofs, level: str | None = None) -> Judgement:
    """Class a point and say how far from its roof it is.

    level  whose bandwidth counts; None: memory's, or where more is attained than memory gives, the
           farthest level that gives as much
    """
    point = _by_its_busiest_units(point, under)
    traffic, work, seconds = point.traffic, point.work, point.seconds
    bandwidth = 1e-9 * traffic / seconds if traffic and seconds else None
    rate = 1e-9 * work / seconds if work and seconds else None
    peak = under.peak(point.operations) if work else None
    notes = []
    if work and peak is None:
        named = point.operations or "of no kind that was said"
        notes.append(
            f"its operations ({named}) have no measured ceiling (there are: "
            f"{', '.join(sorted(under.peaks)) or 'none'}), so only bandwidth is judged"
        )
    if (
        peak
        and point.operations not in (peak.name, peak.name.split(" ")[0])
        and (peak.name.endswith(" fma"))
    ):
        notes.append(
            f"{point.operations} is held to {peak.name}, where each counts as two operations: "
            "alone, additions or products attain half of it"
        )
    if level is None:
        level = _level(bandwidth, under)
    elif level not in under.bandwidths:
        raise Refusal(
            f"--level {level} was not measured on {under.device}; there are "
            f"{', '.join(under.bandwidths)}."
        )
    kind, of_roof, roof, most = _against(bandwidth, rate, peak, under, level)
    if not seconds:
        roof = "its seconds are not known, so no rate is"
    if bandwidth is not None and _faster(bandwidth, level, under):
        notes.append(
            f"more than memory gives ({short(under.best('memory').value)} GB/s): its bytes came "
            "from a cache, or memory was slower when its ceiling was measured"
        )
    if of_roof is not None and of_roof > _OVER:
        notes.append(
            "more than was measured as possible: check the declared bytes and operations, what the "
            "clock enclosed, and whether the ceilings were measured with as many threads"
        )
    ratio = None
    if point.bytes and point.counted_bytes is not None:
        ratio = point.counted_bytes / point.bytes
    return Judgement(
        point=point, kind=kind, of_roof=of_roof, roof=roof, level=level, attainable=most,
        rate=rate, bandwidth=bandwidth,
        intensity=work / traffic if work and traffic else None,
        declared_intensity=point.flops / point.bytes if point.flops and point.bytes else None,
        ratio=ratio, ratio_says=ratio_says(ratio), notes=tuple(notes),
    )  # fmt: skip


def _by_its_busiest_units(point: Point, under: Roofs) -> Point:
    """With integers for its operations, where nothing is declared and floats are further off."""
    peak = under.peak(_INTEGERS)
    if point.flops is not None or not point.counted_integers or peak is None:
        return point
    other = under.peak(point.operations)
    floats = (point.counted_flops or 0.0) / other.value if other else 0.0
    if floats >= point.counted_integers / peak.value:
        return point
    note = (
        "operations are lanes of all instructions of the pipe that minima and maxima share with "
        "logic and comparisons; a pair of 16-bit numbers counts once"
    )
    return replace(
        point, counted_flops=point.counted_integers, operations=_INTEGERS,
        notes=(*point.notes, note),
    )  # fmt: skip


def short(value: float, digits: int = 3) -> str:
    """A rate to be read: 0.215, 12.9, 4,386."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def ratio_says(ratio: float | None) -> str:
    """What counted bytes over declared ones mean."""
    if ratio is None:
        return ""
    if ratio < 0.95:
        return "fewer bytes than declared: part came from a cache, or too many were declared"
    if ratio <= 1.1:
        return "as declared"
    if ratio <= 1.5:
        return "somewhat more than declared"
    return "far more than declared: data read again, or accesses that use part of what they fetch"


def _faster(bandwidth: float, level: str, under: Roofs) -> bool:
    """Whether a nearer level than memory was taken because of the rate."""
    return level != "memory" and under.exceeded("memory", bandwidth)


def _level(bandwidth: float | None, under: Roofs) -> str:
    levels = list(under.bandwidths)[::-1]
    if bandwidth is not None:
        for level in levels:
            if not under.exceeded(level, bandwidth):
                return level
        return levels[-1]
    return levels[0]


def _against(
    bandwidth: float | None, rate: float | None, peak: Ceiling | None, under: Roofs, level: str
) -> tuple[str, float | None, str, float | None]:
    """Class, share of the roof, the roof in words, what is attainable (Gop/s, or GB/s)."""
    best, least = under.best(level), under.least(level)
    memory = f"{level} bandwidth ({best.name.removeprefix('memory ')}, {short(best.value, 4)} GB/s)"
    if rate is None or peak is None:
        if bandwidth is None:
            return NEITHER, None, "neither bytes nor operations are known", None
        kind = BANDWIDTH_BOUND if bandwidth >= AT_ROOF * least.value else NEITHER
        return kind, bandwidth / best.value, memory, best.value
    compute = f"{peak.name} ({short(peak.value, 4)} Gop/s)"
    if bandwidth is None or rate / bandwidth * best.value >= peak.value:
        of_roof = rate / peak.value
        if of_roof < AT_ROOF and bandwidth and bandwidth >= AT_ROOF * least.value:
            # Near the ridge, where the mix of reads and writes decides which roof is the lower.
            return BANDWIDTH_BOUND, bandwidth / best.value, memory, rate / bandwidth * best.value
        kind = COMPUTE_BOUND if of_roof >= AT_ROOF else NEITHER
        return kind, of_roof, compute, peak.value
    kind = BANDWIDTH_BOUND if bandwidth >= AT_ROOF * least.value else NEITHER
    return kind, bandwidth / best.value, memory, rate / bandwidth * best.value
