"""What stands out on a picture: readings, where a path starts and ends, and optima."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import AbstractPathEffect, withStroke
from numpy.typing import NDArray

from fieldbo.domain import Array
from fieldbo.plot.figures import ORANGE, PINK, SKY, YELLOW, Look
from fieldbo.sensors import Sensor

_HALO: list[AbstractPathEffect] = [withStroke(linewidth=2.0, foreground="white")]
_SHAPES = "oDv^sP"
_MARKS: dict[str, Look] = {
    "start": {"marker": "^", "color": SKY, "markersize": 9},
    "end": {"marker": "s", "color": ORANGE, "markersize": 9},
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


def readings(ax: Axes, x: Array, y: Array, levels: NDArray[np.int64], sensor: Sensor) -> None:
    """Draw readings (n,), at most twelve of them numbered; each of a sensor's settings has its shape.

    The finer the setting, the larger the mark.
    """
    dots: Look = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    for level, (label, size) in enumerate(_settings(sensor)):
        at = levels == level
        ax.plot(x[at], y[at], _SHAPES[level % len(_SHAPES)], label=label, markersize=size, **dots)
    step = next(k * 10**e for e in range(9) for k in (1, 2, 5) if len(x) <= 12 * k * 10**e)
    near: Look = {"textcoords": "offset points", "xytext": (4, 4), "fontsize": 8, "path_effects": _HALO}
    for n in range(step, len(x) + 1, step):
        ax.annotate(str(n), (x[n - 1], y[n - 1]), zorder=6, **near)


def _settings(sensor: Sensor) -> list[tuple[str, float]]:
    """Return the label and the size of the mark of each setting."""
    if sensor.settings == 1:
        return [("reading (numbers: order)", 4.5)]
    variances = [level.variance for level in sensor.levels]
    rank = np.argsort(np.argsort(np.negative(variances), kind="stable"), kind="stable")  # 0: the coarsest
    sizes = 3.0 + 4.0 * rank / (len(rank) - 1)
    return [
        (f"reading at level {k} (noise sd {np.sqrt(v):.2g})", float(size))
        for k, (v, size) in enumerate(zip(variances, sizes, strict=True))
    ]


def mark(ax: Axes, at: Array, label: str) -> None:
    """Mark a place (2,): "start", "end", "true optimum" or "reported optimum"."""
    look: Look = {"linestyle": "none", "markeredgecolor": "black", "clip_on": False, "zorder": 5}
    ax.plot([at[0]], [at[1]], label=label, **(look | _MARKS[label]))
