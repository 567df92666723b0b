"""Every format's calls are linked to the work that they began, so that launches are told of all."""

from __future__ import annotations

import pytest

from kuroshio.perf.timeline.analysis import analyse
from kuroshio.perf.traces.events import Direction
from kuroshio.perf.traces.read import read
from trace_nsys import write_nsys
from trace_rocpd import LAYOUTS, write_rocpd
from trace_rocprofv3 import as_json, write_csv
from trace_work import Call, Copy, Kernel, Process

WRITERS = {
    "rocprofv3 JSON": lambda path, run: path.write_text(as_json(run)),
    "nsys": write_nsys,
    **{f"rocpd {layout}": (lambda path, run, layout=layout: write_rocpd(path, run, layout))
       for layout in LAYOUTS},
    **{f"rocprofv3 CSV, new {new}": (lambda path, run, new=new: write_csv(path, run, new))
       for new in (True, False)},
}  # fmt: skip


def run(number: int, device: int) -> Process:
    """Three launches: of the second the queue is not empty, the third comes late; and a copy."""
    return Process(
        number,
        kernels=(
            Kernel("a(float*)", 20_000, 30_000, call=1, device=device),
            Kernel("b(float*)", 31_000, 40_000, call=2, device=device),
            Kernel("c(float*)", 55_000, 60_000, call=3, device=device),
        ),
        copies=(Copy(Direction.TO_HOST, 61_000, 70_000, call=4, bytes=4096, device=device),),
        calls=(
            Call("hipLaunchKernel", 12_000, 15_000, 1, number),
            Call("hipLaunchKernel", 16_000, 18_000, 2, number),
            Call("hipLaunchKernel", 50_000, 51_000, 3, number),
            Call("hipMemcpyAsync", 52_000, 53_000, 4, number),
        ),
    )


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("processes", [1, 2])
def test_launches_are_told(tmp_path, form, processes):
    WRITERS[form](tmp_path / "trace", [run(4000 + 10 * at, at) for at in range(processes)])
    launches = analyse(read(tmp_path / "trace")).launches
    assert launches.work == launches.linked == 4 * processes
    assert launches.launched == 3 * processes
    assert (launches.calls.median, launches.calls.total) == (2000, 6000 * processes)
    assert launches.delays.median == 8000
    assert launches.late == processes
    assert (launches.empty_calls, launches.early, launches.clocks_disagree) == (0, 0, False)


def test_moments_of_dispatch_tell_delays_and_not_what_a_launch_costs(tmp_path):
    (tmp_path / "results.csv").write_text(
        "KernelName,gpu-id,DispatchNs,BeginNs,EndNs,CompleteNs\n"
        "a,0,12000,20000,30000,30100\nb,0,16000,31000,40000,40100\nc,0,50000,55000,60000,60100\n"
    )
    launches = analyse(read(tmp_path / "results.csv")).launches
    assert launches.linked == launches.launched == 3
    assert launches.calls is None
    assert launches.delays.median == 8000
    assert launches.late == 1
