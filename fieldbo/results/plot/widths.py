"""Widths of pictures: the screen, and a column or the page of a paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection, PathCollection
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.text import Annotation, Text

from fieldbo.results.plot.choices import WIDTHS, Paper

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
