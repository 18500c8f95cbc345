"""Figures, what they have in common, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import in_words

if TYPE_CHECKING:
    from fieldbo.results.result import Result

DPI = 150

_PASSES = 8
_SETTLED = 1e-3  # share of the figure

Look = dict[str, Any]

# Okabe and Ito's palette, told apart by every kind of colour vision.
BLUE, RED, GREEN, PINK, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
YELLOW = "#f0e442"
OLIVE, WINE, INDIGO, BROWN, LIME = "#999933", "#882255", "#332288", "#7a4419", "#9acd32"
SERIES = (BLUE, RED, GREEN, PINK, ORANGE, SKY, OLIVE, WINE, INDIGO, BROWN, LIME, "black")
"""Colours of lines and bars, one after the other."""
VALUE: Look = {"cmap": "viridis"}
SPREAD: Look = {"cmap": "magma", "vmin": 0.0}
CHANCE: Look = {"cmap": "RdBu_r", "vmin": 0.0, "vmax": 1.0}
HOPE: Look = {"cmap": "Blues", "vmin": 0.0, "vmax": 0.5}  # a half at the reported optimum itself
CLASS: Look = {"cmap": ListedColormap(["#b9cbd8", "#e6edf2", "#f3c9a3", RED]), "vmin": -0.5, "vmax": 3.5}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def opened(ax: Axes) -> None:
    """Leave the axes open above and to the right, over a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def floor_of(regrets: Array) -> float:
    """Return where a log axis of regrets begins: half the least positive one, at most 1e6 below the largest.

    Examples
    --------
    >>> floor_of(np.array([1.0, 0.25, 0.0]))
    0.125
    >>> floor_of(np.zeros(3))
    0.5
    """
    positive = regrets[np.isfinite(regrets) & (regrets > 0)]
    return float(max(0.5 * positive.min(), 1e-6 * positive.max())) if len(positive) else 0.5


def headline(result: Result) -> str:
    """Return the mission's name and its question."""
    mission = result.mission
    return f"{mission.name}: {in_words(mission.question, mission.world.quantity)}"


def legend_below(figure: Figure) -> None:
    """Name everything that has a label below the axes, once."""
    named: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    for columns in range(len(named) if len(named) < 5 else (len(named) + 1) // 2, 0, -1):
        legend = figure.legend(
            list(named.values()), list(named), loc="outside lower center", ncols=columns, frameon=False
        )
        room = legend.get_tightbbox()
        if columns == 1 or room is None or room.width <= figure.bbox.width:
            break
        legend.remove()  # wider than the figure: fewer columns, more rows


def save(figure: Figure, target: Path | str | IO[bytes]) -> None:
    """Write a figure as PNG, 150 dots an inch; the same figure gives the same bytes.

    The layout is settled at the first save: a later one does not move anything. Where axes keep their
    aspect, room for labels is found in several passes: each starts from the size that the last one left.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    target : path or binary file object
    """
    placed = np.empty(0)
    for _ in range(_PASSES):
        figure.draw_without_rendering()
        before, placed = placed, np.array([ax.get_position(original=True).bounds for ax in figure.axes])
        if before.shape == placed.shape and np.allclose(before, placed, rtol=0, atol=_SETTLED):
            break
    figure.set_layout_engine("none")
    figure.savefig(target, format="png", dpi=DPI, metadata={"Software": "fieldbo"})
