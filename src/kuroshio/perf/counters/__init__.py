"""What hardware counters saw: the files of profilers, read to bytes, operations and seconds."""
