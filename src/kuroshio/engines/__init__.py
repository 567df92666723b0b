"""Engines: what a device does with a block of cells."""
