"""Turn what a robot streams into results: pass the points of its route, detect arrival, average readings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.vehicles.remote.link import Goal, GoalResult, PositionReport, Reading, Report
from fieldbo.vehicles.remote.settings import Arrival

_CONFIRMING = 2
"""How many reports in a row must be near a point: one may be wrong."""

_LINGER_S = 2.0
"""How long a robot near a point of its route may come no closer before it is sent to the next one."""


class ArrivalDetector:
    """Works out the result of the current goal from a robot's positions and readings.

    Some robots receive one point at a time: `target`. Such a robot is sent to the next point of its route
    once it is near and nothing lies in between, or comes no closer. Readings at the site are averaged.

    All times are in seconds on one clock, the caller's.

    Parameters
    ----------
    arrival : Arrival
    follows_routes : bool
        Whether the robot passes the points of a route by itself.
    is_free : Callable
        ``is_free(a, b)`` returns whether the straight leg between two places (d,) is free.
    """

    def __init__(
        self,
        arrival: Arrival,
        follows_routes: bool = False,
        is_free: Callable[[Array, Array], bool] = lambda a, b: True,
    ) -> None:
        self.arrival, self._follows_routes, self._is_free = arrival, follows_routes, is_free
        self._goal: Goal | None = None
        self._points: list[Array] = []
        self._passed, self._near = False, 0
        self._began_s = self._dwell_s = 0.0
        self._sent_s = -math.inf
        self._arrived_s: float | None = None
        self._closest, self._closest_s = math.inf, 0.0
        self._position: Array | None = None
        self._values: list[float] = []
        self._abandoned = False

    def begin(self, goal: Goal | None, now_s: float, dwell_s: float = 0.0) -> None:
        """Start on a goal, or on none; average its readings for `dwell_s` seconds."""
        self._goal, self._began_s, self._arrived_s, self._dwell_s = goal, now_s, None, dwell_s
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

    @property
    def on_its_way(self) -> bool:
        """Whether a point of the route was passed."""
        return self._passed

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
        goal = self._goal
        if isinstance(report, PositionReport):
            self._position = report.position
        if now_s < self._sent_s:
            return report
        if isinstance(report, PositionReport):
            if goal is not None and self._abandoned:
                return replace(self._result(goal, [], now_s), complete=False)
            if goal is not None and self._arrived_s is None:
                self._advance(report.position, now_s)
                if self._arrived_s is not None and goal.home:
                    return self._result(goal, [], now_s)
        if isinstance(report, Reading) and goal is not None and self._arrived_s is not None:
            if now_s < self._arrived_s + self.arrival.settle_s:
                return report
            self._values.append(report.value)
            if now_s >= self._dwells_until_s:
                return self._averaged(goal, now_s)
        return report

    def finished(self, now_s: float) -> GoalResult | None:
        """Return the result if the time for readings is over, with a failed one if none came; else None."""
        goal = self._goal
        if goal is None or self._arrived_s is None or now_s < self._dwells_until_s:
            return None
        if self._values:
            return self._averaged(goal, now_s)
        if now_s < self._arrived_s + self.arrival.settle_s + max(self._dwell_s, self.arrival.reading_s):
            return None
        return self._result(goal, [math.nan], now_s)

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
        result = self._result(goal, [float(values.mean())], now_s)
        return replace(result, noise_variances=np.array([variance]))

    def _result(self, goal: Goal, values: list[float], now_s: float) -> GoalResult:
        assert self._position is not None
        took_s = now_s - self._began_s
        self._goal = None
        return GoalResult(
            goal=goal.id,
            position=self._position,
            sites=np.repeat(self._position[None], len(values), axis=0),
            values=np.array(values),
            seconds=np.full(len(values), took_s),
            duration_s=took_s,
        )
