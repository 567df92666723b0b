"""A program run under the profiler that is there, and what it wrote, found again."""
