"""What a simulated robot does by itself when its planner falls silent."""

from __future__ import annotations

import math

from fieldbo.vehicles.remote.link import Goal
from fieldbo.vehicles.simulators.robot import Robot


class PlannerWatch:
    """Watches for signs of life of the planner, as the latest goal asks for.

    Parameters
    ----------
    robot : Robot
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._clock = robot, robot.clock
        self._goal: Goal | None = None
        self._heard_s = self._clock.now_s()

    def hear(self) -> None:
        """Note a sign of life."""
        self._heard_s = self._clock.now_s()

    def begin(self, goal: Goal) -> None:
        """Watch from now on, as this goal says."""
        self._goal = goal if math.isfinite(goal.planner_silence_s) else None

    def end(self) -> None:
        """Watch no longer: the planner has told the robot to stay where it is."""
        self._goal = None

    def check(self) -> str | None:
        """Hold, or go home once the goal under way is finished, if the planner is silent; return which."""
        goal, silent_s = self._goal, self._clock.now_s() - self._heard_s
        if goal is None or silent_s < goal.planner_silence_s:
            return None
        if not len(goal.return_route) or not (self._robot.busy or self._robot.has_finished(goal.id)):
            self._goal = None  # the route home begins where the goal ends
            self._robot.hold()
            return f"no sign of life from the planner for {silent_s:.0f} s: holding"
        if self._robot.busy:
            return None
        self._goal, home = None, goal.return_route[-1]
        self._robot.go(Goal(f"{goal.id} home", home, home=True, route=goal.return_route))
        return f"no sign of life from the planner for {silent_s:.0f} s: going home"
