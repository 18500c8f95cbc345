"""Profiles: values against one axis, or against the rank of the sites."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fieldbo._numerics.arrays import Array
from fieldbo.belief import confidence
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import BLUE, RED, opened
from fieldbo.results.plot.marks import mark


def moments(outcome: Outcome) -> tuple[Array, Array]:
    """Return posterior mean and standard deviation (N,), in the quantity's unit."""
    return confidence.moments(outcome.surface, outcome.scale)


def interval95(outcome: Outcome) -> tuple[Array, Array]:
    """Return both ends (N,) of the belief's central 95%, in the quantity's unit; quantiles under a log."""
    surface, user = outcome.surface, outcome.scale.to_user
    ends = user(surface.mean - SURE * surface.sd), user(surface.mean + SURE * surface.sd)
    return np.minimum(*ends), np.maximum(*ends)  # the model of a minimum has the opposite sign


def line(ax: Axes, x: Array, y: Array | None, **look: Any) -> None:
    """Draw y (N,) against x (N,) in order of x; nothing if y is None."""
    if y is not None:
        order = np.argsort(x, kind="stable")
        ax.plot(x[order], y[order], **look)


def level(ax: Axes, threshold: float) -> None:
    """Draw a threshold as a horizontal line."""
    ax.axhline(threshold, color=RED, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}")


def profile(ax: Axes, outcome: Outcome, x: Array, **look: Any) -> None:
    """Draw posterior mean, 95% band, threshold and truth against x (N,)."""
    order = np.argsort(x, kind="stable")
    low, high = (end[order] for end in interval95(outcome))
    ax.fill_between(x[order], low, high, color=BLUE, alpha=0.2, linewidth=0, label="95% interval")
    line(ax, x, moments(outcome)[0], color=BLUE, linewidth=1.8, label="posterior mean")
    line(ax, x, outcome.truth, color="black", linewidth=1.2, label="true field", **look)
    if isinstance(outcome.answer, LevelSetAnswer):
        level(ax, outcome.answer.user_threshold)
    ax.set_ylabel(outcome.mission.world.quantity.label)
    opened(ax)


def optima(ax: Axes, answer: OptimumAnswer) -> None:
    """Mark the reported optimum, and the true one if known, on a profile along one axis."""
    if answer.optimum is not None:
        mark(ax, np.array([answer.optimum.point[0], answer.optimum.value]), "true optimum")
    mark(ax, np.array([answer.reported.point[0], answer.reported_value]), "reported optimum")
