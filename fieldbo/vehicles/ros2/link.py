"""A robot on ROS 2 that serves fieldbo's own action, Visit: it reports what came of each errand.

What its program has to keep to is in ``ros/fieldbo_msgs``. A robot that has nothing but topics, or Nav2, is
reached as `fieldbo.vehicles.ros2.streams` says.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import Alive, At, Charge, Connection, Done, Goal, Hear, Link, Refused
from fieldbo.vehicles.ros2.node import ActionGoal, ActionGoals, Node, ros

_NAME = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)
_DOMAINS = 232

MESSAGES = "build ros/fieldbo_msgs with colcon and source it; where ROS 2 is from PyPI, run ros/build.py"


@dataclass(frozen=True)
class Ros2Link(Link):
    """What all links over ROS 2 have.

    Parameters
    ----------
    domain_id : int, optional
        By default what ``ROS_DOMAIN_ID`` says, or 0.
    namespace : str
        Of the robot: ``boat``. All names are within it but those that begin with a slash.
    frame_id : str
        What the robot calls the frame of its places: metres east, north and up of the origin.
    pose : str
        Topic on which it tells where it is: geometry_msgs/PoseStamped.
    battery : str
        Topic on which it tells what is left: sensor_msgs/BatteryState. That nobody tells it does no harm.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    domain_id: int | None = None
    namespace: str = ""
    frame_id: str = "map"
    pose: str = "pose"
    battery: str = "battery_state"

    def __post_init__(self) -> None:
        if self.domain_id is not None and not 0 <= self.domain_id <= _DOMAINS:
            raise InputError(
                f"domain_id = {self.domain_id}", expected=f"0 to {_DOMAINS}", where="link.domain_id"
            )
        for name in (one.name for one in fields(self) if one.type == "str" and one.name != "frame_id"):
            value = getattr(self, name)
            if not _NAME.fullmatch(value) and (name, value) != ("namespace", ""):
                raise InputError(
                    f"{name} = {value!r}",
                    expected="a ROS name: words of letters, digits and _, with / between them",
                    where=f"link.{name}",
                )

    @property
    @abstractmethod
    def _shown(self) -> str:
        """The name by which a user finds the robot."""

    @property
    def address(self) -> str:
        """The robot's action or topic, and the domain."""
        domain = os.environ.get("ROS_DOMAIN_ID", "0") if self.domain_id is None else self.domain_id
        space = self.namespace.strip("/")
        name = self._shown if self._shown.startswith("/") or not space else f"{space}/{self._shown}"
        return f"ros2:/{name.lstrip('/')} (domain {domain})"

    def node(self, hear: Hear) -> Node:
        """Return a node that listens to the battery; not started yet."""
        node = Node(self.domain_id, self.namespace)
        node.listen(
            ros("sensor_msgs.msg").BatteryState,
            self.battery,
            lambda told: hear(Charge(share=told.percentage)),  # NaN, where it is not known, is no charge
        )
        return node


def site_of(link: Ros2Link, ground: Ground, pose: Any) -> Array | None:
    """Return the site (d,) of a PoseStamped; None if it is in another frame."""
    if pose.header.frame_id not in ("", link.frame_id):
        return None
    place = pose.pose.position
    return np.asarray(ground.sites([[place.x, place.y, place.z]])[0])


def pose_of(link: Ros2Link, node: Node, ground: Ground, site: Array) -> Any:
    """Return a PoseStamped of a site (d,), facing east."""
    pose = ros("geometry_msgs.msg").PoseStamped()
    pose.header.frame_id, pose.header.stamp = link.frame_id, node.ros.get_clock().now().to_msg()
    place = pose.pose.position
    place.x, place.y, place.z = ground.local(site)[0].tolist()
    return pose


