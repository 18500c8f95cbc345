"""The picture of rules side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from fieldbo._numerics.arrays import Array
from fieldbo.results.metrics import F1, Score
from fieldbo.results.plot.figures import SERIES, floor_of, new_figure, opened


def comparison_picture(
    table: Mapping[str, tuple[Array, Array, Array]], unit: str, score: Score = F1
) -> Figure:
    """Draw the mean score against cost, one line a rule, with bands of one standard error.

    Parameters
    ----------
    table : mapping of str to (cost, mean, standard_error)
        For each rule three (k,) arrays: costs in `unit`, mean scores, and their standard errors.
    unit : str
        The worlds' cost unit.
    score : Score
        Which; one of which less is better is drawn on a log scale.

    Returns
    -------
    matplotlib.figure.Figure
        Each line is named at its right-hand end.
    """
    figure = new_figure(9, 5.5)
    ax = figure.subplots()
    lines = {rule: tuple(np.asarray(c, dtype=float) for c in columns) for rule, columns in table.items()}
    floor = -np.inf
    if score.better == "smaller":
        floor = floor_of(np.concatenate([np.empty(0), *(mean for _, mean, _ in lines.values())]))
        ax.set_yscale("log")
    ends: list[tuple[float, float, str, str]] = []
    for number, (rule, (cost, mean, error)) in enumerate(lines.items()):
        again, turn = divmod(number, len(SERIES))
        colour, style = SERIES[turn], ("-", "--", ":")[again % 3]
        low, high = (np.maximum(end, floor) for end in (mean - error, mean + error))
        ax.fill_between(cost, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(cost, np.maximum(mean, floor), style, color=colour, linewidth=1.8, label=rule)
        known = np.flatnonzero(np.isfinite(mean))
        ends += [(float(cost[k]), max(float(mean[k]), floor), rule, colour) for k in known[-1:]]
    ax.set_xlim(0, max((end[0] for end in ends), default=1.0))
    ax.set_ylim(*((floor, None) if score.better == "smaller" else (0, 1)))
    _name(ax, ends)
    better = "" if score.better == "larger" else "; smaller is better"
    ax.set(xlabel=f"cost ({unit})", ylabel=f"mean {score.name}, ± one standard error{better}")
    opened(ax)
    return figure


def _name(ax: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Name each line beside its right-hand end (cost, score, rule, colour)."""
    into_axes = ax.transLimits.transform
    on_scale = ax.transScale.transform
    heights = [float(into_axes(on_scale((x, y)))[1]) for x, y, _, _ in ends]
    for (x, y, rule, colour), height in zip(ends, _apart(heights, 0.045), strict=True):
        ax.annotate(
            rule,
            (x, y),
            (1.03, height),
            textcoords="axes fraction",
            color=colour,
            verticalalignment="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def _apart(heights: list[float], gap: float) -> list[float]:
    """Return heights at least `gap` apart, each as near to where it was as that and 0 to 1 allow."""
    if not heights:
        return []
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(order))
    moved = isotonic_regression(np.asarray(heights)[order] - steps).x
    out = np.empty(len(order))
    out[order] = np.clip(moved, 0, max(0.0, 1 - steps[-1])) + steps
    return [float(y) for y in out]
