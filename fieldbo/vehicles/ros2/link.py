"""A robot on ROS 2 that serves fieldbo's own action, Visit: it reports the outcome of each goal.

``ros/fieldbo_msgs`` describes what its program must do. For a robot with only topics, or with Nav2, see
`fieldbo.vehicles.ros2.streams`.
"""

from __future__ import annotations

import json
import math
import os
import re
from abc import abstractmethod
from dataclasses import fields
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.remote.channels import ChannelSources
from fieldbo.vehicles.remote.gauge import Scale, ShareReader
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Connection,
    Doubt,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    Link,
    OnReport,
    PositionReport,
)
from fieldbo.vehicles.ros2.node import ActionGoal, ActionGoals, Node, Planner, ros

_NAME = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)
_VOLTAGE = "voltage"
_MOST_FRAMES = 8
"""How many other frames of poses to name at most."""
MESSAGES = "build ros/fieldbo_msgs with colcon and source it; with ROS 2 from PyPI, run ros/build.py"


@settings("link")
class Ros2Link(Link):
    """Settings of all links over ROS 2."""

    battery_in: ClassVar[Literal["percent", "either"]] = "percent"

    domain_id: Annotated[int, Field(ge=0, le=232)] | None = None
    """ROS domain; by default that in the environment variable ROS_DOMAIN_ID, or 0."""
    namespace: str = ""
    """Namespace of the robot, for example boat; it applies to all names that do not begin with a slash."""
    frame_id: str = "map"
    """Frame of the robot's poses, in metres east, north and up of the origin."""
    pose: str = "pose"
    """Topic of the robot's pose, geometry_msgs/PoseStamped."""
    battery: str = "battery_state"
    """Topic of the robot's battery, sensor_msgs/BatteryState; it need not exist."""
    battery_scale: Scale | None = None
    """What the percentage of a full battery is: 1, as ROS 2 has it, or 100. By default, 1 until a value above
    1 is reported, and 100 from then on."""
    channels: ChannelSources = Field(default_factory=dict)
    """Topics of other quantities, std_msgs/Float64, by the channel's name, for example { wind = "/wind" }.
    The battery's voltage is the channel voltage."""

    def __post_init__(self) -> None:
        others = ("domain_id", "frame_id", "battery_scale", "channels")
        names = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in others}
        names |= {f"channels.{name}": topic for name, topic in self.channels.items()}
        for name, value in names.items():
            if not _NAME.fullmatch(value) and (name, value) != ("namespace", ""):
                raise InputError(
                    f"{name} = {value!r}",
                    expected="a ROS name: words of letters, digits and _, separated by /",
                    where=f"link.{name}",
                )

    @property
    @abstractmethod
    def _main_name(self) -> str:
        """Name of the action or topic by which a user finds the robot."""

    @property
    def address(self) -> str:
        """The robot's action or topic, and the domain."""
        domain = os.environ.get("ROS_DOMAIN_ID", "0") if self.domain_id is None else self.domain_id
        space = self.namespace.strip("/")
        name = self._main_name
        name = name if name.startswith("/") or not space else f"{space}/{name}"
        return f"ros2:/{name.lstrip('/')} (domain {domain})"

    @property
    def known_channels(self) -> frozenset[str]:
        return frozenset([_VOLTAGE, *self.channels])

    def node(self, on_report: OnReport) -> Node:
        """Return a node that listens to the battery and the channels; it is not started yet."""
        node = Node(self.domain_id, self.namespace)
        shares = ShareReader(f"the robot's battery on {self.battery}", self.battery_scale, on_report)

        def take_battery(state: Any) -> None:
            on_report(BatteryReport(share=shares.read(state.percentage)))  # NaN if unknown
            if _VOLTAGE not in self.channels:
                on_report(ChannelReport(_VOLTAGE, state.voltage or math.nan))  # 0 if not filled in

        node.listen(ros("sensor_msgs.msg").BatteryState, self.battery, take_battery)
        for name, topic in self.channels.items():
            node.listen(ros("std_msgs.msg").Float64, topic, partial(_take_channel, on_report, name))
        return node


def _take_channel(on_report: OnReport, name: str, number: Any) -> None:
    on_report(ChannelReport(name, number.data))


class PoseReader:
    """Turns the robot's poses into sites, and says so once of each frame that is not the agreed one.

    Parameters
    ----------
    link : Ros2Link
    ground : Ground
    on_report : Callable
        Takes a `Doubt` for each other frame.
    """

    def __init__(self, link: Ros2Link, ground: Ground, on_report: OnReport) -> None:
        self._link, self._ground, self._report = link, ground, on_report
        self._others: set[str] = set()

    def site(self, pose: Any) -> Array | None:
        """Return the site (d,) of a PoseStamped; None if it is in another frame."""
        frame = pose.header.frame_id
        if frame not in ("", self._link.frame_id):
            self._note(frame)
            return None
        place = pose.pose.position
        return np.asarray(self._ground.sites([[place.x, place.y, place.z]])[0])

    def _note(self, frame: str) -> None:
        if frame in self._others or len(self._others) == _MOST_FRAMES:
            return
        self._others.add(frame)
        wanted = self._link.frame_id
        self._report(
            Doubt(
                "position",
                f"poses on the topic {self._link.pose} in the frame {frame!r}, not {wanted!r}, are ignored",
                f"have the robot publish its pose in {wanted!r}, or set frame_id = {json.dumps(frame)} in "
                "[link] if the origin of [frame] is that of this frame, and it does not drift",
            )
        )


