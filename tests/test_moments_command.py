"""`kuroshio moments` on files: same climatology, few files read, nothing lost when killed."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from cli_runs import assert_refused, left_over, run_here, start
from kept import arrays, facts
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.model import Piece
from kuroshio.archive.read import Reader
from kuroshio.archive.synthetic import make_archive
from kuroshio.moments.job import Means, update

DATE = re.compile(r"(\d{8})\.nc$")


@pytest.fixture(scope="module")
def days(tmp_path_factory) -> Iterator[Path]:
    """Four years of daily files, and an index of its own that knows them."""
    folder = tmp_path_factory.mktemp("days") / "sst"
    make_archive(folder, (2001, 2004), 20.0, "oisst")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield folder


@pytest.fixture
def state(days, place) -> Path:
    path = place / "s.zarr"
    done = run_here("moments", "new", days, "--baseline", 2001, 2003, "-q", "-o", path)
    assert done.status == 0, done
    return path


def same(one: Path, other: Path) -> None:
    expected = arrays(other)
    for name, kept in arrays(one).items():
        np.testing.assert_array_equal(kept, expected[name], name)


@pytest.mark.parametrize("options", [
    (),
    ("--percentile", "10", "90", "--no-smooth", "--extra", "count", "std", "skewness"),
    ("--doys", "336:60", "--feb29", "pool", "--min-valid", "0.9", "--smooth-width", "5"),
])  # fmt: skip
def test_the_same_file_as_of_the_files(days, state, place, options):
    """Values, variables and attributes; the history says how it came about."""
    kept, direct = place / "kept.nc", place / "direct.nc"
    done = run_here("moments", "climatology", state, "-q", "-o", kept, *options)
    assert done.status == 0, done
    done = run_here("climatology", days, "--baseline", 2001, 2003, "--method", "moments", "-q",
                    "-o", direct, *options)  # fmt: skip
    assert done.status == 0, done
    with xr.open_dataset(kept) as one, xr.open_dataset(direct) as other:
        assert [*one.variables] == [*other.variables]
        for name, variable in other.variables.items():
            assert one[name].dims == variable.dims
            assert one[name].dtype == variable.dtype
            assert one[name].attrs == variable.attrs, name
            np.testing.assert_allclose(one[name], variable, rtol=3e-6, atol=1e-5, err_msg=name)
        histories = [each.attrs.pop("history").split("\n") for each in (one, other)]
        assert {k: np.array(v).tolist() for k, v in one.attrs.items()} == {
            k: np.array(v).tolist() for k, v in other.attrs.items()
        }
        assert list(map(len, histories)) == [2, 1]  # of the command before, too


def test_an_update_reads_its_own_days_only(days, state, monkeypatch):
    """All other files are gone before it begins, and none is looked for to tell land by."""
    looked_at = []
    usual = Reader._valid

    def valid(reader: Reader, piece: Piece) -> np.ndarray:
        looked_at.append(piece.where.path)
        return usual(reader, piece)

    monkeypatch.setattr(Reader, "_valid", valid)
    archive = open_archive(str(days))
    kept = {}
    for path in days.iterdir():
        date = DATE.search(path.name)[1]
        if "20020106" <= date <= "20031226":
            kept[path] = path.read_bytes()
            path.unlink()
    try:
        done = update(state, archive, [2004], [2001], Means(threads=2))
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
    assert looked_at
    assert not {*looked_at} & {*map(str, kept)}
    assert done.plan.pieces == done.plan.loads == 365 + 5 + 366 + 5
    assert facts(state).years == (2002, 2003, 2004)
    other = state.with_name("other.nc")
    ks.moments.new(str(days), other, baseline=(2002, 2004))
    same(state, other)
    assert done.summary()["pieces"] == 741


def test_the_command_line(days, state, place):
    done = run_here("moments", "update", state, days, "--add", 2004, "--remove", 2001, "2002",
                    "--json", "-o", place / "late.nc")  # fmt: skip
    assert done.status == 0, done
    told = json.loads(done.out)
    assert told["years"] == [2003, 2004]
    assert told["read_amplification"] == 1
    assert facts(state).years == (2001, 2002, 2003)
    done = run_here("moments", "info", place / "late.nc")
    assert "2003-2004" in done.out
    assert "exact" in done.out
    told = json.loads(run_here("moments", "info", state, "--json").out)
    assert told["years"] == "2001-2003"
    assert told["source_file_count"] == 1461
    with pytest.warns(UserWarning, match="Days are missing"):
        ks.moments.new(str(days / "*20010[1-9][0-9][0-9].nc"), place / "part.nc",
                       baseline=(2001, 2001), half_width=1, overwrite=True)  # fmt: skip
    found = ks.moments.climatology(state, percentile=[10, 90], output=place / "c.zarr")
    assert found.thresh.dims == ("dayofyear", "percentile", "lat", "lon")
    found.close()


def test_refusals_name_what_came(days, state, place):
    clim = place / "clim.nc"
    run_here("moments", "climatology", state, "-q", "-o", clim)
    assert_refused(run_here("moments", "info", clim), "holds no moments")
    assert_refused(run_here("moments", "info", place / "none.nc"), "There is no file")
    assert_refused(run_here("info", state), "is no climatology", "moments info")
    (place / "text.nc").write_text("no")
    assert_refused(run_here("moments", "info", place / "text.nc"), "cannot be read")
    assert_refused(run_here("moments", "new", days, "-o", state), "exists")
    assert_refused(run_here("moments", "climatology", state, "-o", state, "--overwrite"),
                   "is the file of moments")  # fmt: skip
    assert_refused(run_here("moments", "update", state, days, "--add", 2003), "2003 is there")
    assert_refused(run_here("moments", "climatology", state, "-o", place / "x.nc", "--percentile",
                            0), "between 0 and 100")  # fmt: skip
    assert_refused(run_here("moments", "climatology", state, "-o", place / "x.nc", "--memory",
                            "1K"), "not enough memory")  # fmt: skip
    first = next(days.iterdir())
    assert_refused(run_here("moments", "new", days, "--baseline", 2001, 2003, "-o", first,
                            "--overwrite"), "one of the files to be read")  # fmt: skip
    assert left_over(place) == ["clim.nc", "s.zarr", "text.nc"]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("how", ["interrupt", "full", "rename"])
def test_a_killed_update_leaves_what_was(days, state, place, monkeypatch, suffix, how):
    path = place / f"t{suffix}"
    ks.moments.new(str(days), path, baseline=(2001, 2003))
    before, listed = arrays(path), left_over(place)
    store = {".nc": "write_netcdf.NetcdfStore", ".zarr": "write_zarr.ZarrStore"}[suffix]
    calls = []

    def fail(*_: object) -> None:
        calls.append(1)
        if len(calls) > 20 or how == "rename":
            raise {
                "interrupt": KeyboardInterrupt(),
                "full": OSError(errno.ENOSPC, "No space left on device"),
                "rename": OSError(errno.EIO, "Input/output error"),
            }[how]

    with monkeypatch.context() as patch:
        if how == "rename":
            patch.setattr(os, "replace", fail)
            patch.setattr(os, "rename", fail)
        else:
            patch.setattr(f"kuroshio.archive.{store}.store", fail)
        done = run_here("moments", "update", path, days, "--add", 2004, "-q")
    assert done.status == (130 if how == "interrupt" else 2), done
    assert left_over(place) == listed
    after = arrays(path)
    for name, kept in before.items():
        np.testing.assert_array_equal(after[name], kept, name)
    done = run_here("moments", "update", path, days, "--add", 2004, "-q")
    assert done.status == 0, done


def test_a_signal(days, state, place):
    """A real process, told to end in the middle of its work."""
    code = (
        "import os, signal\nfrom kuroshio.kernels import kept_codes\nusual = kept_codes.change\n"
        "def change(*args):\n    os.kill(os.getpid(), signal.SIGTERM)\n    usual(*args)\n"
        "kept_codes.change = change\n"
    )
    before = arrays(state)
    process = start("moments", "update", state, days, "--add", 2004, "-q", code=code)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert left_over(place) == ["s.zarr"]
    for name, kept in arrays(state).items():
        np.testing.assert_array_equal(kept, before[name], name)


def test_files_of_several_scales(place):
    """On one lattice that differs from run to run: equal to its rounding."""
    make_archive(place / "sst", (2001, 2003), 30.0, "era5")
    path, other = place / "s.nc", place / "other.nc"
    ks.moments.new(str(place / "sst" / "*200[12]*"), path, baseline=(2001, 2002))
    ks.moments.update(path, str(place / "sst"), add=[2003], remove=[2001])
    ks.moments.new(str(place / "sst"), other, baseline=(2002, 2003))
    assert facts(path).keys is None
    expected = arrays(other)
    for name, kept in arrays(path).items():
        np.testing.assert_allclose(kept, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_damage_is_named(days, place, suffix):
    path = place / f"s{suffix}"
    ks.moments.new(str(days), path, baseline=(2001, 2002))
    file = path if suffix == ".nc" else path / "sum2" / "c" / "3" / "0" / "0"
    content = bytearray(file.read_bytes())
    half = len(content) // 2
    content[half : half + 3000] = bytes(3000)[: len(content) - half]
    file.write_bytes(content)
    with pytest.raises(ks.Refusal, match=rf"{path}.*(damaged|cannot be read)"):
        ks.moments.climatology(path)
