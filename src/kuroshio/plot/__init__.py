"""Pictures of a climatology: maps of chosen days, and the annual cycle at a point; and others.

matplotlib is wanted here and nowhere else; it comes with `pip install 'kuroshio[plot]'`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import xarray as xr

from ..accuracy import Accuracy
from ..errors import Refusal
from ..output import cell_dims, nearest_cell, open_climatology, with_one_percentile

SEASONS = ((1, 15), (4, 15), (7, 15), (10, 15))  # month and day of the default maps
FEW_DAYS = 10  # of year, below which there is no cycle to draw


def plot_climatology(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    doys: Sequence[int] | None = None,
    point: tuple[float, float] | None = None,
    samples: tuple[np.ndarray, np.ndarray] | None = None,
    percentile: float | None = None,
) -> list[Path]:
    """Draw a climatology file and return the pictures' paths (PNG).

    output      folder for the pictures, made if absent; None: beside the climatology
    doys        days of year to map; None: the middle of January, April, July and October, or where
                the file lacks them, up to four days spread over it
    point       latitude and longitude in degrees: the annual cycle is drawn at the nearest cell
                that has values; None: no annual cycle
    samples     days (int64, see `calendar.day_number`) and values at that cell (`nearest_cell`)
                from the source archive, drawn as dots behind the cycle
    percentile  which threshold, where the file holds several, and then part of the pictures'
                names; None: 90 if there, else the highest

    Of a single series, without cells, the annual cycle is drawn and no map.

    Raises Refusal where matplotlib is not installed, the file is no climatology, or a day or
    percentile is not in it.
    """
    _need_matplotlib()
    from .cycle import draw_cycle
    from .maps import draw_maps

    path = Path(path)
    with open_climatology(path) as dataset:
        chosen = with_one_percentile(dataset, percentile)
        positions = _positions(dataset, doys)
        which = "" if percentile is None else f"_p{percentile:g}"
        folder = Path(output) if output is not None else path.parent
        if (folder.exists() and not folder.is_dir()) or folder.suffix.lower() == ".png":
            raise Refusal(
                f"The pictures need a folder and {folder} is a file or named like one. "
                "Give a folder; the pictures in it are named after the climatology."
            )
        folder.mkdir(parents=True, exist_ok=True)
        pictures = []
        if not cell_dims(dataset):  # a single series: nothing to map
            draw_cycle(chosen, None, samples, folder / f"{path.stem}_cycle{which}.png")
            return [folder / f"{path.stem}_cycle{which}.png"]
        for position in positions:
            month, day = int(dataset.month[position]), int(dataset.day_of_month[position])
            picture = folder / f"{path.stem}_map_{month:02d}-{day:02d}{which}.png"
            draw_maps(chosen.isel(dayofyear=position).load(), picture)
            pictures.append(picture)
        if point is not None:
            if dataset.sizes["dayofyear"] < FEW_DAYS:
                raise Refusal(
                    f"{path} holds {dataset.sizes['dayofyear']} days of year; an annual cycle "
                    f"needs at least {FEW_DAYS}. Leave out the point."
                )
            _, cell = nearest_cell(dataset, point)
            picture = folder / f"{path.stem}_cycle_{_point_name(cell)}{which}.png"
            draw_cycle(chosen, point, samples, picture)
            pictures.append(picture)
    return pictures


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise Refusal, before anything is computed, where no picture can be written there."""
    _need_matplotlib()
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise Refusal(f"The picture {path} is to be a .png file, such as accuracy.png.")
    if path.is_dir() or not path.parent.is_dir():
        raise Refusal(f"{path} is a folder, or in none. Give a file in a folder that is there.")


def plot_accuracy(found: Accuracy, path: str | os.PathLike[str]) -> None:
    """Maps and a histogram of `accuracy.compare`, to a .png file.

    Raises Refusal as `check_picture`, and where it cannot be written.
    """
    check_picture(path)
    from .accuracy import draw_accuracy

    with open_climatology(found.exact) as dataset:
        try:
            draw_accuracy(found, with_one_percentile(dataset, found.percentile), Path(path))
        except OSError as error:
            raise Refusal(
                f"The picture {path} could not be written: {error.strerror or error}. Choose "
                "another folder, or free space on its disk."
            ) from error


def plot_ladder(
    bars: Mapping[str, Mapping[str, float]],
    path: str | os.PathLike[str],
    title: str,
    subtitle: str,
) -> None:
    """Stacked bars of seconds, to a .png or .svg file.

    bars  name -> part -> seconds, one at least; all have the same parts

    Raises Refusal where matplotlib is not installed or the file cannot be written.
    """
    _need_matplotlib()
    from .ladder import draw_ladder

    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise Refusal(f"The picture {path} is to be a .png or .svg file, such as ladder.png.")
    try:
        draw_ladder(bars, path, title, subtitle)
    except OSError as error:
        raise Refusal(
            f"The picture {path} could not be written: {error.strerror or error}. Choose another "
            "folder, or free space on its disk."
        ) from error


def why_no_pictures() -> str:
    """Empty where there can be some."""
    if find_spec("matplotlib") is not None:
        return ""
    return (
        "Pictures need matplotlib, which is not installed. "
        "Install it with: pip install 'kuroshio[plot]'"
    )


def _need_matplotlib() -> None:
    if why := why_no_pictures():
        raise Refusal(why)


def _positions(dataset: xr.Dataset, doys: Sequence[int] | None) -> list[int]:
    """Positions along dayofyear of the days to map."""
    held = dataset.dayofyear.values.tolist()
    if doys is not None:
        absent = [doy for doy in doys if doy not in held]
        if absent:
            raise Refusal(
                f"The day of year {absent[0]} is not in the file, which holds {len(held)} days "
                f"from {held[0]} to {held[-1]}."
            )
        return [held.index(doy) for doy in doys]
    dates = list(
        zip(dataset.month.values.tolist(), dataset.day_of_month.values.tolist(), strict=True)
    )
    if all(date in dates for date in SEASONS):
        return [dates.index(date) for date in SEASONS]
    count = min(4, len(held))
    return [int((i + 0.5) * len(held) / count) for i in range(count)]


def _point_name(point: tuple[float, float]) -> str:
    lat, lon = point
    east = (lon + 180) % 360 - 180
    north, east = round(lat, 2), round(east, 2)
    return f"{abs(north):g}{'N' if north >= 0 else 'S'}_{abs(east):g}{'E' if east >= 0 else 'W'}"
