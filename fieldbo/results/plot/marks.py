"""What stands out on a picture: readings, where a path starts and ends, and optima."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import AbstractPathEffect, withStroke

from fieldbo._numerics.arrays import Array
from fieldbo.domain.sensor import Sensor
from fieldbo.results.plot.figures import GREEN, ORANGE, PINK, RED, SKY, YELLOW, Look

if TYPE_CHECKING:
    from fieldbo.results.result import Result

_HALO: list[AbstractPathEffect] = [withStroke(linewidth=2.0, foreground="white")]
_SHAPES = "oDv^sP"
_EDGE = 0.05  # share of the axes within which a number would stick out
_NUMBER = 0.04  # and over which it would cover another one
_MARKS: dict[str, Look] = {
    # larger than any reading and below it: one taken there shows its own mark
    "start": {"marker": "^", "color": SKY, "markersize": 9, "zorder": 3.6},
    "end": {"marker": "s", "color": ORANGE, "markersize": 12, "zorder": 3.5},  # a start lies in it
    "home": {  # a frame: the vehicle mostly starts and ends in it
        "marker": "s",
        "color": GREEN,
        "markerfacecolor": "none",
        "markersize": 16,
        "markeredgewidth": 2.0,
        "markeredgecolor": GREEN,
        "path_effects": [withStroke(linewidth=3.6, foreground="black")],
        "zorder": 3.4,
    },
    "true optimum": {"marker": "*", "color": YELLOW, "markersize": 15},
    "reported optimum": {  # a ring: the star may lie in it
        "marker": "o",
        "color": PINK,
        "markerfacecolor": "none",
        "markersize": 14,
        "markeredgewidth": 2.0,
        "markeredgecolor": PINK,
        "path_effects": [withStroke(linewidth=3.6, foreground="black")],
    },
}
_MARKS["recommended play"] = _MARKS["reported optimum"]


def readings(ax: Axes, x: Array, y: Array, result: Result) -> None:
    """Draw a result's readings at (n,) places, at most twelve numbered; each sensor setting has its shape.

    The finer the setting, the larger the mark. Those that the model does not believe, or could not take, are
    crossed. Of numbers in one place only the first is written. Draw them last: numbers stay within the axes
    as they are.
    """
    levels, sensor = result.levels, result.mission.world.sensor
    dots: Look = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    for level, (label, size) in enumerate(_settings(sensor)):
        at = levels == level
        ax.plot(x[at], y[at], _SHAPES[level % len(_SHAPES)], label=label, markersize=size, **dots)
    if not (believed := result.believed).all():
        cross: Look = {"color": RED, "markersize": 9, "markeredgewidth": 2.0, "path_effects": _HALO}
        out = ~believed
        ax.plot(x[out], y[out], "x", label="reading left out by the model", zorder=5.5, **cross)
    step = next(k * 10**e for e in range(9) for k in (1, 2, 5) if len(x) <= 12 * k * 10**e)
    ax.autoscale_view()  # limits are otherwise settled only when drawn
    places = (ax.transScale + ax.transLimits).transform(np.column_stack([x, y]))
    taken: list[Array] = []
    for n in range(step, len(x) + 1, step):
        place = places[n - 1]
        if all(np.any(np.abs(place - other) > _NUMBER) for other in taken):
            taken.append(place)
            _number(ax, n, (float(x[n - 1]), float(y[n - 1])), place)


def _number(ax: Axes, n: int, at: tuple[float, float], place: Array) -> None:
    """Write a number beside a place, above it and to the right unless it is near that edge."""
    left, below = place > 1 - _EDGE
    ax.annotate(
        str(n),
        at,
        (-4 if left else 4, -4 if below else 4),
        textcoords="offset points",
        horizontalalignment="right" if left else "left",
        verticalalignment="top" if below else "bottom",
        fontsize=8,
        path_effects=_HALO,
        zorder=6,
    )


def _settings(sensor: Sensor) -> list[tuple[str, float]]:
    """Return the label and the size of the mark of each setting."""
    if sensor.settings == 1:
        return [("reading (numbers: order)", 4.5)]
    variances = [level.variance for level in sensor.levels]
    rank = np.argsort(np.argsort(np.negative(variances), kind="stable"), kind="stable")  # 0: the coarsest
    sizes = 6.0 + 2.5 * rank / (len(rank) - 1)
    return [
        (f"reading at level {k} (noise sd {np.sqrt(v):.2g})", float(size))
        for k, (v, size) in enumerate(zip(variances, sizes, strict=True))
    ]


def mark(ax: Axes, at: Array, label: str) -> None:
    """Mark a place (2,): "start", "end", "home", "true optimum", "reported optimum", "recommended play"."""
    look: Look = {"linestyle": "none", "markeredgecolor": "black", "clip_on": False, "zorder": 5}
    ax.plot([at[0]], [at[1]], label=label, **(look | _MARKS[label]))
