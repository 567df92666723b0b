"""`kuroshio perf ceilings`: what this machine attains at most, measured."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import Refusal

SUMMARY = "measure what a device attains at most: memory, arithmetic, links, latencies, disk"
EXAMPLES = """examples:
  kuroshio perf ceilings --save
  kuroshio perf ceilings --quick --only bandwidth arithmetic --json
  kuroshio perf ceilings --device cuda:0 --save"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="cpu", metavar="DEVICE", help="cpu (default), cuda:0, hip:0, ..."
    )
    parser.add_argument(
        "--save", action="store_true",
        help="keep them for this device and these software versions, for kuroshio perf roofline",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON there as well")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PART",
        help="of a processor: bandwidth, arithmetic, inflate, disk; of a GPU: parts of names, "
        "such as fma link matrix",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=int, metavar="N", help="of a processor, beside 1 (default: all)"
    )
    parser.add_argument(
        "--folder", default=".", metavar="DIR",
        help="whose disk is read: make it where your data are (default: this one)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    import json

    from ..device.cpu import available_threads
    from ..device.names import check_device
    from .ceilings import measure, store
    from .ceilings.datasheet import peaks
    from .environment import environment_with
    from .json_file import check_writable, write_json
    from .output import doing

    device = check_device(arguments.device)
    if device == "auto" or device.endswith(":all"):
        raise Refusal(f"Ceilings are of one device, not of {device}. Give cpu or cuda:0.")
    if device != "cpu" and arguments.threads is not None:
        raise Refusal(f"--threads is of a processor, and {device} was given. Leave it away.")
    if arguments.output is not None:
        check_writable(arguments.output)
    only, model = tuple(arguments.only), None
    if arguments.save and only:
        raise Refusal(
            "--save keeps all ceilings of a device, and --only measures some. Leave one of them "
            "out, or write these to a file with -o."
        )
    if arguments.save:
        store.prepare()
    if device == "cpu":
        unknown = [part for part in only if part not in measure.PARTS]
        if unknown:
            raise Refusal(
                f"--only {unknown[0]} is no part of a processor's ceilings. Give some of: "
                f"{', '.join(measure.PARTS)}."
            )
        threads = available_threads() if arguments.threads is None else arguments.threads
        if not 1 <= threads <= available_threads():
            raise Refusal(
                f"--threads {threads} cannot be: this process may use {available_threads()} "
                "processors. Give so many or fewer, at least one."
            )
        folder = Path(arguments.folder)
        if not only or "disk" in only:
            _check_folder(folder)
    with doing() as say:
        if device == "cpu":
            found = measure.processor_ceilings(threads, arguments.quick, folder, only, say)
        else:
            model, found = measure.gpu_ceilings(device, arguments.quick, only, say)
        ceilings, missing = measure.sorted_out(found)
    if only and not ceilings:
        why = "; ".join(f"{each.name}: {each.why}" for each in missing)
        raise Refusal(
            f"--only {' '.join(only)} left nothing to measure on {device}"
            f"{f' ({why})' if why else ''}. Give another part, or leave --only out."
        )
    who = store.identity(device, model)
    sheet = peaks(model)
    environment = environment_with({} if device == "cpu" else {device: model})
    document = store.document(who, environment, ceilings, missing, sheet)
    try:
        if arguments.output is not None:
            write_json(arguments.output, document)
        if arguments.save:
            write_json(store.folder() / who.file_name, document)
    finally:  # the work was not for nothing, should a file not be written after all
        if arguments.json:
            print(json.dumps(document, indent=1))
        else:
            _show(who, ceilings, missing, measure.beside(ceilings, sheet), sheet)
    if arguments.save and not arguments.json:
        print(f"Kept in {store.folder() / who.file_name}")


def _check_folder(folder: Path) -> None:
    """A Refusal where no file for reading can be made."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise Refusal(
            f"--folder {folder}: no file can be made there to be read ({problem.strerror}). Give a "
            "folder that exists and may be written, or leave the disk out: --only bandwidth "
            "arithmetic inflate."
        ) from problem


def _show(who, ceilings, missing, beside, sheet) -> None:  # type: ignore[no-untyped-def]
    from rich.table import Table

    from ..console import Output

    output = Output()
    table = Table(title=f"{who.device}: {who.model}", title_justify="left")
    crews = any(each.threads for each in ceilings)
    for column in ("ceiling", "level", *(["threads"] * crews)):
        table.add_column(column)
    for column in ("median", "lowest", "highest", "unit"):
        table.add_column(column, justify="right" if column != "unit" else "left")
    if sheet:
        table.add_column("data sheet", justify="right")
    for number, each in enumerate(ceilings):
        name = each.name
        if each.message_bytes:
            name += f", {_size(each.message_bytes)}"
        row = [name, each.level or "", *([str(each.threads or "")] * crews)]
        low = f"{_number(each.low)} *" if each.unsteady else _number(each.low)
        row += [_number(each.value), low, _number(each.high), each.unit]
        if sheet:
            row.append(_number(beside[number].value) if number in beside else "")
        table.add_row(*row)
    output.print(table)
    for source in dict.fromkeys(peak.source for peak in sheet):
        output.say(f"The data sheet's figures are promises, not measurements: {source}.")
    if unsteady := sum(each.unsteady for each in ceilings):
        output.say(
            f"Unsteady (*): of {unsteady} of {len(ceilings)} the lowest sample is less than 60 % "
            "of the highest. Something else ran; end it, or wait, and measure again."
        )
    for each in missing:
        output.say(f"Not measured: {each.name}: {each.why}.")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _size(nbytes: int) -> str:
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes // size} {unit}"
    return f"{nbytes} B"
