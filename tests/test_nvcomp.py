"""nvCOMP, as far as it goes without a device: found, of the right version, with its functions."""

from __future__ import annotations

import ctypes
import sys
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from fake_cupy import cupy_is, fake_cupy
from kuroshio.device import cuda, inflater, nvcomp
from kuroshio.device.gpu import GpuError

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="made for Linux only")


@pytest.fixture(autouse=True)
def _anew():
    nvcomp.library.cache_clear()
    yield
    nvcomp.library.cache_clear()


def place(monkeypatch, folder) -> None:
    """The package lies in this folder, or nowhere."""
    spec = ModuleSpec("nvidia.libnvcomp", None, is_package=True)
    if folder is not None:
        spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(nvcomp, "find_spec", lambda _: None if folder is None else spec)


@on_linux
def test_the_library_is_found_and_answers():
    assert nvcomp.library() is not None
    assert nvcomp.scratch_bytes(100, 1 << 20) >= 0


@on_linux
@pytest.mark.parametrize("works", [True, False])
def test_a_device_inflates_once_it_has_been_seen_to(monkeypatch, works):
    asked = []
    monkeypatch.setattr(inflater, "works", lambda gpu: asked.append(gpu) or works)
    with cupy_is(fake_cupy()):
        gpu = cuda.first()
        assert gpu.inflates() == works
        assert (gpu.inflater(100, 1 << 20) is not None) == works
        assert asked == [gpu]


@pytest.mark.gpu
def test_a_real_device_inflates_or_says_no():
    try:
        gpu = cuda.first()
    except GpuError as error:
        pytest.skip(error.what)
    if gpu.inflates():
        assert nvcomp.library() is not None
    elif cuda.kind() == "cuda":
        assert nvcomp.library() is None, "installed, and does not work here"


@on_linux
def test_a_call_that_makes_no_sense_is_refused():
    """Nothing is launched for it; and its parameters arrive as they are declared."""
    table = np.zeros(1, np.uint64)
    address = table.ctypes.data
    with pytest.raises(nvcomp.NvcompFailed, match="answered"):
        nvcomp.inflate(
            0, 1, sources=0, nbytes=address, targets=address, room=address, inflated=address,
            statuses=address, scratch=0, scratch_nbytes=0,
        )  # fmt: skip


def test_the_options_have_the_size_of_the_header():
    assert ctypes.sizeof(nvcomp._Options) == 64


def test_amds_devices_do_not_use_it():
    with cupy_is(fake_cupy(hip=True)):
        assert not cuda.first().inflates()
        assert cuda.first().inflater(1, 1) is None


@pytest.mark.parametrize("what", ["nothing", "an empty folder", "no library", "another version"])
def test_without_it_there_is_no_inflating(tmp_path, monkeypatch, what):
    place(monkeypatch, None if what == "nothing" else tmp_path)
    if what != "an empty folder":
        (tmp_path / "lib64").mkdir()
    if what == "no library":
        (tmp_path / "lib64/libnvcomp.so.6").write_bytes(b"not a library")
    if what == "another version":
        (tmp_path / "lib64/libnvcomp.so.5").write_bytes(b"")
    assert nvcomp.library() is None
    with cupy_is(fake_cupy()):
        assert not cuda.first().inflates()


def test_without_anything_of_nvidias(monkeypatch):
    def find(_: str) -> None:
        raise ModuleNotFoundError("nvidia")

    monkeypatch.setattr(nvcomp, "find_spec", find)
    assert nvcomp.library() is None
