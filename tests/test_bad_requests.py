"""Bad requests at the command line and in Python: a paragraph that helps, and status 2."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from cli_runs import assert_refused, climatology, left_over, run_here
from kuroshio import Refusal
from kuroshio.archive.write import check_output


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


# -- what is asked for -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--percentile", 101], ["101", "0 to 100"]),
        (["--percentile", 10, -5], ["-5", "0 to 100"]),
        (["--percentile", "nan"], ["nan", "0 to 100"]),
        (["--percentile", 90, 90], ["twice"]),
        (["--window", 10], ["10 days", "odd", "--half-width"]),
        (["--window", -11], ["-11", "odd"]),
        (["--half-width", -1], ["-1", "from 0 to"]),
        (["--half-width", 200], ["200", "from 0 to"]),
        (["--smooth-width", 30], ["30", "odd"]),
        (["--smooth-width", -31], ["-31", "odd"]),
        (["--smooth-width", 367], ["367", "366"]),
        (["--doys", "0:10"], ["0 is outside 1 to 366"]),
        (["--doys", "400"], ["400 is outside 1 to 366"]),
        (["--doys", "June"], ["'June'", "153:244"]),
        (["--doys", "5,5"], ["twice"]),
        (["--min-valid", 80], ["80", "0 to 1", "fraction"]),
        (["--max-pad", -1], ["-1", "0 (no filling)"]),
        (["--threads", 0], ["0 threads", "1 or more"]),
        (["--baseline", 2002, 2001], ["2002 2001", "ends before it starts"]),
        (["--baseline", 1961, 1990], ["1961-1990", "2001 to 2002", "--baseline"]),
        (["--var", "temp"], ["'temp'", "sst(time=", "--var"]),
        (["--sel", "depth=0"], ["depth=0", "lat, lon"]),
        (["--sel", "lat=2"], ["lat"]),
    ],
)
def test_requests_refused(years, output, options, words):
    assert_refused(climatology(years, output, *options), *words)
    assert left_over(output.parent) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--percentile", "ninety"], "'ninety' is not a number from 0 to 100"),
        (["--memory", "lots"], "'lots' is not a size such as 4G"),
        (["--memory", "0"], "'0' is not a size"),
        (["--sel", "depth"], "'depth' is not DIM=INDEX"),
        (["--duplicates", "newest"], "'newest'"),
        (["--window", "11", "--half-width", "5"], "not allowed with"),
        (["--device", "gpu"], "'gpu' is no device. Give auto, cpu, cuda:0"),
        (["--device", "cuda:-1"], "'cuda:-1' is no device"),
        (["--pinned-memory", "much"], "'much' is not a size such as 4G"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_arguments_that_cannot_be_read(years, output, options, words):
    result = climatology(years, output, *options)
    assert result.status == 2
    assert words in result.err
    assert result.out == ""


def test_an_input_after_the_percentiles_is_explained(years, output):
    result = run_here("climatology", "-o", output, "--percentile", 90, years)
    assert result.status == 2
    assert "the input goes before --percentile" in result.err


PYTHON = [
    ({"percentile": 101}, "0 to 100"),
    ({"percentile": []}, "No percentile"),
    ({"half_width": -1}, "from 0 to"),
    ({"half_width": 2.5}, "whole number"),
    ({"smooth_width": 30}, "odd"),
    ({"doys": [0]}, "outside 1 to 366"),
    ({"doys": [5, 5]}, "twice"),
    ({"doys": []}, "No day of year"),
    ({"doys": [1.5]}, "whole number"),
    ({"feb29": "drop"}, "mean, pool"),
    ({"extras": ["median"]}, "count, std"),
    ({"extras": "count"}, "list"),
    ({"baseline": (1961, 1990)}, "2001 to 2002"),
    ({"baseline": 1991}, "two years"),
    ({"baseline": (1991,)}, "two years"),
    ({"baseline": "1991-2020"}, "two years"),
    ({"duplicates": "newest"}, "error, last, first"),
    ({"memory_bytes": 1000}, "not enough memory"),
    ({"memory_bytes": 0}, "not enough memory"),
    ({"threads": 0}, "1 or more"),
    ({"device": 0}, "0 is no device. Give auto, cpu, cuda:0"),
    ({"device": None}, "None is no device"),
    ({"device": "gpu"}, "'gpu' is no device"),
    ({"device": "cuda"}, "'cuda' is no device"),
    ({"pinned_memory_bytes": 0}, "0 bytes of pinned memory"),
    ({"pinned_memory_bytes": -1}, "-1 bytes of pinned memory"),
    ({"pinned_memory_bytes": "2G"}, "it must be a number"),
    ({"variable": "temp"}, "'temp'"),
    ({"select": {"depth": 0}}, "depth=0"),
    ({"output": "clim.txt"}, r"\.nc, \.nc4, \.zarr"),
]


@pytest.mark.parametrize(("options", "words"), PYTHON)
def test_python_refuses_the_same(years, options, words):
    """Refusal is a ValueError, from files and from xarray objects."""
    assert issubclass(Refusal, ValueError)
    with pytest.raises(Refusal, match=words):
        ks.climatology(years, **{"baseline": (2001, 2002), **options})
    with xr.open_dataset(years) as dataset, pytest.raises(Refusal, match=words):
        dataset.kuroshio.climatology(**{"baseline": (2001, 2002), **options})


def test_not_enough_memory_says_both_numbers(years, output):
    result = climatology(years, output, "--memory", "2K")
    assert_refused(result, "not enough memory", "smallest block", "--memory")
    needed, unit, allowed = re.search(
        r"needs ([\d.]+) ([kM]B) and (\S+ \S+) may be used", " ".join(result.err.split())
    ).groups()
    assert allowed == "2.0 kB"
    assert float(needed) * {"kB": 1e3, "MB": 1e6}[unit] > 2000


@pytest.mark.parametrize("what", ["device.memory._aligned", "engines.cpu_block.aligned_zeros"])
def test_memory_that_the_system_does_not_give(years, output, monkeypatch, what):
    def refuse(*_: object) -> None:
        raise MemoryError("Unable to allocate 40 TiB")

    monkeypatch.setattr(f"kuroshio.{what}", refuse)
    assert_refused(climatology(years, output), "memory is exhausted", "smaller --memory")
    assert left_over(output.parent) == []


# -- where it goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_output_exists(years, output, suffix):
    output = output.with_suffix(suffix)
    assert climatology(years, output, "--doys", 1, "-q").status == 0
    assert_refused(climatology(years, output, "--doys", "2:4"), f"{output} exists", "--overwrite")
    assert climatology(years, output, "--doys", "2:4", "-q", "--overwrite").status == 0
    with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
        assert made.dayofyear.values.tolist() == [2, 3, 4]
    assert left_over(output.parent) == [output.name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent/clim.nc", ["does not exist", "Make it first"]),
        ("file/clim.nc", ["is no folder"]),
        ("file/deeper/clim.nc", ["does not exist"]),
        ("clim", ["ends in ''", ".nc", ".zarr"]),
        ("clim.txt", ["'.txt'"]),
        ("folder.nc", ["is a folder"]),
        ("folder.zarr", ["no Zarr store"]),
        ("n" * 252 + ".nc", ["too long"]),
    ],
)
def test_output_that_cannot_be(years, tmp_path, name, words):
    place = tmp_path / "place"
    for folder in ("folder.nc", "folder.zarr"):
        (place / folder).mkdir(parents=True)
        (place / folder / "precious").touch()
    (place / "file").touch()
    before = left_over(place)
    assert_refused(climatology(years, place / name, "--overwrite"), *words)
    assert left_over(place) == before


def test_unwritable_folder(years, output, monkeypatch):
    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    assert_refused(climatology(years, output), "cannot be written to", "Read-only", "another")


def test_the_path_is_checked_before_any_work(tmp_path):
    with pytest.raises(Refusal, match=r"'\.grib'.*\.nc, \.nc4, \.zarr"):
        check_output(tmp_path / "o.grib")
    with pytest.raises(Refusal, match="does not exist"):
        check_output(tmp_path / "no" / "o.nc")
    (tmp_path / "o.nc").touch()
    with pytest.raises(Refusal, match="--overwrite"):
        check_output(tmp_path / "o.nc")
    assert check_output(tmp_path / "o.nc", overwrite=True) == tmp_path / "o.nc"
    (tmp_path / "d.nc").mkdir()
    with pytest.raises(Refusal, match="is a folder"):
        check_output(tmp_path / "d.nc", overwrite=True)
    (tmp_path / "precious.zarr").mkdir()
    with pytest.raises(Refusal, match="no Zarr store"):
        check_output(tmp_path / "precious.zarr", overwrite=True)
    if os.path.isdir("/proc"):
        with pytest.raises(Refusal, match="cannot be written"):
            check_output("/proc/o.nc")


def test_days_of_year_may_be_written_as_on_the_command_line():
    days = np.arange("2000", "2012", dtype="datetime64[D]").astype("datetime64[ns]")
    values = np.random.default_rng().standard_normal((days.size, 2)).astype(np.float32)
    series = xr.DataArray(values, {"time": days}, ("time", "cell"), "sst")
    written = ks.climatology(series, baseline=(2000, 2011), doys="336:60")
    listed = ks.climatology(series, baseline=(2000, 2011), doys=[*range(336, 367), *range(1, 61)])
    xr.testing.assert_equal(written.drop_attrs(), listed.drop_attrs())
