"""A/B: two cases timed in turn, in one process, so that what passes falls on both.

Where its arrays happen to lie in memory can make the same code a tenth faster or slower, for as
long as they live. So the cases are made anew several times, now this one first and now that one,
and the interval of the ratio holds what that does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from ..errors import Refusal
from .bench_case import environment_of, quiet, to_row
from .bench_effort import FEW, LEAST_TOTAL_S, Effort
from .bench_subject import Subject
from .bench_watch import Watch
from .cases import Case
from .compare import Comparison, comparison, told_apart
from .results import Results, Row
from .statistics import ratio_interval, ratio_interval_of_rounds

# Both take as many calls a sample, so that they find caches alike; unless one needs so many times
# more: thousands of calls for the sake of a quick one would take a slow one minutes.
_ALIKE = 8

Samples = tuple[list[float], list[float]]  # of b and of a
Pair = tuple[Subject, Subject]  # a and b, or in the order in which they are timed


def versus(
    a: Any, b: Any, effort: Effort | None = None, *, make: bool = False
) -> tuple[Results, Comparison]:
    """Time two callables or `Case`s in turn: both rows, and how they compare.

    make  they are functions that make the callables or cases, which are then made anew in each
          round; without it, arrays of their own may lie differently and differ for that alone

    Ends when the interval of the ratio is narrower than twice the effort's spread, or at its caps,
    which here are for the two together; until then cases are made anew more often, too. Both
    results are checked before anything is returned.
    """
    effort = effort or Effort()

    def subject(of: Any, name: str) -> Subject:
        return Subject(_as_case(of() if make else of, name))

    if not make:
        effort = replace(effort, rounds=1)
    rows, found = in_turn(partial(subject, a, "A"), partial(subject, b, "B"), effort)
    return Results(f"{found.a} and {found.b}", environment_of(rows), rows), found


def pairs(a: list[Any], b: list[Any]) -> list[tuple[Any, Any]]:
    """What is compared with what: one with one; a Refusal where they are not as many."""
    if len(a) != len(b):
        raise Refusal(
            f"{len(a)} cases against {len(b)} cannot be paired. Give both the same sizes and "
            "dtypes (--size, --dtype), and name one function on either side."
        )
    return list(zip(a, b, strict=True))


def in_turn(
    make_a: Callable[[], Subject], make_b: Callable[[], Subject], effort: Effort
) -> tuple[list[Row], Comparison]:
    """Rounds of samples in turn, each of subjects made anew; the rows hold those of all rounds."""
    host: list[Samples] = []
    device: list[Samples] = []
    checked = [0, 0]
    watches: list[Watch] = []
    both: Pair | None = None
    start = perf_counter()
    with quiet():
        while len(host) < effort.rounds or _worth_more(host, device, effort, start):
            both = None  # their memory is given back before others are made
            both = _round(make_a, make_b, len(host), effort, watches)
            a, b = both
            host.append((b.host, a.host))
            if a.by_device and b.by_device:
                device.append((b.device, a.device))
            checked = [before + each.checked for before, each in zip(checked, both, strict=True)]
            del a, b
    assert both is not None
    for i, each in enumerate(both):  # the last stand for all
        each.host = [s for pair in host for s in pair[1 - i]]
        each.device = [s for pair in device for s in pair[1 - i]]
        each.checked = checked[i]
    clock, rounds = _judged(host, device)
    rows = [to_row(each, watch, effort) for each, watch in zip(both, watches, strict=True)]
    names = told_apart(both[0].case.label, both[1].case.label, "A", "B")
    found = comparison(names, _interval(rounds), effort.resolution, clock, interleaved=True)
    return rows, found


def _worth_more(host: list[Samples], device: list[Samples], effort: Effort, start: float) -> bool:
    """Whether rounds differ so much that more are needed, and time and samples are left for two.

    Two, so that each of the cases is made first as often as the other.
    """
    if len(host) % 2 or effort.rounds < 2:
        return effort.rounds > 1 and len(host) > effort.rounds  # the second of two
    spent, n = perf_counter() - start, sum(len(b) for b, _ in host)
    if spent >= effort.seconds or n >= effort.most:
        return False
    _, low, high = _interval(_judged(host, device)[1])
    return high - low > 2 * effort.spread


def _judged(host: list[Samples], device: list[Samples]) -> tuple[str, list[Samples]]:
    """By which clock, and its samples: the device's, where it told of all."""
    return ("device", device) if len(device) == len(host) else ("host", host)


def _round(
    make_a: Callable[[], Subject],
    make_b: Callable[[], Subject],
    number: int,
    effort: Effort,
    watches: list[Watch],
) -> Pair:
    """Both made anew and timed in turn, this one first and in the next round that one.

    Nothing here outlives the round but the two that are returned, and so no arrays do. The first
    round begins the watches.
    """
    if number % 2 == 0:
        a, b = make_a(), make_b()
    else:
        b, a = make_b(), make_a()
    order = (a, b) if number % 2 == 0 else (b, a)
    for each in order:
        each.warm_up(effort, again=number > 0)
    if max(a.calls, b.calls) <= _ALIKE * min(a.calls, b.calls):
        a.calls = b.calls = max(a.calls, b.calls)
    if not watches:
        watches += [Watch(each.clock.device) for each in (a, b)]
    _sample(order, (a, b), effort, watches)
    return a, b


def _sample(order: Pair, both: Pair, effort: Effort, watches: list[Watch]) -> None:
    """Samples in turn until their ratio is known well enough, or this round's share is used up.

    Strictly in turn: after itself, a case would find in the caches what it left there, and after
    the other it would not.
    """
    a, b = both
    start = perf_counter()
    due = least = max(-(-effort.least // effort.rounds), 2)
    most = max(effort.most // effort.rounds, least)
    few = min(max(FEW // effort.rounds, 2), least)
    wanted = 2 * effort.spread * effort.rounds**0.5  # the rounds' mean is known better than each
    while True:
        for watch in watches:
            watch.look()
        for each in order:
            each.sample()
        n, spent = len(a.host), perf_counter() - start
        if n >= most or (spent >= effort.seconds / effort.rounds and n >= few):
            break
        if n >= due and spent >= 2 * LEAST_TOTAL_S / effort.rounds:
            by_device = a.by_device and b.by_device
            times = (b.device, a.device) if by_device else (b.host, a.host)
            _, low, high = ratio_interval(*times, paired=True, resamples=500)
            if n >= FEW and high - low <= wanted:
                break
            due = n + n // 4 + 1
    a.finish()
    b.finish()


def _interval(rounds: list[Samples]) -> tuple[float, float, float]:
    if len(rounds) == 1:
        return ratio_interval(*rounds[0], paired=True)
    return ratio_interval_of_rounds(rounds)


def _as_case(value: Any, name: str) -> Case:
    if isinstance(value, Case):
        return value if value.name else replace(value, name=name)
    return Case(value, getattr(value, "__name__", name))
