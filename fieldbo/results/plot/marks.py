"""Marks on pictures: readings, the start and end of a path, and optima."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke

from fieldbo._numerics.arrays import Array
from fieldbo.belief import confidence
from fieldbo.belief.confidence import AnySurface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.sensor import Sensor
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import opened
from fieldbo.results.plot.layout import NUMBER
from fieldbo.results.plot.style import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    YELLOW,
    Look,
    cased,
    hue,
    letter_size,
    line_width,
    mark_size,
    shade,
    width_of,
)
from fieldbo.results.truth import Place

_HALO: list[AbstractPathEffect] = [withStroke(linewidth=2.0, foreground="white")]
_SHAPES = "oDv^sP"
_MOST_VECTORS = 1000  # dots; more would make large files and slow viewers
_MOST_NUMBERS = {"column": 6}
_MARKS: dict[str, Look] = {
    # larger than any reading and drawn below it, so that a reading taken there stays visible
    "start": {"marker": "^", "color": SKY, "markersize": 9, "zorder": 3.6},
    "end": {"marker": "s", "color": ORANGE, "markersize": 12, "zorder": 3.5},  # may enclose the start
    "vehicle": {"marker": "D", "color": ORANGE, "markersize": 10, "zorder": 6.5},
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
    "best measured": {  # a larger ring than a reading's dot, and dotted where the reported one is whole
        "marker": "D",
        "color": SKY,
        "markerfacecolor": "none",
        "markersize": 11,
        "markeredgewidth": 2.0,
        "markeredgecolor": SKY,
        "path_effects": [cased("black", 1.8)],
    },
}
_MARKS["recommended play"] = _MARKS["reported optimum"]


def earlier(ax: Axes, outcome: Outcome, size: float = 3.5) -> dict[str, Artist]:
    """Draw the readings with which the mission began; over one axis, at their values."""
    known = outcome.mission.earlier
    if not len(known.values):
        return {}
    y = known.values if known.sites.shape[1] == 1 else known.sites[:, 1]
    look: Look = {
        "color": shade(0.55),
        "markersize": mark_size(size),
        "markerfacecolor": "none",
        "zorder": 3.3,
    }
    (drawn,) = ax.plot(known.sites[:, 0], y, "D", label="earlier reading", **look)
    return {"earlier readings": drawn}


def readings(ax: Axes, x: Array, y: Array, outcome: Outcome, *, numbered: bool = True) -> dict[str, Artist]:
    """Draw the readings at coordinates (n,), at most twelve of them numbered if wished.

    Each sensor level has its own shape, larger for less noise. Readings on the way are small dots without a
    number. Readings that the model left out are crossed.
    Of several numbers at one place only the first is written; the layout of the figure moves or removes those
    that would cover another one.
    """
    levels, sensor, passing = outcome.levels, outcome.mission.world.sensor, outcome.on_the_way
    drawn: dict[str, Artist] = {}
    if passing.any():
        drawn["readings on the way"] = _dots(ax, x[passing], y[passing])
    at_sites = np.flatnonzero(~passing)
    crowd = float(np.clip(np.sqrt(100 / (len(at_sites) + 1)), 0.55, 1.0)) if sensor.settings == 1 else 1.0
    dots: Look = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    for level, (label, size) in enumerate(_settings(sensor, numbered=numbered)):
        here = (levels == level) & ~passing
        name = "readings" if sensor.settings == 1 else f"readings at level {level}"
        look = dots | {"marker": _SHAPES[level % len(_SHAPES)], "markersize": mark_size(crowd * size)}
        (drawn[name],) = ax.plot(x[here], y[here], linestyle="none", label=label, **look)
    if not (believed := outcome.believed).all():
        cross: Look = {
            "color": RED,
            "markersize": mark_size(9),
            "markeredgewidth": 2.0,
            "path_effects": _HALO,
        }
        cross |= {"label": "reading left out by the model", "zorder": 5.5}
        (drawn["left out"],) = ax.plot(x[~believed], y[~believed], "x", **cross)
    if not numbered:
        return drawn
    most = _MOST_NUMBERS.get(width_of(ax), 12)
    step = next(k * 10**e for e in range(9) for k in (1, 2, 5) if len(at_sites) <= most * k * 10**e)
    numbers: dict[tuple[float, float], int] = {}
    for n in range(step, len(at_sites) + 1, step):
        numbers.setdefault((float(x[at_sites[n - 1]]), float(y[at_sites[n - 1]])), n)
    for at, n in numbers.items():
        _number(ax, n, at)
    return drawn


def _dots(ax: Axes, x: Array, y: Array) -> Artist:
    look: Look = {"color": "black", "markersize": mark_size(0.9), "markeredgewidth": 0.0, "zorder": 3.2}
    (dots,) = ax.plot(x, y, "o", label="reading on the way", rasterized=len(x) > _MOST_VECTORS, **look)
    return dots


def _number(ax: Axes, n: int, at: tuple[float, float]) -> None:
    look: Look = {"fontsize": letter_size(8), "color": "black", "path_effects": _HALO, "zorder": 6}
    look["gid"] = NUMBER
    ax.annotate(str(n), at, (4, 4), textcoords="offset points", va="bottom", annotation_clip=False, **look)


def _settings(sensor: Sensor, *, numbered: bool) -> list[tuple[str, float]]:
    if sensor.settings == 1:
        return [("reading (numbered in order)" if numbered else "reading", 4.5)]
    variances = [level.variance for level in sensor.levels]
    rank = np.argsort(np.argsort(np.negative(variances), kind="stable"), kind="stable")  # 0: the coarsest
    sizes = 6.0 + 2.5 * rank / (len(rank) - 1)
    return [
        (f"reading at level {k} (noise sd {np.sqrt(v):.2g})", float(size))
        for k, (v, size) in enumerate(zip(variances, sizes, strict=True))
    ]


def mark(ax: Axes, at: Array, label: str) -> Line2D:
    """Mark a place (2,), with one of the looks above by its name, such as "start" or "true optimum"."""
    look: Look = {"linestyle": "none", "markeredgecolor": "black", "clip_on": False, "zorder": 5}
    look |= _MARKS[label]
    (drawn,) = ax.plot([at[0]], [at[1]], label=label, **look)
    drawn.set_markersize(mark_size(drawn.get_markersize()))
    return drawn


def optimum_marks(ax: Axes, answer: OptimumAnswer, measured: Place | None = None) -> dict[str, Line2D]:
    """Mark the reported optimum on a map, the true one if known, and where more was measured, if anywhere.

    Return the marks by name.
    """
    drawn = {}
    if answer.optimum is not None:
        drawn["true optimum"] = mark(ax, answer.optimum.point, "true optimum")
    if measured is not None:
        drawn["best measured"] = mark(ax, measured.point, "best measured")
    return drawn | {"reported optimum": mark(ax, answer.reported.point, "reported optimum")}


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


def optima(ax: Axes, answer: OptimumAnswer, measured: Place | None = None) -> dict[str, Artist]:
    """Mark on a profile along one axis what `optimum_marks` does on a map."""
    drawn = dict[str, Artist]()
    if answer.optimum is not None:
        place = np.array([answer.optimum.point[0], answer.optimum.value])
        drawn["true optimum"] = mark(ax, place, "true optimum")
    if measured is not None:
        drawn["best measured"] = mark(ax, np.array([measured.point[0], measured.value]), "best measured")
    place = np.array([answer.reported.point[0], answer.reported_value])
    return drawn | {"reported optimum": mark(ax, place, "reported optimum")}
