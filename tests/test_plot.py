"""Pictures: which are made, that they show the values, and what is refused."""

import itertools

import matplotlib.image
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

import kuroshio.plot as plot
from kuroshio.archive.model import Field, Grid
from kuroshio.errors import Refusal
from kuroshio.plot import cycle, maps, plot_climatology, style
from kuroshio.request import Request
from small_climatologies import global_grid, loose_grid, polar_grid, write_climatology

DEPTHS = Grid(
    ("depth", "lat", "lon"),
    (2, 6, 12),
    {**global_grid().coords, "depth": Field(("depth",), np.array([0.5, 10.0]), {"units": "m"})},
)
TALL = Grid(
    ("lat", "lon"),
    (12, 3),
    {
        "lat": Field(("lat",), np.linspace(0, 60, 12), {"units": "degrees_north"}),
        "lon": Field(("lon",), np.array([358.0, 0.0, 2.0]), {"units": "degrees_east"}),
    },
)


def is_picture(path):
    pixels = matplotlib.image.imread(path)[..., :3]
    return pixels.shape[1] >= 1200 and len(np.unique(pixels.reshape(-1, 3)[::97], axis=0)) > 20


def texts(figure: Figure) -> str:
    return " | ".join(text.get_text() for text in figure.findobj(Text))


@pytest.fixture
def drawn(monkeypatch):
    """The figures, kept as they are saved."""
    figures = []

    def keep(figure, path):
        figures.append(figure)
        save(figure, path)

    save = style.save
    monkeypatch.setattr(style, "save", keep)
    return figures


@pytest.mark.parametrize(
    "grid",
    [global_grid(), loose_grid(), polar_grid(), DEPTHS, TALL, Grid(("a", "b"), (4, 5)),
     Grid(("cell",), (40,))],
    ids=["global", "loose", "polar", "depths", "tall", "bare", "bare loose"],
)  # fmt: skip
def test_every_kind_of_grid_has_a_map(tmp_path, grid, drawn):
    land = np.zeros(grid.shape, bool)
    land[..., :2] = True
    path = write_climatology(tmp_path / "clim.nc", grid, [196], land=land)
    (picture,) = plot_climatology(path)
    assert picture == tmp_path / "clim_map_07-14.png"
    assert is_picture(picture)
    words = texts(drawn[0])
    assert "Daily sea surface temperature, 14 July" in words
    assert "1991\N{EN DASH}2020, 11-day window, 31-day smoothing" in words
    assert "90th percentile minus mean" in words
    assert "°C" in words
    assert ("depth 0.5 m" in words) == (grid is DEPTHS)


def test_one_cell_is_drawn_and_named_by_its_own_degrees(tmp_path, drawn):
    grid = Grid(
        ("lat", "lon"),
        (1, 1),
        {
            "lat": Field(("lat",), np.array([-29.4]), {"units": "degrees_north"}),
            "lon": Field(("lon",), np.array([112.6]), {"units": "degrees_east"}),
        },
    )
    plot_climatology(write_climatology(tmp_path / "clim.nc", grid=grid), doys=[15])
    figure = drawn[0]
    left, right, bottom, top = *figure.axes[0].get_xlim(), *figure.axes[0].get_ylim()
    assert right - left == pytest.approx(1)
    assert top - bottom == pytest.approx(1)
    assert "29.4°S" in texts(figure)
    assert "112.6°E" in texts(figure)


def test_a_single_series_has_a_cycle_and_no_map(tmp_path, drawn):
    path = write_climatology(tmp_path / "grid.nc", global_grid(), doys=range(1, 367))
    with xr.open_dataset(path) as dataset:
        dataset.isel(lat=2, lon=3).drop_vars(["lat", "lon"]).to_netcdf(tmp_path / "one.nc")
        seas = dataset.seas[:, 2, 3].values
    pictures = plot_climatology(tmp_path / "one.nc")
    assert [picture.name for picture in pictures] == ["one_cycle.png"]
    _, mean = (line.get_ydata() for line in drawn[0].axes[0].get_lines())
    np.testing.assert_array_equal(mean, seas)


def test_a_map_without_values_says_so(tmp_path, drawn):
    path = write_climatology(tmp_path / "clim.nc", grid=global_grid())
    with xr.open_dataset(path) as dataset:
        empty = dataset.load()
    empty["seas"][:] = np.nan
    empty["thresh"][:] = np.nan
    empty.to_netcdf(tmp_path / "empty.nc")
    plot_climatology(tmp_path / "empty.nc", doys=[15])
    assert texts(drawn[0]).count("no values on this day of year") == 3


def test_no_text_leaves_the_picture_or_covers_another(tmp_path, drawn):
    for number, grid in enumerate((global_grid(), loose_grid(), DEPTHS, TALL)):
        path = write_climatology(tmp_path / f"{number}.nc", grid, range(1, 367))
        plot_climatology(path, point=(20, 0), doys=[196])
    attrs = {"units": "K", "long_name": "Foundation " + 4 * "sea surface temperature "}
    path = write_climatology(tmp_path / "long.nc", global_grid(), range(15, 17), attrs=attrs)
    plot_climatology(path)
    assert len(drawn) == 10
    for figure in drawn:
        width, height = figure.get_size_inches()
        ink = figure.get_tightbbox()
        assert min(ink.x0, ink.y0) >= -0.01
        assert ink.x1 <= width + 0.01
        assert ink.y1 <= height + 0.01
        titles = [t for t in figure.findobj(Text) if t.get_text() and t.get_fontsize() > 13]
        boxes = [title.get_window_extent() for title in titles]
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other)


