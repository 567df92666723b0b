"""`kuroshio ladder`: seven published strategies of one GPU program, and this package's own."""

from __future__ import annotations

import argparse

from ..errors import Refusal

SUMMARY = (
    "run seven published optimisation strategies of a GPU program, rung by rung, on the device at "
    "hand: each predicted, measured, held to the exact answer"
)
EXAMPLES = """examples:
  kuroshio ladder -o ladder/                          # small: a minute or so, on any machine
  kuroshio ladder --scale pass -o ladder/             # 12 days of the globe, 5.5 GB of files
  kuroshio ladder --scale season --device cuda:0 -o ladder/        # 92 days, 25.4 GB of files
  kuroshio ladder --only D --only ours --only rings -o ladder/     # two rungs and a study

rungs: baseline A B C D D+ ours
studies, of one strategy alone: blocks heap branches operations streams rings memory; and moments,
  what mistakes in the sums cost

Read the end of what is printed first, or ladder.html; what each rung is: docs/tutorial/ladder.md"""
USAGE = "kuroshio ladder -o DIR [--scale small|pass|season] [--device DEVICE] [options]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR",
        help="for ladder.html, ladder.png, ladder.json, the experiments' records and the files",
    )  # fmt: skip
    parser.add_argument(
        "--scale", default="small", metavar="SCALE",
        help="small (default: 37 x 72 cells, 12 days of year), pass (721 x 1440) or season (92 "
        "days)",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME",
        help="a rung or a study; may be given several times (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--device", default="auto", metavar="DEVICE",
        help="auto (default: the first GPU, else the processor), cpu, cuda:0 or hip:0",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, metavar="N", help="default: all")
    parser.add_argument(
        "--runs", type=int, metavar="N", help="of each rung (default: as many as make 7 passes)"
    )
    parser.add_argument(
        "--files", metavar="DIR", help="where the invented files are or go (default: in -o)"
    )
    parser.add_argument(
        "--counters", action="append", default=[], metavar="FILE",
        help="what ncu or rocprof counted of a run before, for divergence and achieved bandwidth",
    )  # fmt: skip
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no tables")
    parser.add_argument("--json", action="store_true", help="print the whole as JSON")


def run(arguments: argparse.Namespace) -> None:
    import json
    from pathlib import Path

    from ..bar import Bar
    from ..ladder.climb import Options, climb
    from ..ladder.publish import check_folder, publish, report_of
    from ..ladder.show import show
    from ..messages import note

    options = Options(
        output=Path(arguments.output),
        scale=arguments.scale,
        device=arguments.device,
        only=arguments.only,
        files=Path(arguments.files) if arguments.files else None,
        threads=arguments.threads,
        runs=arguments.runs,
        counters=[Path(path) for path in arguments.counters],
    )
    check_folder(options.output)
    with Bar(arguments.quiet or arguments.json) as bar:
        found = climb(options, bar.update)
    report = report_of(found)
    made, absent = publish(report, options.output)
    if absent:
        note(absent)
    if arguments.json:
        print(json.dumps(report.as_json(), indent=1))
    elif not arguments.quiet:
        show(report)
        print("\n" + "\n".join(map(str, made)))
    if wrong := [result.key for result in found.results if result.kept is False]:
        raise Refusal(
            f"The results of {', '.join(wrong)} are not what was promised of them; all else is in "
            f"{options.output}. Please report this."
        )
