"""Colours and sizes: what pictures have of their own, and what a style sheet of matplotlib changes.

Sizes are relative to the ``rcParams`` in force, greys lie between the background and the ink of the style,
values have its colour map, and lines its colour cycle. With matplotlib's own style, lines have colours that
can be told apart with every kind of colour vision.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.colors import ListedColormap, to_rgb

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
