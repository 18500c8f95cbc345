"""Turn what a robot streams into results: pass the points of its route, detect arrival, average readings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.vehicles.remote.link import Goal, GoalResult, PositionReport, Reading, Report
from fieldbo.vehicles.remote.on_the_way import OnTheWayCollector
from fieldbo.vehicles.remote.settings import Arrival

_CONFIRMING = 2
"""How many reports in a row must be near a point: one may be wrong."""

_LINGER_S = 2.0
"""How long a robot near a point of its route may come no closer before it is sent to the next one."""


class ArrivalDetector:
    """Works out the result of the current goal from a robot's positions and readings.

    Some robots receive one point at a time: `target`. Such a robot is sent to the next point of its route
    once it is near and nothing lies in between, or comes no closer. Readings at the site are averaged; those
    before arrival are collected if the sensor reads on the way.

    All times are in seconds on one clock, the caller's.

    Parameters
    ----------
    arrival : Arrival
    follows_routes : bool
        Whether the robot passes the points of a route by itself.
    is_free : Callable
        ``is_free(a, b)`` returns whether the straight leg between two places (d,) is free.
    collector : OnTheWayCollector, optional
        Collects the readings on the way, if the sensor takes any.
    """

    def __init__(
        self,
        arrival: Arrival,
        follows_routes: bool = False,
        is_free: Callable[[Array, Array], bool] = lambda a, b: True,
        collector: OnTheWayCollector | None = None,
    ) -> None:
        self.arrival, self._follows_routes, self._is_free = arrival, follows_routes, is_free
        self._collector = collector
        self._goal: Goal | None = None
        self._points: list[Array] = []
        self._passed, self._near = False, 0
        self._began_s = self._part_s = self._dwell_s = 0.0
        self._sent_s = self._unsent_s = -math.inf
        self._arrived_s: float | None = None
        self._closest, self._closest_s = math.inf, 0.0
        self._position: Array | None = None
        self._values: list[float] = []
        self._abandoned = False

    def begin(
        self,
        goal: Goal | None,
        now_s: float,
        dwell_s: float = 0.0,
        spacing_m: float = 0.0,
        parts: int = 0,
    ) -> None:
        """Start on a goal, or on none.

        Average the readings at its site for `dwell_s` seconds, and collect those on the way, `spacing_m`
        apart, of which some parts were reported before.
        """
        self._goal, self._arrived_s, self._dwell_s = goal, None, dwell_s
        self._began_s = self._part_s = now_s
        if self._collector is not None:
            self._collector.begin(spacing_m, now_s, parts)
        self._closest, self._values, self._abandoned = math.inf, [], False
        self._points, self._passed = [], False
        if goal is not None:
            self.reroute(goal)

    def reroute(self, goal: Goal) -> None:
        """Continue with the same goal on another route."""
        self._goal, self._arrived_s, self._closest, self._values, self._near = goal, None, math.inf, [], 0
        self._points = [*goal.route[:-1], goal.site] if not self._follows_routes else [goal.site]

    def note_sent(self, now_s: float) -> None:
        """Note that the target was sent: what the robot reported before says nothing about arrival."""
        self._sent_s = now_s

    def note_unsent(self, now_s: float) -> None:
        """Note that the link has not delivered the target yet: a robot at its site may not know of it."""
        self._unsent_s = now_s

    @property
    def on_its_way(self) -> bool:
        """Whether a point of the route was passed, or something was read before the site."""
        return self._passed or (self._collector is not None and self._collector.has_read)

    @property
    def remaining(self) -> Array:
        """The points (k, d) of the route that are still to be passed."""
        return np.array(self._points)

    @property
    def target(self) -> Array | None:
        """The point (d,) to which the robot is to go now; None without a goal."""
        return self._points[0] if self._points else None

    def process(self, report: Report, now_s: float) -> Report:
        """Return the report unchanged, or the `GoalResult` that it amounts to."""
        match report:
            case PositionReport():
                return self._take_position(report, now_s)
            case Reading() if self._goal is not None and now_s >= self._sent_s:
                return self._take_reading(self._goal, report, now_s)
            case GoalResult() if self._goal is not None and report.goal == self._goal.id:
                self._goal = None
                return report if self._collector is None else self._with_way(report, now_s)
        return report

    def _take_position(self, report: PositionReport, now_s: float) -> Report:
        goal, self._position = self._goal, report.position
        if self._collector is not None:
            self._collector.take_position(report.position, now_s)
        if goal is None or now_s < self._sent_s:
            return report
        if self._abandoned:
            return replace(self._result(goal, [], now_s), complete=False)
        if self._arrived_s is None:
            self._advance(report.position, now_s)
            if self._arrived_s is not None and goal.home:
                return self._result(goal, [], now_s)
        return report

    def _take_reading(self, goal: Goal, report: Reading, now_s: float) -> Report:
        if self._arrived_s is None:
            if self._collector is not None:
                self._collector.take_reading(report.value, now_s)
            return report
        if now_s < self._arrived_s + self.arrival.settle_s:
            return report
        self._values.append(report.value)
        return self._averaged(goal, now_s) if now_s >= self._dwells_until_s else report

    def finished(self, now_s: float) -> GoalResult | None:
        """Return the result if the time for readings is over, with a failed one if none came; else None."""
        goal = self._goal
        if goal is None or self._arrived_s is None or now_s < self._dwells_until_s:
            return None
        if self._values:
            return self._averaged(goal, now_s)
        began_s = max(self._arrived_s, self._unsent_s)
        if now_s < began_s + self.arrival.settle_s + max(self._dwell_s, self.arrival.reading_s):
            return None
        return self._result(goal, [math.nan], now_s)

    def part(self, now_s: float, *, at_once: bool = False) -> GoalResult | None:
        """Return a part with the readings on the way if it is due, or if there are any; else None."""
        goal, collector = self._goal, self._collector
        if goal is None or collector is None or self._position is None:
            return None
        if not (collector.part_is_due(now_s) or (at_once and collector.has_new)):
            return None
        none = np.empty(0)
        nothing = GoalResult(goal.id, self._position, np.empty((0, len(self._position))), none, none)
        return replace(self._with_way(nothing, now_s), last=False)

    def abandon(self) -> None:
        """Cut the goal short where the robot next reports to be, which may be far from its last report."""
        self._abandoned = True

    @property
    def _dwells_until_s(self) -> float:
        assert self._arrived_s is not None
        return self._arrived_s + self.arrival.settle_s + self._dwell_s

    def _advance(self, position: Array, now_s: float) -> None:
        """Pass the points of the route that the robot has reached."""
        self._near = self._near + 1 if self._is_near(position, self._points[0]) else 0
        if self._near < _CONFIRMING:
            return
        while self._arrived_s is None and self._is_near(position, self._points[0]):
            if len(self._points) == 1:
                self._arrived_s = now_s
            elif self._may_leave(position, now_s):
                self._points.pop(0)
                self._closest, self._passed = math.inf, True
            else:
                return

    def _may_leave(self, position: Array, now_s: float) -> bool:
        """Return True if a robot near a point may head for the next one: a corner cut too early is hit."""
        gap = float(np.linalg.norm(position - self._points[0]))
        if gap < self._closest:
            self._closest, self._closest_s = gap, now_s
        return self._is_free(position, self._points[1]) or now_s >= self._closest_s + _LINGER_S

    def _is_near(self, position: Array, point: Array) -> bool:
        return bool((np.abs(np.asarray(position) - point) <= self.arrival.within).all())

    def _averaged(self, goal: Goal, now_s: float) -> GoalResult:
        """Return the mean of the readings, with the variance that their spread gives it."""
        values = np.array(self._values)
        values = values[np.isfinite(values)]
        if not len(values):
            return self._result(goal, [math.nan], now_s)
        variance = float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
        return self._result(goal, [float(values.mean())], now_s, variance)

    def _result(self, goal: Goal, values: list[float], now_s: float, variance: float = 0.0) -> GoalResult:
        """Return the result of a goal that ends now, with the reading at its site, if any."""
        assert self._position is not None
        self._goal, k = None, len(values)
        here = GoalResult(
            goal.id,
            position=self._position,
            sites=np.repeat(self._position[None], k, axis=0),
            values=np.array(values),
            seconds=np.full(k, now_s - self._began_s),
            noise_variances=np.full(k, variance),
        )
        return self._with_way(here, now_s)

    def _with_way(self, result: GoalResult, now_s: float) -> GoalResult:
        """Return a result that ends now, with the readings on the way since the previous part."""
        began_s, self._part_s = self._part_s, now_s
        result = replace(result, duration_s=now_s - began_s)
        if self._collector is None:
            return result
        part = self._collector.parts
        read = self._collector.collect(now_s)
        if not len(read.values):
            return replace(result, part=part)
        noise = np.zeros(len(result.values)) if result.noise_variances is None else result.noise_variances
        return replace(
            result,
            part=part,
            sites=np.concatenate([read.sites, result.sites]),
            values=np.concatenate([read.values, result.values]),
            seconds=np.concatenate([read.times_s - self._began_s, result.seconds]),
            noise_variances=np.concatenate([np.zeros(len(read.values)), noise]),
        )
