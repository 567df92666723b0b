"""`kuroshio perf env`: what a measurement here would depend on."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .output import terminal_width, wrapped

SUMMARY = "software, processor, GPUs, clocks, power and other processes: what times depend on"
EXAMPLES = """examples:
  kuroshio perf env
  kuroshio perf env --device cuda:0 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="DEVICE", help="only this: cpu, cuda:0 or hip:0 (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> None:
    from ..device.names import check_device
    from .environment import environment

    device = arguments.device
    if device is not None:
        check_device(device)
    if device == "auto" or (device or "").endswith(":all"):
        device = None
    found = environment(device)
    if arguments.json:
        print(json.dumps({"schema": "kuroshio.perf.environment/1", "environment": found}, indent=1))
    else:
        print(text(found, terminal_width()))


def text(found: dict[str, Any], width: int | None = None) -> str:
    """A line a fact, wrapped for a terminal of that width; what is unknown is left away."""
    lines = []
    for heading, facts in (
        ("software", found["software"]),
        ("settings", found["settings"]),
        ("processor", found["cpu"]),
        *((f"GPU {name}", gpu) for name, gpu in found["gpus"].items()),
        ("now", {k: v for k, v in found["now"].items() if k != "gpus"}),
        *((f"{name} now", gpu) for name, gpu in found["now"]["gpus"].items()),
    ):
        known = {key: value for key, value in facts.items() if value is not None}
        if known:
            lines.append(heading)
            lines += [
                wrapped(f"  {key:22} {_value(key, value)}", width, " " * 25)
                for key, value in known.items()
            ]
    if not found["gpus"]:
        lines.append("No GPU is shown by a driver.")
    return "\n".join(lines)


def _value(key: str, value: Any) -> str:
    from ..messages import printable

    if key.endswith("_bytes"):
        return f"{value / 1e9:.1f} GB"
    if isinstance(value, dict):
        return ", ".join(f"{k} {printable(str(v))}" for k, v in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(_value("", each) for each in value) or "none"
    return printable(str(value))
