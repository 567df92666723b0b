"""NVIDIA's cubins: ELF with the kernels' attributes in sections .nv.info and .nv.info.KERNEL.

No document of NVIDIA describes them; the names and numbers of attributes are those that
`cuobjdump -elf` prints. Spilled registers are not told apart from other stack.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .elf import CUDA, Elf, Section
from .kernel import Kernel

_DRIVERS_SHARED_BYTES = 1024  # counted with the kernel's shared memory from sm_90 on

_ENTRY = 0x10  # in a symbol's `other`: a kernel
_MAX_THREADS, _REQUIRED_THREADS = 0x05, 0x10
_FRAME_SIZE, _MIN_STACK_SIZE, _REGISTERS, _MOST_REGISTERS = 0x11, 0x12, 0x2F, 0x1B
_NOT_KNOWN = 0xFFFFFFFF  # how deep calls go
_SIZED, _SHORT = 4, 3  # formats: a size and so many bytes; two bytes


@dataclass(frozen=True)
class _Attribute:
    name: int
    content: bytes

    def words(self, count: int) -> tuple[int, ...]:
        if len(self.content) < 4 * count:
            raise ValueError(f"its attribute {self.name:#x} is damaged")
        return struct.unpack_from(f"<{count}I", self.content)


def without_drivers(shared_bytes: int, architecture: str) -> int:
    """A kernel's own shared memory, of what linked code and its tools count."""
    newer = int(re.sub(r"\D", "", architecture)) >= 90
    return max(0, shared_bytes - _DRIVERS_SHARED_BYTES) if newer else shared_bytes


def kernels(code: bytes) -> list[Kernel]:
    """Of one cubin. Those of a program are first taken out of it: cuobjdump -xelf all.

    A linked one tells of recursion; one of nvcc -rdc=true does not tell shared memory.
    """
    elf = Elf(code)
    if elf.machine != CUDA:
        raise ValueError(f"it is for the machine {elf.machine} and not for NVIDIA's GPUs")
    shift = 8 if elf.abi_version >= 8 else 0
    architecture = f"sm_{elf.flags >> shift & 0xFF}"
    sections = {section.name: section for section in elf.sections}
    symbols = elf.symbols()
    registers: dict[int, int] = {}
    stack: dict[int, int] = {}  # of symbols by number
    for attribute in _attributes(sections.get(".nv.info")):
        if attribute.name == _REGISTERS:
            of, number = attribute.words(2)
            registers[of] = number
        elif attribute.name in (_FRAME_SIZE, _MIN_STACK_SIZE):
            of, number = attribute.words(2)
            stack[of] = max(number, stack.get(of, 0))
    if max(stack, default=0) >= len(symbols):
        raise ValueError("its attributes are of symbols that it lacks")
    found = []
    for of, symbol in enumerate(symbols):
        if not symbol.other & _ENTRY or of not in registers:
            continue
        # Functions that a kernel calls lie in its section.
        frames = {n for i, n in stack.items() if symbols[i].section == symbol.section}
        shared = sections.get(f".nv.shared.{symbol.name}")
        own = {a.name: a for a in _attributes(sections.get(f".nv.info.{symbol.name}"))}
        bound = own.get(_REQUIRED_THREADS) or own.get(_MAX_THREADS)
        most = own.get(_MOST_REGISTERS)
        found.append(
            Kernel(
                name=symbol.name,
                architecture=architecture,
                registers=registers[of],
                stack_bytes=max(frames - {_NOT_KNOWN}, default=0),
                dynamic_stack=_NOT_KNOWN in frames,
                spilled=None,
                shared_bytes=without_drivers(shared.nbytes if shared else 0, architecture),
                max_threads=math.prod(bound.words(3)) if bound else None,
                registers_allowed=int.from_bytes(most.content, "little") if most else None,
            )
        )
    return found


def _attributes(section: Section | None) -> Iterator[_Attribute]:
    data, at = section.data if section else b"", 0
    while at + 4 <= len(data):
        form, name, size = struct.unpack_from("<BBH", data, at)
        if form != _SIZED:
            yield _Attribute(name, data[at + 2 : at + 4] if form == _SHORT else b"")
            at += 4
            continue
        if at + 4 + size > len(data):
            raise ValueError("its attributes are cut off")
        yield _Attribute(name, data[at + 4 : at + 4 + size])
        at += 4 + size
