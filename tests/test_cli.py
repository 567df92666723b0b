"""The command line as it is used: names of all kinds, pipes, JSON, quiet, closed pipes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from archive_files import write_oisst
from cli_runs import assert_refused, left_over, run, run_here, start
from kuroshio.commands.given import few
from kuroshio.messages import printable

BASELINE = ("--baseline", "2001", "2002")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def open_output(path: Path) -> xr.Dataset:
    return xr.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None)


# -- what is printed where -------------------------------------------------------------------------


def test_help_and_version_are_quick_and_load_little():
    command = [sys.executable, "-X", "importtime", "-m", "kuroshio", "climatology", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "usage: kuroshio climatology" in done.stdout
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "kuroshio.commands" in loaded
    assert not loaded & {"numpy", "xarray", "numba", "rich", "h5py", "zarr"}
    begun = time.perf_counter()
    assert run("--version").out.startswith("kuroshio ")
    assert time.perf_counter() - begun < 5  # a busy machine; the benchmark is stricter


def test_what_is_slow_to_import_waits_until_it_is_wanted(years, tmp_path):
    """A second run of files of plain chunks, silent, begins to read without these."""
    output = tmp_path / "c.nc"
    assert run("plan", years).status == 0  # and the files are known from now on
    code = (
        "import os\n"
        "from kuroshio.archive.read import Reader\n"
        "def load(*_):\n"
        "    print(*sys.modules, flush=True)\n"
        "    os._exit(0)\n"
        "Reader._inflate = Reader.load_together = load\n"
    )
    loaded = set(run("climatology", years, "-q", "-o", output, code=code).out.split())
    assert "numba" in loaded
    assert not loaded & {"h5py", "netCDF4", "rich", "xarray", "zarr"}


def test_numba_is_loaded_meanwhile_a_device_is_made_ready_and_not_before():
    code = "import sys, kuroshio.job\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "kuroshio.device.cuda" in loaded
    assert "numba" not in loaded


@pytest.mark.parametrize("command", ["climatology", "plan", "info", "plot", "synth"])
def test_every_command_has_help_with_an_example(command):
    said = run_here(command, "--help")
    assert said.status == 0
    assert f"kuroshio {command} " in said.out.partition("example")[2]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_the_account_goes_to_standard_output(years, tmp_path, suffix):
    output = tmp_path / f"clim{suffix}"
    done = run("climatology", years, *BASELINE, "--doys", "1:5", "-o", output)
    assert done.status == 0
    assert (
        done.err == "note: A baseline of 2 years is short: thresholds need about 30 "
        "(at least 10) to be steady.\n"
    )
    assert done.out.startswith(f"{output}: ")
    assert "730 days read" not in done.out
    assert re.search(r"^\d+ days read .* 5 days of year written\. .*This run was bound by .*\.$",
                     done.out, re.MULTILINE)  # fmt: skip
    assert "\x1b" not in done.out + done.err


def test_quiet_leaves_the_notes_only(years, tmp_path):
    done = run("climatology", years, *BASELINE, "--doys", 1, "-q", "-o", tmp_path / "c.nc")
    assert (done.status, done.out) == (0, "")
    assert done.err.startswith("note: ")


def test_json_is_all_of_standard_output(years, tmp_path):
    output = tmp_path / "c.nc"
    done = run("climatology", years, *BASELINE, "--doys", 1, "--json", "-o", output)
    assert done.status == 0
    facts = json.loads(done.out, parse_constant=pytest.fail)  # no NaN, which is not JSON
    assert facts["output"] == str(output)
    assert facts["days_of_year"] == 1
    assert facts["skipped"] == []
    assert facts["warnings"] == [done.err.removeprefix("note: ").strip()]
    assert {row["stage"] for row in facts["stages"]} >= {"index", "decode", "wait"}
    refused = run("climatology", years, *BASELINE, "--json", "-o", output)
    assert_refused(refused, "exists")


def test_plan_and_info_as_json(years, tmp_path):
    planned = run_here("plan", years, *BASELINE, "--json")
    facts = json.loads(planned.out, parse_constant=pytest.fail)
    assert facts["variable"] == "sst"
    assert facts["days_to_read"] == 730
    assert planned.err.startswith("note: ")
    run_here("climatology", years, *BASELINE, "--doys", 1, "-q", "-o", tmp_path / "c.nc")
    facts = json.loads(run_here("info", tmp_path / "c.nc", "--json").out)
    assert facts["made"]["baseline"] == [2001, 2002]
    assert "seas" in run_here("info", tmp_path / "c.nc").out
    assert_refused(run_here("info", years), "no climatology of kuroshio")
    assert_refused(run_here("info", tmp_path / "absent.nc"), "There is no file")
    assert_refused(run_here("plot", tmp_path / "absent.nc"), "There is no file")


def test_a_fraction_for_a_percentile_is_questioned(years, tmp_path):
    planned = run_here("plan", years, *BASELINE, "--percentile", 0.9, 99.5)
    assert "If a fraction was meant, write 90." in planned.err
    assert planned.err.count("fraction") == 1


def test_plot_of_another_percentile(years, tmp_path):
    output = tmp_path / "c.nc"
    run_here(
        "climatology", years, *BASELINE, "--doys", 1, "--percentile", 10, 90, "-q", "-o", output
    )
    plotted = run_here("plot", output, "--percentile", 10)
    assert plotted.out.split() == [str(tmp_path / "c_map_01-01_p10.png")]
    assert_refused(run_here("plot", output, "--percentile", 20), "holds 10, 90")


def test_plan_reads_no_data_and_writes_nothing(years, tmp_path, monkeypatch):
    def fetch(*_: object) -> None:
        pytest.fail("data was read")

    for how in ("Reader.load", "Reader.load_together", "Reader.inflate_together", "fetch"):
        monkeypatch.setattr(f"kuroshio.archive.read.{how}", fetch)
    monkeypatch.chdir(tmp_path)
    assert run_here("plan", years, *BASELINE).status == 0
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    [["climatology", "SOURCE", *BASELINE, "-o", "OUT"], ["plan", "SOURCE", *BASELINE],
     ["info", "CLIM"]],
)  # fmt: skip
def test_a_reader_that_goes_away_is_no_error(years, tmp_path, command):
    """kuroshio ... | head -0"""
    clim = tmp_path / "c.nc"
    run_here("climatology", years, *BASELINE, "--doys", 1, "-q", "-o", clim)
    names = {"SOURCE": years, "OUT": tmp_path / "out.nc", "CLIM": clim}
    reading, writing = os.pipe()
    os.close(reading)
    done = run(*(names.get(word, word) for word in command), stdout=writing)
    os.close(writing)
    assert done.status == 0
    assert "Traceback" not in done.err
    assert "BrokenPipe" not in done.err


def test_no_standard_output_at_all(years, tmp_path):
    """kuroshio ... >&-"""
    closed = "import os\nos.close(1)\nsys.stdout = None\n"
    for options in ([], ["--json"], ["-q"]):
        done = run("climatology", years, *BASELINE, "--doys", 1, *options, "--overwrite", "-o",
                   tmp_path / "c.nc", code=closed)  # fmt: skip
        assert done.status == 0, done


def test_closed_standard_error(years, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = run(
        "climatology", years, *BASELINE, "--doys", 1, "-q", "-o", tmp_path / "c.nc", stderr=writing
    )
    os.close(writing)
    assert done.status == 0
    assert (tmp_path / "c.nc").exists()


# -- messages --------------------------------------------------------------------------------------


def test_a_message_in_a_pipe_is_one_line_whatever_its_length(tmp_path):
    long = tmp_path / ("very " * 20) / ("long " * 20) / "folder"
    done = run("climatology", long, "-o", tmp_path / "c.nc")
    assert_refused(done, str(long))


def test_a_message_on_a_terminal_is_coloured_and_wrapped_between_words(tmp_path):
    name = "a-name-" * 20 + ".nc"
    ours, theirs = pty.openpty()
    process = start("climatology", name, "-o", tmp_path / "c.nc", stderr=theirs,
                    env={"TERM": "xterm", "COLUMNS": "60", "NO_COLOR": ""})  # fmt: skip
    process.communicate(timeout=60)
    os.close(theirs)
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:  # the end of a terminal
            break
    os.close(ours)
    text = said.decode().replace("\r\n", "\n")
    assert text.startswith("\x1b[")
    assert text.endswith("\x1b[0m\n")
    assert name in text  # in one piece, to be copied
    lines = [line for line in text.split("\n") if name not in line and "\x1b" not in line]
    assert lines
    assert all(len(line) <= 60 for line in lines)


def test_messages_hold_no_control_characters():
    assert printable("a\x1b[31m\nb\udcff ä") == "a\\x1b[31m\\nb\\udcff ä"


# -- names -----------------------------------------------------------------------------------------

NAMES = [
    "with space.nc",
    'quote\'d "twice".nc',
    "$(touch executed).nc",
    "`touch executed`; touch executed.nc",
    "größe 海.nc",
    "-o.nc",
    "--help.nc",
    "new\nline.nc",
    "[bold]red[nothing].nc",
    "star*?.nc",
    "%s {0} \\.nc",
    "\x1b[31mred.nc",
    os.fsdecode(b"not-utf8-\xff.nc"),
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name(tmp_path, monkeypatch, name):
    """As input, as a member of a folder, as output; nothing is executed."""
    monkeypatch.chdir(tmp_path)
    folder = Path("in")
    folder.mkdir()
    write_oisst(folder / "plain.nc", 8401)
    os.rename(folder / "plain.nc", folder / name)
    write_oisst(folder / "second.nc", 8402)
    options = [*BASELINE, "--doys", "1:3", "--no-smooth", "-q"]
    for number, source in enumerate([folder, folder / name, f"{folder}/[!s]*.nc"]):
        if number == 2 and name.startswith("star"):
            continue
        done = run_here("climatology", source, *options, "-o", f"{number}.nc")
        assert done.status == 0, done
    for suffix in (".nc", ".zarr"):
        output = Path(name).with_suffix(suffix)
        done = run_here("climatology", *options, f"--output={output}", "--", f"in/{name}")
        assert done.status == 0, done
        os.rename(output, f"plain{suffix}")  # netCDF's own readers do not take every name
        with open_output(Path(f"plain{suffix}")) as made:
            assert made.attrs["source_files"].endswith(printable_only(name))
            assert np.isfinite(made.seas).any()
        os.rename(f"plain{suffix}", output)
        said = run_here("info", "--", output)
        if "\\" in name or not name.isascii():
            assert said.status in (0, 2)
        else:
            assert said.status == 0
    done = run_here("climatology", *options, f"--output={name}", "--", f"in/{name}")
    assert_refused(done, "exists", printable(name))
    assert not list(tmp_path.rglob("executed"))
    assert not [n for n in left_over(tmp_path) if n.endswith((".part", ".old"))]


def printable_only(name: str) -> str:
    """How a name stands in the output's attributes: bytes that are no text are spelled out."""
    return name.encode("utf-8", "backslashreplace").decode()