def test_default_days_are_the_seasons_or_spread(tmp_path):
    whole = write_climatology(tmp_path / "whole.nc", Grid(("a", "b"), (2, 2)), range(1, 367))
    names = [picture.name for picture in plot_climatology(whole, tmp_path / "new" / "folder")]
    assert names == [f"whole_map_{date}.png" for date in ("01-15", "04-15", "07-15", "10-15")]
    part = write_climatology(tmp_path / "part.nc", Grid(("a", "b"), (2, 2)), range(152, 192))
    assert [p.name[9:14] for p in plot_climatology(part)] == ["06-05", "06-15", "06-25", "07-05"]
    chosen = plot_climatology(whole, doys=[60])
    assert [picture.name for picture in chosen] == ["whole_map_02-29.png"]


def test_the_cycle_shows_the_values_at_the_point(tmp_path, drawn):
    path = write_climatology(tmp_path / "c.nc", global_grid(), range(1, 367))
    days = np.arange(7000, 20000, 7)  # 1989 to 2024
    pictures = plot_climatology(
        path, doys=[1], point=(12, -76), samples=(days, np.full(days.size, 5.0))
    )
    assert pictures[1].name == "c_cycle_15N_75W.png"
    assert is_picture(pictures[1])
    (axes,) = drawn[1].axes
    thresh, seas = (line.get_ydata() for line in axes.get_lines())
    row, column = 3, 9  # centres 15 N, 285 E
    expected = np.arange(1, 367) / 100 + (row * 12 + column) / 10
    np.testing.assert_allclose(seas, expected, rtol=1e-6)
    np.testing.assert_allclose(thresh, expected + 2, rtol=1e-6)
    assert "15°N 75°W" in texts(drawn[1])
    (dots,) = (c.get_offsets() for c in axes.collections if isinstance(c, PathCollection))
    inside = (days >= 7670) & (days < 7670 + 10958)
    assert len(dots) == inside.sum()


def test_a_season_over_the_years_end_is_one_line_and_gaps_are_gaps(tmp_path, drawn):
    doys = [*range(350, 367), *range(1, 20), *range(40, 50)]
    path = write_climatology(tmp_path / "c.nc", global_grid(), doys)
    plot_climatology(path, doys=[1], point=(0, 0))
    x = drawn[1].axes[0].get_lines()[0].get_xdata()
    assert np.isnan(x).sum() == 1
    assert np.nanmin(np.diff(x)) == np.nanmax(np.diff(x)) == 1
    assert list(cycle.unwrapped(np.array([365, 366, 1, 2]), 366)) == [365, 366, 367, 368]


def test_the_wanted_percentile_is_drawn(tmp_path, drawn):
    request = Request(percentiles=(10.0, 90.0, 99.0))
    path = write_climatology(tmp_path / "c.nc", global_grid(), [1], request)
    for percentile, words in ((None, "90th"), (10, "10th"), (99, "99th")):
        plot_climatology(path, percentile=percentile)
        assert f"{words} percentile minus mean" in texts(drawn[-1])
    with pytest.raises(Refusal, match=r"95 is not in the file.*10, 90, 99"):
        plot_climatology(path, percentile=95)


@pytest.mark.parametrize(
    ("values", "ends", "colours"),
    [
        ([0.0, 1.0, 2.0], (0, 2), style.ABOVE_MAP),
        ([0.0, -1.0, -2.0], (-2, 0), style.BELOW_MAP),
        ([-1.0, 0.0, 2.0], (-2, 2), style.BOTH_MAP),
    ],
)
def test_differences_of_one_sign_start_at_zero(values, ends, colours):
    got, name = maps.difference_colours(np.array([*values, np.nan]))
    assert got == pytest.approx(ends, abs=0.03)
    assert name == colours


def test_refusals(tmp_path, monkeypatch):
    path = write_climatology(tmp_path / "c.nc", global_grid(), [1, 2])
    with pytest.raises(Refusal, match="day of year 5 is not in the file"):
        plot_climatology(path, doys=[5])
    with pytest.raises(Refusal, match="at least 10"):
        plot_climatology(path, point=(0, 0))
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"pip install 'kuroshio\[plot\]'"):
        plot_climatology(path)


def test_the_output_must_be_a_folder(tmp_path, drawn):
    path = write_climatology(tmp_path / "c.nc", global_grid(), range(1, 367))
    (tmp_path / "a").write_text("a file")
    for output in ("a", "map.png"):
        with pytest.raises(Refusal, match="need a folder"):
            plot_climatology(path, tmp_path / output)
    assert not (tmp_path / "map.png").exists()


@pytest.mark.parametrize("point", [(95, 10), (10, 500), (float("nan"), 0)])
def test_a_point_must_be_on_the_earth(tmp_path, drawn, point):
    path = write_climatology(tmp_path / "c.nc", global_grid(), range(1, 367))
    with pytest.raises(Refusal, match="latitude first, from -90 to 90"):
        plot_climatology(path, doys=[1], point=point)


def test_single_days_are_drawn_and_dates_do_not_overlap(tmp_path, drawn):
    doys = [1, 32, *range(60, 91)]
    path = write_climatology(tmp_path / "c.nc", global_grid(), doys)
    plot_climatology(path, doys=[1], point=(12, -76))
    (axes,) = drawn[1].axes
    seen = np.concatenate([dots.get_offsets()[:, 0] for dots in axes.collections[1:]])
    assert {1.0, 32.0} <= set(seen.tolist())
    places = axes.get_xticks()
    assert places[0] == 1
    assert np.diff(places).min() > (90 - 1) / 12
