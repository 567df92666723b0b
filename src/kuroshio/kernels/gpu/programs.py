"""Kernel programs: text for one kind of key and one shape of window, ready for a run-time compiler.

A program is the portable part, some numbers as macros, the operation lists printed as text, and the
loops around them (the .h files). So a compiler sees constants wherever a number is known: years of
a word, words of a window, planes, lengths of lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ...device.text import TextEmitter, Value, block
from ...keys import AFFINE16, AFFINE32, FLOAT32, FLOAT64, KEY_BITS, YEARS_PER_WORD
from .. import bitplanes, toplists

KINDS = {"AFFINE16": AFFINE16, "AFFINE32": AFFINE32, "FLOAT32": FLOAT32, "FLOAT64": FLOAT64}
BLOCK = 64  # threads, where a text is made for one number of them

_HERE = Path(__file__).resolve().parent
_PORTABLE = _HERE.parent.parent / "device" / "portable.h"


@dataclass(frozen=True)
class Program:
    """Text for a compiler, and the names of its kernels."""

    text: str
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Windows:
    """What a launch is to find in which windows.

    wanted   numbers of percentiles
    before   percentiles there are in all: the mean is the statistic after them
    mean     whether this launch gives it
    count    the statistic that the number of values is, 0 for none
    """

    words: int
    years: int
    wanted: tuple[int, ...]
    before: int
    mean: bool
    count: int

    def macros(self) -> dict[str, int | str]:
        return {
            "WORDS": self.words,
            "YEARS": self.years,
            "PERCENTILES": len(self.wanted),
            "NUMBERS": ", ".join(map(str, self.wanted)),
            "STATISTICS_BEFORE_MEAN": self.before,
            "WITH_MEAN": int(self.mean),
            "COUNT_AT": self.count,
        }


def rows_program(kind: int) -> Program:
    """What is done to maps and rows of keys before the windows (rows.h, inflated.h)."""
    own = {
        AFFINE16: ("unpack_maps", "sum_bytes", "judge_maps"), FLOAT32: ("unpack_maps",),
        FLOAT64: ("unpack_maps", "fill_gaps"),
    }  # fmt: skip
    return Program(
        _text(_kinds(kind), {}, "values.h", "rows.h", "inflated.h"),
        ("find_references", "place_maps", *own.get(kind, ())),
    )


def moments_program(kind: int, words: int, years: int, estimates: int) -> Program:
    """`moments_of_windows` (moments.h), with so many estimated percentiles."""
    macros = {**_kinds(kind), "WORDS": words, "YEARS": years, "ESTIMATES": estimates}
    return Program(_text(macros, {}, "values.h", "moments.h"), ("moments_of_windows",))


def planes_program(
    kind: int, windows: Windows, planes: tuple[int, int], in_registers: bool
) -> Program:
    """`extremes` and `windows_by_planes` (planes.h).

    planes        fewest and most that the keys of a cell need to be for this program
    in_registers  keep them there instead of in the device's memory
    """
    macros = {
        **_kinds(kind), **windows.macros(), "FEWEST_PLANES": planes[0], "PLANES": planes[1],
        "BLOCK": BLOCK, "IN_REGISTERS": int(in_registers),
    }  # fmt: skip
    words = windows.words
    texts = {
        "TO_PLANES": _to_planes(KEY_BITS[kind], windows.years, planes[1]),
        "SPLIT": _split(words),
        "KEEP": _keep(words),
        "LEAST": _least(words),
    }
    return Program(_text(macros, texts, "values.h", "planes.h"), ("extremes", "windows_by_planes"))


def lists_program(
    windows: Windows, ranks: Sequence[int], longest: int, largest: bool, moves: bool, fewest: int
) -> Program:
    """`windows_by_lists` (lists.h), for 16-bit keys.

    ranks    of each wanted percentile, which value of a full pool it needs, from the lists' end
    longest  values of a list, at least as many as years
    largest  whether lists hold the largest values, or the smallest
    moves    whether this is the launch for blocks with many gaps
    fewest   values that results need, if all days need as many, else 0
    """
    macros = {
        **_kinds(AFFINE16), **windows.macros(), "LONGEST": longest, "LARGEST": int(largest),
        "BLOCK": BLOCK, "MOVES": int(moves), "FEWEST": fewest,
    }  # fmt: skip
    texts = {
        "SORT": _sort(windows.years),
        "JOIN": _join(longest, windows.years),
        "QUERIES": "\n".join(_query(q, k, longest, moves) for q, k in enumerate(ranks)),
    }
    return Program(_text(macros, texts, "values.h", "lists.h"), ("windows_by_lists",))


def _kinds(kind: int) -> dict[str, int | str]:
    return {**KINDS, "KIND": kind}


@cache
def _part(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _text(macros: Mapping[str, int | str], texts: dict[str, str], *parts: str) -> str:
    """The portable part, numbers, and parts in which the names of printed lists are replaced."""
    body = "\n".join(_part(_HERE / part) for part in parts)
    if texts:
        names = re.compile(rf"\b({'|'.join(texts)})\b")
        body = names.sub(lambda found: texts[found[1]], body)
    head = "\n".join(f"#define {name} {value}" for name, value in macros.items())
    return "\n".join([head, _part(_PORTABLE), body])


# -- operation lists printed ---------------------------------------------------------------------


def _names(name: str, count: int) -> list[Value]:
    return [f"{name}[{i}]" for i in range(count)]


def _to_planes(bits: int, years: int, planes: int) -> str:
    """The keys `v` of a word to planes, lowest first."""

    def operations(o: TextEmitter) -> Iterable[tuple[str, Value]]:
        zero = o.const(0)
        if bits == 16:
            v = [f"(u32)v[{y}]" for y in range(years)] + [zero] * (YEARS_PER_WORD - years)
            pairs = [o.or_(v[i], o.shl(v[i + 16], 16)) for i in range(16)]
            found = bitplanes.transpose(o, pairs, 16)
        else:
            found = []
            for low in range(0, bits, 32):
                v = [f"(u32)(v[{y}] >> {low})" for y in range(years)]
                v += [zero] * (YEARS_PER_WORD - years)
                found += bitplanes.transpose(o, v, 32)
        return [(f"RING(place, {p})", found[p]) for p in range(planes)]

    return block(operations)


def _split(words: int) -> str:
    def operations(o: TextEmitter) -> Iterable[tuple[str, Value]]:
        found = bitplanes.split(o, _names("m", words), _names("plane", words), "rank")
        return zip(("ones", "zeros", "parting"), found, strict=True)

    return block(operations)


def _keep(words: int) -> str:
    m = _names("m", words)
    return block(
        lambda o: zip(m, bitplanes.keep(o, m, _names("plane", words), "ones"), strict=True)
    )


def _least(words: int) -> str:
    above = _names("above", words)

    def operations(o: TextEmitter) -> Iterable[tuple[str, Value]]:
        bit, left = bitplanes.least(o, above, _names("plane", words))
        return [("bit", bit), *zip(above, left, strict=True)]

    return block(operations)


def _sort(years: int) -> str:
    v = _names("v", years)
    return block(lambda o: zip(v, toplists.sort(o, v), strict=True), packed=True)


def _join(longest: int, years: int) -> str:
    prefix = _names("prefix", longest)
    return block(
        lambda o: zip(prefix, toplists.join(o, prefix, _names("v", years)), strict=True),
        packed=True,
    )


def _query(q: int, k: int, longest: int, moves: bool) -> str:
    """The list's percentile number `q`, of a full pool the k-th value and the one before it."""
    if moves:
        select = f"""u32 moved[LONGEST];
EACH(int i = 0; i < LONGEST; i++) moved[i] = prefix[i];
{_move(longest)}
{_kth(k, "moved")}"""
    else:
        select = f"""if (any_of(window >= 0 && (beyond0 | beyond1))) {{
again[blockIdx.x] = 1;
return;
}}
{_kth(k, "prefix")}"""
    return f"""{{
const int beyond0 = beyond(done.n[0], quantile[{q}], {k}, done.weight[{q}][0]);
const int beyond1 = beyond(done.n[1], quantile[{q}], {k}, done.weight[{q}][1]);
u32 kth, before;
{select}
done.kth[{q}] = kth;
done.before[{q}] = before;
}}"""


