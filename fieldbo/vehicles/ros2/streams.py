"""A robot on ROS 2 without fieldbo's action: it receives poses, and streams its pose and readings.

`Ros2Topics` needs only topics; `Ros2Nav2` drives a robot that runs Nav2. Poses are geometry_msgs/PoseStamped,
in metres east, north and up of the origin, so the vehicle file needs a ``[frame]``. Readings are
std_msgs/Float64, published at any time; those after arrival are averaged (``dwell_s`` in ``[arrival]``). If
the sensor reads on the way, those before arrival count, too, each between the poses around it.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fieldbo.domain.frame import Ground, example
from fieldbo.errors import VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.remote.link import (
    Connection,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    OnReport,
    PositionReport,
    Reading,
)
from fieldbo.vehicles.remote.track import Fixes
from fieldbo.vehicles.ros2.link import PoseReader, Ros2Link, pose_of
from fieldbo.vehicles.ros2.node import FLUSH_S, ActionGoal, ActionGoals, Planner, ros

NAV2 = "install Nav2's messages: apt-get install ros-$ROS_DISTRO-nav2-msgs"


@settings("link")
class _Streams(Ros2Link):
    """Settings of all links to a robot that streams."""

    reports: ClassVar[bool] = False
    follows_routes: ClassVar[bool] = False

    reading: str = "reading"
    """Topic of the robot's readings, std_msgs/Float64."""

    def over(self, mission: Mission, ground: Ground | None) -> Ground:
        """Return the ground if poses alone can express the mission's orders.

        Raises
        ------
        VehicleError
            Where the domain lies is unknown, or the mission needs more than places.
        """
        world = mission.world
        if ground is None:
            raise VehicleError(
                "the vehicle file does not say how the domain's axes lie, so sites have no pose\n"
                f"  fix:      add to the vehicle file, for example:\n\n{example(world.domain.axes)}"
            )
        if world.sensor.settings > 1 or world.domain.controls is not None:
            raise VehicleError(
                "a pose cannot express the sensor's level or free variables\n"
                '  fix:      have the robot serve Visit (kind = "ros2"), or use a world without either'
            )
        return ground


@settings("link")
class Ros2Topics(_Streams):
    """A link to a robot that goes to the pose on a topic."""

    goal: str = "goal_pose"
    """Topic of the pose to go to, geometry_msgs/PoseStamped."""

    @property
    def _main_name(self) -> str:
        return self.pose

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        return _Topics(self, self.over(mission, ground), Fixes(mission), on_report)


@settings("link")
class Ros2Nav2(_Streams):
    """A link to a robot that runs Nav2."""

    action: str = "navigate_to_pose"
    """Name of the action NavigateToPose."""

    @property
    def _main_name(self) -> str:
        return self.action

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        return _Navigation(self, self.over(mission, ground), Fixes(mission), on_report)


class _Stream(Connection):
    """Reports the robot's position and readings."""

    def __init__(self, link: _Streams, ground: Ground, fixes: Fixes[Any], on_report: OnReport) -> None:
        self._link, self._ground, self._fixes, self._report = link, ground, fixes, on_report
        self._node = link.node(on_report)
        self._planner, self._poses = Planner(self._node, on_report), PoseReader(link, ground, on_report)
        self._node.listen(ros("geometry_msgs.msg").PoseStamped, link.pose, self._take_pose)
        self._node.listen(
            ros("std_msgs.msg").Float64, link.reading, lambda number: on_report(Reading(number.data))
        )

    def _take_pose(self, pose: Any) -> None:
        site = self._poses.site(pose)
        if site is None:
            self._report(Heartbeat())
            return
        self._fixes.take(site, pose, time.monotonic())
        self._report(PositionReport(site))

    def claim(self, session: str, mission: str) -> None:
        self._planner.claim(session, mission)

    @property
    def claimed(self) -> bool:
        return self._planner.claimed

    def close(self) -> None:
        self._planner.withdraw()
        self._node.close()


