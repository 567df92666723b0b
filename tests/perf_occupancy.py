"""`kuroshio perf occupancy` in this process, and the kernels that its tests compile."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from typing import Any

from kuroshio.perf import occupancy_command

# More values at once than a thread has registers for, so that it takes all that it may.
HUNGRY = """{
  float sum[300];
  #pragma unroll
  for (int k = 0; k < 300; k++) sum[k] = in[k * 64 + threadIdx.x];
  for (int i = 0; i < n; i++) {
    #pragma unroll
    for (int k = 0; k < 300; k++) sum[k] = sum[k] * sum[(k + 1) % 300] + in[i];
  }
  #pragma unroll
  for (int k = 0; k < 300; k++) out[k * 64 + threadIdx.x] = sum[k];
}
"""


def kernel(name: str, bounds: str = "", body: str = "{ out[0] = in[0] * n; }") -> str:
    """The text of a kernel; `bounds` as for __launch_bounds__."""
    launch = f"__launch_bounds__({bounds})" if bounds else ""
    return (
        f'extern "C" __global__ void {launch} {name}(const float *in, float *out, int n) {body}\n'
    )


def occupancy(*arguments: object) -> str:
    """What the command prints; refusals are raised."""
    parser = argparse.ArgumentParser()
    occupancy_command.add_arguments(parser)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        occupancy_command.run(parser.parse_args([str(a) for a in arguments]))
    return out.getvalue()


def kernels_of(*arguments: object) -> list[dict[str, Any]]:
    """What the command says in JSON."""
    found = json.loads(occupancy(*arguments, "--json"))
    assert found["schema"] == "kuroshio.perf.occupancy/1"
    return found["kernels"]
