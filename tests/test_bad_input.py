"""Bad input at the command line and in Python: it is named, or skipped and recorded on request."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from archive_files import write_oisst, write_series
from cli_runs import assert_refused, climatology, daily_codes, left_over
from kuroshio import Refusal


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def days(tmp_path) -> Path:
    """A folder of twelve days from 1 January 2001, a file each."""
    folder = tmp_path / "days"
    folder.mkdir()
    for i in range(12):
        write_oisst(folder / f"d{i:02d}.nc", 8401 + i)
    return folder


def warned(source: object, **options) -> tuple[xr.Dataset, list[str]]:
    """The result in Python, and what was warned of on the way, at this line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ks.climatology(source, baseline=(2001, 2002), **options)
    assert {w.filename for w in caught} <= {__file__}
    return found, [str(w.message) for w in caught]


# -- what is there ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nothing/*.nc", "No file matches 'nothing/*.nc'"),
        ("nothing.nc", "no file or folder 'nothing.nc'"),
        ("empty", "holds no file"),
        ("", "empty name"),
        ("https://example.org/a.nc", "is an address"),
        ("empty.txt", "names no file"),
        ("wrong.txt", "In the list"),
    ],
)
def test_no_file_matches(tmp_path, monkeypatch, output, source, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "wrong.txt").write_text("nothing.nc\n")
    assert_refused(climatology(source, output), words)
    with pytest.raises(Refusal, match=words.replace("*", r"\*")):
        ks.climatology(source)


def test_an_unreadable_list_is_named(tmp_path, monkeypatch, output):
    names = tmp_path / "list.txt"
    names.write_text("a.nc\n")
    real = open

    def denied(path, *rest, **named):
        if str(path) == str(names):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **named)

    monkeypatch.setattr("builtins.open", denied)
    assert_refused(climatology(names, output), "list.txt", "Permission denied")


def test_an_unreadable_file_is_named(days, monkeypatch, output):
    def deny(opens):
        def denied(path, *rest, **named):
            if os.fsdecode(path).endswith("d03.nc"):
                raise PermissionError(13, "Permission denied", str(path))
            return opens(path, *rest, **named)

        return denied

    monkeypatch.setattr("builtins.open", deny(open))
    monkeypatch.setattr(h5py.h5f, "open", deny(h5py.h5f.open))
    assert_refused(climatology(days, output), "d03.nc", "Permission denied", "--skip-bad")


