"""What is found in traces that profilers wrote; see ANSWERS.md beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kuroshio.perf.report.diagnosis import Diagnosis, diagnose
from kuroshio.perf.report.page import page
from kuroshio.perf.timeline.holes import Cause
from kuroshio.perf.traces.read import read
from test_report_page import check

US = 1000


@pytest.fixture(scope="module")
def diagnosed(shared):
    @cache
    def of(*names: str) -> Diagnosis:
        folder: Path = shared / "traces" / "kineto"
        return diagnose([read(folder / f"{name}.json.gz") for name in names])

    return of


def test_workers0_is_starved_by_data_loading(diagnosed):
    diagnosis = diagnosed("v100_resnet50_workers0")
    first = diagnosis.findings[0]
    assert first.key == "data-loading"
    assert "DataLoader" in first.names[0]
    assert first.places_in_all == 5  # between six steps
    assert first.of == 996_477 * US
    # Loading takes 352 ms of all steps; some of it before the first kernel, some while it works.
    assert 250_000 * US < first.saves < 352_000 * US
    assert not any(
        "happens once" in each for finding in diagnosis.findings for each in finding.verify
    )
    late = next(each for each in diagnosis.findings if each.key == "host-late")
    # Of tiny kernels there are many, but the holes before them are too little for a finding.
    assert late.places_in_all == diagnosis.analyses[0].holes.by_cause[Cause.HOST].count
    assert "tiny" not in late.summary
    assert diagnosis.sentence.startswith(
        "The device was busy for 61% of 996 ms. What matters most: "
    )


def test_one_long_hole_is_asked_about_first(diagnosed):
    """6.63 of 8.76 ms are one call of hipLaunchKernel."""
    (late,) = diagnosed("mi250_toy_training").findings
    assert late.verify[0].startswith("Whether the longest hole, 6.63 ms of it, happens once")


@pytest.mark.parametrize(
    ("name", "communication", "covered"),
    [("rank0_sampled", 396_199, 59_216), ("rank1_sampled", 379_053, 75_530)],
)
def test_sampled_ranks_are_communication_heavy(diagnosed, name, communication, covered):
    found = {each.key: each for each in diagnosed(name).findings}["communication"]
    assert found.figures["communication_ns"] == communication * US
    assert found.figures["covered_ns"] == covered * US
    assert found.saves == (communication - covered) * US
    assert "nccl" in found.names[0].lower()


def test_both_ranks_together(diagnosed):
    diagnosis = diagnosed("rank0_sampled", "rank1_sampled")
    assert diagnosis.findings[0].key == "communication"
    assert {place.trace for place in diagnosis.findings[0].places} == {0, 1}
    assert "Rank 0: " in diagnosis.findings[0].summary


def test_a_rank_without_a_device(diagnosed):
    diagnosis = diagnosed("cpu_only_rank")
    assert [each.key for each in diagnosis.findings] == ["no-device-work"]
    assert diagnosis.sentence == "The trace shows no work of a device."


def test_a_busy_device_yields_nothing(diagnosed):
    """98 % busy, with copies that are all but hidden."""
    assert diagnosed("ns_resolution").findings == ()


@pytest.mark.parametrize("name", ["h100_vit_inference", "mi300_vit_inference"])
def test_one_image_at_a_time_is_bound_by_launches(diagnosed, name):
    late, tiny = diagnosed(name).findings
    assert (late.key, tiny.key) == ("host-late", "tiny-kernels")
    others = diagnosed(name).analyses[0].holes.by_cause[Cause.HOST].count - late.places_in_all
    assert f"{others:,} short holes before tiny kernels are a finding of their own." in late.summary


def test_a_scalar_read_back(diagnosed):
    first = diagnosed("event_sync").findings[0]
    assert (first.key, first.names) == ("read-back", ("aten::is_nonzero",))


def test_holes_of_the_sampling_are_not_counted(diagnosed):
    """The sampled ranks lack most kernels: what was launched in time is no fault of the host."""
    diagnosis = diagnosed("rank0_sampled")
    assert any("tracer's own doing" in each for each in diagnosis.remarks)
    late = {each.key: each for each in diagnosis.findings}["host-late"]
    assert late.saves < 675_191 * US / 2


def test_pages(diagnosed, shared):
    for path in sorted((shared / "traces" / "kineto").glob("*.json.gz")):
        made = page(diagnosed(path.name.removesuffix(".json.gz")))
        check(made)
        assert len(made) < 4e6
