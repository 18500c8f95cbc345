"""A path in the order in which it was travelled: by colour, and with arrows."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerBase
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.transforms import Transform
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.results.plot.style import Look, line_width
from fieldbo.results.plot.widths import width_of

COLOURS = LinearSegmentedColormap.from_list("order", ["#ffffff", "#ffb3da", "#ff1f9c"])
"""White for the first leg; no value of a map has the others."""

_MOST_ARROWS = {"column": 8}
_STEPS = 16  # colours of a path in the legend


class Travelled(Line2D):
    """The casing of a path, whose entry in the legend has all colours of the order."""

    shades: Colormap = COLOURS


class _Gradient(HandlerBase):
    """Draws a line in all colours of the order."""

    def create_artists(
        self,
        legend: Legend,
        orig_handle: Artist,
        xdescent: float,
        ydescent: float,
        width: float,
        height: float,
        fontsize: float,
        trans: Transform,
    ) -> list[Artist]:
        """Return the artists of a legend entry."""
        shades = orig_handle.shades if isinstance(orig_handle, Travelled) else COLOURS
        x = np.linspace(-xdescent, width - xdescent, _STEPS + 1)
        lines = LineCollection(
            list(_legs(np.column_stack([x, np.full(_STEPS + 1, 0.5 * height - ydescent)]))),
            cmap=shades,
            array=np.arange(_STEPS),
            linewidths=2.0,
            transform=trans,
        )
        middle = 0.5 * height - ydescent
        casing = Line2D(x[[0, -1]], [middle, middle], color="0.25", linewidth=3.2, transform=trans)
        return [casing, lines]


Legend.update_default_handler_map({Travelled: _Gradient()})


def ordered_path(
    ax: Axes, path: Array, *, color: str | None = None, cmap: Any = None, linewidth: float | None = None
) -> dict[str, Artist]:
    """Draw a path (k, 2) over a map: coloured from first leg to last, with arrows; thinner if long.

    Parameters
    ----------
    ax : Axes
    path : (k, 2) array
    color : str, optional
        One colour for all legs.
    cmap : str or Colormap, optional
        Colours from the first leg to the last.
    linewidth : float, optional
        In points.

    Returns
    -------
    dict of str to Artist
        The ``"path"``, and its ``"casing"``, which has the label.
    """
    legs = len(path) - 1
    width = line_width(float(np.clip(9.0 / np.sqrt(legs + 1), 0.7, 1.2))) if linewidth is None else linewidth
    shades = COLOURS if cmap is None else colormaps.get_cmap(cmap)
    shades = shades if color is None else ListedColormap([color])
    look: Look = {"color": "0.15", "alpha": 0.6, "linewidth": width + 0.9, "solid_joinstyle": "round"}
    casing = Travelled(path[:, 0], path[:, 1], label="path", zorder=3, **look)
    casing.shades = shades
    ax.add_line(casing)
    if legs < 1:
        return {"casing": casing}
    lines = LineCollection(
        list(_legs(path)),
        cmap=shades,
        array=np.arange(legs),
        linewidths=width,
        capstyle="round",
        zorder=3.01,
    )
    ax.add_collection(lines, autolim=False)
    _arrows(ax, path, shades)
    return {"path": lines, "casing": casing}


def _legs(path: Array) -> Array:
    """Return the legs (k - 1, 2, 2) of a path (k, 2)."""
    return np.stack([path[:-1], path[1:]], axis=1)


def _arrows(ax: Axes, path: Array, shade: Any) -> None:
    """Draw arrows at equal distances along a path, in the middle of the legs there."""
    extent = np.ptp(np.array([ax.get_xlim(), ax.get_ylim()]), axis=1)
    lengths = np.linalg.norm(np.diff(path, axis=0) / extent, axis=1)
    for leg in _with_arrows(lengths, _MOST_ARROWS.get(width_of(ax), 14)):
        middle, half = path[leg : leg + 2].mean(axis=0), 0.01 * (path[leg + 1] - path[leg])
        colour = shade(leg / max(1, len(lengths) - 1))
        arrow = FancyArrowPatch(
            tuple(middle - half),
            tuple(middle + half),
            arrowstyle="-|>,head_length=0.5,head_width=0.28",
            mutation_scale=10,
            shrinkA=0,
            shrinkB=0,
            facecolor=colour,
            edgecolor="0.1",
            linewidth=0.5,
            zorder=3.3,
        )
        ax.add_artist(arrow)  # does not change the limits


def _with_arrows(lengths: Array, most: int) -> NDArray[np.intp]:
    """Return which legs get an arrow: the longest of each of `most` equal parts of the path."""
    ends = np.cumsum(lengths)
    if not len(lengths) or ends[-1] == 0:
        return np.empty(0, dtype=np.intp)
    part = np.minimum((most * (ends - 0.5 * lengths) / ends[-1]).astype(int), most - 1)
    longest = [np.flatnonzero(part == k)[np.argmax(lengths[part == k])] for k in np.unique(part)]
    return np.array([leg for leg in longest if lengths[leg] > 0.03], dtype=np.intp)
