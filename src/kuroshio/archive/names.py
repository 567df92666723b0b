"""Names by which the dimensions of daily archives go, where attributes do not say what they are."""

VERTICAL = frozenset({
    "depth", "zlev", "lev", "level", "z", "height", "plev", "altitude", "pressure", "isobaric",
    "deptht", "depthu", "depthv", "depthw", "st_ocean", "sw_ocean", "olevel", "nav_lev",
})  # fmt: skip
ENSEMBLE = frozenset({"member", "ensemble", "realization", "number", "ens", "sample"})
HORIZONTAL = frozenset({
    "lat", "latitude", "lon", "longitude", "x", "y", "xc", "yc", "rlat", "rlon", "nlat", "nlon",
    "ni", "nj", "i", "j", "xh", "yh", "xt_ocean", "yt_ocean", "easting", "northing", "cell",
    "cells", "ncells", "ncell", "ncol", "node", "nodes", "ncolumns", "site", "station", "point",
})  # fmt: skip
# CF standard names of horizontal coordinates, and the units of degrees.
HORIZONTAL_NAMES = frozenset({
    "latitude", "longitude", "projection_x_coordinate", "projection_y_coordinate",
    "grid_latitude", "grid_longitude",
})  # fmt: skip
DEGREES = frozenset(
    f"{degree}{side}"
    for degree in ("degree", "degrees")
    for side in ("_north", "_east", "_n", "_e", "n", "e")
)
