"""How far a threshold is from another: figures against NumPy, refusals, the picture."""

from __future__ import annotations

import errno
import json

import h5py
import matplotlib.image
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from cli_runs import assert_refused, left_over, run_here
from kuroshio.accuracy import compare, percent
from kuroshio.errors import Refusal
from kuroshio.output import cell_dims
from kuroshio.plot import style
from kuroshio.request import Request
from small_climatologies import global_grid, loose_grid, polar_grid, write_climatology


def moved(path, to, change):
    """The same file with a threshold that `change` has been let loose on."""
    with xr.open_dataset(path) as dataset:
        other = dataset.load()
    other["thresh"] = (other.thresh.dims, change(other.thresh.values), other.thresh.attrs)
    other.to_netcdf(to)
    return to


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    exact = write_climatology(folder / "exact.nc", global_grid(), land=(0, slice(0, 3)))
    return exact, folder


@given(st.integers(0, 1 << 32), st.floats(0.01, 3), st.lists(st.floats(0.01, 2), min_size=1))
def test_figures_are_those_of_numpy(pair, seed, size, limits):
    exact, folder = pair
    rng = np.random.default_rng(seed)

    def change(thresh):
        gone = rng.random(thresh.shape) < 0.2
        gone[:, 2, 2] = [True, False]
        return np.where(gone, np.nan, thresh + rng.normal(0, size, thresh.shape)).astype("f4")

    estimate = moved(exact, folder / "estimate.nc", change)
    found = compare(exact, estimate, limits)
    with xr.open_dataset(exact) as one, xr.open_dataset(estimate) as other:
        error = other.thresh.values.astype(float) - one.thresh.values
    there = np.isfinite(error)
    assert found.values == there.sum() == found.counts.sum()
    assert found.cells == there.any(0).sum()
    values = error[there]
    np.testing.assert_allclose(found.mean, values.mean(), atol=1e-12)
    np.testing.assert_allclose(found.mean_absolute, np.abs(values).mean())
    np.testing.assert_allclose(found.root_mean_square, np.sqrt((values**2).mean()))
    assert found.largest == np.abs(values).max()
    assert found.largest_on == f"{15 + np.nanargmax(np.nanmax(np.abs(error), (1, 2)))} January"
    kept = there.any(0)
    absolute = np.abs(error[:, kept])
    for limit, share, on_mean, always in zip(
        found.limits, found.share, found.of_cells, found.always, strict=True
    ):
        assert share == pytest.approx((np.abs(values) <= limit).mean())
        assert on_mean == pytest.approx((np.nanmean(absolute, 0) <= limit).mean())
        assert always == pytest.approx((np.nanmax(absolute, 0) <= limit).mean())
    assert found.limits == tuple(sorted(limits))
    np.testing.assert_allclose(found.bias[kept], np.nanmean(error[:, kept], 0), atol=1e-12)
    assert np.isnan(found.bias[~kept]).all()
    inside = np.histogram(values, found.edges)[0][1:-1]
    np.testing.assert_array_equal(found.counts[1:-1], inside)


@pytest.mark.parametrize("grid", [global_grid(10.0), loose_grid(), polar_grid()])
def test_a_picture_of_any_grid(tmp_path, grid):
    exact = write_climatology(tmp_path / "exact.nc", grid)
    estimate = moved(exact, tmp_path / "e.nc", lambda t: t + np.float32(0.2) * (t > 1))
    done = run_here("accuracy", exact, estimate, "-o", tmp_path / "a.png", "--within", "0.3")
    assert done.status == 0, done
    assert "0.3 °C" in done.out
    assert "100.0%" in done.out
    assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.05


def test_json_of_one_of_several_percentiles(tmp_path):
    request = Request(percentiles=(10.0, 90.0))
    exact = write_climatology(tmp_path / "exact.nc", global_grid(), request=request)
    estimate = moved(exact, tmp_path / "e.nc", lambda t: t + np.float32([[[[0.25]], [[0.5]]]]))
    for percentile, away in (("10", 0.25), ("90", 0.5)):
        done = run_here("accuracy", exact, estimate, "--json", "--percentile", percentile)
        said = json.loads(done.out)
        assert said["schema"] == "kuroshio.accuracy/1"
        assert said["percentile"] == float(percentile)
        assert said["mean"] == pytest.approx(away, abs=1e-6)
        assert [each["within"] for each in said["shares"]] == [0.1, 0.3, 0.5]


def test_equal_files(tmp_path):
    exact = write_climatology(tmp_path / "exact.nc", global_grid())
    found = compare(exact, exact)
    assert (found.largest, found.share, found.unlike) == (0.0, (1.0, 1.0, 1.0), ())