def test_a_damaged_file_of_an_odd_name_is_named(tmp_path):
    for name in NAMES:
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not data\0")
        done = run_here("climatology", folder, *BASELINE, "-o", tmp_path / "c.nc")
        assert_refused(done, printable(name), "--skip-bad")
        (folder / name).unlink()


def test_a_list_file_and_several_sources(tmp_path):
    for i in range(3):
        write_oisst(tmp_path / f"a {i}.nc", 8401 + i)
    names = tmp_path / "list.txt"
    names.write_text("# days\na 0.nc\n\na 1.nc\n")
    done = run_here("climatology", names, tmp_path / "a 2.nc", *BASELINE, "--doys", "1:3", "--json",
                    "-o", tmp_path / "c.nc")  # fmt: skip
    assert json.loads(done.out)["days_read"] == 3


def test_options_that_equal_their_defaults_still_contradict(years, tmp_path):
    for pair in (["--half-width", 5, "--window", 11], ["--smooth-width", 31, "--no-smooth"]):
        done = run_here("climatology", years, *BASELINE, *pair, "-o", tmp_path / "c.nc")
        assert done.status == 2
        assert "not allowed with" in done.err


# -- synth -----------------------------------------------------------------------------------------


def test_synth(tmp_path):
    folder = tmp_path / "made"
    done = run_here("synth", folder, "--grid", 30, "--years", 2000, "--doys", "59:61", "-q")
    assert done.status == 0
    assert re.fullmatch(rf"3 files, 0\.00 GB, in {re.escape(str(folder))}\n", done.out)
    assert len(left_over(folder)) == 3
    again = ["synth", folder, "--grid", 30, "--years", 2000, "--doys", "59:61", "-q"]
    assert_refused(run_here(*again), "3 of the files to make exist", "--overwrite")
    assert run_here(*again, "--overwrite").status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--years", "91"], ["91 to 91", "between"]),
        (["--years", "2000-1999"], ["2000 to 1999", "in this order"]),
        (["--years", "then"], ["'then'", "1991-2020"]),
        (["--grid", "7"], ["7 degrees", "divide 180"]),
        (["--grid", "-1"], ["-1 degrees", "divide 180"]),
        (["--doys", "367"], ["367", "1 to 366"]),
    ],
)
def test_synth_refusals(tmp_path, options, words):
    assert_refused(run_here("synth", tmp_path / "made", *options), *words)
    assert left_over(tmp_path) == []


def test_synth_where_it_cannot_write(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    done = run_here("synth", tmp_path / "file" / "made", "--years", 2000, "--grid", 30)
    assert_refused(done, "cannot be made", "Not a directory")


def test_thousands_of_sources_are_not_all_named_in_the_output():
    names = [f"a/{i}.nc" for i in range(10_000)]
    command = ["climatology", *names, "-o", "clim.nc"]
    short = few(command, names)
    assert short == ["climatology", "a/0.nc", "(9,998 more)", "a/9999.nc", "-o", "clim.nc"]
    assert few(command[:6], names[:5]) == command[:6]
    assert few(["something", "else"], names) == ["something", "else"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="There is no /dev/full here.")
@pytest.mark.parametrize(
    "command", [("perf", "env"), ("perf", "occupancy", "--arch", "sm_90", "--vgpr", "32")]
)
def test_standard_output_that_takes_no_more(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kuroshio", *command], stdout=full, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("kuroshio: What was to be shown could not be written")
    assert "Traceback" not in done.stderr
