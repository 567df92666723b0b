"""Kernels of a GPU's ceilings: what they compute, and what compilers make of them."""

from __future__ import annotations

import sys
import zlib
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from emulator import EmulatedGpu
from kuroshio.device import cuda
from kuroshio.perf.ceilings import gpu as ceilings_gpu
from kuroshio.perf.ceilings import (
    gpu_clock,
    gpu_inflating,
    gpu_library,
    gpu_several,
    libraries,
    store,
)
from kuroshio.perf.ceilings.ceiling import BANDWIDTHS, Ceiling, Missing
from kuroshio.perf.ceilings.cpu import Effort
from kuroshio.perf.ceilings.gpu_clock import Sizes
from kuroshio.perf.ceilings.gpu_program import CHAINS, KERNELS, STEPS, UNROLL, text
from perf_runs import run_perf

BLOCK = 256
TINY = Sizes(1 << 20, 1 << 16, 1, 5, Effort(2, 1e-4), streams=2)
TARGETS = (("nvrtc", "sm_70"), ("nvrtc", "sm_90"), ("hipcc", "gfx906"), ("hipcc", "gfx90a"),
           ("hiprtc", "gfx906"))  # fmt: skip
OPTIONS = {"nvrtc": ("-std=c++17", "--fmad=false"), "hipcc": ("-std=c++17", "-ffp-contract=off"),
           "hiprtc": ("-std=c++17", "-ffp-contract=off")}  # fmt: skip


@pytest.fixture(scope="module")
def kernels(gpu):
    return gpu.kernels(text(), KERNELS)


