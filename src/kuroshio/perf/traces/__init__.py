"""Profilers' files, each format's reader, and the one table of events they are read into."""
