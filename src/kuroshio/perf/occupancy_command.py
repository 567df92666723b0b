"""`kuroshio perf occupancy`: numbers or a compiler's files in, waves and limits out."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ..errors import Refusal

if TYPE_CHECKING:
    from ..device.occupancy import Limits
    from .compiled.files import Compiled

SUMMARY = (
    "how many waves of a kernel live on a multiprocessor, what limits them, and what launch "
    "bounds leave a thread; from numbers or from what the compiler said"
)
EXAMPLES = """examples:
  kuroshio perf occupancy --arch gfx906 --block 256 --vgpr 54 --lds 8704
  kuroshio perf occupancy --arch sm_90 --registers 80 --shared 16384 --min-blocks 4
  kuroshio perf occupancy kernel.s     # AMD's assembly, code objects, bundles
  kuroshio perf occupancy kernel.cubin ptxas.log --dynamic-shared 32768 --json
  nvcc -Xptxas -v -arch=sm_90 -c kernel.cu 2>&1 | kuroshio perf occupancy -
  hipcc -c --offload-arch=gfx906 -Rpass-analysis=kernel-resource-usage k.hip \\
    2>&1 | kuroshio perf occupancy - --arch gfx906"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="*",
        help="what a compiler left: AMD assembly or code object, hipcc's resource remarks, ptxas "
        "-v log, cubin, output of cuobjdump -res-usage; - is standard input",
    )
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--arch", help="gfx906, gfx90a, sm_90, ...; a file mostly tells its own")
    of.add_argument("--device", metavar="cuda:0|hip:0", help="a device here, asked for its limits")
    for names, what in (
        (("--vgpr", "--registers"), "registers a thread (AMD: vector registers)"),
        (("--sgpr",), "AMD: scalar registers a wave"),
        (("--lds", "--shared"), "bytes of shared memory a block"),
    ):
        parser.add_argument(*names, dest=names[-1][2:], type=_count, metavar="N", help=what)
    parser.add_argument(
        "--dynamic-shared",
        type=_count,
        metavar="N",
        help="bytes of shared memory a block that the launch adds to what a file tells",
    )
    parser.add_argument(
        "--block",
        type=_count,
        metavar="N",
        help="threads of a block (default: the launch bound, or the smallest size with most waves)",
    )
    parser.add_argument(
        "--min-blocks",
        type=_count,
        metavar="M",
        help="only this second argument of __launch_bounds__",
    )
    parser.add_argument("--kernel", metavar="TEXT", help="only kernels with this in their name")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> None:
    from .occupancy_report import report

    for name in ("block", "min_blocks"):
        if getattr(arguments, name) == 0:
            raise Refusal(f"--{name.replace('_', '-')} 0 is nothing to launch; at least 1.")
    limits = _limits(arguments)
    kernels = _of_files(arguments, limits) if arguments.file else [_of_numbers(arguments, limits)]
    if arguments.json:
        print(json.dumps(report(kernels), indent=1))
        return
    from .occupancy_table import show

    show(kernels)


def _count(text: str) -> int:
    try:
        number = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is no count; give a whole number from 0 on")
    return number


def _limits(arguments: argparse.Namespace) -> Limits | None:
    """Of the architecture or device that was named, if one was."""
    from .occupancy import limits_of

    if arguments.arch is not None:
        return limits_of(arguments.arch)
    if arguments.device is None:
        return None
    from ..device import cuda
    from ..device.names import check_device

    if check_device(arguments.device) in ("auto", "cpu") or arguments.device.endswith(":all"):
        raise Refusal(f"--device {arguments.device} is not one GPU. Give cuda:0, hip:0 or so.")
    return cuda.by_name(arguments.device).limits


def _of_numbers(arguments: argparse.Namespace, limits: Limits | None) -> dict[str, Any]:
    from .occupancy import Takes, is_amd
    from .occupancy_report import of_numbers

    if limits is None:
        raise Refusal(
            "Of which device? Pass --arch (gfx906, sm_90, ...) with --vgpr or --registers, "
            "--device, or a file that a compiler left."
        )
    if arguments.registers is None:
        raise Refusal(
            "The registers of a thread are missing. Pass --vgpr N (--registers N), or a file in "
            "which the compiler says them."
        )
    if arguments.kernel is not None:
        raise Refusal("--kernel is for files; numbers have no names.")
    if arguments.sgpr and not is_amd(limits):
        raise Refusal(
            f"--sgpr is for AMD's devices: on {limits.name} no scalar registers are shared "
            "between waves. Leave it out."
        )
    takes = Takes(
        registers=arguments.registers,
        scalar_registers=arguments.sgpr or 0,
        shared_bytes=(arguments.shared or 0) + (arguments.dynamic_shared or 0),
    )
    return of_numbers(limits, takes, block=arguments.block, minimum=arguments.min_blocks)


def _of_files(arguments: argparse.Namespace, asked: Limits | None) -> list[dict[str, Any]]:
    from .compiled.files import read
    from .occupancy import limits_of
    from .occupancy_report import of_kernel

    typed = {"--vgpr (--registers)": "registers", "--sgpr": "sgpr", "--lds (--shared)": "shared"}
    if told := [option for option, name in typed.items() if getattr(arguments, name) is not None]:
        raise Refusal(
            f"{' and '.join(told)} and a file were given; the file tells that. For shared memory "
            "that the launch adds pass --dynamic-shared."
        )
    found = []
    for path in arguments.file:
        compiled = read(path, asked.name if asked else None)
        for kernel in _wanted(compiled, arguments.kernel, asked):
            found.append(
                of_kernel(
                    asked or limits_of(kernel.architecture or "?", path),
                    kernel,
                    path,
                    compiled.kind,
                    dynamic_bytes=arguments.dynamic_shared or 0,
                    block=arguments.block,
                    minimum=arguments.min_blocks,
                )
            )
    return found


def _wanted(compiled: Compiled, name: str | None, asked: Limits | None) -> list[Any]:
    from .occupancy import short

    kernels = compiled.kernels
    if asked is not None:
        theirs = sorted({str(kernel.architecture) for kernel in kernels})
        kernels = [k for k in kernels if short(str(k.architecture)) == asked.name]
        if not kernels:
            raise Refusal(
                f"{compiled.path} has no kernel for {asked.name}; it is for {', '.join(theirs)}. "
                "Registers of one architecture say nothing of another: compile for it."
            )
    if name is not None:
        there = [kernel.name for kernel in kernels]
        kernels = [kernel for kernel in kernels if name in kernel.name]
        if not kernels:
            raise Refusal(
                f"No kernel of {compiled.path} has {name!r} in its name. There are "
                f"{', '.join(there[:8])}{' and more' if len(there) > 8 else ''}."
            )
    return kernels
