"""Archives of daily files to try the program on: `kuroshio synth`.

Four layouts, most as the data centres write them; one file a day, its variable in one chunk,
shuffled and deflated but for the last:

oisst     int16 at 0.01 degrees Celsius, cell centres off the poles, latitude rising, one `zlev`
era5      int16, scale and offset change from file to file, kelvin, poles included, latitude falling
f8        float64 with all its digits, poles included, latitude rising
f8-plain  the same, as it is

Every file of a layout is the same skeleton (made once by netCDF4) with another date and another
chunk, so making a day costs its field, its compression and about a millisecond of HDF5.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deflate
import h5py
import numba
import numpy as np

from .. import calendar
from ..calendar import LEAP_DAY
from ..errors import Refusal
from ..sizes import size_text
from .shuffle import shuffle
from .synthetic_layouts import LAYOUTS, LEVEL, Layout, grid_of, skeleton_of
from .synthetic_world import FIRST_YEAR, FREEZING, World, make_world

LAST_YEAR = 2200
KELVIN = 273.15


def make_archive(
    directory: str | os.PathLike[str],
    years: tuple[int, int] = (1991, 2020),
    grid: float = 0.25,
    layout: str = "oisst",
    doys: Iterable[int] | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    overwrite: bool = False,
    all_variables: bool = False,
) -> list[Path]:
    """Make a global archive of invented daily files and return their paths in time order.

    years      first and last, both included
    grid       degrees between cells; must divide 180
    layout     'oisst', 'era5' or 'f8'
    doys       days of the leap-template year to make (60 is 29 February); None: all
    seed       the same seed and date always give the same day, whatever else is made
    threads    None: as many as there are processors
    progress   called with (files made, files in all) after each file
    overwrite  replace files that are there; otherwise their presence is refused
    all_variables  the anomaly, error and ice of an OISST file too, not only `sst`

    Raises Refusal for what is not allowed, for files that exist, and for too small a disk.
    """
    chosen, days = _check(years, grid, layout, doys, all_variables)
    folder = Path(directory)
    dates = [calendar.iso_date("standard", int(day)).replace("-", "") for day in days]
    paths = [folder / chosen.file_name.format(date=date) for date in dates]
    _check_folder(folder, paths, overwrite)
    latitude, longitude = grid_of(grid, chosen)
    world = make_world(latitude, longitude, seed, years[1])
    skeleton = skeleton_of(chosen, latitude, longitude, all_variables)

    def make(number: int) -> None:
        _write_day(paths[number], world, chosen, skeleton, int(days[number]), all_variables)

    make(0)  # compiles, and shows what a file needs
    _check_space(folder, paths[0].stat().st_size * (len(paths) - 1))
    if progress:
        progress(1, len(paths))
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            for done, _ in enumerate(pool.map(make, range(1, len(paths))), 2):
                if progress:
                    progress(done, len(paths))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return paths


def _check(
    years: tuple[int, int],
    grid: float,
    layout: str,
    doys: Iterable[int] | None,
    all_variables: bool,
) -> tuple[Layout, np.ndarray]:
    """The layout and the days to make (day numbers, rising), or a refusal."""
    first, last = years
    if not FIRST_YEAR <= first <= last <= LAST_YEAR:
        raise Refusal(
            f"The years {first} to {last} cannot be made: give a first and a last year "
            f"between {FIRST_YEAR} and {LAST_YEAR}, in this order."
        )
    if layout not in LAYOUTS:
        raise Refusal(f"There is no layout {layout!r}; choose from {', '.join(LAYOUTS)}.")
    if all_variables and layout != "oisst":
        raise Refusal(f"Only the oisst layout has further variables; the layout is {layout!r}.")
    if not 0 < grid <= 60 or abs(180 / grid - round(180 / grid)) > 1e-6:
        raise Refusal(
            f"A grid of {grid:g} degrees does not fit the globe: the spacing must divide 180, "
            "for example 0.25, 0.5, 1, 2 or 5."
        )
    wanted = range(1, 367) if doys is None else sorted(set(doys))
    if not wanted or wanted[0] < 1 or wanted[-1] > 366:
        raise Refusal("The days of year to make must be numbers from 1 to 366, at least one.")
    days = [
        int(calendar.day_number("standard", year, doy))
        for year in range(first, last + 1)
        for doy in wanted
        if doy != LEAP_DAY or calendar.is_leap(year)
    ]
    if not days:
        raise Refusal(f"No year from {first} to {last} has a 29 February, the only day asked for.")
    return LAYOUTS[layout], np.array(days)


def _check_folder(folder: Path, paths: list[Path], overwrite: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"The folder {folder} cannot be made: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        raise Refusal(f"The folder {folder} may not be written to. Choose another one.")
    there = [path for path in paths if path.exists()]
    if there and not overwrite:
        raise Refusal(
            f"{len(there)} of the files to make exist already, the first is {there[0]}. "
            "Choose another folder, or pass --overwrite (overwrite=True) to replace them."
        )


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise Refusal(
            f"The files need about {size_text(needed)} more and {folder} has {size_text(free)} "
            "free. Choose a folder with more room, or make fewer of them or of a coarser grid."
        )


def _write_day(
    path: Path, world: World, layout: Layout, skeleton: bytes, day: int, all_variables: bool
) -> None:
    """One file, written beside and renamed, so that a file that is there is whole."""
    field: np.ndarray = np.empty(world.land.shape, layout.precision)
    world.fill(day, field)
    attrs: dict[str, float] = {}
    if layout.dtype == "<f8":
        chunks = {"sst": field}
    elif layout.time_scale == 24:
        chunks, attrs = _encode_era5(field)
    else:
        chunks = {"sst": _encode(field, 0.01, 0.0, -999)}
        if all_variables:
            chunks |= _oisst_others(world, day, field)
    noon = np.datetime64(day, "D") + np.timedelta64(12, "h")
    time = (noon - layout.epoch) / np.timedelta64(24 // layout.time_scale, "h")
    stored = {name: _stored(codes, layout.deflated) for name, codes in chunks.items()}
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(skeleton)
        with h5py.File(part, "r+") as file:
            file["time"][0] = time
            for name, raw in stored.items():
                file[name].id.write_direct_chunk((0,) * len(layout.dims), raw)
            for name, value in attrs.items():
                file["sst"].attrs.modify(name, np.float64(value))
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise Refusal(
                f"The file {path} cannot be written: {error.strerror or error}. "
                "What was made before it is whole; make the rest elsewhere, or free space."
            ) from error
        raise


def _stored(codes: np.ndarray, deflated: bool) -> bytes | bytearray:
    return deflate.zlib_compress(shuffle(codes).data, LEVEL) if deflated else codes.tobytes()


def _encode_era5(celsius: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Codes that use all of int16, with the scale and offset (kelvin) that this takes."""
    low, high = np.nanmin(celsius) + KELVIN, np.nanmax(celsius) + KELVIN
    scale = max(float(high - low), 1e-3) / 65532
    offset = float(high + low) / 2
    codes = _encode(celsius, scale, offset - KELVIN, -32767)
    return {"sst": codes}, {"scale_factor": scale, "add_offset": offset}


def _oisst_others(world: World, day: int, celsius: np.ndarray) -> dict[str, np.ndarray]:
    """Anomaly from the invented climate, a made-up error, and ice where the sea is freezing."""
    error = np.where(world.land, np.nan, 0.12 + 0.4 * world.spread)
    cold = np.where(celsius <= FREEZING + 0.3, celsius, np.nan)
    ice = 100 * np.clip(1 - (cold - FREEZING) / 0.3, 0.15, 1)
    others = {"anom": celsius - world.climate(day), "err": error, "ice": ice / 100}
    return {
        name: _encode(values.astype(np.float32), 0.01, 0.0, -999) for name, values in others.items()
    }


def _encode(values: np.ndarray, scale: float, offset: float, fill: int) -> np.ndarray:
    codes = np.empty(values.shape, np.int16)
    _encode_into(values.reshape(-1), 1 / scale, offset, fill, codes.reshape(-1))
    return codes


@numba.njit(nogil=True, cache=True)
def _encode_into(
    values: np.ndarray, steps: float, offset: float, fill: int, codes: np.ndarray
) -> None:
    for i in range(values.size):
        value = values[i]
        if np.isnan(value):
            codes[i] = fill
        else:
            codes[i] = np.int16(np.rint((value - offset) * steps))