@dataclass(frozen=True)
class Ros2(Ros2Link):
    """The ``[link]`` of a robot that serves Visit.

    Parameters
    ----------
    domain_id, namespace, frame_id, pose, battery
        As of all links over ROS 2; the pose is listened to between orders, where there is a ``[frame]``.
    action : str
        The name under which it serves Visit.

    Examples
    --------
    >>> Ros2(domain_id=7, namespace="boat").address
    'ros2:/boat/visit (domain 7)'
    """

    action: str = "visit"

    @property
    def _shown(self) -> str:
        return self.action

    def open(self, mission: Mission, ground: Ground | None, hear: Hear) -> Connection:
        return _Visits(self, mission, ground, hear)


class _Visits(Connection):
    """A goal of Visit for each errand."""

    def __init__(self, link: Ros2, mission: Mission, ground: Ground | None, hear: Hear) -> None:
        self._kind = ros("fieldbo_msgs.action", MESSAGES).Visit
        self._status = ros("action_msgs.msg").GoalStatus
        self._link, self._ground, self._hear = link, ground, hear
        self._axes = [axis.name for axis in mission.world.domain.axes]
        self._node = link.node(hear)
        self._goals = ActionGoals(self._node, self._kind, link.action, hear)
        if ground is not None:
            self._node.listen(ros("geometry_msgs.msg").PoseStamped, link.pose, partial(self._is_at, ground))
        self._node.start()

    def _is_at(self, ground: Ground, pose: Any) -> None:
        """Tell where it is; during an errand only who serves the action can say that the robot is alive."""
        site = site_of(self._link, ground, pose)
        if site is not None and self._goals.idle:
            self._hear(At(site))

    def go(self, errand: Goal) -> None:
        goal = self._goal(errand.id)
        message = goal.message
        message.axes, message.site = self._axes, errand.site.tolist()
        message.level, message.home = errand.level, errand.home
        if self._ground is not None and np.isfinite(errand.site).all():
            message.pose = pose_of(self._link, self._node, self._ground, errand.site)
        goal.on_refusal = lambda: self._hear(Refused(errand.id, "the robot did not accept the goal"))
        self._node.do(partial(self._goals.begin, goal))

    def ask(self, errand: str) -> bool:
        goal = self._goal(errand)
        goal.message.recall = True
        self._node.do(partial(self._goals.send, goal))
        return True

    def _goal(self, errand: str) -> ActionGoal:
        """Return a goal of which all that is heard belongs to an errand."""
        return ActionGoal(self._kind.ActionGoal(id=errand), partial(self._came_of, errand), self._on_the_way)

    def _on_the_way(self, feedback: Any) -> None:
        told = np.array(feedback.position)
        self._hear(At(told) if len(told) == len(self._axes) else Alive())

    def _came_of(self, errand: str, status: int, result: Any) -> None:
        if status == self._status.STATUS_UNKNOWN:
            return  # the robot has forgotten it
        if result.outcome == self._kind.Result.REJECTED:
            self._hear(Refused(errand, result.reason or "rejected by the robot"))
            return
        k, others = len(result.values), len(result.channels)
        self._hear(
            Done(
                errand=errand,
                position=np.array(result.position),
                sites=_whole(result.sites, k, len(self._axes)),
                values=np.array(result.values),
                seconds=_whole(result.seconds, k),
                cost=result.cost,
                duration_s=result.duration,
                complete=status == self._status.STATUS_SUCCEEDED and result.outcome == self._kind.Result.DONE,
                channels=dict(zip(result.channels, _whole(result.others, others, k), strict=True)) or None,
            )
        )

    def cancel(self, errand: str) -> None:
        self._node.do(self._goals.give_up)

    def hold(self) -> None:
        self._node.do(self._goals.give_up)

    def close(self) -> None:
        self._goals.say_farewell()
        self._node.close()


def _whole(numbers: Any, *shape: int) -> Array:
    """Return numbers in a shape; NaN throughout where the robot told more or fewer than fit."""
    told = np.array(numbers, dtype=float)
    return told.reshape(shape) if told.size == np.prod(shape) else np.full(shape, np.nan)
