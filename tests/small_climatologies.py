"""Small climatology files on several kinds of grid, for the tests that read such files."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kuroshio.archive.describe import describe
from kuroshio.archive.model import Archive, Field, Grid
from kuroshio.archive.write import open_output
from kuroshio.request import Request


def write_climatology(path, grid, doys=(15, 16), request=None, land=None, attrs=None):
    """A file with seas = day + cell number, thresh 2 above (or below, for low percentiles)."""
    request = request or Request()
    archive = Archive(
        variable="sst",
        attrs=attrs or {"units": "Celsius", "long_name": "Daily sea surface temperature"},
        dtype=np.dtype("int16"),
        grid=grid,
        calendar="standard",
        days=np.arange(7670, 7670 + 10957),
        pieces=(),
        sources=("[1].nc",),
    )
    schema = describe(archive, request, doys, sources="sst/[0-9]*.nc", command="the command")
    cells = np.arange(grid.cells, dtype=np.float32).reshape(grid.shape) / 10
    if land is not None:
        cells[land] = np.nan
    with ThreadPoolExecutor(1) as pool, open_output(path, schema, pool=pool) as writer:
        for at, doy in enumerate(doys):
            writer.put("seas", at, (doy / 100 + cells)[None])
            for k, percentile in enumerate(request.percentiles):
                position = (at, k) if len(request.percentiles) > 1 else at
                away = (percentile - 50) / 20
                writer.put("thresh", position, (doy / 100 + cells + np.float32(away))[None])
    return path


def coordinate(dim, values, units):
    return Field((dim,), np.asarray(values, np.float64), {"units": units})


def global_grid(step=30.0):
    lat, lon = np.arange(-90 + step / 2, 90, step), np.arange(step / 2, 360, step)
    return Grid(
        ("lat", "lon"),
        (lat.size, lon.size),
        {
            "lat": coordinate("lat", lat, "degrees_north"),
            "lon": coordinate("lon", lon, "degrees_east"),
        },
    )


def loose_grid(count=300, seed=0):
    rng = np.random.default_rng(seed)
    lat = np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    return Grid(
        ("ncells",),
        (count,),
        {
            "clat": coordinate("ncells", lat, "degrees_north"),
            "clon": coordinate("ncells", rng.uniform(0, 360, count), "degrees_east"),
        },
    )


def polar_grid(count=24):
    x = np.linspace(-4.5e6, 4.5e6, count)
    across, down = np.meshgrid(x, x)
    lat = 90 - 2 * np.degrees(np.arctan(np.hypot(across, down) / 2 / 6.371e6))
    lon = np.degrees(np.arctan2(across, -down))
    return Grid(
        ("y", "x"),
        (count, count),
        {"y": coordinate("y", x, "m"), "x": coordinate("x", x, "m"),
         "nav_lat": Field(("y", "x"), lat, {"standard_name": "latitude"}),
         "nav_lon": Field(("y", "x"), lon, {"standard_name": "longitude"})},
    )  # fmt: skip
