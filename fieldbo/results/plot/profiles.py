"""Profiles: values against one axis, or against the rank of the sites."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from fieldbo._numerics.arrays import Array
from fieldbo.belief import confidence
from fieldbo.belief.confidence import AnySurface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import opened
from fieldbo.results.plot.marks import mark
from fieldbo.results.plot.style import BLUE, RED, Look, hue, line_width, shade


def moments(outcome: Outcome) -> tuple[Array, Array]:
    """Return posterior mean and standard deviation (N,), in the quantity's unit."""
    return confidence.moments(outcome.surface, outcome.scale)


def interval95(surface: AnySurface, scale: ValueScale) -> tuple[Array, Array]:
    """Return both ends (N,) of the belief's central 95%, in the quantity's unit; quantiles under a log."""
    user = scale.to_user
    ends = user(surface.mean - SURE * surface.sd), user(surface.mean + SURE * surface.sd)
    return np.minimum(*ends), np.maximum(*ends)  # the model of a minimum has the opposite sign


def line(ax: Axes, x: Array, y: Array, **look: Any) -> Artist:
    """Draw y (N,) against x (N,) in order of x."""
    order = np.argsort(x, kind="stable")
    (drawn,) = ax.plot(x[order], y[order], **look)
    return drawn


def level(ax: Axes, threshold: float) -> Artist:
    """Draw a threshold as a horizontal line."""
    return ax.axhline(
        threshold,
        color=hue(RED),
        linewidth=line_width(1.2),
        linestyle="--",
        label=f"threshold {threshold:.4g}",
    )


def profile(ax: Axes, outcome: Outcome, x: Array, **look: Any) -> dict[str, Artist]:
    """Draw posterior mean, 95% band, threshold and truth against x (N,)."""
    drawn = dict[str, Artist]()
    order = np.argsort(x, kind="stable")
    low, high = (end[order] for end in interval95(outcome.surface, outcome.scale))
    band: Look = {"color": hue(BLUE), "alpha": 0.2, "linewidth": 0, "label": "95% interval"}
    drawn["interval"] = ax.fill_between(x[order], low, high, **band)
    mean: Look = {"color": hue(BLUE), "linewidth": line_width(1.8), "label": "posterior mean"}
    drawn["mean"] = line(ax, x, moments(outcome)[0], **mean)
    if outcome.truth is not None:
        true: Look = {"color": shade(1.0), "linewidth": line_width(1.2), "label": "true field"}
        drawn["truth"] = line(ax, x, outcome.truth, **true, **look)
    if isinstance(outcome.answer, LevelSetAnswer):
        drawn["threshold"] = level(ax, outcome.answer.user_threshold)
    ax.set_ylabel(outcome.mission.world.quantity.label)
    opened(ax)
    return drawn


def optima(ax: Axes, answer: OptimumAnswer) -> dict[str, Artist]:
    """Mark the reported optimum, and the true one if known, on a profile along one axis."""
    drawn = dict[str, Artist]()
    if answer.optimum is not None:
        place = np.array([answer.optimum.point[0], answer.optimum.value])
        drawn["true optimum"] = mark(ax, place, "true optimum")
    place = np.array([answer.reported.point[0], answer.reported_value])
    return drawn | {"reported optimum": mark(ax, place, "reported optimum")}
