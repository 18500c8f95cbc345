"""Turn what a robot streams into results: detect that it has arrived, and take its reading there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.vehicles.remote.link import Goal, GoalResult, PositionReport, Reading, Report
from fieldbo.vehicles.remote.settings import Arrival


class ArrivalDetector:
    """Works out the result of the current goal from a robot's positions and readings.

    All times are in seconds on one clock, the caller's.

    Parameters
    ----------
    arrival : Arrival
    """

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival
        self._goal: Goal | None = None
        self._began_s = 0.0
        self._arrived_s: float | None = None
        self._position: Array | None = None

    def begin(self, goal: Goal | None, now_s: float) -> None:
        """Start on a goal, or on none."""
        self._goal, self._began_s, self._arrived_s = goal, now_s, None

    def process(self, report: Report, now_s: float) -> Report:
        """Return the report unchanged, or the `GoalResult` that it amounts to."""
        goal = self._goal
        if isinstance(report, PositionReport):
            self._position = report.position
            if goal is not None and self._arrived_s is None and self._is_near(goal):
                self._arrived_s = now_s
                if goal.home:
                    return self._result(goal, [], now_s)
        if isinstance(report, Reading) and goal is not None and self._arrived_s is not None:
            if now_s < self._arrived_s + self.arrival.settle_s:
                return report
            return self._result(goal, [report.value], now_s)
        return report

    def timed_out(self, now_s: float) -> GoalResult | None:
        """Return the result with a failed reading if no reading came in time; else None."""
        goal, arrival = self._goal, self.arrival
        if goal is None or self._arrived_s is None:
            return None
        if now_s < self._arrived_s + arrival.settle_s + arrival.reading_s:
            return None
        return self._result(goal, [math.nan], now_s)

    def abandon(self, now_s: float) -> GoalResult | None:
        """Return the result of a goal cut short where the robot is; None if that is unknown."""
        if self._goal is None or self._position is None:
            return None
        return replace(self._result(self._goal, [], now_s), complete=False)

    def _is_near(self, goal: Goal) -> bool:
        gap = np.abs(np.asarray(self._position) - goal.site)
        return bool((gap <= self.arrival.within).all())

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