def _move(longest: int) -> str:
    """The list `moved` down by `beyond0` and `beyond1`, with what no key exceeds on top."""
    moves = []
    step = 1 << (longest.bit_length() - 1)
    while step:
        moved = "\n".join(
            f"moved[{i}] = select(where, {f'moved[{i - step}]' if i >= step else '0xffffffffu'}, "
            f"moved[{i}]);"
            for i in range(longest - 1, -1, -1)
        )
        moves.append(
            f"{{ const u32 where = (beyond0 & {step} ? 0xffffu : 0u) | "
            f"(beyond1 & {step} ? 0xffff0000u : 0u);\nif (any_of(where)) {{\n{moved}\n}} }}"
        )
        step //= 2
    return "\n".join(moves)


def _kth(k: int, prefix: str) -> str:
    """The k-th and the (k-1)-th largest of two sorted lists."""

    def operations(o: TextEmitter) -> Iterable[tuple[str, Value]]:
        kth = _largest(o, k, prefix)
        return [("kth", kth), ("before", _largest(o, k - 1, prefix) if k > 1 else kth)]

    return block(operations, packed=True)


def _largest(o: TextEmitter, k: int, prefix: str) -> Value:
    """The k-th largest: the best of the worse of i of one list and k - i of the other."""
    worse = [
        f"suffix[{k - 1}]",
        f"{prefix}[{k - 1}]",
        *(o.min_(f"suffix[{i}]", f"{prefix}[{k - 2 - i}]") for i in range(k - 1)),
    ]
    while len(worse) > 1:  # a tree: a chain would wait for each result
        worse = [*worse[2:], o.max_(worse[0], worse[1])]
    return worse[0]


def word_size(kind: int, planes: int) -> int:
    """32-bit words that the planes of a word take in memory (WORD_SIZE of planes.h)."""
    return planes + (2 if kind == AFFINE16 else 3)


def lists_shared_bytes(words: int, longest: int) -> int:
    """Shared memory of a block of `windows_by_lists`: its lists, sums and numbers of gaps."""
    return 4 * BLOCK * words * (longest + 3)


def row_table(word_rows: np.ndarray) -> np.ndarray:
    """(word, year) numbers of key rows as lists.h reads them: 16 bits, padded to whole 16 bytes."""
    words, years = word_rows.shape
    table = np.zeros((words, -(-years // 8) * 8), np.uint16)
    table[:, :years] = word_rows
    return table
