"""NVRTC or hiprtc, called in a process of its own; compilers.py starts it and passes the text."""

from __future__ import annotations

import ctypes
import sys
from typing import Any


def compile_here(library: str, prefix: str, get_code: str, *options: str) -> int:
    """From standard input to standard output, the log to standard error; the compiler's status.

    NVRTC and hiprtc have the same functions under two prefixes.
    """
    functions = ctypes.CDLL(library)

    def call(name: str, *arguments: Any) -> int:
        return getattr(functions, name)(*arguments)

    def fetch(name: str) -> bytes:
        size = ctypes.c_size_t()
        assert call(f"{name}Size", program, ctypes.byref(size)) == 0
        room = ctypes.create_string_buffer(size.value + 1)
        assert call(name, program, room) == 0
        return room.raw[: size.value]

    program = ctypes.c_void_p()
    text = ctypes.c_char_p(sys.stdin.buffer.read())
    name = ctypes.c_char_p(b"kernels")
    created = call(f"{prefix}CreateProgram", ctypes.byref(program), text, name, 0, None, None)
    assert created == 0
    asked = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = call(f"{prefix}CompileProgram", program, len(options), asked)
    sys.stderr.buffer.write(fetch(f"{prefix}GetProgramLog").rstrip(b"\0"))
    if not status:
        sys.stdout.buffer.write(fetch(get_code))
    return status


if __name__ == "__main__":
    sys.exit(compile_here(*sys.argv[1:]))
