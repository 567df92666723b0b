"""What a table of events says: work and holes, overlaps, launches, synchronisations, ranks."""
