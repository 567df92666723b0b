"""A GPU without a GPU: the kernels' own text run on the processor, behind the same interface."""

from .gpu import EmulatedGpu
from .kernels import kernels_of

__all__ = ["EmulatedGpu", "kernels_of"]
