"""What the user names -> files, Zarr stores, or objects in memory, each once and in name order."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import Refusal

FILE_SUFFIXES = (".nc", ".nc4", ".h5", ".hdf5", ".cdf", ".he5", ".nc3")
DATA_SIGNATURES = (b"\x89HDF\r\n\x1a\n", b"CDF")
_ZARR_MARKS = (".zgroup", ".zarray", ".zmetadata", "zarr.json")


def find_sources(source: Any) -> tuple[list[str], list[Any]]:
    """Paths of files, and Zarr stores (their paths) and xarray objects, of a user's `source`.

    A folder gives its NetCDF and HDF5 files, else its Zarr stores, else the files of its
    subfolders; a pattern its matches; a text file the paths it lists; a list all of its items.
    Files are sorted by path, which decides what 'first' and 'last' mean among duplicates.
    """
    found = list(_expand(source))
    objects = [item for item in found if not isinstance(item, str)]
    # A dictionary keeps the order, and what is sorted already is sorted at once.
    paths = sorted(dict.fromkeys(item for item in found if isinstance(item, str)))
    stores = {path for path in paths if is_zarr(path)}
    return [p for p in paths if p not in stores], [*sorted(stores), *objects]


def is_zarr(path: str) -> bool:
    """Whether a path is a Zarr store: a folder with its metadata, or named so."""
    if path.lower().endswith(FILE_SUFFIXES):
        return False
    return os.path.isdir(path) and (
        path.rstrip("/\\").endswith(".zarr")
        or any(os.path.exists(os.path.join(path, mark)) for mark in _ZARR_MARKS)
    )


def _expand(source: Any) -> Iterable[Any]:
    if isinstance(source, (str, Path)):
        return _expand_path(os.path.expanduser(os.fspath(source)))
    if type(source).__module__.partition(".")[0] == "xarray":
        return [source]
    if isinstance(source, (list, tuple, set, frozenset)) or hasattr(source, "__next__"):
        items = [found for item in source for found in _expand(item)]
        if not items:
            raise Refusal("The list of files is empty. Give at least one file.")
        return items
    raise Refusal(
        f"An archive cannot be made of {type(source).__name__}. Give a folder, a file, a pattern "
        "such as 'oisst/*.nc', a list of these, a Zarr store, or an xarray object."
    )


def _expand_path(text: str) -> list[str]:
    if not text.strip():
        raise Refusal(
            "The input has an empty name (an unset variable of the shell?). Give a folder, a file "
            "or a pattern; the folder one is in is called '.'."
        )
    if "://" in text:
        raise Refusal(
            f"{text} is an address and not a file. Fetch the files first, or open it with xarray "
            "and pass the DataArray."
        )
    path = os.path.abspath(text)
    if os.path.isdir(path):
        return [path] if is_zarr(path) else _in_folder(path)
    if os.path.exists(path):
        return _from_list(path) if _is_list(path) else [path]
    if glob.has_magic(text):
        found = sorted(glob.glob(path, recursive=True))
        files = [
            f for f in found if f.lower().endswith(FILE_SUFFIXES) or os.path.isfile(f) or is_zarr(f)
        ]
        if files:
            return files
        raise Refusal(
            f"No file matches {text!r} (looked from {os.getcwd()}). Check the folder and the "
            "pattern; '**' looks into subfolders; quote the pattern so that the shell leaves it."
        )
    raise Refusal(
        f"There is no file or folder {text!r} (looked from {os.getcwd()}). Check the spelling, "
        "or give a pattern such as 'oisst/*.nc'."
    )


def _in_folder(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        inside = sorted(entry.path for entry in entries)
    files = [path for path in inside if path.lower().endswith(FILE_SUFFIXES)]
    files = files or [path for path in inside if is_zarr(path)]
    if files:
        return files
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not is_zarr(os.path.join(root, f)))
        files += [os.path.join(root, n) for n in names if n.lower().endswith(FILE_SUFFIXES)]
    if files:
        return sorted(files)
    raise Refusal(
        f"The folder {folder} holds no file named {', '.join('*' + s for s in FILE_SUFFIXES)}, and "
        "neither do its subfolders. Give the folder that does, or a pattern."
    )


def _is_list(path: str) -> bool:
    """Whether a file is a list of files: text, and not named like data."""
    if path.lower().endswith(FILE_SUFFIXES):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError:
        return False  # whoever reads it as data will say why that fails
    return not head.startswith(DATA_SIGNATURES) and b"\0" not in head


def _from_list(path: str) -> list[str]:
    """Paths listed one a line, from the working folder or else from the list's own folder."""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    names = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not names:
        raise Refusal(f"The list {path} names no file. Write one path a line.")
    found: list[str] = []
    for name in names:
        beside = os.path.join(os.path.dirname(path), name)
        try:
            here = os.path.expanduser(name)
            found += _expand_path(
                here if os.path.exists(here) or not os.path.exists(beside) else beside
            )
        except Refusal as refusal:
            raise Refusal(f"In the list {path}: {refusal}") from None
    return found
