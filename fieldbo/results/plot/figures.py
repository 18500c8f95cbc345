"""Figures: common styles, colours and legends, and saving as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from fieldbo._numerics.arrays import Array
from fieldbo.results.formatting import question_text
from fieldbo.results.outcome import Outcome

DPI = 150

_PASSES = 8
_SETTLED = 1e-3  # fraction of the figure

Look = dict[str, Any]

# Okabe and Ito's palette, distinguishable with every kind of colour vision.
BLUE, RED, GREEN, PINK, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
YELLOW = "#f0e442"
OLIVE, WINE, INDIGO, BROWN, LIME = "#999933", "#882255", "#332288", "#7a4419", "#9acd32"
SERIES = (BLUE, RED, GREEN, PINK, ORANGE, SKY, OLIVE, WINE, INDIGO, BROWN, LIME, "black")
"""Colours of lines and bars, in order."""
VALUE: Look = {"cmap": "viridis"}
SPREAD: Look = {"cmap": "magma", "vmin": 0.0}
CHANCE: Look = {"cmap": "RdBu_r", "vmin": 0.0, "vmax": 1.0}
HOPE: Look = {"cmap": "Blues", "vmin": 0.0, "vmax": 0.5}  # one half at the reported optimum
CLASS: Look = {"cmap": ListedColormap(["#b9cbd8", "#e6edf2", "#f3c9a3", RED]), "vmin": -0.5, "vmax": 3.5}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def opened(ax: Axes) -> None:
    """Remove the upper and right spines, and draw a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def floor_of(regrets: Array) -> float:
    """Return the lower end of a log axis of regrets.

    Half of the least positive regret, or a millionth of the largest, whichever is larger.

    Examples
    --------
    >>> floor_of(np.array([1.0, 0.25, 0.0]))
    0.125
    >>> floor_of(np.zeros(3))
    0.5
    """
    positive = regrets[np.isfinite(regrets) & (regrets > 0)]
    return float(max(0.5 * positive.min(), 1e-6 * positive.max())) if len(positive) else 0.5


def plain_log(ax: Axes) -> None:
    """Set a log scale on the y axis, with plain numbers as tick labels."""
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(_PlainNumbers())
    ax.yaxis.set_minor_formatter(_PlainNumbers(minor_thresholds=(2, 0.4)))


class _PlainNumbers(LogFormatter):
    """Tick labels such as 0.2 in place of 2e-01."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def cost_label(outcome: Outcome) -> str:
    """Return the label of a cost axis."""
    mission, unit = outcome.mission, outcome.mission.world.cost_unit
    return f"cost ({unit}); battery: {sum(c.battery for c in mission.vehicles):g} {unit}"


def headline(outcome: Outcome) -> str:
    """Return the name of the mission and its question."""
    mission = outcome.mission
    return f"{mission.name}: {question_text(mission.question, mission.world.quantity)}"


def legend_below(figure: Figure) -> None:
    """Add a legend below the axes that names each label once."""
    named: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    for columns in range(len(named) if len(named) < 5 else (len(named) + 1) // 2, 0, -1):
        legend = figure.legend(
            list(named.values()),
            list(named),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            labelspacing=0.8,
        )
        box = legend.get_tightbbox()
        if columns == 1 or box is None or box.width <= figure.bbox.width:
            break
        legend.remove()  # too wide: try fewer columns


def save(figure: Figure, target: Path | str | IO[bytes]) -> None:
    """Write a figure as PNG at 150 dots per inch; the same figure gives the same bytes.

    The first save fixes the layout, so that later ones do not move anything. If axes keep their aspect, space
    for labels takes several passes, each starting from the sizes of the last one.

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
