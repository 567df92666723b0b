"""The environment of a measurement: what is told, and what makes two of them differ."""

from __future__ import annotations

import copy
import ctypes
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_runs import assert_refused
from kuroshio.errors import Refusal
from kuroshio.perf import environment_gpu, nvml
from kuroshio.perf.environment import differences, environment
from perf_runs import run_perf

VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
FACTS = st.recursive(
    st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), VALUES | inner, max_size=3),
    max_leaves=8,
)


def test_environment_is_json_and_says_what_matters(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for name in ("CUPY_SECRET_TOKEN", "HIP_PASSWD", "CUDA_APIKEY", "NCCL_AUTH_ID"):
        monkeypatch.setenv(name, "hidden")
    found = environment("cpu")
    assert json.loads(json.dumps(found)) == found
    assert "numpy" in found["software"]["packages"]
    assert found["settings"]["OMP_NUM_THREADS"] == "3"
    assert "hidden" not in json.dumps(found)
    assert found["cpu"]["processors"] >= 1
    assert found["cpu"]["model"]
    assert found["gpus"] == {}


def test_same_environment_does_not_differ() -> None:
    first, second = environment("cpu"), environment("cpu")
    second["now"]["load_1_minute"] = 99
    assert differences(first, second) == []


def test_differences_are_named() -> None:
    first = environment("cpu")
    second = copy.deepcopy(first)
    second["software"]["packages"]["numpy"] = "0.1"
    second["settings"]["OMP_NUM_THREADS"] = "1"
    second["gpus"]["cuda:0"] = {"model": "H200"}
    found = differences(first, second)
    assert len(found) == 3
    numpy = first["software"]["packages"]["numpy"]
    assert f"software packages numpy: {numpy} and 0.1" in found
    assert "settings OMP_NUM_THREADS: not set and 1" in found
    assert "gpus cuda:0 model: not set and H200" in found


@given(FACTS, FACTS)
def test_differences_are_symmetric_and_empty_for_the_same(a, b) -> None:
    assert differences(a, copy.deepcopy(a)) == []
    assert len(differences(a, b)) == len(differences(b, a))


def test_gpu_that_no_driver_shows_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(environment_gpu, "find", lambda name: None)
    monkeypatch.setattr(environment_gpu, "names", lambda: ["cuda:0"])
    with pytest.raises(Refusal, match=r"no device cuda:3; it shows cuda:0\. Give"):
        environment("cuda:3")


class FakeNvml:
    """The management library of a driver with two devices; a call that is no attribute is absent.

    Structures are filled as the driver does, by their layout.
    """

    def __init__(self, reasons: int = 0, clock: int = 1980) -> None:
        self.reasons, self.clock = reasons, clock

    def nvmlDeviceGetCount_v2(self, number) -> int:
        number._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle) -> int:
        handle._obj.value = index + 1
        return 0 if index < 2 else 6

    def nvmlDeviceGetHandleByUUID(self, uuid, handle) -> int:
        handle._obj.value = {b"GPU-b": 2}.get(uuid)
        return 0 if handle._obj.value else 6

    def nvmlDeviceGetHandleByPciBusId_v2(self, place, handle) -> int:
        handle._obj.value = {b"0000:65:00.0": 2}.get(place)
        return 0 if handle._obj.value else 6

    def nvmlDeviceGetName(self, handle, text, size) -> int:
        text.value = b"H200 number %d" % handle.value
        return 0

    def nvmlDeviceGetUUID(self, handle, text, size) -> int:
        text.value = b"GPU-" + b" ab"[handle.value : handle.value + 1]
        return 0

    def nvmlSystemGetDriverVersion(self, text, size) -> int:
        text.value = b"570.1"
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory) -> int:
        ctypes.memmove(ctypes.addressof(memory._obj), (ctypes.c_ulonglong * 3)(100, 60, 40), 24)
        return 0

    def nvmlDeviceGetPowerUsage(self, handle, power) -> int:
        power._obj.value = 123_000
        return 0

    def nvmlDeviceGetEnforcedPowerLimit(self, handle, power) -> int:
        return 3  # not supported

    def nvmlDeviceGetClockInfo(self, handle, kind, mhz) -> int:
        mhz._obj.value = {1: self.clock, 2: 3201}[kind.value]
        return 0

    def nvmlDeviceGetMaxClockInfo(self, handle, kind, mhz) -> int:
        mhz._obj.value = {1: 1980, 2: 3201}[kind.value]
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle, reasons) -> int:
        reasons._obj.value = self.reasons
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, number, processes) -> int:
        number._obj.value = 1
        processes[0].pid, processes[0].used = 41, 5
        return 0


