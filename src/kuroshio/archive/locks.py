"""One lock for libraries that two threads of a process must not use at once."""

import threading

# netCDF-C; and HDF5 where it is used for more than a single call that locks by itself.
LIBRARIES = threading.RLock()
