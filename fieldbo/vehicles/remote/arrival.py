"""What a robot streams as results: points of its route passed, its arrival, averages, readings on the way.

A streamed reading carries no place. One on the way was taken between the positions that arrived before and
after it, on the straight line between them. Its place is therefore off by the difference of the two messages'
delays, times the robot's speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.vehicles.remote.link import Goal, GoalResult, PositionReport, Reading, Report
from fieldbo.vehicles.remote.settings import Arrival

_GAP_S = 2.0
"""A reading between positions that arrived further apart has no known place."""

_PART, _PART_S = 100, 10.0
"""A part is due after this many readings, or this many seconds after the previous one."""

_NEAREST = 0.5
"""A reading this close to the previous one, as a fraction of the declared spacing, repeats it."""


class Collected(NamedTuple):
    """Readings on the way: `sites` (k, d), `values` (k,), and when they arrived, `times_s` (k,)."""

    sites: Array
    values: Array
    times_s: Array


class OnTheWayCollector:
    """The readings of one order since the last part that was delivered.

    Readings count once the robot has moved by half the declared spacing since the last that counted. So a
    robot that waits adds none, and neither does a sensor that repeats its value, nor a message that arrives
    twice. All times are in seconds on one clock, the caller's.

    Attributes
    ----------
    parts : int
        Number of parts of the order so far, those before a restart included.
    unplaced : int
        Number of readings that arrived while the robot's position was not known.

    Examples
    --------
    >>> collector = OnTheWayCollector()
    >>> collector.take_position(np.array([0.0, 0.0]), 0.0)
    >>> collector.begin(spacing_m=1.0, now_s=0.0)
    >>> for now_s in (1.0, 1.1, 2.0):
    ...     collector.take_reading(5.0, now_s)
    >>> collector.take_position(np.array([4.0, 0.0]), 2.0)
    >>> collector.collect(2.0).sites.tolist()
    [[2.0, 0.0], [4.0, 0.0]]
    """

    def __init__(self) -> None:
        self._here: tuple[float, Array] | None = None
        self._waiting: list[tuple[float, float]] = []
        self._sites: list[Array] = []
        self._values: list[float] = []
        self._times_s: list[float] = []
        self._last: Array | None = None
        self._spacing_m, self._part_s = 0.0, 0.0
        self.parts = self.unplaced = 0

    def begin(self, spacing_m: float, now_s: float, parts: int = 0) -> None:
        """Begin with an order whose readings are `spacing_m` apart, and which has reported some parts."""
        self._spacing_m, self.parts, self._part_s = spacing_m, parts, now_s
        self._waiting, self._last = [], None if self._here is None else self._here[1]
        self._drop()

    def take_reading(self, value: float, now_s: float) -> None:
        """Take a reading; its place is known once the next position arrives."""
        self._waiting.append((now_s, value))

    def take_position(self, position: Array, now_s: float) -> None:
        """Take a position (d,) that is believed, and place the readings since the previous one."""
        before, self._here = self._here, (now_s, position)
        waiting, self._waiting = self._waiting, []
        for read_s, value in waiting:
            if before is None or now_s - before[0] > _GAP_S:
                self.unplaced += 1
                continue
            passed_s = now_s - before[0]
            share = (read_s - before[0]) / passed_s if passed_s > 0 else 1.0
            self._count(before[1] + share * (position - before[1]), value, read_s)

    def _count(self, site: Array, value: float, read_s: float) -> None:
        """Count a reading unless it is too close to the last one that counted."""
        if self._last is not None and np.linalg.norm(site - self._last) < _NEAREST * self._spacing_m:
            return
        self._last = site
        self._sites.append(site)
        self._values.append(value)
        self._times_s.append(read_s)

    @property
    def has_read(self) -> bool:
        """Whether anything of this order was read on the way."""
        return bool(self.parts or self._values)

    @property
    def has_new(self) -> bool:
        """Whether anything was read since the previous part."""
        return bool(self._values)

    def part_is_due(self, now_s: float) -> bool:
        """Return True if there are enough readings for a part, or some have waited for long enough."""
        return len(self._values) >= _PART or (bool(self._values) and now_s >= self._part_s + _PART_S)

    def collect(self, now_s: float) -> Collected:
        """Return the readings since the previous part, which ends now."""
        collected = Collected(*(np.array(rows) for rows in (self._sites, self._values, self._times_s)))
        self.parts, self._part_s = self.parts + 1, now_s
        self._drop()
        return collected

    def _drop(self) -> None:
        self._sites, self._values, self._times_s = [], [], []


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
