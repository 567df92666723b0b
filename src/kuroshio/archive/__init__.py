"""Daily gridded data on disk or in memory: found, described, read, and written back."""
