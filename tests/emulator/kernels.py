"""Kernel text compiled as C++ behind a shim (shim.h, launch.h): its threads run one by one."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_HERE = Path(__file__).resolve().parent
_FLAGS = ("-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fsanitize=bounds",
          "-fno-sanitize-recover=all", "-static-libubsan")  # fmt: skip
_alone = threading.Lock()  # of a launch: where its threads are is known by variables of the library
_KEPT = Path(tempfile.gettempdir()) / f"kuroshio-emulator-{os.getuid()}"


@functools.cache
def kernels_of(text: str, names: tuple[str, ...]) -> dict[str, Callable[..., None]]:
    """Name -> launch(blocks, threads, args, shared_bytes)."""
    launches = "\n".join(f"LAUNCH({name})" for name in names)
    parts = [(_HERE / "shim.h").read_text(), text, (_HERE / "launch.h").read_text(), launches]
    library = ctypes.CDLL(str(_compiled("\n".join(parts))))
    return {name: functools.partial(_launch, library[f"launch_{name}"]) for name in names}


def _launch(
    function: Any, blocks: int, threads: int, args: Sequence[Any], shared_bytes: int = 0
) -> None:
    held: list[Any] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            held.append(np.array(arg.ctypes.data, np.uint64))
        else:
            held.append(np.array(0 if arg is None else arg, np.uint64 if arg is None else None))
    addresses = (ctypes.c_void_p * len(held))(*(each.ctypes.data for each in held))
    with _alone:
        function(
            ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_size_t(shared_bytes), addresses
        )


def _compiled(text: str) -> Path:
    """The library made of a text; kept between runs, for compiling takes a second."""
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
