"""Colours and sizes: what pictures have of their own, and what a style sheet of matplotlib changes.

Sizes are relative to the ``rcParams`` in force, greys lie between the background and the ink of the style,
values have its colour map, and lines its colour cycle. With matplotlib's own style, lines have colours that
can be told apart with every kind of colour vision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.patheffects import AbstractPathEffect
from matplotlib.text import Annotation, Text

from fieldbo.results.plot.choices import WIDTHS, Paper

Colour = tuple[float, float, float]
"""Red, green and blue, each between 0 and 1."""

Look = dict[str, Any]
"""Keyword arguments of artists."""

# Okabe and Ito's palette, distinguishable with every kind of colour vision.
BLUE, RED, GREEN, PINK, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
YELLOW = "#f0e442"
OLIVE, WINE, INDIGO, BROWN, LIME = "#999933", "#882255", "#332288", "#7a4419", "#9acd32"
SERIES = (BLUE, RED, GREEN, PINK, ORANGE, SKY, OLIVE, WINE, INDIGO, BROWN, LIME, "black")
"""Colours of lines and bars, in order."""

VALUE: Look = {}
"""Look of values: the colour map of the style, in matplotlib's own viridis."""
SPREAD: Look = {"cmap": "magma", "vmin": 0.0}
CHANCE: Look = {"cmap": "RdBu_r", "vmin": 0.0, "vmax": 1.0}
HOPE: Look = {"cmap": "Blues", "vmin": 0.0, "vmax": 0.5}  # one half at the reported optimum
NOT_INSPECTED = "#c4c4c4"
_CLASSES = ["#b9cbd8", "#e6edf2", "#f3c9a3", RED]
CLASS: Look = {"cmap": ListedColormap(_CLASSES), "vmin": -0.5, "vmax": 3.5}
CLASS_OR_NONE: Look = {"cmap": ListedColormap([*_CLASSES, NOT_INSPECTED]), "vmin": -0.5, "vmax": 4.5}

_LINE, _LETTER, _MARK = 1.5, 10.0, 6.0
"""Sizes of lines, letters and marks in matplotlib's own style, in points."""


def shade(darkness: float) -> Colour:
    """Return a colour between the background of axes, at 0, and the ink of the style, at 1.

    Examples
    --------
    >>> shade(0.25)
    (0.75, 0.75, 0.75)
    >>> with mpl.rc_context({"axes.facecolor": "black", "text.color": "white"}):
    ...     shade(0.25)
    (0.25, 0.25, 0.25)
    """
    ground, ink = to_rgb(mpl.rcParams["axes.facecolor"]), to_rgb(mpl.rcParams["text.color"])
    red, green, blue = ((1.0 - darkness) * g + darkness * i for g, i in zip(ground, ink, strict=True))
    return red, green, blue


def hue(colour: str) -> str | Colour:
    """Return what a colour of `SERIES` is in the present style: its place in the style's colour cycle.

    Examples
    --------
    >>> hue(RED) == RED
    True
    >>> with mpl.rc_context({"axes.prop_cycle": mpl.cycler(color=["blue", "green"])}):
    ...     hue(RED)
    'green'
    """
    cycle = mpl.rcParams["axes.prop_cycle"].by_key().get("color", [])
    if not cycle or cycle == mpl.rcParamsDefault["axes.prop_cycle"].by_key()["color"]:
        return shade(1.0) if colour == "black" else colour
    return str(cycle[SERIES.index(colour) % len(cycle)])


def line_width(points: float) -> float:
    """Return the width of a line in the present style, in points."""
    return points * float(mpl.rcParams["lines.linewidth"]) / _LINE


def letter_size(points: float) -> float:
    """Return the size of letters in the present style, in points."""
    return points * float(mpl.rcParams["font.size"]) / _LETTER


def mark_size(points: float) -> float:
    """Return the size of a mark in the present style, in points."""
    return points * float(mpl.rcParams["lines.markersize"]) / _MARK


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


_SMALLEST, _LARGEST = 7.0, 9.0
"""Font sizes on paper, in points."""


class Sheet(Figure):
    """A figure that knows for which of the `WIDTHS` it is drawn."""

    width: str = "screen"
    ratio: float | None = None
    """Height of its maps over their width."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        FigureCanvasAgg(self)  # keeps its renderer; the default canvas creates one for each measurement


def width_of(artist: Artist) -> str:
    """Return the name of the width for which a figure, or what is on it, is drawn."""
    figure = artist.get_figure(root=True) if not isinstance(artist, Figure) else artist
    return figure.width if isinstance(figure, Sheet) else "screen"


def paper_of(artist: Artist) -> Paper | None:
    """Return the width on paper for which a figure, or what is on it, is drawn; None for a screen."""
    return WIDTHS[width_of(artist)]


def font_size(artist: Artist, points: float) -> float:
    """Return the size of a font of a size on the screen."""
    paper = paper_of(artist)
    return points if paper is None else min(max(paper.font * points, _SMALLEST), _LARGEST)


def shrink(figure: Figure) -> None:
    """Reduce letters, lines and marks of a figure, drawn for a screen, to the sizes of its width."""
    paper = paper_of(figure)
    if paper is None:
        return
    for artist in _parts(figure):
        _shrink(artist, paper)
    for ax in all_axes(figure):
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_fontsize(font_size(figure, float(axis.label.get_fontsize())))
            axis.labelpad *= paper.font
            letters = 7.5 if isinstance(ax, SecondaryAxis) else 10.0
            look: dict[str, Any] = {"labelsize": font_size(figure, letters), "width": 0.6, "pad": 2.5}
            axis.set_tick_params(which="major", length=2.5, **look)
            axis.set_tick_params(which="minor", length=1.4, **look)


def all_axes(figure: Figure) -> list[Axes | SecondaryAxis]:
    """Return the axes of a figure with those inside them, such as colour bars, and their second axes."""
    return [inner for ax in figure.axes for inner in (ax, *_inner(ax))]


def _inner(ax: Axes) -> Iterator[Axes | SecondaryAxis]:
    for child in ax.child_axes:
        assert isinstance(child, Axes | SecondaryAxis)
        yield child
        if isinstance(child, Axes):
            yield from _inner(child)


def _parts(artist: Artist) -> Iterator[Artist]:
    """Yield all artists below one, except those of axes' ticks."""
    for child in artist.get_children():
        if isinstance(child, Axis):
            continue
        yield child
        if not isinstance(child, SubFigure):
            yield from _parts(child)


def _shrink(artist: Artist, paper: Paper) -> None:
    match artist:
        case Text():
            figure = artist.get_figure(root=True)
            assert figure is not None
            artist.set_fontsize(font_size(figure, float(artist.get_fontsize())))
            if isinstance(artist, Annotation) and artist.anncoords == "offset points":
                artist.xyann = (paper.mark * artist.xyann[0], paper.mark * artist.xyann[1])
        case Line2D():
            artist.set_linewidth(paper.line * artist.get_linewidth())
            artist.set_markersize(paper.mark * artist.get_markersize())
            artist.set_markeredgewidth(paper.mark * artist.get_markeredgewidth())
        case FancyArrowPatch():
            artist.set_mutation_scale(max(paper.mark * artist.get_mutation_scale(), 4.5))
            artist.set_linewidth(paper.line * artist.get_linewidth())
        case Patch():
            artist.set_linewidth(paper.line * artist.get_linewidth())
        case Collection():
            artist.set_linewidth([paper.line * float(w) for w in np.atleast_1d(artist.get_linewidth())])
            if isinstance(artist, PathCollection):
                artist.set_sizes(paper.mark**2 * artist.get_sizes())
