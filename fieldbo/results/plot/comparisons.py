"""The picture of policies side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.optimize import isotonic_regression

from fieldbo._numerics.arrays import Array
from fieldbo.results.metrics import F1, Score
from fieldbo.results.plot.figures import finish, floor_of, new_figure, opened, plain_log
from fieldbo.results.plot.style import SERIES, Look, hue, line_width

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
    lines = comparison_panel(ax, table, unit, score)
    ax.set_xlabel(f"{ax.get_xlabel()}\nline: mean; band: {band}")
    if width != "column":
        _name(ax, [(name, line) for name, line in lines.items() if isinstance(line, Line2D)])
    return finish(figure, "", legend=width == "column")


def comparison_panel(
    ax: Axes,
    table: Mapping[str, tuple[Array, Array, Array]],
    unit: str,
    score: Score = F1,
    *,
    linewidth: float | None = None,
) -> dict[str, Artist]:
    """Draw the mean score of each policy against cost into axes, with a band.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    table, unit, score
        As for `comparison_picture`.
    linewidth : float, optional
        In points.

    Returns
    -------
    dict of str to Artist
        The line of each policy by its name, and its band as ``"NAME band"``.
    """
    lines = {name: tuple(np.asarray(c, dtype=float) for c in columns) for name, columns in table.items()}
    floor, drawn, last = -np.inf, dict[str, Artist](), list[float]()
    if score.better == "smaller":
        floor = floor_of(np.concatenate([np.empty(0), *(mean for _, mean, _ in lines.values())]))
        plain_log(ax)
    for (name, (cost, mean, error)), look in zip(
        lines.items(), line_looks(len(lines), linewidth), strict=True
    ):
        down, up = np.broadcast_to(error, (2, len(mean)))
        low, high = (np.maximum(end, floor) for end in (mean - down, mean + up))
        area = ax.fill_between(cost, low, high, color=look["color"], alpha=0.15, linewidth=0)
        (line,) = ax.plot(cost, np.maximum(mean, floor), label=name, **look)
        drawn |= {name: line, f"{name} band": area}
        last += [float(cost[k]) for k in np.flatnonzero(np.isfinite(mean))[-1:]]
    ax.set_xlim(0, max(last, default=1.0))
    ax.set_ylim(*((floor, None) if score.better == "smaller" else (0, 1)))
    better = "" if score.better == "larger" else "; smaller is better"
    ax.set(xlabel=f"cost ({unit})", ylabel=f"mean {score.name}{better}")
    opened(ax)
    return drawn


def line_looks(number: int, linewidth: float | None = None) -> list[Look]:
    """Return the looks of so many lines: the colours of the series, then again with other dashes."""
    wide = line_width(1.8) if linewidth is None else linewidth
    laps = (divmod(k, len(SERIES)) for k in range(number))
    return [
        {"color": hue(SERIES[place]), "linestyle": ("-", "--", ":")[lap % 3], "linewidth": wide}
        for lap, place in laps
    ]


def _name(ax: Axes, lines: list[tuple[str, Line2D]]) -> None:
    """Name each line at its right-hand end."""
    into_axes = ax.transLimits.transform
    on_scale = ax.transScale.transform
    ends = []
    for name, line in lines:
        points = np.asarray(line.get_xydata(), dtype=float)
        ends += [(*point, name, line.get_color()) for point in points[np.isfinite(points).all(axis=1)][-1:]]
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
