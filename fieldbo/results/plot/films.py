"""Frames of a film: the belief and the path as a run goes on, and the curve below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.metrics import probit
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.curves import curve_panel
from fieldbo.results.plot.figures import (
    cost_label,
    earlier,
    finish,
    headline,
    level,
    mark,
    new_figure,
    opened,
    optimum_marks,
)
from fieldbo.results.plot.paths import COLOURS
from fieldbo.results.plot.style import BLUE, RED, VALUE, Look, cased, hue, line_width, mark_size, shade
from fieldbo.results.plot.surfaces import closed_areas, edge, field, frame, ratio, recolour

DOTS_PER_INCH = 120
_CASED = cased("black", 1.8)
_WIDE = 9.0  # inches
_CURVE = 2.4  # inches


class Moment(NamedTuple):
    """A run at one moment.

    Attributes
    ----------
    steps, observations : int
        How many steps of the curve and observations there were.
    areas : int
        How many areas had been closed under way.
    mean, low, high : (N,) arrays
        Posterior mean, and both ends of the central 95%, in the quantity's unit.
    probability : (N,) array or None
        Of each site to be in the level set.
    reported : (d,) array or None
        The reported optimum.
    """

    steps: int
    observations: int
    areas: int
    mean: Array
    low: Array
    high: Array
    probability: Array | None
    reported: Array | None

    @property
    def counts(self) -> tuple[int, int, int]:
        """Steps, observations and areas: moments of a run with equal counts look alike."""
        return self.steps, self.observations, self.areas


class Film:
    """A figure that shows one moment of a run after the other.

    Artists are made once and then changed, so that a frame takes little longer than its pixels.

    Parameters
    ----------
    outcome : Outcome
        The whole run.
    moments : sequence of Moment
        Colours and axes hold all of them.

    Raises
    ------
    InputError
        The run is in a factory cell, which has no map.
    """

    def __init__(self, outcome: Outcome, moments: Sequence[Moment]) -> None:
        if outcome.cell_runs.names:
            raise InputError(
                "a film shows a path over a map, and a factory cell has none",
                expected="a run in a world that a vehicle travels",
                fix="draw its settings order by order: fieldbo plot RUN path",
            )
        self._outcome, self._moments = outcome, moments
        domain = outcome.mission.world.domain
        tall = _WIDE * 0.8 * (ratio(domain) if domain.dimension > 1 else 0.45)
        figure = new_figure(_WIDE, tall + _CURVE + 1.6)
        figure.set_dpi(DOTS_PER_INCH)
        top, below = figure.subplots(2, 1, height_ratios=[tall, _CURVE])
        self._belief = (_Profile if domain.dimension == 1 else _Map)(top, outcome, moments)
        self._curves = self._curve(below)
        top.set_title(self._title(moments[-1]))
        self.figure: Figure = finish(figure, headline(outcome))
        self._top = top

    def draw(self, number: int) -> NDArray[np.uint8]:
        """Draw one of the moments; return its pixels, (height, width, 4) bytes with even sides."""
        now = self._moments[number]
        self._belief.show(now)
        for line, cost, values in self._curves:
            line.set_data(cost[: now.steps], values[: now.steps])
        self._top.set_title(self._title(now))
        self.figure.canvas.draw()
        pixels = np.asarray(self.figure.canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[attr-defined]
        height, width = (2 * (side // 2) for side in pixels.shape[:2])  # as most decoders require
        return pixels[:height, :width].copy()

    def _title(self, now: Moment) -> str:
        curve, unit = self._outcome.curve, self._outcome.mission.world.cost_unit
        cost = curve[now.steps - 1].cost if now.steps else 0.0
        return f"posterior mean after {now.steps} orders, {cost:,.0f} {unit}"

    def _curve(self, ax: Axes) -> list[tuple[Line2D, Array, Array]]:
        """Draw the whole curve, which fixes its axes, and return its lines with their points."""
        drawn = curve_panel(ax, self._outcome)
        ax.set_xlabel(cost_label(self._outcome))
        for name in [name for name in drawn if name.endswith("interval")]:
            drawn.pop(name).remove()  # known of the last moment only
        drawn.pop("battery", None)
        lines = [line for line in drawn.values() if isinstance(line, Line2D)]
        return [(line, *np.array(line.get_data(orig=True), dtype=float)) for line in lines]


class _Travel:
    """The path so far, its readings and the vehicle, at places (k, 2) on the axes."""

    def __init__(self, ax: Axes, outcome: Outcome, path: Array, read: Array) -> None:
        self._path, self._read = path, read
        self._points = outcome.path_ends
        self._readings = np.cumsum([0, *(len(o.values) for o in outcome.observations)])
        look: Look = {"color": COLOURS(1.0), "linewidth": line_width(1.4), "path_effects": [_CASED]}
        (self._line,) = ax.plot(*path.T, label="path", zorder=3, **look)
        dots: Look = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
        (self._dots,) = ax.plot(*read.T, "o", markersize=mark_size(4.5), label="reading", **dots)
        mark(ax, path[0], "start")
        self._vehicle = mark(ax, path[-1], "vehicle")

    def show(self, now: Moment) -> None:
        points = int(self._points[now.observations - 1]) if now.observations else 1
        self._line.set_data(*self._path[:points].T)
        self._dots.set_data(*self._read[: self._readings[now.observations]].T)
        self._vehicle.set_data(*self._path[points - 1 : points].T)


class _Map:
    """The belief over two axes; with more, the readings over the first two."""

    def __init__(self, ax: Axes, outcome: Outcome, moments: Sequence[Moment]) -> None:
        self._ax, self._domain = ax, outcome.mission.world.domain
        self._edges: list[ContourSet] = []
        self._field: Collection | None = None
        self._best: Line2D | None = None
        frame(ax, self._domain, named=True)
        self._areas = closed_areas(ax, outcome.mission.world.no_go)
        if self._domain.dimension == 2:
            means = [now.mean for now in moments]
            ends: Look = {"vmin": float(np.min(means)), "vmax": float(np.max(means))}
            label = outcome.mission.world.quantity.label
            self._field = field(ax, self._domain, moments[-1].mean, label, VALUE | ends)
            self._answer(outcome)
        else:
            sites: Look = {"color": shade(0.3), "markersize": mark_size(2), "label": "site"}
            ax.plot(*self._domain.sites[:, :2].T, "o", **sites)
        earlier(ax, outcome)
        self._travel = _Travel(ax, outcome, outcome.path[:, :2], outcome.sites[:, :2])
        home = outcome.mission.vehicles[0].home
        if home is not None:
            mark(ax, home[:2], "home")

    def _answer(self, outcome: Outcome) -> None:
        """Draw the true edge or optimum, and name what is estimated of it."""
        ax, answer = self._ax, outcome.answer
        if isinstance(answer, OptimumAnswer):
            marks = optimum_marks(ax, answer)
            self._best = marks["reported optimum"]
            return
        number = answer.mission.world.quantity.number
        if answer.truth is not None:
            excess, label = answer.truth.values - answer.truth.threshold, "true level"
            edge(ax, self._domain, excess, f"{label} {number(answer.truth.threshold)}", name=label)
        label = f"estimated level {number(answer.user_threshold)}"
        ax.plot([], [], "--", color=RED, linewidth=line_width(1.6), label=label)

    def show(self, now: Moment) -> None:
        self._travel.show(now)
        for number, area in enumerate(self._areas):
            area.set_visible(number < now.areas)
        if self._field is None:
            return
        recolour(self._field, self._domain, now.mean)
        if self._best is not None and now.reported is not None:
            self._best.set_data(*now.reported[:, None])
        while self._edges:
            self._edges.pop().remove()
        if now.probability is not None:
            look: Look = {"color": RED, "style": "--"}
            self._edges += edge(self._ax, self._domain, probit(now.probability), **look).values()


class _Profile:
    """The belief along one axis."""

    def __init__(self, ax: Axes, outcome: Outcome, moments: Sequence[Moment]) -> None:
        domain, answer = outcome.mission.world.domain, outcome.answer
        self._ax, self._order = ax, np.argsort(domain.sites[:, 0], kind="stable")
        self._x = domain.sites[self._order, 0]
        ends = [end for now in moments for end in (now.low, now.high)]
        (self._mean,) = ax.plot(
            self._x, moments[-1].mean[self._order], color=hue(BLUE), label="posterior mean", zorder=2.2
        )
        self._band = self._interval(moments[-1], label="95% interval")
        if outcome.truth is not None:
            ax.plot(self._x, outcome.truth[self._order], color=shade(1.0), label="true field", zorder=2.1)
        if not isinstance(answer, OptimumAnswer):
            level(ax, answer.user_threshold)
        ax.set(xlabel=domain.axes[0].label, ylabel=outcome.mission.world.quantity.label)
        low, high = float(np.min(ends)), float(np.max(ends))
        ax.set_ylim(low - 0.12 * (high - low), high + 0.03 * (high - low))
        opened(ax)
        bottom = np.full(len(outcome.path), low - 0.07 * (high - low))
        path, read = np.column_stack([outcome.path[:, 0], bottom]), outcome.sites[:, 0]
        earlier(ax, outcome)
        self._travel = _Travel(ax, outcome, path, np.column_stack([read, outcome.values]))

    def _interval(self, now: Moment, label: str = "") -> Collection:
        look: Look = {"color": hue(BLUE), "alpha": 0.2, "linewidth": 0, "label": label, "zorder": 1.0}
        return self._ax.fill_between(self._x, now.low[self._order], now.high[self._order], **look)

    def show(self, now: Moment) -> None:
        self._travel.show(now)
        self._mean.set_ydata(now.mean[self._order])
        self._band.remove()
        self._band = self._interval(now)
