"""One file -> facts: its layout, dates, packing, and where its numbers lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from h5py import h5d

from . import hdf5, netcdf3
from .badfile import BadFile
from .choose import Var
from .facts import FileFacts, Storage
from .layout import Layout, describe
from .likeness import Likeness
from .packing import packing
from .timeaxis import calendar_name, seconds


class Scanner:
    """Scans files one after the other; a file like an earlier one costs a fraction of the first.

    variable  None: the first file decides (see `choose.choose_variable`), the others must have it
    layouts   the layouts met so far, by fingerprint
    """

    def __init__(self, variable: str | None, select: Mapping[str, int]) -> None:
        self.variable = variable
        self.select = dict(select)
        self.layouts: dict[str, Layout] = {}
        self._known: list[Likeness] = []

    def scan(self, path: str) -> FileFacts:
        """Facts of one file. BadFile: unreadable or truncated. Refusal: what it holds is no use."""
        try:
            with open(path, "rb") as file:
                magic = file.read(8)
        except OSError as error:
            raise BadFile(path, error.strerror or str(error)) from error
        if not magic:
            raise BadFile(path, "it is empty")
        if magic[:3] == b"CDF":
            netcdf3.check_size(path)
        for likeness in self._known if magic == hdf5.SIGNATURE else ():
            facts = likeness.facts(path)
            if facts is not None:
                return facts
        return self._describe(path, magic)

    def _describe(self, path: str, magic: bytes) -> FileFacts:
        import netCDF4

        try:
            dataset = netCDF4.Dataset(path)
        except (OSError, RuntimeError) as error:
            raise BadFile(path, _reason(error)) from error
        with dataset:
            try:
                layout, var, time = describe(
                    _variables(dataset), self.variable, self.select, path,
                    lambda time: calendar_name(time.attrs.get("calendar"), path),
                )
                times = seconds(time.read(), time.attrs["units"], time.attrs.get("calendar"), path)
            except (OSError, RuntimeError, IndexError) as error:
                raise BadFile(path, _reason(error)) from error
        layout = self.layouts.setdefault(layout.fingerprint, layout)
        self.variable = self.variable or layout.variable
        attrs, store = dict(var.attrs), None
        has_fill = "_FillValue" in attrs or "missing_value" in attrs
        if magic == hdf5.SIGNATURE:
            store, fill = self._look_into(path, layout)
        else:
            default = hdf5.NETCDF_FILL.get(var.dtype.str[1:])
            fill = {} if default is None else {"_FillValue": default}
        if store is None:
            store = Storage(hdf5.steps_of(var.shape, var.dtype.itemsize, layout.time_axis,
                                          layout.picked))
        how = packing(attrs if has_fill else {**attrs, **fill}, var.dtype, var.name, path)
        return FileFacts(path, layout.fingerprint, var.shape, times, how, store)

    def _look_into(self, path: str, layout: Layout) -> tuple[Storage | None, dict[str, Any]]:
        """Storage and default fill of an HDF5 file, which serves as a likeness from now on."""
        file = hdf5.open_file(path)
        try:
            self._known = [Likeness(file, layout), *self._known[:2]]
            dataset = h5d.open(file, layout.variable.encode())
            return hdf5.storage(file, dataset, path, layout.dtype, layout.time_axis,
                                layout.picked), hdf5.default_fill(dataset)
        except KeyError:  # NetCDF-4 may keep a variable under another name in the file
            return None, {}
        except (OSError, RuntimeError) as error:
            raise BadFile(path, hdf5.reason(error)) from error
        finally:
            file.close()


def _variables(dataset: Any) -> dict[str, Var]:
    """The root group of a netCDF4 dataset, values as stored."""
    dataset.set_auto_maskandscale(False)
    dataset.set_auto_chartostring(False)
    found = {}
    for name, variable in dataset.variables.items():
        if isinstance(variable.dtype, np.dtype):
            dtype = _stored_order(variable)
            found[name] = Var(name, variable.dimensions, variable.shape, dtype,
                              dict(variable.__dict__), partial(variable.__getitem__, Ellipsis))
    return found


def _stored_order(variable: Any) -> np.dtype:
    if variable.endian() == "big" and variable.dtype.itemsize > 1:
        return variable.dtype.newbyteorder(">")
    return variable.dtype


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


def size_and_mtime(path: str) -> tuple[int, int]:
    """Bytes and modification time in nanoseconds: what tells a changed file."""
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns
