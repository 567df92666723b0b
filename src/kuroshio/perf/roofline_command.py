"""`kuroshio perf roofline`: measured work under measured roofs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..errors import Refusal

if TYPE_CHECKING:
    from .ceilings.ceiling import Ceiling

SUMMARY = "place results, counters and recorded runs under this machine's measured roofs"
EXAMPLES = """examples:
  kuroshio perf roofline results.json
  kuroshio perf roofline results.json --counters ncu.csv -o roofline.png
  kuroshio perf roofline account.json    # of: kuroshio climatology ... --json

The roofs are those that kuroshio perf ceilings --save has kept, or those of
--ceilings FILE. A picture needs matplotlib: pip install '.[plot]'."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", nargs="*", metavar="FILE",
        help="results of kuroshio perf bench, or an account of kuroshio climatology --json",
    )  # fmt: skip
    parser.add_argument(
        "--counters", nargs="+", default=[], metavar="CSV",
        help="what a profiler counted: ncu, rocprofiler-compute (omniperf), rocprof, perf stat -x,",
    )  # fmt: skip
    parser.add_argument(
        "--match", action="append", default=[], metavar="CASE=KERNEL",
        help="which counted kernel (a part of its name) is which case",
    )  # fmt: skip
    parser.add_argument(
        "--ceilings",
        nargs="+",
        default=[],
        metavar="FILE",
        help="those of these files (kuroshio perf ceilings -o), not those that were kept",
    )
    parser.add_argument("--device", metavar="DEVICE", help="of which the rows are taken")
    parser.add_argument(
        "--threads", type=int, metavar="N",
        help="that the work used on a processor: 1 for most Python (default: the most that were "
        "measured)",
    )  # fmt: skip
    parser.add_argument(
        "--level", choices=("L1", "L2", "L3", "memory"), help="whose bandwidth counts"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="a picture, .png or .svg")
    parser.add_argument("--json", action="store_true", help="print the judgement as JSON")


def run(arguments: argparse.Namespace) -> None:
    from pathlib import Path

    from . import roofline_pipeline, roofline_results
    from .counters.counted import merged
    from .counters.read import read
    from .roofline import judge, roofs
    from .roofline_inputs import ceilings_of, device_of

    if not arguments.results and not arguments.counters:
        raise Refusal(
            "There is nothing to place. Give a result of kuroshio perf bench --json, an account of "
            "kuroshio climatology --json, or --counters CSV."
        )
    if arguments.threads is not None and arguments.threads < 1:
        raise Refusal(f"--threads {arguments.threads} is no number of threads; at least 1.")
    files = [(Path(name), roofline_results.document(Path(name))) for name in arguments.results]
    accounts = [pair for pair in files if roofline_pipeline.is_account(pair[1])]
    if accounts:
        if len(files) > 1 or arguments.counters or arguments.output:
            raise Refusal(
                "An account of a run is shown by itself, as a table: give that file alone, without "
                "--counters and -o."
            )
        _pipeline(arguments, *accounts[0])
        return
    device, points = arguments.device, []
    for path, _ in files:
        device, found = roofline_results.points(path, device)
        points += found
    counted = merged(kernel for name in arguments.counters for kernel in read(Path(name)))
    points = roofline_results.joined(points, counted, _pairs(arguments.match))
    points = roofline_results.with_shares(points)
    device = device_of(device, counted, bool(arguments.ceilings))
    model, ceilings = ceilings_of(arguments.ceilings, device)
    under = roofs(device or model, ceilings, arguments.threads)
    _show(arguments, [judge(point, under, arguments.level) for point in points], under, model)


def _pairs(given: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for each in given:
        case, equals, kernel = each.partition("=")
        if not (case and equals and kernel):
            raise Refusal(f"--match {each!r} is not CASE=KERNEL, such as 'copy=vecCopy'.")
        pairs.append((case, kernel))
    return pairs


def _show(arguments, judged, under, model: str) -> None:  # type: ignore[no-untyped-def]
    import json
    from pathlib import Path

    from ..console import Output
    from . import roofline_text
    from .output import left_out_says

    crew = "" if under.threads is None else f", {under.threads} thread{'s' * (under.threads > 1)}"
    where = f"{model}{crew}" if under.device == model else f"{under.device} ({model}{crew})"
    subtitle = f"Roofs as measured on {where}"
    if arguments.output is not None:
        from .roofline_picture import draw

        draw(judged, under, Path(arguments.output), "Roofline", subtitle)
    if arguments.json:
        roofs = [c.as_json() for level in under.bandwidths.values() for c in level]
        roofs += [peak.as_json() for peak in under.peaks.values()]
        said = {
            "schema": "kuroshio.perf.roofline/1", "device": under.device, "model": model,
            "points": [each.as_json() for each in judged], "roofs": roofs,
        }  # fmt: skip
        print(json.dumps(said, indent=1))
        return
    output = Output()
    output.say(subtitle)
    if drawn := roofline_text.plot(judged, under, output.width if output.is_terminal else 80):
        output.print(drawn, soft_wrap=True)
    table, left_out = roofline_text.table(judged, output.width)
    output.print(table)
    if left_out:
        output.say(left_out_says(left_out))
    for sentence in roofline_text.sentences(judged):
        output.say(sentence)
    if arguments.threads is None and (hint := roofline_text.fewer_threads(judged, under)):
        output.say(hint)
    if arguments.output is not None:
        output.say(f"Drawn: {arguments.output}")


def _pipeline(arguments, path, said) -> None:  # type: ignore[no-untyped-def]
    import json

    from rich.table import Table

    from ..console import Output
    from . import roofline_pipeline as pipeline
    from .roofline_inputs import ceilings_of

    device = pipeline.device_of(said)
    _, host = ceilings_of(arguments.ceilings, "cpu")
    there: list[Ceiling] = [] if device is None else ceilings_of(arguments.ceilings, device)[1]
    found = pipeline.stages(path, said, host, there)
    wall = float(said["seconds"])
    if arguments.json:
        rows = [pipeline.as_json(each) for each in found]
        print(json.dumps({
            "schema": "kuroshio.perf.pipeline/1", "seconds": wall, "stages": rows,
            "verdict": pipeline.verdict(found, wall),
        }, indent=1))  # fmt: skip
        return
    output = Output()
    table = Table(title=f"{path}: {wall:.3g} s on {said.get('device')}", title_justify="left")
    table.add_column("stage", overflow="fold")
    for name in ("busy s", "of run", "GB", "GB/s", "roof", "of roof"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        roof = ("", "")
        if each.roof_gb_per_s is not None and each.of_roof is not None:
            roof = f"{each.roof_gb_per_s:.3g}", f"{each.of_roof:.0%}"
        rate = tuple("" if v is None else f"{v:.3g}" for v in (each.gb, each.gb_per_s))
        table.add_row(each.what, f"{each.busy_s:.3g}", f"{each.share:.0%}", *rate, *roof)
    output.print(table)
    for each in found:
        if each.gb is None:  # the last line names them
            continue
        roof_text = f"{each.roof}: " if each.roof else ""
        output.say(f"{each.what}: {roof_text}{each.says}.")
    output.say(pipeline.verdict(found, wall))
