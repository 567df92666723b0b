"""What readers of tables share: sound times, processes apart, narrow columns."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.traces.events import ABSENT, Events, Kind
from kuroshio.perf.traces.sound import as_texts, fitting, named, sound, together


def test_events_without_sound_times_go_and_the_rest_is_in_order():
    events = Events.of(["k"], name=[0] * 6, start=[9, 5, 7, 0, ABSENT, 5], end=[9, 8, 6, 0, 9, 9])
    found, notes = sound(events)
    assert list(zip(found.start, found.end, strict=True)) == [(5, 9), (5, 8), (9, 9)]
    assert len(notes) == 2
    assert notes[0].startswith("Of 1 events the end is before")
    assert notes[1].startswith("Of 2 events the times")
    assert sound(found)[1] == ()


_CORRELATIONS = st.lists(
    st.integers(0, 5) | st.sampled_from([ABSENT, 2**63 - 1, 2**62]), min_size=1, max_size=6
)


@given(st.lists(_CORRELATIONS, min_size=1, max_size=4))
def test_correlations_of_processes_never_meet(processes):
    parts = [
        Events.of(["k"], name=[0] * len(each), start=[0] * len(each), correlation=each)
        for each in processes
    ]
    found = together(parts).correlation.tolist()
    whose = [(at, each) for at, process in enumerate(processes) for each in process]
    numbers: dict[int, tuple[int, int]] = {}
    for number, mine in zip(found, whose, strict=True):
        assert (number == ABSENT) == (mine[1] == ABSENT)
        assert number == ABSENT or numbers.setdefault(number, mine) == mine
    assert len(numbers) == len({mine for mine in whose if mine[1] != ABSENT})


def test_numbers_that_do_not_fit_are_absent_and_not_others():
    assert fitting(np.array([5, 2**31, 2**32 - 1, -(2**40)])).tolist() == [5] + [ABSENT] * 3


def test_names_and_texts_by_number():
    names, codes = named(np.array([7, 3, 7, 9]), {7: "seven", 3: "three"})
    assert [names[code] for code in codes] == ["seven", "three", "seven", "unnamed"]
    # Several numbers may have one name, and several none.
    names, codes = named(np.array([1, 2, 3, 4, 5]), {2: "a", 3: "b", 5: "a"})
    assert (names, codes.tolist()) == (("unnamed", "a", "b"), [0, 1, 2, 0, 1])
    column = as_texts(np.array([40, ABSENT, 3]))
    assert column.codes[1] == ABSENT
    assert [column.values[code] for code in column.codes[[0, 2]]] == ["40", "3"]


def test_times_of_no_clock_are_left_out():
    """Differences and sums of what stays fit into 64 bits."""
    year, most, least = 366 * 86_400 * 10**9, 2**63 - 1, -(2**63)
    kept = [(10, 20), (10, 10 + year), (2**62 - 30, 2**62 - 20), (-(2**62) + 1, -(2**62) + 9)]
    out = [(least, most), (most, most), (least, least + 5), (-5, most), (10, 11 + year)]
    starts, ends = zip(*kept, *out, strict=True)
    events = Events.of(
        ("k",), kind=[Kind.KERNEL] * len(starts), name=[0] * len(starts), start=starts, end=ends
    )
    found, notes = sound(events)
    assert sorted(zip(found.start.tolist(), found.end.tolist(), strict=True)) == sorted(kept)
    assert notes == (
        "Of 5 events the times cannot be: a century from the clock's beginning, or longer than a "
        "year; they are left out",
    )
