"""Pictures with matplotlib: a run's path, maps and curve; a world; rules side by side.

Figures are made without pyplot, so that they need no display and may be drawn in any thread.
Two axes are drawn as a map: cells where the sites form a grid, a smooth ground where they stand for a
box, dots where they are scattered. One axis is drawn as a profile, values against position. Of three or
more axes, paths show the first two, and maps become profiles of the sites in order of their posterior mean.
In a cell the path is that of its settings, order by order, and the curve tells what it was spent on.
"""

from fieldbo.results.plot.comparisons import comparison_picture
from fieldbo.results.plot.curves import curve_picture
from fieldbo.results.plot.figures import DPI, save
from fieldbo.results.plot.maps import map_picture
from fieldbo.results.plot.paths import path_picture
from fieldbo.results.plot.worlds import world_picture

__all__ = [
    "DPI",
    "comparison_picture",
    "curve_picture",
    "map_picture",
    "path_picture",
    "save",
    "world_picture",
]