class _Topics(_Stream):
    """Publishes the pose to go to, and repeats it for subscribers that appear later."""

    delivery_s = 5.0  # Fast DDS asks for acknowledgements every 3 s

    def __init__(self, link: Ros2Topics, ground: Ground, fixes: Fixes[Any], on_report: OnReport) -> None:
        super().__init__(link, ground, fixes, on_report)
        self._target: Any = None
        self._is_held = self._is_asked_to_hold = False
        self._sent_to: frozenset[bytes] = frozenset()
        self._sender = self._node.ros.create_publisher(ros("geometry_msgs.msg").PoseStamped, link.goal, 10)
        self._node.repeat(self._check)
        self._node.start()

    def go(self, goal: Goal) -> None:
        pose = pose_of(self._link, self._node, self._ground, goal.site)
        self._planner.name(goal.id)
        self._planner.do(partial(self._begin, pose))

    def _begin(self, pose: Any) -> None:
        self._target, self._is_held, self._sent_to = pose, False, frozenset()
        self._check()

    def _check(self) -> None:
        """Publish the target if a subscriber has not received it, or was lost and is found again."""
        subscribers = self._node.ros.get_subscriptions_info_by_topic(self._sender.topic_name)
        listening = frozenset(bytes(subscriber.endpoint_gid) for subscriber in subscribers)
        self._sent_to &= listening
        if listening <= self._sent_to:
            return
        if self._is_held:  # where it is by now
            self._target = self._fixes.plausible()
        if self._target is not None:
            self._sent_to = listening
            self._sender.publish(self._target)

    def cancel(self, goal: str) -> None:
        self.hold()

    def hold(self) -> None:
        self._is_asked_to_hold = True
        self._planner.do_instead(self._stay)

    def _stay(self) -> None:
        """Make the robot's own pose the target, the last one that is plausible, as soon as one is known."""
        self._is_held, self._sent_to = True, frozenset()
        self._check()
        self._is_asked_to_hold = False

    def unsent(self) -> str:
        topic = self._sender.topic_name
        if self._is_asked_to_hold or not self._sent_to:
            return f"nobody listens to {topic}, or no plausible pose of the robot is known"
        if not self._sender.wait_for_all_acked(ros("rclpy.duration").Duration()):
            return f"the robot, or another program that listens to {topic}, has not acknowledged it"
        return ""

    def close(self) -> None:
        self._node.do(self._flush)
        super().close()

    def _flush(self) -> None:
        """Wait briefly until everything published has arrived."""
        self._sender.wait_for_all_acked(ros("rclpy.duration").Duration(seconds=FLUSH_S))


class _Navigation(_Stream):
    """Sends each point of a route as a goal of NavigateToPose, which Nav2 reaches before the next is sent."""

    def __init__(self, link: Ros2Nav2, ground: Ground, fixes: Fixes[Any], on_report: OnReport) -> None:
        self._kind = ros("nav2_msgs.action", NAV2).NavigateToPose
        self._status = ros("action_msgs.msg").GoalStatus
        super().__init__(link, ground, fixes, on_report)
        self._goals = ActionGoals(self._node, self._kind, link.action, on_report)
        self._goal: Goal | None = None
        self._node.start()

    def go(self, goal: Goal) -> None:
        self._goal = goal
        action_goal = ActionGoal(self._kind.Goal(), partial(self._take_result, goal), self._take_feedback)
        action_goal.message.pose = pose_of(self._link, self._node, self._ground, goal.site)
        rejected = GoalRejected(goal.id, "Nav2 did not accept the goal")
        action_goal.on_rejection = lambda: self._report(rejected)
        self._planner.name(goal.id)
        self._planner.do(partial(self._goals.begin, action_goal))

    def _take_feedback(self, feedback: Any) -> None:
        self._take_pose(feedback.current_pose)

    def _take_result(self, goal: Goal, status: int, result: Any) -> None:
        """Report that the robot did not get there; if it did, its pose shows that.

        Nav2 aborts a goal that the next one replaces.
        """
        if goal is self._goal and status in (self._status.STATUS_ABORTED, self._status.STATUS_CANCELED):
            nowhere, none = np.full(len(goal.site), math.nan), np.empty(0)
            sites = np.empty((0, len(goal.site)))
            self._report(GoalResult(goal.id, nowhere, sites, none, none, complete=False))

    def cancel(self, goal: str) -> None:
        self._planner.do_instead(self._goals.cancel)

    def hold(self) -> None:
        self._planner.do_instead(self._goals.cancel)

    def unsent(self) -> str:
        return self._goals.unsent()

    def close(self) -> None:
        self._goals.flush()
        super().close()
