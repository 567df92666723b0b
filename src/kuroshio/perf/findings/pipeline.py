"""A pipeline whose threads were recorded as stages: which of them starves the rest."""

from __future__ import annotations

from . import figures
from .finding import Finding
from .seen import WORTH, Seen


def bottleneck(seen: Seen) -> Finding | None:
    """The stage that bounds it, if for long no other one works beside it."""
    pipeline = seen.analysis.pipeline
    if pipeline is None or pipeline.slowest is None:
        return None
    stage = next(each for each in pipeline.stages if each.name == pipeline.slowest)
    if stage.alone <= WORTH * pipeline.total:
        return None
    return Finding(
        key="pipeline",
        title=f"The pipeline is starved by {stage.name}",
        summary=(
            f"{stage.name} is at work for {figures.share(stage.busy, pipeline.total)} of "
            f"{figures.time(pipeline.total)}, and for {figures.time(stage.alone)} no other is."
        ),
        verify=("That stage alone against its roof (kuroshio perf ceilings)",),
        directions=("More threads for it, or less of it to do",),
        saves=stage.alone,
        of=pipeline.total,
        how="the time in which no other stage works",
        figures={"busy_ns": stage.busy, "alone_ns": stage.alone},
    )
