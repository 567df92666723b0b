"""What tests of the timeline share: analyses of made traces, and small random tables of events."""

from __future__ import annotations

from hypothesis import strategies as st

from kuroshio.perf.timeline.analysis import Analysis, analyse
from kuroshio.perf.traces.events import Events, Kind
from traces_made import Made

DEVICE_NAMES = ("gemm", "ncclDevKernel_AllReduce_Sum_f32", "Memcpy HtoD", "Memset")


def analysed(made: Made, **about) -> Analysis:
    return analyse(made.trace(**about))


@st.composite
def device_events(draw, *, most: int = 12, devices: int = 2) -> Events:
    """Kernels, communication among them, copies and sets, within 60 ns; some of no length."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(range(4)),
                st.integers(0, 50),
                st.integers(0, 10),
                st.integers(0, devices - 1),
            ),
            max_size=most,
        )
    )
    kinds = (Kind.KERNEL, Kind.KERNEL, Kind.COPY, Kind.SET)
    return Events.of(
        DEVICE_NAMES,
        kind=[kinds[name] for name, *_ in rows],
        name=[name for name, *_ in rows],
        start=[start for _, start, _, _ in rows],
        end=[start + length for _, start, length, _ in rows],
        device=[device for *_, device in rows],
        stream=[7 for _ in rows],
    ).in_order()


def moments(events: Events, rows) -> set[int]:
    """Nanoseconds at which any of these rows is under way."""
    return {at for row in rows for at in range(int(events.start[row]), int(events.end[row]))}


def rows_where(events: Events, told) -> list[int]:
    return [row for row in range(len(events)) if told(row)]
