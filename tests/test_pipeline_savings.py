"""What a pipeline could save at most, held to what it saves when the role takes no time at all."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.report.diagnosis import diagnose
from kuroshio.perf.timeline.stages import Role
from kuroshio.perf.traces.events import Direction
from traces_made import Made

ROLES = {"start": Role.START, "read": Role.READING, "decode": Role.PREPARATION,
         "copy": Role.LINK, "compute": Role.KERNEL, "write": Role.OUTPUT}  # fmt: skip
TIMES = st.fixed_dictionaries({stage: st.sampled_from([1, 2, 5, 20, 40]) for stage in ROLES})


def scheduled(blocks: list[dict[str, int]], ahead: int, readers: int) -> list[tuple]:
    """(stage, lane, start, end) of blocks that pass through; `ahead` may wait for a stage."""
    ended: dict[tuple[str, int], int] = {}
    free: Counter[str] = Counter()
    made = []

    def do(stage: str, block: int, lane: str, *after: tuple[str, int]) -> None:
        start = max([free[lane], *(ended.get(each, 0) for each in after)])
        end = start + blocks[block][stage]
        free[lane] = ended[stage, block] = end
        made.append((stage, lane, start, end))

    do("start", 0, "reader 0")
    for block in range(len(blocks)):
        reader = f"reader {block % readers}"
        do("read", block, reader, ("start", 0), ("copy", block - ahead))
        do("decode", block, reader, ("read", block))
        do("copy", block, "link", ("decode", block), ("compute", block - ahead))
        do("compute", block, "device", ("copy", block))
        do("write", block, "writer", ("compute", block))
    return made


def length(schedule: list[tuple]) -> int:
    return max(end for *_, end in schedule)


@given(st.lists(TIMES, min_size=1, max_size=5), st.integers(1, 3), st.integers(1, 2))
def test_it_is_never_more(blocks, ahead, readers):
    schedule = scheduled(blocks, ahead, readers)
    made, threads = Made(), {}
    for stage, lane, start, end in schedule:
        if stage == "copy":
            made.copy(Direction.TO_DEVICE, 0, end - start, begins=start, name="device copy")
        elif stage == "compute":
            made.kernel("device compute", start, end - start)
        else:
            made.stage(stage, start, end, thread=threads.setdefault(lane, len(threads)))
    for found in diagnose([made.trace()]).findings:
        if found.key.startswith("pipeline-"):
            role = Role(found.key.removeprefix("pipeline-"))
            without = [
                {stage: 0 if ROLES[stage] is role else ns for stage, ns in times.items()}
                for times in blocks
            ]
            assert length(schedule) - length(scheduled(without, ahead, readers)) <= found.saves
            assert found.saves <= found.of
