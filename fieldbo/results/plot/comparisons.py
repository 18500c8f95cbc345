"""The picture of policies side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from fieldbo._numerics.arrays import Array
from fieldbo.results.metrics import F1, Score
from fieldbo.results.plot.figures import SERIES, finish, floor_of, new_figure, opened, plain_log

BANDS = {"standard-error": "± one standard error of the mean", "interval": "central 90% of the runs"}
"""Bands around the mean score of several runs."""


def comparison_picture(
    table: Mapping[str, tuple[Array, Array, Array]],
    unit: str,
    score: Score = F1,
    width: str = "screen",
    band: str = BANDS["standard-error"],
) -> Figure:
    """Draw the mean score of each policy against cost, with a band, and say below what it shows.

    Parameters
    ----------
    table : mapping of str to (cost, mean, standard_error)
        Three (k,) arrays per policy: costs in `unit`, mean scores, and their standard errors; or, in place of
        these, a (2, k) array of distances from the mean down and up to the ends of the band.
    unit : str
        Cost unit of the worlds.
    score : Score
        A score of which smaller is better is drawn on a log scale.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.
    band : str
        What the bands show.

    Returns
    -------
    matplotlib.figure.Figure
        Lines are named at their right-hand ends or, in a column, in a legend.
    """
    figure = new_figure(9, 5.5, width)
    ax = figure.subplots()
    lines = {name: tuple(np.asarray(c, dtype=float) for c in columns) for name, columns in table.items()}
    floor = -np.inf
    if score.better == "smaller":
        floor = floor_of(np.concatenate([np.empty(0), *(mean for _, mean, _ in lines.values())]))
        plain_log(ax)
    ends: list[tuple[float, float, str, str]] = []
    for number, (name, (cost, mean, error)) in enumerate(lines.items()):
        lap, place = divmod(number, len(SERIES))
        colour, style = SERIES[place], ("-", "--", ":")[lap % 3]
        down, up = np.broadcast_to(error, (2, len(mean)))
        low, high = (np.maximum(end, floor) for end in (mean - down, mean + up))
        ax.fill_between(cost, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(cost, np.maximum(mean, floor), style, color=colour, linewidth=1.8, label=name)
        known = np.flatnonzero(np.isfinite(mean))
        ends += [(float(cost[k]), max(float(mean[k]), floor), name, colour) for k in known[-1:]]
    ax.set_xlim(0, max((end[0] for end in ends), default=1.0))
    ax.set_ylim(*((floor, None) if score.better == "smaller" else (0, 1)))
    if width != "column":
        _name(ax, ends)
    better = "" if score.better == "larger" else "; smaller is better"
    ax.set(xlabel=f"cost ({unit})\nline: mean; band: {band}", ylabel=f"mean {score.name}{better}")
    opened(ax)
    return finish(figure, "", legend=width == "column")


def _name(ax: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Name each line at its right-hand end (cost, score, name, colour)."""
    into_axes = ax.transLimits.transform
    on_scale = ax.transScale.transform
    heights = [float(into_axes(on_scale((x, y)))[1]) for x, y, _, _ in ends]
    for (x, y, name, colour), height in zip(ends, _apart(heights, 0.045), strict=True):
        ax.annotate(
            name,
            (x, y),
            (1.03, height),
            textcoords="axes fraction",
            color=colour,
            verticalalignment="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def _apart(heights: list[float], gap: float) -> list[float]:
    """Return the nearest heights that are at least `gap` apart and lie between 0 and 1."""
    if not heights:
        return []
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(order))
    moved = isotonic_regression(np.asarray(heights)[order] - steps).x
    out = np.empty(len(order))
    out[order] = np.clip(moved, 0, max(0.0, 1 - steps[-1])) + steps
    return [float(y) for y in out]
