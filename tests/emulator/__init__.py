"""The kernels' own text, run on the processor: compiled as C++ behind a shim, thread by thread."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kuroshio.kernels.gpu.programs import Program

_HERE = Path(__file__).resolve().parent
_FLAGS = ("-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fsanitize=bounds",
          "-fno-sanitize-recover=all", "-static-libubsan")  # fmt: skip
_KEPT = Path(tempfile.gettempdir()) / f"kuroshio-emulator-{os.getuid()}"


@functools.cache
def kernels_of(program: Program) -> dict[str, Callable[..., None]]:
    """Name -> launch(grid, block, args, shared_bytes)."""
    launches = "\n".join(f"LAUNCH({name})" for name in program.kernels)
    text = "\n".join(
        [(_HERE / "shim.h").read_text(), program.text, (_HERE / "launch.h").read_text(), launches]
    )
    library = ctypes.CDLL(str(_compiled(text)))
    return {name: functools.partial(_launch, library[f"launch_{name}"]) for name in program.kernels}


def _launch(
    function: Any, grid: int, block: int, args: Sequence[Any], shared_bytes: int = 0
) -> None:
    held = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            held.append(ctypes.c_void_p(arg.ctypes.data))
        elif arg is None:
            held.append(ctypes.c_void_p(0))
        else:
            held.append(np.array(arg))
    addresses = (ctypes.c_void_p * len(held))(
        *(
            each.ctypes.data if isinstance(each, np.ndarray) else ctypes.addressof(each)
            for each in held
        )
    )
    function(ctypes.c_uint(grid), ctypes.c_uint(block), ctypes.c_size_t(shared_bytes), addresses)


def _compiled(text: str) -> Path:
    """The library made of a text; kept between runs, for compiling takes seconds."""
    name = hashlib.blake2b((text + " ".join(_FLAGS)).encode(), digest_size=16).hexdigest()
    _KEPT.mkdir(mode=0o700, exist_ok=True)
    library = _KEPT / f"{name}.so"
    if not library.exists():
        source = _KEPT / f"{name}.{os.getpid()}.cpp"
        source.write_text(text)
        made = source.with_suffix(".so")
        done = subprocess.run(
            ["g++", *_FLAGS, "-o", str(made), str(source)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        source.unlink()
        made.rename(library)
    return library