def pose_of(link: Ros2Link, node: Node, ground: Ground, site: Array) -> Any:
    """Return a PoseStamped of a site (d,), facing east."""
    pose = ros("geometry_msgs.msg").PoseStamped()
    pose.header.frame_id, pose.header.stamp = link.frame_id, node.ros.get_clock().now().to_msg()
    place = pose.pose.position
    place.x, place.y, place.z = ground.local(site)[0].tolist()
    return pose


@settings("link")
class Ros2(Ros2Link):
    """A link to a robot that serves the action Visit.

    With a ``[frame]``, fieldbo also listens to the robot's pose between goals.

    Examples
    --------
    >>> Ros2(domain_id=7, namespace="boat").address
    'ros2:/boat/visit (domain 7)'
    """

    action: str = "visit"
    """Name of the action Visit."""

    @property
    def _main_name(self) -> str:
        return self.action

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        return _Visits(self, mission, ground, on_report)


class _Visits(Connection):
    """Sends each goal as a goal of the action Visit."""

    def __init__(self, link: Ros2, mission: Mission, ground: Ground | None, on_report: OnReport) -> None:
        self._kind = ros("fieldbo_msgs.action", MESSAGES).Visit
        self._status = ros("action_msgs.msg").GoalStatus
        self._link, self._ground, self._report = link, ground, on_report
        self._axes = [axis.name for axis in mission.world.domain.axes]
        self._node = link.node(on_report)
        self._goals = ActionGoals(self._node, self._kind, link.action, on_report)
        self._planner = Planner(self._node, on_report)
        if ground is not None:
            poses = PoseReader(link, ground, on_report)
            self._node.listen(
                ros("geometry_msgs.msg").PoseStamped, link.pose, partial(self._take_pose, poses)
            )
        self._node.start()

    def _take_pose(self, poses: PoseReader, pose: Any) -> None:
        """Report the position between goals; during one, only feedback proves that the server is alive."""
        site = poses.site(pose)
        if site is not None and self._goals.idle:
            self._report(PositionReport(site))

    def claim(self, session: str, mission: str) -> None:
        self._planner.claim(session, mission)

    @property
    def claimed(self) -> bool:
        return self._planner.claimed

    def go(self, goal: Goal) -> None:
        self._planner.name(goal.id)
        action_goal = self._action_goal(goal.id)
        message = action_goal.message
        message.axes, message.site = self._axes, goal.site.tolist()
        message.level, message.home = goal.level, goal.home
        message.route = goal.route.ravel().tolist()
        message.planner_silence_s = goal.planner_silence_s
        message.return_route = goal.return_route.ravel().tolist()
        if self._ground is not None and np.isfinite(goal.site).all():
            message.pose = pose_of(self._link, self._node, self._ground, goal.site)
            message.poses = [pose_of(self._link, self._node, self._ground, point) for point in goal.route]
        rejected = GoalRejected(goal.id, "the robot did not accept the goal")
        action_goal.on_rejection = lambda: self._report(rejected)
        self._planner.do(partial(self._goals.begin, action_goal))

    def ask(self, goal: str) -> bool:
        action_goal = self._action_goal(goal)
        action_goal.message.recall = True
        self._node.do(partial(self._goals.send, action_goal))
        return True

    def _action_goal(self, goal: str) -> ActionGoal:
        """Return a goal of the action, whose result and feedback belong to the goal with this id."""
        return ActionGoal(self._kind.Goal(id=goal), partial(self._take_result, goal), self._take_feedback)

    def _take_feedback(self, feedback: Any) -> None:
        position = np.array(feedback.position)
        self._report(PositionReport(position) if len(position) == len(self._axes) else Heartbeat())

    def _take_result(self, goal: str, status: int, result: Any) -> None:
        if status == self._status.STATUS_UNKNOWN:
            return  # the robot has forgotten the goal
        if result.outcome == self._kind.Result.REJECTED:
            self._report(GoalRejected(goal, result.reason or "rejected by the robot"))
            return
        k, others = len(result.values), len(result.channels)
        self._report(
            GoalResult(
                goal=goal,
                position=np.array(result.position),
                sites=_shaped(result.sites, k, len(self._axes)),
                values=np.array(result.values),
                seconds=_shaped(result.seconds, k),
                cost=result.cost,
                duration_s=result.duration,
                complete=status == self._status.STATUS_SUCCEEDED and result.outcome == self._kind.Result.DONE,
                channels=dict(zip(result.channels, _shaped(result.others, others, k), strict=True)) or None,
                corrects=result.corrects,
            )
        )

    def cancel(self, goal: str) -> None:
        self._planner.do_instead(self._goals.cancel)

    def hold(self) -> None:
        self._planner.do_instead(self._goals.cancel)

    def unsent(self) -> str:
        return self._goals.unsent()

    def close(self) -> None:
        self._planner.withdraw()
        self._goals.flush()
        self._node.close()


def _shaped(numbers: Any, *shape: int) -> Array:
    """Return numbers in a shape; NaN throughout if there are more or fewer than fit."""
    array = np.array(numbers, dtype=float)
    return array.reshape(shape) if array.size == np.prod(shape) else np.full(shape, np.nan)
