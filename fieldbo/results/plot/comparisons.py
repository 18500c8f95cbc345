"""The picture of policies side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.optimize import isotonic_regression

from fieldbo._numerics.arrays import Array
from fieldbo.results.metrics import F1, Score
from fieldbo.results.plot.figures import finish, floor_of, new_figure, opened, plain_log
from fieldbo.results.plot.layout import PlainNumbers
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


_BEYOND = 1.08  # the right-hand end, over the largest factor
_NARROWEST = 1.5  # least factor at the right-hand end


def performance_picture(
    profiles: Mapping[str, Mapping[str, tuple[Array, Array, Array]]], width: str = "screen", band: str = ""
) -> Figure:
    """Draw performance profiles, one panel for each target, and say below what the bands show.

    Parameters
    ----------
    profiles : mapping of str to mapping
        By the text of each target, such as ``"F1 0.9"``, then as for `performance_panel`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.
    band : str
        What the bands show.
    """
    count = len(profiles)
    rows, columns = (count, 1) if width == "column" else (1, count)
    figure = new_figure(min(6.5 * columns, 14.0) if columns > 1 else 8.0, 5.0 * rows, width)
    panels = list(np.atleast_1d(figure.subplots(rows, columns, sharey=True)).flat)
    for ax, (target, lines) in zip(panels, profiles.items(), strict=True):
        performance_panel(ax, lines)
        ax.set_xlabel(f"factor of the lowest cost to {target}")
    last = panels[-1]
    last.set_xlabel(f"{last.get_xlabel()}\n" + (f"band: {band}" if band else ""))
    for ax in panels[1:] if width != "column" else []:
        ax.set_ylabel("")
    return finish(figure, "", panels)


def performance_panel(
    ax: Axes,
    profiles: Mapping[str, tuple[Array, Array, Array]],
    *,
    linewidth: float | None = None,
    band: bool = True,
) -> dict[str, Artist]:
    """Draw performance profiles (Dolan and Moré 2002) into axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    profiles : mapping of str to (factors, fraction, interval)
        By mission: factors (k,) from 1, the fraction (k,) of runs that reach the target within each factor of
        the lowest cost, and both ends (2, k) of its interval; the first fields of a `Profile`.
    linewidth : float, optional
        In points.
    band : bool
        Draw the intervals.

    Returns
    -------
    dict of str to Artist
        The line of each mission by its name, and its band as ``"NAME interval"``.
    """
    drawn = dict[str, Artist]()
    furthest = max([_NARROWEST, *(float(p[0][-1]) for p in profiles.values())]) * _BEYOND
    for (name, (factors, fraction, interval)), look in zip(
        profiles.items(), line_looks(len(profiles), linewidth), strict=True
    ):
        x, y = np.append(factors, furthest), np.append(fraction, fraction[-1])
        low, high = (np.append(end, end[-1]) for end in interval)
        if band:
            area = ax.fill_between(x, low, high, step="post", color=look["color"], alpha=0.15, linewidth=0)
            drawn[f"{name} interval"] = area
        (drawn[name],) = ax.step(x, y, where="post", label=name, clip_on=False, **look)
    ax.set_xscale("log")
    ax.set(xlim=(1.0, furthest), ylim=(0, 1))
    ax.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0), numticks=9))
    ax.xaxis.set_major_formatter(PlainNumbers(labelOnlyBase=False, minor_thresholds=(np.inf, np.inf)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="factor of the lowest cost to the target", ylabel="fraction of runs")
    opened(ax)
    return drawn


class Expected(NamedTuple):
    """Scores of one policy: quantiles (5, k) over the fields at costs (k,), up to a battery.

    Where the mission changes it, `battery` is what all batteries hold together, and `each` what one holds.
    """

    costs: Array
    quantiles: Array
    battery: float
    each: float | None = None

    def words(self, unit: str) -> str:
        """Return the battery, or the batteries, in words.

        Examples
        --------
        >>> Expected(np.ones(1), np.ones((5, 1)), 7200.0, 1200.0).words("s")
        '6 x 1,200 s'
        """
        if self.each is None:
            return f"{self.battery:,.4g} {unit}"
        return f"{round(self.battery / self.each)} x {self.each:,.4g} {unit}"


def advice_picture(
    expected: Mapping[str, Expected],
    unit: str,
    score: Score = F1,
    target: float | None = None,
    width: str = "screen",
    title: str = "",
) -> Figure:
    """Draw the score of each policy against cost: median, central 50% and central 80% of the fields.

    Parameters
    ----------
    expected : mapping of str to Expected
        By policy; the quantiles are those at 0.1, 0.25, 0.5, 0.75 and 0.9.
    unit : str
        Cost unit of the world.
    score : Score
        A score of which smaller is better is drawn on a log scale.
    target : float, optional
        Marked by a line, where the batteries are marked on it.
    width : {"screen", "column", "page"}
    title : str
    """
    figure = new_figure(9, 5.5, width)
    ax = figure.subplots()
    floor = -np.inf
    if score.better == "smaller":
        floor = floor_of(np.concatenate([e.quantiles[2] for e in expected.values()]))
        plain_log(ax)
    for number, (policy, of) in enumerate(expected.items()):
        costs, quantiles, battery = of.costs, of.quantiles, of.battery
        colour = SERIES[number % len(SERIES)]
        lines = np.maximum(quantiles, floor)
        for low, high, alpha in ((0, 4, 0.12), (1, 3, 0.2)):
            ax.fill_between(costs, lines[low], lines[high], color=colour, alpha=alpha, linewidth=0)
        ax.plot(costs, lines[2], color=colour, linewidth=1.8, label=f"{policy}: {of.words(unit)}")
        ax.axvline(battery, color=colour, linewidth=1.2, linestyle="--")
        if target is not None:
            ax.plot([battery], [target], "o", color=colour, clip_on=False, zorder=5)
    if target is not None:
        ax.axhline(target, color="0.3", linewidth=1.0, linestyle=":")
        ax.annotate(f"target {target:g}", (0.0, target), (3, 3), textcoords="offset points", color="0.3")
    ax.set_xlim(0, 1.02 * max(e.battery for e in expected.values()))
    ax.set_ylim(*((floor, None) if score.better == "smaller" else (0, 1)))
    better = "" if score.better == "larger" else "; smaller is better"
    if any((e.quantiles[2] < floor).any() for e in expected.values()):
        better += ", zero at the lower edge"
    ax.set(
        xlabel=f"cost ({unit})\nline: median; bands: central 50% and 80% of the fields; dashed: battery",
        ylabel=f"{score.name}{better}",
    )
    opened(ax)
    return finish(figure, title)
