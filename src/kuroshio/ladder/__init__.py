"""The ladder: seven published strategies of one GPU program, each a rung that runs and is measured.

The program computes the mean and the 90th percentile of 11-day windows of daily maps. `problem.py`
says of which, `rungs/` has a module and a kernel a rung, all on the same pipeline (`pipeline.py`
with the rings of `rings.py`) and on whatever `place.py` finds to run them; the last rung is this
package's own engine.
"""
