"""Pictures with matplotlib: the path, the maps and the curve of a run; a world; policies side by side.

Figures are made without pyplot: they need no display and may be drawn in any thread. They are drawn for a
screen, or for one or both columns of a paper. Two axes are drawn as a map: grid cells if the sites form a
grid, a smooth surface if they represent a box, a cell around each site if they are scattered; colours end at
the shore. One axis is drawn as a profile, values against position. With three or more axes, paths show the
first two, and maps become profiles of the sites in order of their posterior mean. For a factory cell, the
path shows its settings order by order, and the curve shows where the cost went.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