def test_a_climatology_is_no_input(years, output):
    assert climatology(years, output, "--doys", 1, "-q").status == 0
    result = climatology(output, output.with_name("second.nc"))
    assert_refused(result, "no gridded variable in", "clim.nc", "daily")


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) * 2 // 3])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "not data":
        path.write_bytes(b"<html>The server is busy</html>")
    else:  # the stored chunk itself: nothing shows it before it is inflated
        with xr.open_dataset(path) as dataset:
            assert dataset.sst.size
        from h5py import File

        with File(path) as file:
            info = file["sst"].id.get_chunk_info(0)
        with open(path, "r+b") as file:
            file.seek(info.byte_offset + info.size // 2)
            file.write(bytes([255 - b for b in data[file.tell() : file.tell() + 8]]))


BADLY = ["truncated", "empty", "not data", "damaged inside"]


@pytest.mark.parametrize("how", BADLY)
def test_bad_file_is_named(days, output, how):
    spoil(days / "d04.nc", how)
    result = climatology(days, output, "--doys", "1:12")
    said = {"truncated": "truncated, ", "empty": "empty", "not data": "neither a NetCDF nor",
            "damaged inside": "compressed data is damaged"}  # fmt: skip
    assert_refused(result, f"The file {days / 'd04.nc'} cannot be used", said[how], "--skip-bad")
    assert left_over(output.parent) == []
    with pytest.raises(Refusal, match=r"d04\.nc cannot be used.*skip_bad=True"):
        ks.climatology(days, baseline=(2001, 2002), doys=range(1, 13))


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("how", BADLY)
def test_bad_file_is_skipped_and_recorded(days, output, how, suffix):
    output = output.with_suffix(suffix)
    spoil(days / "d04.nc", how)
    result = climatology(
        days, output, "--doys", "1:12", "--half-width", 0, "--no-smooth", "--skip-bad", "-q"
    )
    assert result.status == 0, result
    assert f"note: Skipped {days / 'd04.nc'}: " in result.err
    with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
        assert made.attrs["skipped_files"].count(str(days / "d04.nc")) == 1
        missing = np.isnan(made.seas).all(("lat", "lon"))
    assert missing.values.tolist() == [i == 4 for i in range(12)]
    here, said = warned(days, doys=range(1, 13), half_width=0, smooth_width=1, skip_bad=True)
    assert any(s.startswith(f"Skipped {days / 'd04.nc'}: ") for s in said)
    assert str(days / "d04.nc") in here.attrs["skipped_files"]


def test_skipped_at_both_times_are_both_recorded(days, output):
    spoil(days / "d02.nc", "truncated")
    spoil(days / "d07.nc", "damaged inside")
    result = climatology(days, output, "--doys", "1:12", "--skip-bad", "--json")
    assert result.status == 0, result
    with xr.open_dataset(output) as made:
        recorded = made.attrs["skipped_files"]
    assert "d02.nc" in recorded
    assert "d07.nc" in recorded
    assert json.loads(result.out)["skipped"] == recorded.split("; ")
    here, said = warned(days, doys=range(1, 13), skip_bad=True)
    assert here.attrs["skipped_files"] == recorded
    assert sum("Skipped" in s for s in said) == 2


def test_all_bad(days, output):
    for path in days.iterdir():
        spoil(path, "truncated")
    assert_refused(climatology(days, output, "--skip-bad"), "None of the 12 files", "d00.nc")


def test_grids_that_differ(days, output):
    write_oisst(days / "e.nc", 8420, lat0=20.0)
    assert_refused(climatology(days, output), "d00.nc", "e.nc", "-10", "20", "one grid")
    write_oisst(days / "e.nc", 8420, values=np.ones((3, 6), "i2"))
    assert_refused(climatology(days, output), "(4, 6)", "(3, 6)", "remapbil")
    write_oisst(days / "e.nc", 8420, units="kelvin")
    assert_refused(climatology(days, output), "Celsius against kelvin", "one unit")


def test_duplicates(days, output):
    write_oisst(days / "d05_preliminary.nc", 8406, np.full((4, 6), 100, "i2"))
    result = climatology(days, output)
    assert_refused(result, "2001-01-06", "d05.nc", "d05_preliminary.nc", "--duplicates", "final")
    for rule in ("last", "first"):
        result = climatology(days, output, "--duplicates", rule, "--doys", 6, "--half-width", 0,
                             "--no-smooth", "--overwrite", "-q")  # fmt: skip
        assert result.status == 0
        assert f"1 step with a duplicate date was dropped: of each date the {rule}" in result.err
        with xr.open_dataset(output) as made:
            assert not (made.seas == 1.0).any()  # the final file counts
            assert "duplicate" in made.attrs["notes"]


def test_missing_days_are_counted_and_order_does_not_matter(days, output):
    for name in ("d03.nc", "d08.nc"):
        (days / name).unlink()
    os.rename(days / "d00.nc", days / "z.nc")
    result = climatology(
        days, output, "--doys", "1:12", "--half-width", 0, "--no-smooth", "-q", "--extra", "count"
    )
    assert result.status == 0
    assert "note: 2 of the 12 days from 2001-01-01 to 2001-01-12 are absent" in result.err
    with xr.open_dataset(output) as made:
        here = made["count"].max(("lat", "lon")).values.tolist()
        assert "2 of the 12 days" in made.attrs["notes"]
    assert here == [i not in (3, 8) for i in range(12)]
    _, said = warned(days, doys=[1])
    assert any("2 of the 12 days" in s for s in said)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (np.arange(40) / 4, ["sub-daily", "00:00 and 06:00", "resample", "cdo daymean"]),
        (np.arange(40) * 30.4, ["monthly", "daily values", "resample"]),
        (np.arange(40) * 7.0, ["7-daily", "daily values"]),
        (np.arange(40) * 365.25, ["yearly", "daily values"]),
    ],
)
def test_not_daily(tmp_path, output, times, words):
    write_series(tmp_path / "a.nc", daily_codes(40), times=times)
    assert_refused(climatology(tmp_path / "a.nc", output), *words)


def test_a_short_baseline_is_a_warning(years, output):
    result = climatology(years, output, "--doys", 1, "-q")
    assert result.status == 0
    assert result.err.startswith("note: A baseline of 2 years is short")
    assert output.exists()
    _, said = warned(years, doys=[1])
    assert len(said) == 1
    assert "baseline of 2 years is short" in said[0]


@pytest.mark.parametrize("linked", [False, True])
def test_the_output_is_no_input(days, tmp_path, linked):
    before = (days / "d00.nc").read_bytes()
    output = days / "d00.nc"
    if linked:
        output = tmp_path / "link.nc"
        output.symlink_to(days / "d00.nc")
    result = climatology(days, output, "--overwrite")
    assert_refused(result, f"{output.name} is one of the files to be read")
    assert (days / "d00.nc").read_bytes() == before
    assert len(left_over(days)) == 12


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_any_failure_leaves_the_old_output(days, output, suffix):
    output = output.with_suffix(suffix)
    assert climatology(days, output, "--doys", 1, "-q").status == 0
    with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
        before = made.load()
    spoil(days / "d11.nc", "damaged inside")
    assert_refused(climatology(days, output, "--doys", "1:12", "--overwrite"), "d11.nc")
    with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
        xr.testing.assert_identical(before, made.load())
    assert left_over(output.parent) == [output.name]


# -- what looks like one kind and is another ------------------------------------------------------


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_floats_that_are_not_codes_after_all(tmp_path, output, suffix):
    """The engine begins with 16-bit keys, meets a value that has none, and starts over."""
    output = output.with_suffix(suffix)
    rng = np.random.default_rng()
    whole = (daily_codes(731, (3, 4), seed=3) / 100).astype("f4")
    whole[:, 0, 0] = np.nan
    odd = whole.copy()
    odd[500, 1, 1] = np.pi
    odd[550:560] += rng.normal(0, 1e-3, (10, 3, 4)).astype("f4")
    for name, values in (("whole", whole), ("odd", odd)):
        (tmp_path / name).mkdir()
        for first in range(0, 731, 20):
            write_series(tmp_path / name / f"{first:04d}.nc", values[first : first + 20], first)
        result = climatology(tmp_path / name, output, "-q", "--no-smooth", "--overwrite")
        assert result.status == 0, result
        assert left_over(output.parent) == [output.name]
        times = np.datetime64("2001-01-01") + np.arange(731)
        pooled = (
            xr.DataArray(
                values.astype("f8"),
                dims=("time", "y", "x"),
                coords={"time": times.astype("M8[ns]")},
            )
            .rolling(time=11, center=True, min_periods=1)
            .construct("window")
        )
        with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
            assert made.sizes["dayofyear"] == 366
            for doy in (40, 137, 192, 300):
                day = np.datetime64("2001-01-01") + doy - 1 - (doy > 60)
                pool = pooled.sel(time=[day, day + 365]).values
                pool = np.moveaxis(pool, -1, 0).reshape(11, 2, 3, 4).reshape(22, 3, 4)
                there = made.sel(dayofyear=doy)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # the cell without values
                    mean, high = np.nanmean(pool, 0), np.nanpercentile(pool, 90, axis=0)
                np.testing.assert_allclose(there.seas, mean, atol=2e-6)
                np.testing.assert_allclose(there.thresh, high, atol=2e-6)
