"""The environment of a measurement: software, settings, processor, GPUs, and their state now.

What is under "now" and "measured_by" does not make two environments different; the rest does.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

from ..device.cpu import available_threads
from ..errors import Refusal
from . import environment_gpu

# Packages whose version can change a time.
_PACKAGES = re.compile(
    r"numpy|numba|llvmlite|scipy|cython|cupy.*|torch|triton|pytorch-triton.*|jax|jaxlib|jax-cuda.*"
    r"|tensorflow|nvidia-.*|mkl|intel-openmp|openblas.*|numexpr|dask|xarray|zarr|numcodecs|h5py"
    r"|netcdf4|deflate|isal"
)
# Variables that change what is run or compiled, and how.
_VARIABLES = re.compile(
    r"(OMP|MKL|OPENBLAS|BLIS|NUMBA|KMP|GOMP|CUPY|CUDA|HIP|ROCR|HSA|GPU|NCCL|RCCL|XLA|JAX|TORCH"
    r"|PYTORCH|NVCC|HIPCC|TRITON|AMD|MIOPEN|VECLIB|NUMEXPR|DTK)_\w+"
    r"|[CN]FLAGS|CXXFLAGS|LDFLAGS|MALLOC_\w+|LD_PRELOAD|PYTHONOPTIMIZE"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS(WORD|WD|PHRASE)|KEY\b|CREDENTIAL|AUTH")
_UNSET = "not set"
_ASIDE = ("now", "measured_by")


def environment(device: str | None = None) -> dict[str, Any]:
    """All that a time depends on, ready for JSON; takes some 20 ms.

    device  'cpu', 'cuda:0', 'hip:1', ...; None tells of every GPU

    Keys: measured_by, software, settings (variables of the process), cpu, gpus (name -> what
    stays), and now (load, clocks, power, heat, processes: what passes). Refuses a GPU that the
    driver does not show.
    """
    wanted = environment_gpu.names() if device is None else [d for d in [device] if d != "cpu"]
    gpus = {name: _gpu(name) for name in wanted}
    return {
        "measured_by": f"kuroshio {_version('kuroshio')}",
        "software": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "packages": dict(_packages()),
        },
        "settings": {
            name: value
            for name, value in sorted(os.environ.items())
            if _VARIABLES.fullmatch(name) and not _SECRET.search(name)
        },
        "cpu": _cpu(),
        "gpus": {name: gpu.fixed() for name, gpu in gpus.items()},
        "now": {
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "host": platform.node(),
            "load_1_minute": load(),
            "cpu_mhz": cpu_mhz(),
            "free_memory_bytes": _memory("MemAvailable"),
            "gpus": {name: gpu.now() for name, gpu in gpus.items()},
        },
    }


def environment_with(models: Mapping[str, str | None]) -> dict[str, Any]:
    """Of the processor and of GPUs by name; of one that the driver does not show, only its model.

    A container may have a GPU without the driver's management library.
    """
    whole = environment("cpu")
    for device, model in models.items():
        try:
            one = environment(device)
        except Refusal:
            whole["gpus"][device] = {"model": model}
            continue
        whole["gpus"] |= one["gpus"]
        whole["now"]["gpus"] |= one["now"]["gpus"]
    return whole


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What differs between two environments, such as 'software packages numpy: 1.26 and 2.4'."""
    first, second = _flat(a), _flat(b)
    return [
        f"{' '.join(key)}: {first.get(key, _UNSET)} and {second.get(key, _UNSET)}"
        for key in sorted({*first, *second})
        if key[0] not in _ASIDE and first.get(key, _UNSET) != second.get(key, _UNSET)
    ]


def load() -> float | None:
    """Processes that ran or waited to, over the last minute."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def cpu_model() -> str:
    """As Linux tells it; elsewhere what Python knows."""
    model = re.search(r"model name\s*:\s*(.+)", _read_cpuinfo())
    return model[1].strip() if model else platform.processor() or platform.machine()


def cpu_mhz() -> float | None:
    """The fastest processor's clock now, where the system tells."""
    paths = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    known = [int(text) / 1e3 for path in paths if (text := _read(path)).isdigit()]
    known = known or [float(mhz) for mhz in re.findall(r"cpu MHz\s*:\s*([\d.]+)", _read_cpuinfo())]
    return round(max(known), 1) if known else None


def _gpu(name: str) -> environment_gpu.Watched:
    gpu = environment_gpu.find(name)
    if gpu is None:
        there = ", ".join(environment_gpu.names()) or "no GPU"
        raise Refusal(
            f"The driver shows no device {name}; it shows {there}. Give one of these or cpu, or "
            "check the driver (nvidia-smi, rocm-smi) and the variables CUDA_VISIBLE_DEVICES and "
            "HIP_VISIBLE_DEVICES."
        )
    return gpu


@cache
def _packages() -> tuple[tuple[str, str], ...]:
    """Of what is installed, the first found of a name, which is the one that is imported."""
    found: dict[str, str] = {}
    for each in distributions():
        name = (each.metadata["Name"] or "").lower()
        if _PACKAGES.fullmatch(name):
            found.setdefault(name, each.version)
    return tuple(sorted(found.items()))


def _cpu() -> dict[str, Any]:
    policy = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    return {
        "model": cpu_model(),
        "processors": available_threads(),
        "of": os.cpu_count(),
        "quota": _quota(),
        "caches": _caches(),
        "governor": _read(Path(policy)) or None,
        "memory_bytes": _memory("MemTotal"),
    }


def _caches() -> dict[str, str]:
    """Of the first processor: 'L1 Data' -> '32K'."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(folder / name) for name in ("level", "type", "size"))
        found[f"L{level}" if kind == "Unified" else f"L{level} {kind}"] = size
    return found


def _quota() -> float | None:
    """Processors that a container's limit leaves, where there is one."""
    limit, _, period = _read(Path("/sys/fs/cgroup/cpu.max")).partition(" ")
    return round(int(limit) / int(period), 2) if limit.isdigit() and period.isdigit() else None


def _memory(what: str) -> int | None:
    match = re.search(rf"{what}:\s*(\d+) kB", _read(Path("/proc/meminfo")))
    return int(match[1]) * 1024 if match else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from sources"


def _read_cpuinfo() -> str:
    return _read(Path("/proc/cpuinfo")) if sys.platform == "linux" else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _flat(facts: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """{(path, of, keys): value}."""
    flat: dict[tuple[str, ...], Any] = {}
    for key, value in facts.items():
        if isinstance(value, dict):
            flat |= _flat(value, (*above, key))
        else:
            flat[*above, key] = value
    return flat
