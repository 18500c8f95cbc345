"""Marks on pictures: readings, the start and end of a path, and optima."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import AbstractPathEffect, withStroke

from fieldbo._numerics.arrays import Array
from fieldbo.domain.sensor import Sensor
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import GREEN, ORANGE, PINK, RED, SKY, YELLOW, Look
from fieldbo.results.plot.layout import NUMBER
from fieldbo.results.plot.path_effects import cased
from fieldbo.results.plot.widths import width_of

_HALO: list[AbstractPathEffect] = [withStroke(linewidth=2.0, foreground="white")]
_SHAPES = "oDv^sP"
_MOST_VECTORS = 1000  # dots; more would make large files and slow viewers
_MOST_NUMBERS = {"column": 6}
_MARKS: dict[str, Look] = {
    # larger than any reading and drawn below it, so that a reading taken there stays visible
    "start": {"marker": "^", "color": SKY, "markersize": 9, "zorder": 3.6},
    "end": {"marker": "s", "color": ORANGE, "markersize": 12, "zorder": 3.5},  # may enclose the start
    "home": {  # a frame, because the vehicle mostly starts and ends there
        "marker": "s",
        "color": GREEN,
        "markerfacecolor": "none",
        "markersize": 16,
        "markeredgewidth": 2.0,
        "markeredgecolor": GREEN,
        "path_effects": [cased("black", 1.8)],
        "zorder": 3.4,
    },
    "true optimum": {"marker": "*", "color": YELLOW, "markersize": 15},
    "reported optimum": {  # a ring that may enclose the star
        "marker": "o",
        "color": PINK,
        "markerfacecolor": "none",
        "markersize": 14,
        "markeredgewidth": 2.0,
        "markeredgecolor": PINK,
        "path_effects": [cased("black", 1.8)],
    },
}
_MARKS["recommended play"] = _MARKS["reported optimum"]


def earlier(ax: Axes, outcome: Outcome, size: float = 3.5) -> None:
    """Draw the readings with which the mission began; over one axis, at their values."""
    known = outcome.mission.earlier
    if not len(known.values):
        return
    y = known.values if known.sites.shape[1] == 1 else known.sites[:, 1]
    look: Look = {"color": "0.45", "markersize": size, "markerfacecolor": "none", "zorder": 3.3}
    ax.plot(known.sites[:, 0], y, "D", label="earlier reading", **look)


def readings(ax: Axes, x: Array, y: Array, outcome: Outcome) -> None:
    """Draw the readings at coordinates (n,), at most twelve of them numbered, and the earlier ones.

    Each sensor level has its own shape, larger for less noise. Readings on the way are small dots without a
    number. Readings that the model left out are crossed.
    Of several numbers at one place only the first is written; the layout of the figure moves or removes those
    that would cover another one.
    """
    earlier(ax, outcome)
    levels, sensor, passing = outcome.levels, outcome.mission.world.sensor, outcome.on_the_way
    _dots(ax, x[passing], y[passing])
    at_sites = np.flatnonzero(~passing)
    crowd = float(np.clip(np.sqrt(100 / (len(at_sites) + 1)), 0.55, 1.0)) if sensor.settings == 1 else 1.0
    dots: Look = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    for level, (label, size) in enumerate(_settings(sensor)):
        here = (levels == level) & ~passing
        ax.plot(x[here], y[here], _SHAPES[level % len(_SHAPES)], label=label, markersize=crowd * size, **dots)
    if not (believed := outcome.believed).all():
        cross: Look = {"color": RED, "markersize": 9, "markeredgewidth": 2.0, "path_effects": _HALO}
        ax.plot(x[~believed], y[~believed], "x", label="reading left out by the model", zorder=5.5, **cross)
    most = _MOST_NUMBERS.get(width_of(ax), 12)
    step = next(k * 10**e for e in range(9) for k in (1, 2, 5) if len(at_sites) <= most * k * 10**e)
    numbers: dict[tuple[float, float], int] = {}
    for n in range(step, len(at_sites) + 1, step):
        numbers.setdefault((float(x[at_sites[n - 1]]), float(y[at_sites[n - 1]])), n)
    for at, n in numbers.items():
        _number(ax, n, at)


def _dots(ax: Axes, x: Array, y: Array) -> None:
    """Draw readings on the way (k,), if there are any."""
    if len(x):
        look: Look = {"color": "black", "markersize": 0.9, "markeredgewidth": 0.0, "zorder": 3.2}
        ax.plot(x, y, "o", label="reading on the way", rasterized=len(x) > _MOST_VECTORS, **look)


def _number(ax: Axes, n: int, at: tuple[float, float]) -> None:
    """Write a number next to a place."""
    look: Look = {"fontsize": 8, "path_effects": _HALO, "zorder": 6, "gid": NUMBER}
    ax.annotate(str(n), at, (4, 4), textcoords="offset points", va="bottom", annotation_clip=False, **look)


def _settings(sensor: Sensor) -> list[tuple[str, float]]:
    """Return the label and the mark size of each sensor level."""
    if sensor.settings == 1:
        return [("reading (numbered in order)", 4.5)]
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