def test_files_that_differ_in_more_than_the_estimate_are_compared_and_it_is_said(tmp_path):
    """One year's threshold from the next is of use, too, but it is no error of moments."""
    exact = write_climatology(tmp_path / "exact.nc", global_grid())
    other = Request(baseline=(1992, 2021), half_width=3, method="moments")
    other = write_climatology(tmp_path / "other.nc", global_grid(), request=other)
    done = run_here("accuracy", exact, other, "--json")
    assert json.loads(done.out)["unlike"] == [
        "baseline 1991 to 2020 and 1992 to 2021", "half width 5 and 3"
    ]  # fmt: skip
    assert "1992 to 2021; half width 5 and 3" in " ".join(done.err.split())
    moments = Request(method="moments")
    moments = write_climatology(tmp_path / "moments.nc", global_grid(), request=moments)
    assert run_here("accuracy", exact, moments).err == ""


def test_hardly_all_is_not_all():
    assert (percent(1.0), percent(0.9999), percent(0.952)) == ("100.0%", ">99.9%", "95.2%")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": global_grid(20.0)}, "grid"),
        ({"doys": (15, 17)}, "days of year"),
        ({"request": Request(percentiles=(95.0,))}, "percentile"),
        ({"attrs": {"units": "kelvin"}}, "The unit of"),
    ],
)
def test_files_that_cannot_be_compared(tmp_path, change, words):
    exact = write_climatology(tmp_path / "exact.nc", global_grid())
    other = write_climatology(tmp_path / "other.nc", **{"grid": global_grid(), **change})
    done = run_here("accuracy", exact, other)
    assert done.status == 2
    assert words in done.err
    assert done.out == ""


def test_other_refusals(tmp_path):
    exact = write_climatology(tmp_path / "exact.nc", global_grid())
    nothing = moved(exact, tmp_path / "nothing.nc", lambda t: t * np.float32("nan"))
    with pytest.raises(Refusal, match="No cell"):
        compare(exact, nothing)
    with pytest.raises(Refusal, match="above 0"):
        compare(exact, exact, [0.0])
    for output in ("a.pdf", "absent/a.png"):
        done = run_here("accuracy", exact, exact, "-o", tmp_path / output)
        assert done.status == 2
        assert done.out == ""
    assert run_here("accuracy", exact, tmp_path / "absent.nc").status == 2


def edited(path, to, change):
    with xr.open_dataset(path) as dataset:
        other = dataset.load()
    change(other).to_netcdf(to)
    return to


@pytest.mark.parametrize("name", ["percentile", "month", "day_of_month"])
def test_a_file_that_lacks_a_coordinate(pair, tmp_path, name):
    exact, _ = pair
    bare = edited(exact, tmp_path / "bare.nc", lambda d: d.drop_vars(name))
    for files in ((exact, bare), (bare, exact)):
        with pytest.raises(Refusal, match=f"bare.nc has no {name}"):
            compare(*files)


def test_damage_is_named(pair, tmp_path):
    exact, _ = pair
    broken = tmp_path / "broken.nc"
    with xr.open_dataset(exact) as dataset:
        dataset.load().to_netcdf(broken, encoding={"thresh": {"zlib": True}})
    with h5py.File(broken) as file:
        chunk = file["thresh"].id.get_chunk_info(0)
    with open(broken, "r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\x55" * chunk.size)
    assert_refused(run_here("accuracy", exact, broken), "damaged", "broken.nc")


def test_cells_elsewhere_are_no_errors(tmp_path):
    """Also where their places are no coordinates of dimensions, or are names."""
    exact = write_climatology(tmp_path / "exact.nc", loose_grid())
    with xr.open_dataset(exact) as dataset:
        place = next(n for n, c in dataset.coords.items() if c.dims == cell_dims(dataset))
    away = edited(exact, tmp_path / "away.nc", lambda d: d.assign_coords({place: d[place] + 1}))
    with pytest.raises(Refusal, match="differ: two grids"):
        compare(exact, away)

    def named(letter):
        return lambda d: d.assign_coords(
            {dim: [f"{letter}{i}" for i in range(d.sizes[dim])] for dim in cell_dims(d)}
        )

    one = edited(exact, tmp_path / "one.nc", named("a"))
    assert compare(one, one).largest == 0
    with pytest.raises(Refusal, match="differ: two grids"):
        compare(one, edited(exact, tmp_path / "other.nc", named("b")))


def test_a_disk_that_is_full(pair, tmp_path, monkeypatch):
    """Of the picture nothing is left, and one that was there before stays."""
    exact, _ = pair
    picture = tmp_path / "a.png"
    assert run_here("accuracy", exact, exact, "-o", picture).status == 0
    before = picture.read_bytes()

    def fail(figure, path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(style, "save", fail)
    assert_refused(run_here("accuracy", exact, exact, "-o", picture), "No space left", "a.png")
    assert left_over(tmp_path) == ["a.png"]
    assert picture.read_bytes() == before
