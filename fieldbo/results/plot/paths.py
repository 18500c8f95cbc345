"""The picture of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.plot.figures import RED, VALUE, Look, headline, legend_below, new_figure, opened
from fieldbo.results.plot.ground import edge, field, frame, ratio
from fieldbo.results.plot.marks import mark, readings
from fieldbo.results.plot.profiles import moments, optima, profile
from fieldbo.results.plot.settings import settings_picture

if TYPE_CHECKING:
    from fieldbo.results.result import Result

_THIN = [withStroke(linewidth=1.9, foreground="black", alpha=0.5)]


def path_picture(result: Result) -> Figure:
    """Draw the way really taken and the readings, over the true field or, without one, the posterior mean.

    Parameters
    ----------
    result : Result

    Returns
    -------
    matplotlib.figure.Figure
        Axes in the domain's units, values in the quantity's; with the level set's true edge and the
        classified one, or the true optimum and the reported one. Readings are numbered sparsely, in order;
        the settings of a sensor differ in shape, and those that the model left out are crossed. Of one axis:
        a profile above the path. Of a cell: its settings, order by order; see `settings_picture`.
    """
    if result.cell.names:
        return settings_picture(result)
    domain, way = result.mission.world.domain, result.path
    over = "posterior mean: the truth is not known" if result.truth is None else "true field"
    answer = result.answer
    if domain.dimension == 1:
        figure = new_figure(8, 7)
        top, ax = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        profile(top, result, domain.sites[:, 0])
        if isinstance(answer, OptimumAnswer):
            optima(top, answer)
        readings(top, result.sites[:, 0], result.values, result)
        way = np.column_stack([way, np.arange(len(way))])
        ax.set(xlabel=domain.axes[0].label, ylabel="leg")
        ax.yaxis.set_inverted(True)
        opened(ax)
        line: Look = {"color": "0.3", "linewidth": 1.0}
    else:
        figure = new_figure(9, 7.2 * ratio(domain) + 1.6)
        top = ax = figure.subplots()
        frame(ax, domain, named=True)
        _backdrop(ax, result)
        readings(ax, result.sites[:, 0], result.sites[:, 1], result)
        over = over if domain.dimension == 2 else f"first two of {domain.dimension} axes"
        line = {"color": "white", "linewidth": 0.8, "alpha": 0.75, "path_effects": _THIN}
    ax.plot(way[:, 0], way[:, 1], label="path", zorder=3, **line)
    mark(ax, way[0], "start")
    mark(ax, way[-1], "end")
    home = result.mission.vehicles[0].home
    if home is not None and domain.dimension > 1:
        mark(ax, home[:2], "home")
    top.set_title(f"{headline(result)}\npath over the {over}")
    legend_below(figure)
    return figure


def _backdrop(ax: Axes, result: Result) -> None:
    """Draw what the path went over, and the answer; of more than two axes, the sites alone under it."""
    world, answer = result.mission.world, result.answer
    domain, truth = world.domain, answer.truth
    if domain.dimension > 2:
        ax.plot(*domain.sites[:, :2].T, "o", color="0.7", markersize=2, label="site")
    else:
        values = moments(result)[0] if truth is None else truth.values
        field(ax, domain, values, world.quantity.label, VALUE)
    if isinstance(answer, OptimumAnswer):
        if answer.optimum is not None:
            mark(ax, answer.optimum.point, "true optimum")
        mark(ax, answer.reported.point, "reported optimum")
    elif domain.dimension == 2:
        if truth is not None:
            edge(ax, domain, truth.values - truth.threshold, f"true level {truth.threshold:.4g}")
        excess = result.surface.mean - answer.threshold
        edge(ax, domain, excess, f"classified level {answer.user_threshold:.4g}", color=RED, style="--")
