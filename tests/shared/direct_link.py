"""A simulated robot in this process, connected directly: it reports, or streams, and may be cut off."""

import math
from dataclasses import dataclass

import numpy as np

from fieldbo.vehicles.remote.link import Connection, GoalResult, Link, Reading
from fieldbo.vehicles.simulators import Robot

_NO_PAUSE_S = 1e-9
"""A robot that streams pauses before it samples, if only for a moment."""


class Wire(Connection):
    """A robot that takes a turn with each step of its clock, a `SteppedClock`.

    A robot that streams sends positions and readings instead of results. One that does not follow routes
    receives places to go to, and may stop `short` of them.
    """

    def __init__(self, link, hear):
        self.link, self.robot, self.hear = link, link.robot, hear
        self.cut, self.count = False, 0
        self.robot.clock.meanwhile.append(self._turn)

    def _turn(self):
        streams = not self.link.reports
        for report in self.robot.tick():
            if not self.cut and not (streams and isinstance(report, GoalResult)):
                self.hear(report)
        if streams and not self.cut and not math.isnan(self.robot.reading):
            self.hear(Reading(self.robot.reading))

    def _ordered(self, act, *args):
        if not self.cut:
            act(*args)

    def go(self, goal):
        if self.link.follows_routes:
            self._ordered(self.robot.go, goal, 0.0 if self.link.reports else _NO_PAUSE_S)
        else:
            self.count += 1
            self._ordered(self._go_to, f"target {self.count}", goal.site)

    def _go_to(self, name, target):
        """Go to a target, or as near as the robot is content with."""
        gap = target - self.robot.position
        length, short = np.linalg.norm(gap), self.link.short
        reached = target - gap * min(1.0, short / length) if length > 0 else target
        self.robot.go_to(name, reached, 1e-9)

    def cancel(self, goal):
        if self.link.follows_routes:
            self._ordered(self.robot.cancel, goal)
        else:
            self._ordered(self.robot.hold)

    def hold(self):
        self._ordered(self.robot.hold)

    def ask(self, goal):
        self._ordered(self.robot.ask, goal)
        return True

    def close(self):
        self.robot.clock.meanwhile.remove(self._turn)


@dataclass(frozen=True)
class Near(Link):
    """A robot that reports."""

    robot: Robot
    short: float = 0.0
    address = "here"

    def open(self, mission, ground, hear):
        self.wires.append(Wire(self, hear))
        return self.wires[-1]

    @property
    def wires(self):
        return self.__dict__.setdefault("_wires", [])


class Streaming(Near):
    """A robot that streams, and follows routes."""

    reports = False


class Guided(Streaming):
    """A robot that streams, and receives one point at a time."""

    follows_routes = False
