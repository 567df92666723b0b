"""A copy and its two events in one call of compiled code: what a driver is asked for, in order."""

from __future__ import annotations

import ctypes
import subprocess

import pytest

from kuroshio.device import uploads

DRIVER = """
#include <string.h>
unsigned long long calls[16];
int number = 0, failing = -1;
static int note(unsigned long long which, unsigned long long a) {
    if (number == failing) return 700;
    calls[number++] = which + a;
    return 0;
}
int cuEventRecord(void* event, void* stream) {
    return note(1000, (unsigned long long)event + 100 * (unsigned long long)stream);
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, unsigned long long n, void* s) {
    memcpy((void*)to, from, n);
    return note(2000, 100 * (unsigned long long)s);
}
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A library with a driver's calls, which writes down what it is asked."""
    (tmp_path / "driver.c").write_text(DRIVER)
    path = tmp_path / "libdriver.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, tmp_path / "driver.c"], check=True)
    library = ctypes.CDLL(str(path))
    monkeypatch.setitem(uploads._LIBRARIES, "cuda", ("libnone.so", str(path)))
    uploads.in_one_go.cache_clear()
    yield library
    uploads.in_one_go.cache_clear()


def copied(begin) -> tuple[int, bytes]:
    source, target = ctypes.create_string_buffer(b"kuroshio"), ctypes.create_string_buffer(9)
    status = begin(3, ctypes.addressof(target), ctypes.addressof(source), 5, 4, 7)
    return status, target.value


def test_event_copy_event(driver):
    begin = uploads.in_one_go("cuda")
    assert copied(begin) == (0, b"kuros")
    calls = (ctypes.c_ulonglong * 16).in_dll(driver, "calls")
    assert list(calls)[:4] == [1703, 2700, 1704, 0]


@pytest.mark.parametrize("call", range(3))
def test_what_the_driver_refuses_is_told_and_ends_it(driver, call):
    ctypes.c_int.in_dll(driver, "failing").value = call
    assert copied(uploads.in_one_go("cuda"))[0] == 700
    assert ctypes.c_int.in_dll(driver, "number").value == call


def test_a_driver_that_is_not_loaded_stays_so(monkeypatch):
    monkeypatch.setitem(uploads._LIBRARIES, "cuda", ("libdl.so.2.none", "libBrokenLocale.so.1"))
    uploads.in_one_go.cache_clear()
    assert uploads.in_one_go("cuda") is None
    uploads.in_one_go.cache_clear()
