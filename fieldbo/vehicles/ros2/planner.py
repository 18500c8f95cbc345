"""The planner's own topic on ROS 2: its claim to a robot, which is also its sign of life."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from fieldbo.vehicles.remote.claim import BEAT_S, Claim
from fieldbo.vehicles.remote.link import OnReport
from fieldbo.vehicles.ros2.node import Node, ros

TOPIC = "planner"
_TURN_S = 0.1
_DISCOVERY_S = 4.0  # nodes announce themselves every three seconds, and find each other within this time
_UNHEARD_S = 3.0  # and if they are slow, a planner that has been found is heard within this time after that


def latched(depth: int = 1) -> Any:
    """Return the quality of service of a topic whose last message reaches those who subscribe later."""
    qos = ros("rclpy.qos")
    return qos.QoSProfile(depth=depth, durability=qos.DurabilityPolicy.TRANSIENT_LOCAL)


class Planner:
    """Claims a robot on the topic ``planner`` (std_msgs/String, JSON), and repeats the claim every second.

    Parameters
    ----------
    node : Node
        Not started yet.
    on_report : Callable
        Takes the report of another planner's claim.
    """

    def __init__(self, node: Node, on_report: OnReport) -> None:
        self._node, self._report, self._text = node, on_report, ros("std_msgs.msg").String
        self._publisher = node.ros.create_publisher(self._text, TOPIC, latched())
        node.ros.create_subscription(self._text, TOPIC, self._receive, latched(10))
        node.repeat(self._check, _TURN_S)
        self._claim: Claim | None = None
        self._beat_s = self._listens_until_s = 0.0
        self._waiting: Callable[[], None] | None = None

    def claim(self, session: str, mission: str) -> None:
        """Claim the robot, once no other claim is heard."""
        self._claim = Claim(session, mission)
        self._listens_until_s = time.monotonic() + _DISCOVERY_S
        self._claim.listen(self._listens_until_s)

    @property
    def claimed(self) -> bool:
        """Whether the claim is held, or there is none to make."""
        return self._claim is None or self._claim.held

    def name(self, goal: str) -> None:
        """Add the name of the run, which begins the id of each goal."""
        if self._claim is not None:
            self._claim.name(goal.rpartition("/")[0])

    def do(self, work: Callable[[], None]) -> None:
        """Do something in the node's thread once the robot is claimed; it replaces what waits for that."""
        self._node.do(lambda: self._begin(work))

    def do_instead(self, work: Callable[[], None]) -> None:
        """Do something in the node's thread, and drop what waits for the claim."""
        self._node.do(lambda: self._begin_instead(work))

    def withdraw(self) -> None:
        """Give the robot back."""
        if self._claim is not None and self._claim.held:
            self._publish(self._claim.withdrawn)

    # -- in the node's thread --------------------------------------------------------------------------

    def _begin(self, work: Callable[[], None]) -> None:
        if self.claimed:
            work()
        else:
            self._waiting = work

    def _begin_instead(self, work: Callable[[], None]) -> None:
        self._waiting = None
        work()

    def _check(self) -> None:
        claim, now_s = self._claim, time.monotonic()
        if claim is None:
            return
        others = not claim.held and not claim.rival and self._node.ros.count_publishers(TOPIC) > 1
        if others and self._listens_until_s < now_s < self._listens_until_s + _UNHEARD_S:
            claim.listen(now_s)
        if claim.due(now_s) or (claim.held and now_s >= self._beat_s):
            self._beat_s = now_s + BEAT_S
            self._publish(claim.body)
        waiting = self._waiting
        if claim.held and waiting is not None:
            self._waiting = None
            waiting()

    def _publish(self, body: dict[str, Any]) -> None:
        self._publisher.publish(self._text(data=json.dumps(body)))

    def _receive(self, message: Any) -> None:
        """Process a planner's message; ignore what cannot be understood, since anyone may publish."""
        if self._claim is None:
            return
        try:
            body = json.loads(message.data)
            report = self._claim.take(body, retained=False, now_s=time.monotonic())
        except (ValueError, AttributeError, RecursionError):
            return
        if report is not None:
            self._report(report)
