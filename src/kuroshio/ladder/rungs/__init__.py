"""The rungs: a module each with its worker, its kernels as text for GPUs and by Numba."""
