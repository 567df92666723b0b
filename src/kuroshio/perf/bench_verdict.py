"""Whether a measurement is stable enough to compare; if not, why, and what to do."""

from __future__ import annotations

from .bench_effort import DRIFT, SCATTER, SHORTEST_DEVICE_S, TAIL, Effort
from .bench_subject import Subject
from .bench_watch import Watch
from .statistics import NORMAL_MAD, drift, median_interval, summary


def uncertainty(subject: Subject) -> float | None:
    """Half the width of the 95 % interval of the median, as its share; None: too few samples."""
    interval = median_interval(subject.judged, in_order=True)
    if interval is None:
        return None
    return (interval[1] - interval[0]) / 2 / summary(subject.judged)["median"]


def unstable_because(subject: Subject, watch: Watch, effort: Effort) -> str | None:
    """The reasons, each with its figure and what to do; None for a stable measurement."""
    facts, n = summary(subject.judged), len(subject.judged)
    median = facts["median"]
    found = []
    if not subject.warm_up_record["steady"]:
        found.append(
            f"not warm: it still got faster after {subject.warm_up_record['seconds']:.1f} s of "
            "warm-up (allow more with --warm-up)"
        )
    if slowed := watch.throttled():
        found.append(
            f"throttled: {slowed} (let it cool, raise or lock clocks and power limit, or state "
            "this as the sustained speed)"
        )
    if abs(moved := drift(subject.judged)) > DRIFT:
        found.append(_drifting(moved))
    known = uncertainty(subject)
    if known is None:
        found.append(f"only {n} repeats: too few to tell the spread (allow more --seconds)")
    if (scatter := NORMAL_MAD * facts["mad"] / median) > SCATTER:
        found.append(_noisy(f"times scatter by {scatter:.0%} of the median", watch))
    elif facts["p90"] > TAIL * median:
        found.append(
            _noisy(f"one call in ten takes {facts['p90'] / median:.1f} medians or more", watch)
        )
    elif known is not None and known > effort.spread:
        found.append(
            _noisy(
                f"after {n} repeats the median is known to {known:.1%} and not {effort.spread:.1%}",
                watch,
            )
        )
    if subject.by_device and median < SHORTEST_DEVICE_S:
        found.append(
            f"too short: {median * 1e6:.1f} us is near what events resolve (give more work a call)"
        )
    return "; ".join(found) or None


def _noisy(what: str, watch: Watch) -> str:
    company = watch.company()
    cause = f", with {company}" if company else ""
    return f"noisy: {what}{cause} (end other work, fix clocks and threads, or allow more --seconds)"


def _drifting(moved: float) -> str:
    if moved > 0:
        return (
            f"drifting: the last third takes {moved:.0%} longer than the first (look for falling "
            "clocks, growing memory or state kept between calls)"
        )
    return (
        f"drifting: the last third takes {-moved:.0%} less than the first (allow more --warm-up, "
        "and look for caches and clocks that rise)"
    )
