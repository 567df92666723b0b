"""The output's path, checked before any work, and the writer for its format.

What is written, and when it gets its name, is in `write_chunks`; the formats are `write_netcdf` and
`write_zarr`.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from ..errors import Refusal
from ..sizes import size_text
from .describe import Schema
from .model import Spans
from .write_chunks import OutputWriter
from .write_store import Store

LONGEST_NAME = 230  # bytes; file systems allow 255, and the partial output's name is longer
SUFFIXES = (".nc", ".nc4", ".zarr")
CHUNK_DOYS = 8
CHUNK_CELLS = 32768  # about: 1 MB with 8 days of year


def check_output(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """The path, fit to be written to, or a Refusal: to be called before any work is done."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise Refusal(
            f"The output {path} ends in {path.suffix!r}; the ending says the format and must be "
            f"one of {', '.join(SUFFIXES)}. Call it clim.nc, for example."
        )
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise Refusal(
            f"The output's name {path.name} is too long: it may have {LONGEST_NAME} bytes. "
            "Choose a shorter one."
        )
    if path.exists() or path.is_symlink():
        if not overwrite:
            raise Refusal(
                f"The output {path} exists. Choose another name, or pass --overwrite "
                "(overwrite=True) to replace it once the new one is complete."
            )
        _check_replaceable(path)
    folder = path.parent
    if not folder.is_dir():
        if folder.exists():
            raise Refusal(f"{folder} is no folder, so {path} cannot be made. Choose another place.")
        raise Refusal(f"The output's folder {folder} does not exist. Make it first.")
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))
            file.flush()
    except OSError as error:
        raise Refusal(
            f"The output's folder {folder} cannot be written to ({error.strerror}). "
            "Choose another folder."
        ) from error
    return path


def _check_replaceable(path: Path) -> None:
    if path.suffix != ".zarr" and path.is_dir():
        raise Refusal(f"The output {path} is a folder, and is not replaced. Choose another name.")
    markers = ("zarr.json", ".zgroup", ".zmetadata", ".zarray")
    if path.suffix == ".zarr" and not any((path / marker).exists() for marker in markers):
        raise Refusal(f"The output {path} is no Zarr store, and is not replaced.")


def space_warning(path: str | os.PathLike[str], schema: Schema) -> str | None:
    """A sentence to show the user where the disk may turn out too small, else None."""
    folder = Path(path).absolute().parent
    needed, free = schema.nbytes, shutil.disk_usage(folder).free
    if needed <= free:
        return None
    return (
        f"The output needs up to {size_text(needed)} (less once compressed) and {folder} has "
        f"{size_text(free)} free."
    )


def choose_cell_chunks(shape: Sequence[int], room: int = CHUNK_CELLS) -> tuple[int, ...]:
    """Cells of a chunk along each cell dimension: whole rows, as many as make `room` cells.

    Rows that are longer than that are split; of dimensions before the last two, one. Splits are
    even, where that does not take many more.
    """
    chunks: list[int] = []
    for back, size in enumerate(reversed(shape)):
        fewest = math.ceil(size / (max(room, 1) if back < 2 else 1)) or 1
        even = (n for n in range(fewest, fewest + fewest // 4 + 1) if size % n == 0)
        chunks.append(max(math.ceil(size / next(even, fewest)), 1))
        room //= chunks[-1]
    return tuple(reversed(chunks))


def open_output(
    path: str | os.PathLike[str],
    schema: Schema,
    *,
    pool: Executor,
    chunk_doys: int | None = None,
    cell_chunks: Sequence[int] | None = None,
    overwrite: bool = False,
    spans: Spans | None = None,
) -> OutputWriter:
    """Start an output: NetCDF-4 for .nc and .nc4, Zarr 3 for .zarr, by the path's ending.

    pool         threads that compress; may be the one that computes, put() never waits for it
    chunk_doys   days of year in a chunk; None: 8
    cell_chunks  cells in a chunk along each cell dimension; None: as `choose_cell_chunks`. Bands
                 of rows given to `put` must begin and end at its multiples.
    spans        called with (stage, start_s, stop_s, bytes) for the account

    Raises Refusal as `check_output` does, and where the disk is full.
    """
    path = check_output(path, overwrite)
    cells = tuple(schema.sizes[dim] for dim in schema.cell_dims)
    tile = tuple(cell_chunks) if cell_chunks is not None else choose_cell_chunks(cells)
    tile = tuple(max(1, min(a, b)) for a, b in zip(tile, cells, strict=True))
    days = max(1, min(chunk_doys or CHUNK_DOYS, schema.sizes["dayofyear"]))
    return OutputWriter(path, schema, (days, *tile), pool, _store_of(path), spans)


def _store_of(path: Path) -> Callable[[Path, Schema, tuple[int, ...]], Store]:
    """The format's class; imported when wanted, for zarr takes long to import."""
    if path.suffix == ".zarr":
        from .write_zarr import ZarrStore

        return ZarrStore
    from .write_netcdf import NetcdfStore

    return NetcdfStore
