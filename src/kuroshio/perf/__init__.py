"""Performance, measured: timing that can be trusted, ceilings, roofline, occupancy, experiments.

For any program, on a processor, CUDA or HIP; it knows nothing of climatologies.
"""
