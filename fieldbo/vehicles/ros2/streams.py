"""A robot on ROS 2 without fieldbo's action: it is told places, and tells where it is and what it reads.

`Ros2Topics` needs nothing but topics; `Ros2Nav2` drives a robot that runs Nav2. Places are
geometry_msgs/PoseStamped in a frame of metres east, north and up of the origin: the vehicle file needs a
``[frame]``. A reading is a std_msgs/Float64, told while the robot stands or drives; one counts if it comes
after the robot has arrived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fieldbo.domain.frame import Ground, example
from fieldbo.errors import VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import At, Connection, Done, Down, Goal, Hear, Read, Refused
from fieldbo.vehicles.ros2.link import Ros2Link, pose_of, site_of
from fieldbo.vehicles.ros2.node import FAREWELL_S, ActionGoal, ActionGoals, ros

NAV2 = "install Nav2's messages: apt-get install ros-$ROS_DISTRO-nav2-msgs"


@dataclass(frozen=True)
class _Streams(Ros2Link):
    """What both have: where it is, and what it reads."""

    reading: str = "reading"

    reports: ClassVar[bool] = False

    def over(self, mission: Mission, ground: Ground | None) -> Ground:
        """Return where the domain lies.

        Raises
        ------
        VehicleError
            That is not known, or the mission needs more than places.
        """
        world = mission.world
        if ground is None:
            raise VehicleError(
                "where the robot has to go can't be told: nothing says how the domain's axes lie\n"
                f"  fix:      add to the vehicle file, for example:\n\n{example(world.domain.axes)}"
            )
        if world.sensor.settings > 1 or world.domain.controls is not None:
            raise VehicleError(
                "the sensor's setting, or what is left free, can't be told by topics alone\n"
                '  fix:      have the robot serve Visit (kind = "ros2"), or take a world without either'
            )
        return ground


@dataclass(frozen=True)
class Ros2Topics(_Streams):
    """The ``[link]`` of a robot that goes where a topic tells it to.

    Parameters
    ----------
    domain_id, namespace, frame_id, pose, battery
        As of all links over ROS 2.
    reading : str
        Topic on which it tells what it reads.
    goal : str
        Topic on which it is told where to go.
    """

    goal: str = "goal_pose"

    @property
    def _shown(self) -> str:
        return self.pose

    def open(self, mission: Mission, ground: Ground | None, hear: Hear) -> Connection:
        return _Topics(self, self.over(mission, ground), hear)


@dataclass(frozen=True)
class Ros2Nav2(_Streams):
    """The ``[link]`` of a robot that runs Nav2.

    Parameters
    ----------
    domain_id, namespace, frame_id, pose, battery, reading
        As of `Ros2Topics`.
    action : str
        The name under which it serves NavigateToPose.
    """

    action: str = "navigate_to_pose"

    @property
    def _shown(self) -> str:
        return self.action

    def open(self, mission: Mission, ground: Ground | None, hear: Hear) -> Connection:
        return _Navigation(self, self.over(mission, ground), hear)


class _Stream(Connection):
    """Passes on where the robot is and what it reads."""

    def __init__(self, link: _Streams, ground: Ground, hear: Hear) -> None:
        self._link, self._ground, self._hear = link, ground, hear
        self._node, self._at = link.node(hear), None
        self._node.listen(ros("geometry_msgs.msg").PoseStamped, link.pose, self._is_at)
        self._node.listen(ros("std_msgs.msg").Float64, link.reading, lambda told: hear(Read(told.data)))

    def _is_at(self, pose: Any) -> None:
        site = site_of(self._link, self._ground, pose)
        if site is None:
            frame = pose.header.frame_id
            self._hear(Down(f"{self._link.pose} is told in frame {frame!r}, not {self._link.frame_id!r}"))
            return
        self._at = pose
        self._hear(At(site))

    def close(self) -> None:
        self._node.close()


class _Topics(_Stream):
    """Publishes the place to go to; says it again to whoever begins to listen later."""

    def __init__(self, link: Ros2Topics, ground: Ground, hear: Hear) -> None:
        super().__init__(link, ground, hear)
        self._goal: Any = None
        self._given: frozenset[bytes] = frozenset()
        self._told = False
        self._sender = self._node.ros.create_publisher(ros("geometry_msgs.msg").PoseStamped, link.goal, 10)
        self._node.often(self._tend)
        self._node.start()

    def go(self, errand: Goal) -> None:
        goal = pose_of(self._link, self._node, self._ground, errand.site)
        self._node.do(partial(self._begin, goal))

    def _begin(self, goal: Any) -> None:
        self._goal, self._given = goal, frozenset()
        self._tend()

    def _tend(self) -> None:
        """Tell the goal to those who were not told it."""
        found = self._node.ros.get_subscriptions_info_by_topic(self._sender.topic_name)
        listening = frozenset(bytes(one.endpoint_gid) for one in found)
        if self._goal is not None and not listening <= self._given:
            self._given = listening
            self._sender.publish(self._goal)

    def cancel(self, errand: str) -> None:
        self._node.do(self._stay)

    def hold(self) -> None:
        self._node.do(self._stay)

    def _stay(self) -> None:
        """Send the robot to where it is."""
        self._goal = None
        if self._at is not None:
            self._sender.publish(self._at)

    def close(self) -> None:
        self._node.do(self._say_farewell)
        super().close()

    def _say_farewell(self) -> None:
        """Wait until all that was published has arrived, but not for long."""
        self._sender.wait_for_all_acked(ros("rclpy.duration").Duration(seconds=FAREWELL_S))


class _Navigation(_Stream):
    """A goal of NavigateToPose for each errand."""

    def __init__(self, link: Ros2Nav2, ground: Ground, hear: Hear) -> None:
        self._kind = ros("nav2_msgs.action", NAV2).NavigateToPose
        self._status = ros("action_msgs.msg").GoalStatus
        super().__init__(link, ground, hear)
        self._goals = ActionGoals(self._node, self._kind, link.action, hear)
        self._node.start()

    def go(self, errand: Goal) -> None:
        goal = ActionGoal(self._kind.ActionGoal(), partial(self._came_of, errand), self._on_the_way)
        goal.message.pose = pose_of(self._link, self._node, self._ground, errand.site)
        goal.on_refusal = lambda: self._hear(Refused(errand.id, "Nav2 did not accept the goal"))
        self._node.do(partial(self._goals.begin, goal))

    def _on_the_way(self, feedback: Any) -> None:
        self._is_at(feedback.current_pose)

    def _came_of(self, errand: Goal, status: int, result: Any) -> None:
        """Tell that it did not get there; if it did, its pose shows that."""
        if status in (self._status.STATUS_ABORTED, self._status.STATUS_CANCELED):
            d = len(errand.site)
            none = np.empty(0)
            self._hear(Done(errand.id, np.full(d, math.nan), np.empty((0, d)), none, none, complete=False))

    def cancel(self, errand: str) -> None:
        self._node.do(self._goals.give_up)

    def hold(self) -> None:
        self._node.do(self._goals.give_up)

    def close(self) -> None:
        self._goals.say_farewell()
        super().close()
