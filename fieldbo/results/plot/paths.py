"""The picture of a path."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.metrics import probit
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.cell_path import settings_picture
from fieldbo.results.plot.figures import RED, VALUE, finish, headline, new_figure, opened
from fieldbo.results.plot.marks import mark, readings
from fieldbo.results.plot.order import ordered_path
from fieldbo.results.plot.profiles import moments, optima, profile
from fieldbo.results.plot.surfaces import edge, field, frame, ratio


def path_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the path travelled and the readings, over the true field or, in a live world, the posterior mean.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Axes in the domain's units, values in the quantity's unit, with the true and the estimated edge of a
        level set, or the true and the reported optimum. Some readings are numbered, in order; sensor levels
        differ in shape, and readings that the model left out are crossed. The path turns from white to
        pink from its first leg to its last, and arrows show its direction. With one axis, a profile is drawn
        above the path. For a factory cell, its settings order by order; see `settings_picture`.
    """
    if outcome.cell_runs.names:
        return settings_picture(outcome, width)
    domain, path = outcome.mission.world.domain, outcome.path
    over = "posterior mean (truth unknown)" if outcome.truth is None else "true field"
    answer = outcome.answer
    if domain.dimension == 1:
        figure = new_figure(8, 7, width)
        top, ax = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        profile(top, outcome, domain.sites[:, 0])
        if isinstance(answer, OptimumAnswer):
            optima(top, answer)
        readings(top, outcome.sites[:, 0], outcome.values, outcome)
        path = np.column_stack([path, np.arange(len(path))])
        ax.set(xlabel=domain.axes[0].label, ylabel="leg")
        ax.yaxis.set_inverted(True)
        opened(ax)
        ax.plot(path[:, 0], path[:, 1], label="path", zorder=3, color="0.3", linewidth=1.0)
    else:
        figure = new_figure(9, 7.2 * ratio(domain) + 1.6, width, ratio=ratio(domain))
        top = ax = figure.subplots()
        frame(ax, domain, named=True)
        _backdrop(ax, outcome)
        readings(ax, outcome.sites[:, 0], outcome.sites[:, 1], outcome)
        over = over if domain.dimension == 2 else f"first two of {domain.dimension} axes"
        ordered_path(ax, path[:, :2])
    mark(ax, path[0], "start")
    mark(ax, path[-1], "end")
    home = outcome.mission.vehicles[0].home
    if home is not None and domain.dimension > 1:
        mark(ax, home[:2], "home")
    return finish(figure, f"{headline(outcome)}\npath over the {over}", figure.axes, top)


def _backdrop(ax: Axes, outcome: Outcome) -> None:
    """Draw the field below a path, and the answer; with more than two axes, only the sites below it."""
    world, answer = outcome.mission.world, outcome.answer
    domain, truth = world.domain, answer.truth
    if domain.dimension > 2:
        ax.plot(*domain.sites[:, :2].T, "o", color="0.7", markersize=2, label="site")
    else:
        values = moments(outcome)[0] if truth is None else truth.values
        field(ax, domain, values, world.quantity.label, VALUE)
    if isinstance(answer, OptimumAnswer):
        if answer.optimum is not None:
            mark(ax, answer.optimum.point, "true optimum")
        mark(ax, answer.reported.point, "reported optimum")
    elif domain.dimension == 2:
        if truth is not None:
            edge(ax, domain, truth.values - truth.threshold, f"true level {truth.threshold:.4g}")
        label = f"estimated level {answer.user_threshold:.4g}"
        edge(ax, domain, probit(answer.probability), label, color=RED, style="--")
