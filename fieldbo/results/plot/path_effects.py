"""Casings of lines, as wide relative to the line at every width of a picture."""

from __future__ import annotations

from typing import Any

from matplotlib.patheffects import AbstractPathEffect


class Cased(AbstractPathEffect):
    """A line below a line, some times as wide."""

    def __init__(self, colour: str, times: float) -> None:
        super().__init__()
        self._colour, self._times = colour, times

    def draw_path(self, renderer: Any, gc: Any, tpath: Any, affine: Any, rgbFace: Any = None) -> None:
        """Draw the casing, then the line."""
        below = renderer.new_gc()
        below.copy_properties(gc)
        below.set_linewidth(self._times * gc.get_linewidth())
        below.set_foreground(self._colour)
        renderer.draw_path(below, tpath, affine, rgbFace)
        below.restore()
        renderer.draw_path(gc, tpath, affine, rgbFace)


def cased(colour: str, times: float) -> AbstractPathEffect:
    """Return a casing in a colour, `times` as wide as the line."""
    return Cased(colour, times)