@pytest.fixture
def driver(monkeypatch):
    fake = FakeNvml(reasons=0x04 | 0x01 | 0x40)
    monkeypatch.setattr(nvml, "library", lambda: fake)
    monkeypatch.setattr(environment_gpu, "SYSTEM", Path("/nowhere"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def test_nvidia_device(driver) -> None:
    found = environment("cuda:1")
    fixed, now = found["gpus"]["cuda:1"], found["now"]["gpus"]["cuda:1"]
    assert fixed["model"] == "H200 number 2"
    assert fixed["uuid"] == "GPU-b"
    assert fixed["driver"] == "570.1"
    assert fixed["memory_bytes"] == 100
    assert fixed["power_limit_w"] is None
    assert fixed["max_clock_mhz"] == 1980
    assert now["clock_mhz"] == 1980
    assert now["memory_clock_mhz"] == 3201
    assert now["power_w"] == 123
    assert now["free_memory_bytes"] == 60
    assert now["temperature_c"] is None
    assert now["throttling"] == ["power limit", "heat (hardware)"]  # idle (0x01) is none
    assert now["processes"] == [{"pid": 41, "memory_bytes": 5}]


@pytest.mark.parametrize(
    ("visible", "names", "model"),
    [
        ("1", ["cuda:0"], "H200 number 2"),
        ("GPU-b", ["cuda:0"], "H200 number 2"),
        ("1,0", ["cuda:0", "cuda:1"], "H200 number 2"),
        ("", [], None),
        ("-1", [], None),
        ("0,9", ["cuda:0"], "H200 number 1"),
    ],
)
def test_numbers_are_those_of_a_program(driver, monkeypatch, visible, names, model) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert environment_gpu.names() == names
    if model:
        assert environment_gpu.find("cuda:0").fixed()["model"] == model
    assert environment_gpu.find("cuda:2") is None


def test_the_fastest_of_unlike_devices_comes_first(driver, monkeypatch) -> None:
    """The driver's order: the management library's second device is the first of programs."""
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    places = {0: "0000:65:00.0"}
    monkeypatch.setattr(environment_gpu.cuda_order, "bus_id", places.get)
    assert environment_gpu.find("cuda:0").fixed()["model"] == "H200 number 2"
    assert environment_gpu.find("cuda:1").fixed()["model"] == "H200 number 2"  # nobody tells more
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert environment_gpu.find("cuda:0").fixed()["model"] == "H200 number 1"
    monkeypatch.delenv("CUDA_DEVICE_ORDER")
    monkeypatch.setattr(driver, "nvmlDeviceGetName", lambda *_: 0)  # alike: nobody is asked
    monkeypatch.setattr(environment_gpu.cuda_order, "bus_id", None)
    assert environment_gpu.find("cuda:0").fixed()["uuid"] == "GPU-a"


def test_where_there_is_no_driver_nobody_tells() -> None:
    assert environment_gpu.cuda_order.bus_id(0) is None or nvml.count()


@pytest.fixture
def card(tmp_path, monkeypatch) -> Path:
    """/sys of a machine with a GPU of AMD's and, first, another that is none of theirs."""
    for name, vendor in (("card0", "0x1a03"), ("card1", "0x1002")):
        folder = tmp_path / "class/drm" / name / "device"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "mem_info_vram_total").write_text("17163091968\n")
    (tmp_path / "class/drm/card1-DP-1").mkdir()
    (folder / "hwmon/hwmon3").mkdir(parents=True)
    for name, text in {
        "mem_info_vram_used": "1000",
        "product_name": "Instinct MI50",
        "unique_id": "2150e7d042a1124",
        "gpu_busy_percent": "99",
        "pp_dpm_sclk": "0: 925Mhz\n1: 1500Mhz *\n2: 1725Mhz",
        "pp_dpm_mclk": "0: 350Mhz\n1: 1000Mhz *",
        "hwmon/hwmon3/power1_average": "224000000",
        "hwmon/hwmon3/power1_cap": "225000000",
        "hwmon/hwmon3/temp1_input": "71000",
    }.items():
        (folder / name).write_text(f"{text}\n")
    (tmp_path / "class/kfd/kfd/proc/77").mkdir(parents=True)
    monkeypatch.setattr(environment_gpu, "SYSTEM", tmp_path)
    monkeypatch.setattr(nvml, "library", lambda: None)
    for variable in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    return folder


def test_amd_device(card) -> None:
    assert environment_gpu.names() == ["hip:0"]
    found = environment()
    fixed, now = found["gpus"]["hip:0"], found["now"]["gpus"]["hip:0"]
    assert fixed["model"] == "AMD Instinct MI50"
    assert fixed["uuid"] == "2150e7d042a1124"
    assert fixed["memory_bytes"] == 17163091968
    assert fixed["power_limit_w"] == 225
    assert fixed["max_clock_mhz"] == 1725
    assert now["clock_mhz"] == 1500
    assert now["memory_clock_mhz"] == 1000
    assert now["temperature_c"] == 71
    assert now["free_memory_bytes"] == 17163090968
    assert now["throttling"] == ["power limit"]  # 224 of 225 W
    assert now["processes"] == [{"pid": 77}]


def test_amd_device_that_says_nothing(card) -> None:
    for path in card.glob("**/*"):
        if path.is_file() and path.name not in ("vendor", "mem_info_vram_total"):
            path.unlink()
    found = environment("hip:0")
    assert found["now"]["gpus"]["hip:0"]["clock_mhz"] is None
    assert found["now"]["gpus"]["hip:0"]["throttling"] == []


def test_command_text(card) -> None:
    shown = run_perf("env")
    assert shown.status == 0, shown
    for words in ("software", "numpy", "processor", "AMD Instinct MI50", "17.2 GB", "power limit"):
        assert words in shown.out


def test_command_json() -> None:
    shown = run_perf("env", "--device", "cpu", "--json")
    assert json.loads(shown.out)["environment"]["cpu"] == environment("cpu")["cpu"]


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_command_refuses_other_devices(device) -> None:
    assert_refused(run_perf("env", "--device", device), device, "cpu")
