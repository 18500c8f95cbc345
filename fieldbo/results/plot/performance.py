"""Performance profiles of policies side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from fieldbo._numerics.arrays import Array
from fieldbo.results.plot.comparisons import line_looks
from fieldbo.results.plot.figures import finish, new_figure, opened
from fieldbo.results.plot.layout import PlainNumbers

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
