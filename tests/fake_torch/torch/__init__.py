"""As much of torch as a recording touches: a profiler that writes traces, optimizers that step."""

from . import autograd, optim, profiler  # noqa: F401
