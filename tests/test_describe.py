"""The schema: CF attributes and links, the calendar's coordinates, the account of the input."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio import calendar
from kuroshio.archive import describe as module
from kuroshio.archive.describe import describe
from kuroshio.archive.model import Archive, Field, Grid
from kuroshio.errors import Refusal
from kuroshio.request import EXTRAS, Request

PROJECTED = Grid(
    ("y", "x"),
    (3, 4),
    {
        "y": Field(("y",), np.arange(3.0), {"standard_name": "projection_y_coordinate"}),
        "x": Field(("x",), np.arange(4.0), {"standard_name": "projection_x_coordinate"}),
        "lat": Field(("y", "x"), np.zeros((3, 4)), {"units": "degrees_north", "bounds": "lat_b"}),
        "lat_b": Field(("y", "x", "corner"), np.zeros((3, 4, 4)), {"_FillValue": -1.0}),
        "lon": Field(("y", "x"), np.zeros((3, 4)), {"units": "degrees_east"}),
        "depth": Field((), np.array(0.5), {"units": "m"}),
        "crs": Field((), np.array(0), {"grid_mapping_name": "polar_stereographic"}),
    },
)


def archive_of(grid=PROJECTED, cal="standard", days=None, **others):
    start = int(calendar.day_number(cal, 1991, 1))
    values = {
        "variable": "sst",
        "attrs": {
            "units": "degC",
            "standard_name": "sea_surface_temperature",
            "long_name": "Daily sea surface temperature",
            "cell_methods": "area: mean",
            "valid_min": -300,
        },
        "dtype": np.dtype("int16"),
        "grid": grid,
        "calendar": cal,
        "days": np.arange(start, start + 100) if days is None else days,
        "pieces": (),
        "sources": ("a/1.nc", "a/2.nc"),
    }
    return Archive(**{**values, **others})


def test_one_percentile():
    schema = describe(archive_of(), Request(), range(1, 367), sources="a/*.nc", command="run it")
    assert schema.sizes == {"dayofyear": 366, "y": 3, "x": 4, "corner": 4}
    seas, thresh = schema.variables["seas"], schema.variables["thresh"]
    assert set(schema.variables) == {"seas", "thresh"}
    for variable in (seas, thresh):
        assert variable.dims == ("dayofyear", "y", "x")
        assert variable.dtype == np.float32
        assert np.isnan(variable.fill)
        assert variable.attrs["units"] == "degC"
        assert variable.attrs["standard_name"] == "sea_surface_temperature"
        assert variable.attrs["grid_mapping"] == "crs"
        assert "valid_min" not in variable.attrs
    assert seas.attrs["cell_methods"].startswith("area: mean time: mean (comment: pool of 11 days")
    assert "31-day" in seas.attrs["cell_methods"]
    assert seas.attrs["coordinates"].split() == ["month", "day_of_month", "lat", "lon", "depth"]
    assert "percentile" in thresh.attrs["coordinates"].split()
    assert thresh.attrs["long_name"] == "90th percentile of daily sea surface temperature"
    assert schema.coords["percentile"].values.shape == ()
    assert "_FillValue" not in schema.coords["lat_b"].attrs
    assert schema.shape("seas") == (366, 3, 4)
    assert schema.nbytes == 2 * 366 * 12 * 4


def test_several_percentiles_and_all_extras():
    request = Request(percentiles=(10.0, 97.5), extras=EXTRAS, smooth_width=1)
    schema = describe(archive_of(), request, [200, 60])
    assert schema.variables["thresh"].dims == ("dayofyear", "percentile", "y", "x")
    assert schema.shape("thresh") == (2, 2, 3, 4)
    assert schema.chunk_shape("thresh", (8, 2, 2)) == (8, 1, 2, 2)
    assert schema.chunk_shape("seas", (8, 2, 2)) == (8, 2, 2)
    assert list(schema.coords["percentile"].values) == [10, 97.5]
    assert (
        schema.variables["thresh"].attrs["long_name"].startswith("10th and 97.5th percentiles of")
    )
    assert schema.variables["seas"].attrs["ancillary_variables"] == "count"
    assert schema.variables["count"].dtype == np.int16
    assert schema.variables["count"].fill is None
    assert schema.variables["std"].attrs["units_metadata"] == "temperature: difference"
    assert schema.variables["skewness"].attrs["units"] == "1"
    assert schema.attrs["smoothing"] == "none"
    assert "31" not in schema.variables["seas"].attrs["cell_methods"]


def test_a_count_beyond_int16_is_wider():
    request = Request(baseline=(1900, 2020), half_width=179, extras=("count",))
    assert describe(archive_of(), request, [1]).variables["count"].dtype == np.int32


@given(st.sampled_from(sorted(set(calendar.CALENDARS.values()))), st.data())
def test_calendar_coordinates(cal, data):
    length = calendar.template_length(cal)
    doys = data.draw(st.lists(st.integers(1, length), min_size=1, max_size=20, unique=True))
    schema = describe(archive_of(cal=cal), Request(), doys)
    assert list(schema.coords["dayofyear"].values) == doys
    assert schema.coords["dayofyear"].values.dtype == np.int16
    for doy, month, day in zip(
        doys, schema.coords["month"].values, schema.coords["day_of_month"].values, strict=True
    ):
        ordinal = calendar.day_number(cal, 2000, doy)  # a leap year: every day exists
        assert calendar.iso_date(cal, int(ordinal)) == f"2000-{month:02d}-{day:02d}"
    assert ("feb29" in schema.attrs) == (cal == "standard")
    assert schema.attrs["calendar"] == cal


def test_how_it_was_made():
    request = Request(baseline=(1991, 1992), percentiles=(1.0, 2.0, 3.0, 11.0, 50.5), max_pad=2)
    start = int(calendar.day_number("standard", 1991, 1))
    days = np.concatenate([np.arange(start - 5, start + 10), np.arange(start + 20, start + 900)])
    archive = archive_of(days=days, skipped=("bad.nc: truncated",), notes=("two dropped",))
    attrs = describe(archive, request, [1], sources="a/*.nc", command="kuroshio c").attrs
    assert attrs["Conventions"] == "CF-1.11"
    assert "1st, 2nd, 3rd, 11th and 50.5th percentiles" in attrs["title"]
    assert list(attrs["baseline"]) == [1991, 1992]
    assert attrs["baseline_missing_days"] == 10
    assert attrs["source_day_count"] == len(days)
    assert attrs["source_first_day"] == "1990-12-27"
    assert attrs["source_file_count"] == 2
    assert (attrs["source_first_file"], attrs["source_last_file"]) == ("a/1.nc", "a/2.nc")
    assert attrs["skipped_files"] == "bad.nc: truncated"
    assert attrs["notes"] == "two dropped"
    assert attrs["history"].endswith(": kuroshio c")
    assert "10.1016/j.pocean.2015.12.014" in attrs["references"]
    assert "type 7" in attrs["estimator"]
    assert attrs["max_pad_days"] == 2
    json.dumps({k: v.tolist() if hasattr(v, "tolist") else v for k, v in attrs.items()})


def test_the_version_is_known_or_said_to_be_unknown(monkeypatch):
    def missing(name):
        raise module.PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    assert describe(archive_of(), Request(), [1]).attrs["kuroshio_version"] == "unknown"
    monkeypatch.setattr(module, "version", lambda name: "9.8")
    assert describe(archive_of(), Request(), [1]).attrs["kuroshio_version"] == "9.8"


def test_a_bare_variable_needs_no_attributes():
    grid = Grid(("cell",), (5,))
    archive = archive_of(grid, attrs={}, sources=(), days=np.empty(0, np.int64))
    schema = describe(archive, Request(), [1])
    assert schema.variables["seas"].attrs["long_name"] == "climatological mean of sst"
    assert "units" not in schema.variables["seas"].attrs
    assert "grid_mapping" not in schema.variables["seas"].attrs
    assert schema.attrs["history"].endswith("called from Python")


@pytest.mark.parametrize("mapping", ["crs", "crs: x y"])
def test_the_grid_mapping_of_the_variable_is_kept(mapping):
    archive = archive_of(attrs={"grid_mapping": mapping})
    assert describe(archive, Request(), [1]).variables["seas"].attrs["grid_mapping"] == mapping


@pytest.mark.parametrize("name", ["dayofyear", "percentile", "seas", "count"])
def test_names_of_the_output_are_refused_in_the_grid(name):
    grid = Grid((name, "x"), (2, 2))
    with pytest.raises(Refusal, match=name):
        describe(archive_of(grid), Request(extras=("count",)), [1])
