"""The kernels as text for GPUs: what is printed from operation lists, and beside it what is not."""
