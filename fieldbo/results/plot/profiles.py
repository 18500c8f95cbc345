"""Values against one axis, or against the sites' rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE
from fieldbo.results.plot.figures import BLUE, RED, opened
from fieldbo.results.plot.marks import mark

if TYPE_CHECKING:
    from fieldbo.results.result import Result


def moments(result: Result) -> tuple[Array, Array]:
    """Return posterior mean and standard deviation (N,), in the quantity's unit."""
    return result.hyperparameters.scale.moments(result.surface.mean, result.surface.variance)


def interval95(result: Result) -> tuple[Array, Array]:
    """Return both ends (N,) of the belief's central 95%, in the quantity's unit; of a log, its quantiles."""
    surface, user = result.surface, result.hyperparameters.scale.to_user
    one, other = user(surface.mean - SURE * surface.sd), user(surface.mean + SURE * surface.sd)
    return np.minimum(one, other), np.maximum(one, other)  # the model of a minimum counts downwards


def line(ax: Axes, x: Array, y: Array | None, **look: Any) -> None:
    """Draw y (N,) against x (N,) in order of x; nothing where there is no y."""
    if y is not None:
        order = np.argsort(x, kind="stable")
        ax.plot(x[order], y[order], **look)


def level(ax: Axes, threshold: float) -> None:
    """Draw a threshold across the axes."""
    ax.axhline(threshold, color=RED, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}")


def profile(ax: Axes, result: Result, x: Array, **look: Any) -> None:
    """Draw mean, its 95% band, the threshold and the truth against x (N,)."""
    order = np.argsort(x, kind="stable")
    low, high = (end[order] for end in interval95(result))
    ax.fill_between(x[order], low, high, color=BLUE, alpha=0.2, linewidth=0, label="95% interval")
    line(ax, x, moments(result)[0], color=BLUE, linewidth=1.8, label="posterior mean")
    line(ax, x, result.truth, color="black", linewidth=1.2, label="true field", **look)
    if isinstance(result.answer, LevelSetAnswer):
        level(ax, result.answer.user_threshold)
    ax.set_ylabel(result.mission.world.quantity.label)
    opened(ax)


def optima(ax: Axes, answer: OptimumAnswer) -> None:
    """Mark the true optimum, where it is known, and the reported one on a profile along one axis."""
    if answer.optimum is not None:
        mark(ax, np.array([answer.optimum.point[0], answer.optimum.value]), "true optimum")
    mark(ax, np.array([answer.reported.point[0], answer.reported_value]), "reported optimum")
