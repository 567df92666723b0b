"""Measured ceilings as a JSON document, and where they are kept: by device and software version."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from ...device.cpu import available_threads
from ...errors import Refusal
from ..environment import cpu_model
from ..json_file import read_json
from .ceiling import Ceiling, Missing, Peak

SCHEMA = "kuroshio.perf.ceilings/1"
_TYPES: dict[str, tuple[type, ...]] = {
    "name": (str,), "level": (str, type(None)), "unit": (str,), "value": (int, float),
    "low": (int, float), "high": (int, float), "n": (int,), "how": (str,),
    "threads": (int, type(None)), "message_bytes": (int, type(None)),
}  # fmt: skip


@dataclass(frozen=True)
class Identity:
    """Whose ceilings they are: the device, its model, and the versions that made the kernels."""

    device: str
    model: str
    software: dict[str, str]

    @property
    def file_name(self) -> str:
        """Readable, and different for different software."""
        said = json.dumps([self.model, self.software], sort_keys=True).encode()
        digest = hashlib.blake2b(said, digest_size=4).hexdigest()
        return f"{_slug(self.device)}-{_slug(self.model)}-{digest}.json"


def identity(device: str, model: str | None = None) -> Identity:
    """Of a device; of the processor the model is found out here."""
    names = ("kuroshio", "numba", "numpy") if device == "cpu" else ("kuroshio", "cupy")
    software = {name: found for name in names if (found := _version(name))}
    if device == "cpu":
        model = f"{cpu_model()}, {available_threads()} processors"
    else:
        software |= _driver()
    return Identity(device, model or "unknown", software)


def folder() -> Path:
    """Beside what else is kept between runs: KUROSHIO_CACHE_DIR, else the platform's place."""
    if own := os.environ.get("KUROSHIO_CACHE_DIR"):
        base = Path(own)
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        base = Path(xdg) / "kuroshio"
    elif sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        base = Path(local) / "kuroshio" / "Cache"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches" / "kuroshio"
    else:
        base = Path.home() / ".cache" / "kuroshio"
    return base / "ceilings"


def prepare() -> None:
    """Make the folder; a Refusal where ceilings could not be kept, before they are measured."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder()):
            pass
    except OSError as problem:
        raise Refusal(
            f"Ceilings cannot be kept in {folder()}: {problem.strerror}. Set KUROSHIO_CACHE_DIR to "
            "a folder that may be written, or write them with -o and without --save."
        ) from problem


def document(
    who: Identity, environment: dict[str, Any], found: Sequence[Ceiling],
    missing: Sequence[Missing] = (), peaks: Sequence[Peak] = (),
) -> dict[str, Any]:  # fmt: skip
    return {
        "schema": SCHEMA,
        "device": who.device,
        "model": who.model,
        "software": who.software,
        "environment": environment,
        "ceilings": [each.as_json() for each in found],
        "missing": [asdict(each) for each in missing],
        "data_sheet_peaks": [asdict(each) for each in peaks],
    }


def read(path: Path) -> tuple[dict[str, Any], list[Ceiling]]:
    """A document and its ceilings; Refusal where it is none."""
    said = read_json(path, "Measure again: kuroshio perf ceilings --save")
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        raise Refusal(
            f"{path} holds no ceilings: its schema is "
            f"{said.get('schema') if isinstance(said, dict) else None!r}, not {SCHEMA!r}. "
            "kuroshio perf ceilings --json > FILE makes one."
        )
    known = {field.name for field in fields(Ceiling)}
    try:
        rows = [{k: v for k, v in row.items() if k in known} for row in said["ceilings"]]
        for row in rows:
            for name, value in row.items():
                if not isinstance(value, _TYPES[name]):
                    raise TypeError(f"{name} is {value!r}")
        return said, [Ceiling(**row) for row in rows]
    except (KeyError, TypeError, AttributeError) as problem:
        raise Refusal(f"{path} is damaged ({problem}); measure again.") from problem


def saved(device: str, model: str | None = None) -> tuple[dict[str, Any], list[Ceiling]]:
    """What was kept for a device and the software of now; Refusal that says what there is."""
    who = identity(device, model)
    path = folder() / who.file_name
    if path.exists():
        return read(path)
    others = sorted(folder().glob(f"{_slug(device)}-*.json"))
    have = ""
    if others:
        have = (
            f" There are ones of another model or of other versions of the software "
            f"({', '.join(other.name for other in others[:3])}): give one with --ceilings if it "
            "will do."
        )
    raise Refusal(
        f"No ceilings of {device} ({who.model}) have been measured yet with this software, and "
        f"none are guessed. Measure them: kuroshio perf ceilings --device {device} --save.{have}"
    )


def _version(name: str) -> str | None:
    if name == "cupy":
        module = sys.modules.get("cupy")
        return None if module is None else str(module.__version__)
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _driver() -> dict[str, str]:
    """Of the driver and the run time, where CuPy is loaded."""
    module = sys.modules.get("cupy")
    if module is None:
        return {}
    runtime = module.cuda.runtime
    return {
        "driver": str(runtime.driverGetVersion()),
        "runtime": str(runtime.runtimeGetVersion()),
    }


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
