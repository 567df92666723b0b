"""What a device attains at most, measured: its memory, its arithmetic, its links, its latencies."""
