"""The picture of the readings: their values in order, with their noise."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fieldbo.results.answers import LevelSetAnswer
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import finish, headline, new_figure, opened
from fieldbo.results.plot.marks import readings
from fieldbo.results.plot.profiles import level
from fieldbo.results.plot.style import Look, line_width, shade


def readings_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the value of each reading in order; see `readings_panel`.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.
    """
    figure = new_figure(9, 5, width)
    readings_panel(figure.subplots(), outcome)
    return finish(figure, f"{headline(outcome)}\nreadings in order")


def readings_panel(
    ax: Axes, outcome: Outcome, *, color: str | None = None, linewidth: float | None = None
) -> dict[str, Artist]:
    """Draw the value of each reading into axes, in the order in which they were taken, with its noise.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    outcome : Outcome
        For example a `Result`.
    color : color, optional
        Of the bars that show the noise.
    linewidth : float, optional
        Of these bars, in points.

    Returns
    -------
    dict of str to Artist
        Those drawn of ``"readings"`` (or ``"readings at level k"``), ``"readings on the way"``,
        ``"left out"``, ``"noise"``, which reaches one standard deviation up and down, and the
        ``"threshold"`` or the ``"reported optimum"``.
    """
    variances = np.concatenate([np.empty(0), *(o.noise_variances for o in outcome.observations)])
    number, values, sd = np.arange(1, len(variances) + 1), outcome.values, np.sqrt(variances)
    look: Look = {"color": color or shade(0.5), "linewidth": linewidth or line_width(1.0), "zorder": 2.2}
    noise = ax.vlines(number, values - sd, values + sd, label="± one standard deviation of the noise", **look)
    drawn: dict[str, Artist] = {"noise": noise}
    drawn |= readings(ax, number.astype(float), values, outcome, numbered=False)
    if isinstance(outcome.answer, LevelSetAnswer):
        drawn["threshold"] = level(ax, outcome.answer.user_threshold)
    else:
        style: Look = {"color": shade(1.0), "linewidth": line_width(1.0), "linestyle": ":"}
        value = outcome.answer.reported_value
        drawn["reported optimum"] = ax.axhline(value, label="value at the reported optimum", **style)
    ax.set(xlabel="reading", ylabel=outcome.mission.world.quantity.label)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    opened(ax)
    return drawn