def launch(gpu, kernel, threads, args) -> None:
    stream = gpu.stream()
    kernel(stream, threads // BLOCK, BLOCK, args)
    stream.synchronize()


def fetched(gpu, array) -> np.ndarray:
    out = np.empty(array.shape, array.dtype)
    stream = gpu.stream()
    gpu.download(out, array, stream)
    stream.synchronize()
    return out


@pytest.mark.parametrize(("compiler", "arch"), TARGETS)
def test_all_live_in_registers(request, compiler, arch):
    made = request.getfixturevalue(compiler)(text(), arch, OPTIONS[compiler])
    assert set(made.kernels) == set(KERNELS)
    for name, takes in made.kernels.items():
        assert takes.stack_bytes == takes.spills == 0, name
        assert not takes.dynamic_stack, name
        assert takes.registers <= 128, name  # at least two waves on each SIMD


def test_every_operation_is_there(hipcc):
    """As many instructions as are counted: a compiler that saw through the chains had fewer."""
    assembly = hipcc(text(), "gfx906", OPTIONS["hipcc"]).code.decode()
    a_round = CHAINS * STEPS
    for kernel, instructions in {
        "fma_float64": {"v_fma_f64": a_round},
        "fma_float32": {"v_fma_f32": a_round},
        "fma_float16": {"v_pk_fma_f16": a_round},
        "min_max_int32": {"v_min_i32": a_round // 2, "v_max_i32": a_round // 2},
        "min_max_uint16": {"v_pk_min_u16": a_round // 2, "v_pk_max_u16": a_round // 2},
        "popcount_words": {"v_bcnt_u32_b32": a_round},
        "read_once": {"global_load_dwordx4": UNROLL},
        "copy_all": {"global_load_dwordx4": 1, "global_store_dwordx4": 1},
    }.items():
        body = assembly[assembly.index(f"\n{kernel}:") :]
        body = body[: body.index("s_endpgm")]
        for instruction, count in instructions.items():
            assert body.count(f"\t{instruction}") == count, (kernel, instruction)


def test_everything_is_read(gpu, kernels):
    """Sums of threads are known: that of each is found where it is wanted."""
    random = np.random.default_rng()
    words = random.integers(0, 1 << 32, (3, UNROLL, BLOCK, 4), np.uint32)
    sums = words.sum(axis=(1, 3), dtype=np.uint32).ravel()
    array, wanted = gpu.array(words.ravel()), int(random.choice(sums))
    for each, right in ((wanted, int((sums == wanted).sum())), (sums.max() + np.uint32(1), 0)):
        found = gpu.zeros((1,), np.uint32)
        launch(gpu, kernels["read_once"], sums.size, [array, np.uint32(each), found])
        assert int(fetched(gpu, found)[0]) == right


@pytest.mark.parametrize(("passes", "skew"), [(1, 0), (3, 300)])
@pytest.mark.parametrize("threads", [256, 1024])
def test_everything_is_read_again(gpu, kernels, passes, skew, threads):
    words = np.random.default_rng().integers(0, 1 << 32, 1 << 14, np.uint32)
    items = words.size // 4
    sums = gpu.zeros((64,), np.uint32)
    args = [gpu.array(words), np.int64(items), np.int64(threads), np.int32(passes),
            np.int64(skew), sums]  # fmt: skip
    launch(gpu, kernels["read_again"], threads, args)
    right = passes * int(words.astype(object).sum()) % (1 << 32)
    assert int(fetched(gpu, sums).astype(object).sum()) % (1 << 32) == right


def test_copies_and_triads_are_right(gpu, kernels):
    random = np.random.default_rng()
    items = 3 * BLOCK * UNROLL  # of 16 bytes
    a, b = (random.standard_normal(2 * items) for _ in range(2))
    target = gpu.zeros((2 * items,), np.float64)
    launch(gpu, kernels["copy_all"], items, [gpu.array(a), target])
    assert (fetched(gpu, target) == a).all()
    given = [gpu.array(a), gpu.array(b), target, np.float64(4)]
    launch(gpu, kernels["triad_all"], items // UNROLL, given)
    np.testing.assert_allclose(fetched(gpu, target), a + 4 * b, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chains_of_fma(gpu, kernels, dtype):
    rounds = 2
    out = gpu.zeros((BLOCK,), dtype)
    name = f"fma_{np.dtype(dtype).name}"
    launch(gpu, kernels[name], BLOCK, [out, dtype(1), dtype(1), np.int32(rounds)])
    start = (np.arange(BLOCK) & 63)[:, None] + np.arange(CHAINS)
    assert (fetched(gpu, out) == (start + rounds * STEPS).sum(1)).all()


def test_chains_of_halves(gpu, kernels):
    out = gpu.zeros((BLOCK,), np.uint32)
    given = ceilings_gpu.arguments(gpu, "fma_float16")
    launch(gpu, kernels["fma_float16"], BLOCK, [out, *given, np.int32(1)])
    low = (0x3C00 + 0x40 * np.arange(CHAINS)).astype(np.uint16).view(np.float16)
    for _ in range(STEPS):
        low = (low.astype(np.float64) * 0.5 + 1).astype(np.float16)
    bits = int(np.bitwise_xor.reduce(low.view(np.uint16)))
    assert (fetched(gpu, out) == (bits << 16 | bits)).all()


@pytest.mark.parametrize("kernel", ["min_max_int32", "min_max_uint16"])
def test_chains_of_minima_and_maxima(gpu, kernels, kernel):
    bounds = np.random.default_rng().integers(0, 1 << 32, 16, np.uint32)
    out = gpu.zeros((BLOCK,), np.uint32)
    launch(gpu, kernels[kernel], BLOCK, [out, gpu.array(bounds), np.int32(1)])
    kind = np.int32 if kernel == "min_max_int32" else np.uint16
    threads = (np.arange(BLOCK, dtype=np.uint64) * 2654435761).astype(np.uint32)
    y = (threads[:, None] ^ bounds[:CHAINS]).view(kind)
    for s in range(0, STEPS, 2):
        low, high = (np.tile(bounds[s + i : s + i + 1].view(kind), CHAINS) for i in (0, 1))
        y = np.maximum(np.minimum(y, low), high)
    right = np.bitwise_xor.reduce(np.ascontiguousarray(y).view(np.uint32), axis=1)
    assert (fetched(gpu, out) == right).all()


def test_chains_of_popcounts(gpu, kernels):
    out = gpu.zeros((BLOCK,), np.uint32)
    launch(gpu, kernels["popcount_words"], BLOCK, [out, np.int32(2)])
    threads = (np.arange(BLOCK, dtype=np.uint64) * 2654435761).astype(np.uint32)
    y = threads[:, None] + np.arange(CHAINS, dtype=np.uint32)
    for _ in range(2 * STEPS):
        y = y + np.vectorize(int.bit_count, otypes=[np.uint32])(y)
    assert (fetched(gpu, out) == np.bitwise_xor.reduce(y, axis=1)).all()


def test_a_whole_device_is_measured():
    """On the emulated one: names, units and spreads; its rates mean nothing."""
    found = list(ceilings_gpu.measure(EmulatedGpu(), TINY, 1 << 18))
    assert all(isinstance(each, Ceiling) for each in found)
    names = [(each.name, each.level, each.unit) for each in found]
    assert len(set(names)) == len(names)
    assert {(name, "memory", "GB/s") for name in BANDWIDTHS} <= set(names)
    assert ("memory read", "L2", "GB/s") in names
    for kind in ("float64 fma", "float32 fma", "float16 fma", "int32 min/max", "int32 popcount"):
        assert (kind, None, "Gop/s") in names
    for way in ("host to device", "device to host"):
        for kind in ("pinned", "pageable"):
            assert (f"{way}, {kind}", "link", "GB/s") in names
    for kind in ("launch", "synchronisation"):
        assert (kind, None, "us") in names
    for each in found:
        assert 0 < each.low <= each.value <= each.high
        assert each.n == TINY.effort.samples


@pytest.fixture
def as_cuda(monkeypatch):
    """`--device cuda:0` is an emulated device, called so, with a tiny amount of work."""
    device = EmulatedGpu(inflating="yes")
    device.name, device.model = "cuda:0", "NVIDIA A100-SXM4-80GB"
    monkeypatch.setattr(cuda, "by_name", lambda name: device)
    monkeypatch.setattr(cuda, "count", lambda: 1)
    monkeypatch.setattr(gpu_library, "l2_bytes", lambda name: 1 << 18)
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    monkeypatch.setattr(gpu_clock, "Sizes", lambda **_: TINY)
    return device


def test_the_command_on_a_device(as_cuda, tmp_path, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path))
    done = run_perf("ceilings", "--device", "cuda:0", "--save")
    assert done.status == 0, done
    assert "data sheet" in done.out
    assert "nvidia-a100-datasheet" in done.out
    assert "Not measured: matrix float16: CuPy is not installed" in done.out
    assert "Not measured: peer copy and all-reduce: there is one device" in done.out
    said, found = store.saved("cuda:0", as_cuda.model)
    assert said["device"] == "cuda:0"
    assert said["environment"]["gpus"] == {"cuda:0": {"model": as_cuda.model}}  # no driver tells
    assert gpu_inflating.NAME in {each.name for each in found}
    assert {each.unit for each in found} == {"GB/s", "Gop/s", "us"}
    peaks = {peak["name"] for peak in said["data_sheet_peaks"]}
    assert peaks == {*BANDWIDTHS, "float64 fma", "float32 fma", "matrix float16", "matrix bfloat16"}


def test_a_device_that_is_lost_while_it_works(as_cuda):
    as_cuda.failing = "fma_float32"
    done = run_perf("ceilings", "--device", "cuda:0", "--json")
    assert done.status == 2
    assert done.out == ""
    assert "a kernel failed" in done.err


def test_only_what_is_asked_for_is_measured():
    found = list(ceilings_gpu.measure(EmulatedGpu(), TINY, 1 << 18, ("fma",)))
    assert {each.name for each in found} == {"float64 fma", "float32 fma", "float16 fma"}


def test_a_device_without_memory_says_so():
    found = ceilings_gpu.measure(EmulatedGpu(memory_bytes=4096), TINY, None, BANDWIDTHS)
    missing = [each for each in found if isinstance(each, Missing)]
    assert {each.name for each in missing} == {"memory bandwidth", "L2 bandwidth"}


def test_a_library_that_is_not_there_is_missing(monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    found = list(gpu_library.matrices("cuda:0", TINY.effort))
    assert [each.name for each in found] == ["matrix float16", "matrix bfloat16"]
    assert all("CuPy is not installed; PyTorch is not installed" in each.why for each in found)


def test_a_library_that_fails_says_how(monkeypatch):
    def fails(*_):
        raise RuntimeError("no such function")

    monkeypatch.setattr(libraries, "find_spec", lambda name: name == "cupy" or None)
    monkeypatch.setattr(gpu_library, "_by_cupy", fails)
    (found, _) = gpu_library.matrices("cuda:0", TINY.effort)
    assert isinstance(found, Missing)
    assert "no such function" in found.why


def inflated(sizes=TINY, **emulated):
    gpu = EmulatedGpu(**{"inflating": "yes", **emulated})
    with gpu.use():
        (found,) = gpu_inflating.inflate(gpu, gpu.stream(), sizes)
    return found


def test_inflating():
    found = inflated(TINY._replace(streams=3))
    assert (found.name, found.unit, found.n) == (gpu_inflating.NAME, "GB/s", 2)
    assert "of 3 streams" in found.how


def test_inflating_without_a_library_or_memory():
    assert "kuroshio[nvcomp]" in inflated(inflating="").why
    assert "bytes of its memory" in inflated(memory_bytes=1 << 20).why


def test_inflating_what_comes_out_wrong(monkeypatch):
    wrong = SimpleNamespace(DEFLATED=8, MAX_WBITS=15, compressobj=lambda *_: zlib.compressobj())
    monkeypatch.setattr(gpu_inflating, "zlib", wrong)  # with a header, which raw streams lack
    assert "not what went in" in inflated(TINY._replace(streams=1)).why


def test_matrix_products_are_checked():
    random = np.random.default_rng()
    a, b = (random.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    # In the library's order, columns first, memory holds the transposes.
    to_bits = lambda x: (x.view(np.uint32) >> 16).astype(np.uint16)  # noqa: E731
    a, b = to_bits(a), to_bits(b)
    right = gpu_library._numbers(b, "bfloat16") @ gpu_library._numbers(a, "bfloat16")
    bits = to_bits(right.astype(np.float32))
    gpu_library._check(a, b, bits, "bfloat16")
    with pytest.raises(ArithmeticError):
        gpu_library._check(a, b, np.roll(bits, 1, axis=1), "bfloat16")


def test_one_device_has_no_peer():
    (found,) = gpu_several.several("cuda", [0], TINY.effort)
    assert isinstance(found, Missing)


class FakeRuntimeError(RuntimeError): ...


def several_devices(direct: bool = True, nccl: bool = True) -> SimpleNamespace:
    """As much of CuPy as copies and sums between devices call; it notes the calls."""
    calls: list[tuple] = []

    class Device(nullcontext):
        def __init__(self, number: int) -> None:
            super().__init__(number)

    def reduce(*arguments: object) -> None:
        calls.append(("reduce", *arguments))

    def peer(*arguments: int) -> None:
        calls.append(("peer", *arguments))

    def enable(number: int) -> None:
        calls.append(("enable", number))
        raise FakeRuntimeError("it is enabled")

    stream = SimpleNamespace(ptr=0, synchronize=lambda: None)
    library = SimpleNamespace(
        available=nccl, NCCL_FLOAT32=7, NCCL_SUM=0, groupStart=lambda: None, groupEnd=lambda: None,
        NcclCommunicator=SimpleNamespace(
            initAll=lambda numbers: [SimpleNamespace(allReduce=reduce) for _ in numbers]
        ),
    )  # fmt: skip
    cuda = SimpleNamespace(
        Device=Device, Stream=lambda non_blocking: stream, nccl=library,
        runtime=SimpleNamespace(
            deviceCanAccessPeer=lambda one, other: int(direct), deviceEnablePeerAccess=enable,
            memcpyPeerAsync=peer, CUDARuntimeError=FakeRuntimeError,
        ),
    )  # fmt: skip
    zeros = lambda shape, dtype: SimpleNamespace(data=SimpleNamespace(ptr=1))  # noqa: E731
    return SimpleNamespace(cuda=cuda, zeros=zeros, calls=calls)


@pytest.mark.parametrize("direct", [True, False])
def test_copies_between_devices(direct):
    fake = several_devices(direct)
    found = list(gpu_several.peer_copies(fake, "cuda", [2, 0], TINY.effort))
    rates = [each for each in found if each.unit == "GB/s"]
    assert [each.message_bytes for each in rates] == list(gpu_several.MESSAGES)
    assert {each.name for each in rates} == {"peer copy cuda:2 to cuda:0"}
    assert [each.name for each in found if each.unit == "us"] == [rates[0].name + ", latency"]
    copies = [call for call in fake.calls if call[0] == "peer"]
    assert {(call[2], call[4]) for call in copies} == {(0, 2)}  # to, from
    assert {call[5] for call in copies} == set(gpu_several.MESSAGES)
    assert [call for call in fake.calls if call[0] == "enable"] == (
        [("enable", 0), ("enable", 2)] if direct else []
    )
    assert ("through the host" in rates[0].how) != direct


def test_all_reduce(monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: name == "cupy" or None)
    fake = several_devices()
    found = [e for e in gpu_several.all_reduce(fake, [0, 1, 2], TINY.effort) if e.unit == "GB/s"]
    assert [each.message_bytes for each in found] == list(gpu_several.MESSAGES)
    counts = [call[3] for call in fake.calls]
    assert set(counts) == {nbytes // 4 for nbytes in gpu_several.MESSAGES}
    assert len(counts) % 3 == 0
    (missing,) = gpu_several.all_reduce(several_devices(nccl=False), [0, 1], TINY.effort)
    assert isinstance(missing, Missing)
    assert "it has no NCCL here; PyTorch is not installed" in missing.why


def test_all_reduce_by_pytorch_where_cupy_has_no_nccl(monkeypatch):
    counts: list[list[int]] = []
    torch = SimpleNamespace(
        zeros=lambda count, device: np.zeros(count, np.float32),
        cuda=SimpleNamespace(synchronize=lambda number: None),
    )
    nccl = SimpleNamespace(
        is_available=lambda buffers: True,
        all_reduce=lambda buffers: counts.append([each.size for each in buffers]),
    )
    monkeypatch.setattr(libraries, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.cuda.nccl", nccl)
    found = list(gpu_several.all_reduce(several_devices(nccl=False), [0, 1], TINY.effort))
    assert {each.message_bytes for each in found} == set(gpu_several.MESSAGES)
    assert all(each.how.startswith("PyTorch: ") for each in found)
    assert {each[0] for each in counts} == {1, *(n // 4 for n in gpu_several.MESSAGES)}
    assert all(one == other for one, other in counts)
