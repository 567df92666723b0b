"""One file -> facts: its layout, dates, packing, and where its numbers lie."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

import numpy as np
from h5py import h5f

from . import hdf5, netcdf3
from .badfile import BadFile
from .choose import Var
from .facts import FileFacts, Form, Ranges, Storage
from .layout import Layout, describe
from .likeness import Likeness
from .packing import packing
from .timeaxis import calendar_name, seconds
from .variables import hdf5_variables, netcdf_variables


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
            kind = os.stat(path).st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # opening a pipe may never end
                raise BadFile(path, "it is a pipe or a device and no file")
            for likeness in self._known:  # at once, without a look at what kind of file it is
                facts = likeness.facts(path)
                if facts is not None:
                    return facts
            with open(path, "rb") as file:
                magic = file.read(8)
        except OSError as error:
            raise BadFile(path, error.strerror or str(error)) from error
        if not magic:
            raise BadFile(path, "it is empty")
        if magic[:3] == b"CDF":
            netcdf3.check_size(path)
            return self._describe_other(path)
        if magic != hdf5.SIGNATURE and not h5f.is_hdf5(os.fsencode(path)):
            return self._describe_other(path)
        return self._describe_hdf5(path)

    def _describe_hdf5(self, path: str) -> FileFacts:
        with hdf5_variables(path) as (file, variables):
            layout, var, times = self._describe(path, variables)
            try:
                likeness = Likeness(file, layout, path)
            except KeyError:  # NetCDF-4 keeps a variable named like a dimension elsewhere
                return _facts(path, layout, var, times, *_in_steps(var, layout), _netcdf_fill(var))
        self._known = [likeness, *self._known[:2]]
        return _facts(path, layout, var, times, likeness.stored, likeness.ranges, likeness.fill)

    def _describe_other(self, path: str) -> FileFacts:
        with netcdf_variables(path) as variables:
            layout, var, times = self._describe(path, variables)
        return _facts(path, layout, var, times, *_in_steps(var, layout), _netcdf_fill(var))

    def _describe(self, path: str, variables: Mapping[str, Var]) -> tuple[Layout, Var, np.ndarray]:
        layout, var, time = describe(
            variables, self.variable, self.select, path,
            lambda time: calendar_name(time.attrs.get("calendar"), path),
        )  # fmt: skip
        times = seconds(time.read(), time.attrs["units"], time.attrs.get("calendar"), path)
        layout = self.layouts.setdefault(layout.fingerprint, layout)
        self.variable = self.variable or layout.variable
        return layout, var, times


def _facts(
    path: str,
    layout: Layout,
    var: Var,
    times: np.ndarray,
    store: Storage,
    ranges: Ranges,
    fill: dict[str, Any],
) -> FileFacts:
    has_fill = "_FillValue" in var.attrs or "missing_value" in var.attrs
    attrs = var.attrs if has_fill else {**var.attrs, **fill}
    how = packing(attrs, var.dtype, var.name, path)
    if layout.time_axis is not None:  # a file may have been given its dates before its data
        times = times[: var.shape[layout.time_axis]]
    return FileFacts(path, Form(layout.fingerprint, var.shape, store), times, how, ranges)


def _in_steps(var: Var, layout: Layout) -> tuple[Storage, Ranges]:
    """Storage that only a library can read, in units of a few steps."""
    unit = hdf5.steps_of(var.shape, var.dtype.itemsize, layout.time_axis, layout.picked)
    return Storage(unit), ()


def _netcdf_fill(var: Var) -> dict[str, Any]:
    default = hdf5.NETCDF_FILL.get(var.dtype.str[1:])
    return {} if default is None else {"_FillValue": default}


def size_and_mtime(path: str) -> tuple[int, int]:
    """Bytes and modification time in nanoseconds: what tells a changed file."""
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns
