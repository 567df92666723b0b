"""Files of moments that were damaged or edited: one paragraph, and never a wrong number."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from cli_runs import assert_refused, left_over, run_here
from kept import facts
from kuroshio.archive.synthetic import make_archive
from kuroshio.moments import job


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Path]:
    """Moments of one year in either format."""
    folder = tmp_path_factory.mktemp("made")
    make_archive(folder / "sst", (2001, 2001), 30.0, "oisst")
    paths = {suffix: folder / f"s{suffix}" for suffix in (".nc", ".zarr")}
    for path in paths.values():
        ks.moments.new(str(folder / "sst"), path, baseline=(2001, 2001))
    make_archive(folder / "more", (2001, 2003), 30.0, "oisst")
    return paths | {"sst": folder / "sst", "more": folder / "more"}


def attribute(name: str, value: Any = None) -> Callable[[h5py.File], None]:
    """An edit that sets it, or takes it away."""

    def edit(file: h5py.File) -> None:
        del file.attrs[name]
        if value is not None:
            file.attrs[name] = value

    return edit


def without(name: str) -> Callable[[h5py.File], None]:
    return lambda file: file.__delitem__(name)


@pytest.mark.parametrize("edit", [
    *map(attribute, ("history", "years", "half_width_days", "calendar", "series_days", "offset",
                     "scale", "sums", "source_variable", "source_type", "year_totals")),
    attribute("kuroshio_moments", "x"), attribute("years", "abc"), attribute("calendar", "moon"),
    attribute("years", np.array([2001, 2050])), attribute("series_days", np.int32(3)),
    attribute("series_days", np.array([5, 1])), attribute("half_width_days", np.int32(-4)),
    attribute("source_type", "f9"), attribute("source_attributes", "{"),
    attribute("year_totals", "[]"), attribute("year_totals", "{}"), attribute("scale", "x"),
    *map(without, ("count", "mean", "sum3", "source_day")),
])  # fmt: skip
def test_an_edited_file_is_refused(made, place, edit):
    path = place / "s.nc"
    shutil.copy(made[".nc"], path)
    with h5py.File(path, "r+") as file:
        edit(file)
    for command in (("info", path), ("climatology", path, "-q", "-o", place / "c.nc"),
                    ("update", path, made["sst"], "--add", 2002, "-q")):  # fmt: skip
        assert_refused(run_here("moments", *command), str(path), "anew")
    assert not (place / "c.nc").exists()


@pytest.mark.parametrize("length", [0, 5, 20])
def test_a_chunk_cut_short_is_named(made, place, length):
    path = place / "s.zarr"
    shutil.copytree(made[".zarr"], path)
    chunk = path / "sum2" / "c" / "3" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:length])
    done = run_here("moments", "climatology", path, "-q", "-o", place / "c.nc")
    assert_refused(done, "damaged", str(path))
    assert not (place / "c.nc").exists()


@pytest.mark.parametrize("command", ["info", "climatology"])
def test_a_damaged_table_of_chunks_is_named(made, place, command):
    """A chunk's place that is no multiple of chunks, in the tree that HDF5 keeps of them."""
    whole, path = made[".nc"].read_bytes(), place / "s.nc"
    nodes = [at for at in range(len(whole)) if whole.startswith(b"TREE\1", at)]
    said = []
    for node in nodes:
        edited = bytearray(whole)
        edited[node + 24 + 8] ^= 1  # behind the head, and the first key's size and mask
        path.write_bytes(edited)
        options = ("-q", "-o", place / "c.nc") if command == "climatology" else ()
        done = run_here("moments", command, path, *options)
        assert_refused(done, str(path))
        assert not (place / "c.nc").exists()
        said.append("is damaged" in done.err)
    assert any(said)


@pytest.mark.parametrize(("call", "words"), [
    (lambda s, d, o: ks.moments.update(s, d, add=2002, output=o), "add is 2002"),
    (lambda s, d, o: ks.moments.update(s, d, remove="2001", output=o), "remove is '2001'"),
    (lambda s, d, o: ks.moments.update(s, d, add=[2002], output=5), "output is 5"),
    (lambda s, d, o: ks.moments.update(None, d, add=[2002], output=o), "path is None"),
    (lambda s, d, o: ks.moments.update(s, d, add=[2002], output=o, threads="2"), "threads is '2'"),
    (lambda s, d, o: ks.moments.new(d, 5), "output is 5"),
    (lambda s, d, o: ks.moments.new(d, o, threads=2.5), "threads is 2.5"),
    (lambda s, d, o: ks.moments.new(d, o, memory_bytes="1G"), "memory_bytes is '1G'"),
    (lambda s, d, o: ks.moments.climatology([s]), "path is"),
    (lambda s, d, o: ks.moments.climatology(s, threads=1.5), "threads is 1.5"),
    (lambda s, d, o: ks.moments.climatology(s, memory_bytes="a"), "memory_bytes is 'a'"),
    (lambda s, d, o: ks.moments.climatology(s, memory_bytes=float("nan")), "memory_bytes is nan"),
])  # fmt: skip
def test_odd_arguments_from_python(made, place, call, words):
    with pytest.raises(ks.Refusal, match=words):
        call(made[".nc"], str(made["sst"]), place / "o.nc")
    assert not (place / "o.nc").exists()


@pytest.mark.parametrize("name", ["count", "mean", "sum1", "sum2", "sum3", "sum4", "all"])
def test_a_chunk_that_is_lost_is_no_zero(made, place, name):
    path = place / "s.zarr"
    shutil.copytree(made[".zarr"], path)
    lost = [*path.glob("*/c/3/0/0")] if name == "all" else [path / name / "c" / "3" / "0" / "0"]
    for chunk in lost:
        chunk.unlink()
    done = run_here("moments", "climatology", path, "-q", "-o", place / "c.nc")
    assert_refused(done, "damaged", str(path))
    done = run_here("moments", "update", path, made["more"], "--add", 2002, "-q")
    assert_refused(done, "damaged", str(path))
    assert left_over(place) == ["s.zarr"]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_two_updates_at_once(made, place, monkeypatch, suffix):
    """The second to end does not undo the first."""
    path, usual, begun = place / f"s{suffix}", job.check_data, []
    ks.moments.new(str(made["more"]), path, baseline=(2001, 2001))

    def meanwhile(*args: Any) -> None:
        if not begun:
            begun.append(1)
            ks.moments.update(path, str(made["more"]), add=[2002])
        usual(*args)

    monkeypatch.setattr(job, "check_data", meanwhile)
    done = run_here("moments", "update", path, made["more"], "--add", 2003, "-q")
    assert_refused(done, "changed by another", str(path))
    assert facts(path).years == (2001, 2002)
    assert left_over(place) == [path.name]
    done = run_here("moments", "update", path, made["more"], "--add", 2003, "-q")
    assert done.status == 0, done


def test_an_infinite_value_cannot_be_taken_away(place):
    days = xr.date_range("2001-01-01", "2002-12-31")
    values = np.random.default_rng().normal(size=(days.size, 2))
    values[10, 0] = np.inf
    data = xr.DataArray(values, {"time": days, "cell": [0, 1]}, name="sst")
    ks.moments.new(data, place / "s.nc", baseline=(2001, 2002))
    with pytest.raises(ks.Refusal, match="2001 hold infinite values"):
        ks.moments.update(place / "s.nc", data, remove=[2001])
    ks.moments.update(place / "s.nc", data, remove=[2002])


def test_a_dimension_that_is_gone(made, place):
    """Of which netCDF4 makes an AttributeError."""
    shutil.copy(made[".nc"], place / "s.nc")
    with h5py.File(place / "s.nc", "r+") as file:
        del file["lat"]
    assert_refused(run_here("moments", "info", place / "s.nc"), "cannot be read", "s.nc")
