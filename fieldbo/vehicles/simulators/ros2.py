"""A simulated robot on ROS 2: it serves Visit, goes by topics, or is driven as Nav2 is, as its link says."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.vehicles.remote.link import At, Charge, Done, Goal, Refused, Signal
from fieldbo.vehicles.ros2.link import MESSAGES, Ros2, Ros2Link, pose_of
from fieldbo.vehicles.ros2.node import Node, ros
from fieldbo.vehicles.ros2.streams import NAV2, Ros2Nav2, Ros2Topics
from fieldbo.vehicles.simulators.robot import Robot

_TURN_S = 0.02
_NEAR_M = 1e-6
"""A place this near a site stands for it: metres and sites are worked out from each other."""


def serve(robot: Robot, link: Ros2Link, ground: Ground | None, say: Callable[[str], object]) -> None:
    """Be the robot that `link` reaches, until Ctrl-C.

    Raises
    ------
    InputError
        It is to go by places, and nothing says where the domain lies.
    """
    node = Node(link.domain_id, link.namespace)
    body = _body(robot, link, ground, node)

    def turn() -> None:
        for signal in robot.tick():
            body.tell(signal)

    node.often(turn, _TURN_S)
    node.start()
    say("ready")
    try:
        while node.running:
            time.sleep(0.1)
    except KeyboardInterrupt:
        say("switched off")
    finally:
        node.close()


def _body(robot: Robot, link: Ros2Link, ground: Ground | None, node: Node) -> _Visitor | _Streamer:
    """Return what translates between a kind of link and the robot."""
    if isinstance(link, Ros2):
        return _Visitor(robot, link, ground, node)
    if ground is None:
        raise InputError(
            "a robot that goes by places, in a domain that lies nowhere",
            expected="a [frame] in the vehicle file",
            where="frame",
        )
    if isinstance(link, Ros2Nav2):
        return _Navigator(robot, link, ground, node)
    assert isinstance(link, Ros2Topics)
    return _Follower(robot, link, ground, node)


class _State:
    """Tells where the robot is, and what is left in its battery."""

    def __init__(self, link: Ros2Link, ground: Ground | None, node: Node) -> None:
        self.link, self.ground, self.node = link, ground, node
        self._charge = ros("sensor_msgs.msg").BatteryState
        self._battery = node.ros.create_publisher(self._charge, link.battery, 10)
        self._pose = node.ros.create_publisher(ros("geometry_msgs.msg").PoseStamped, link.pose, 10)

    def tell(self, signal: At | Charge) -> None:
        if isinstance(signal, Charge):
            share = math.nan if signal.share is None else signal.share
            self._battery.publish(self._charge(percentage=share, present=True))
        elif self.ground is not None:
            self._pose.publish(pose_of(self.link, self.node, self.ground, signal.position))


class _Visitor:
    """Serves Visit. All goals with an id belong to one errand, and are answered together."""

    def __init__(self, robot: Robot, link: Ros2, ground: Ground | None, node: Node) -> None:
        actions = ros("rclpy.action")
        self.robot, self.state = robot, _State(link, ground, node)
        self._kind, self._server = ros("fieldbo_msgs.action", MESSAGES).Visit, actions.server
        self._goals: dict[str, list[Any]] = {}
        server = actions.ActionServer(
            node.ros,
            self._kind,
            link.action,
            execute_callback=_settle,  # each goal brings what came of it
            goal_callback=self._takes_on,
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )
        node.own(server)

    def _takes_on(self, goal: Any) -> Any:
        known = not goal.recall or self.robot.knows(goal.id)
        return self._server.GoalResponse.ACCEPT if known else self._server.GoalResponse.REJECT

    def _begin(self, handle: Any) -> None:
        goal = handle.request
        self._goals.setdefault(goal.id, []).append(handle)
        if goal.recall:
            self.robot.ask(goal.id)
            return
        site = np.array(goal.site)
        controls = np.isfinite(site)
        self.robot.go(
            Goal(goal.id, site, None if controls.all() else controls, level=goal.level, home=goal.home)
        )

    def _cancel(self, handle: Any) -> Any:
        self.robot.cancel(handle.request.id)
        return self._server.CancelResponse.ACCEPT

    def tell(self, signal: Signal) -> None:
        """Send what a signal of the robot says to all who have a goal here."""
        if isinstance(signal, At | Charge):
            self.state.tell(signal)
        if isinstance(signal, At):
            told = self._kind.Feedback(position=signal.position.tolist(), progress=math.nan)
            for handle in [one for goals in self._goals.values() for one in goals]:
                handle.publish_feedback(told)
        elif isinstance(signal, Refused | Done):
            for handle in self._goals.pop(signal.errand, []):
                handle.execute(partial(_settle, result=self._result(signal)))

    def _result(self, signal: Refused | Done) -> Any:
        kinds = self._kind.Result
        if isinstance(signal, Refused):
            return kinds(outcome=kinds.REJECTED, reason=signal.reason)
        return kinds(
            outcome=kinds.DONE if signal.complete else kinds.ABORTED,
            sites=signal.sites.ravel().tolist(),
            values=signal.values.tolist(),
            seconds=signal.seconds.tolist(),
            position=signal.position.tolist(),
            cost=signal.cost,
            duration=signal.duration_s,
        )


def _settle(handle: Any, result: Any) -> Any:
    """End a goal of Visit as its result says."""
    if handle.is_cancel_requested:
        handle.canceled()
    elif result.outcome == result.DONE:
        handle.succeed()
    else:
        handle.abort()
    return result


class _Streamer:
    """Tells where it is, and what it read last where it stands."""

    def __init__(self, robot: Robot, link: Ros2Topics | Ros2Nav2, ground: Ground, node: Node) -> None:
        self.robot, self.ground, self.state = robot, ground, _State(link, ground, node)
        self._number = ros("std_msgs.msg").Float64
        self._reading = node.ros.create_publisher(self._number, link.reading, 10)
        self._count = 0

    def go(self, pose: Any) -> str:
        """Go to a place; return the errand."""
        place = pose.pose.position
        errand = Goal(f"{self._count}#goal", self._site(self.ground.sites([[place.x, place.y, place.z]])[0]))
        self._count += 1
        self.robot.go(errand)
        return errand.id

    def _site(self, told: Array) -> Array:
        domain = self.robot.world.domain
        site = domain.clipped(told) if domain.continuous else domain.sites[domain.nearest(told)]
        return np.asarray(site if np.abs(site - told).max() <= _NEAR_M else told)

    def tell(self, signal: Signal) -> None:
        """Publish what a signal of the robot says."""
        if isinstance(signal, At | Charge):
            self.state.tell(signal)
        if isinstance(signal, At) and math.isfinite(self.robot.reading):
            self._reading.publish(self._number(data=self.robot.reading))


class _Follower(_Streamer):
    """Goes where a topic tells it to; the same goal again changes nothing."""

    def __init__(self, robot: Robot, link: Ros2Topics, ground: Ground, node: Node) -> None:
        super().__init__(robot, link, ground, node)
        self._goal: Any = None
        kind = ros("geometry_msgs.msg").PoseStamped
        node.ros.create_subscription(kind, link.goal, self._hear, 10)

    def _hear(self, pose: Any) -> None:
        if pose != self._goal:
            self._goal = pose
            self.go(pose)


class _Navigator(_Streamer):
    """Serves NavigateToPose, one goal at a time."""

    def __init__(self, robot: Robot, link: Ros2Nav2, ground: Ground, node: Node) -> None:
        super().__init__(robot, link, ground, node)
        actions = ros("rclpy.action")
        self._kind, self._server = ros("nav2_msgs.action", NAV2).NavigateToPose, actions.server
        self._goals: dict[str, Any] = {}
        server = actions.ActionServer(
            node.ros,
            self._kind,
            link.action,
            execute_callback=self._settle,  # each goal brings what came of it
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )
        node.own(server)

    def _begin(self, handle: Any) -> None:
        self._goals[self.go(handle.request.pose)] = handle

    def _cancel(self, handle: Any) -> Any:
        self.robot.hold()
        return self._server.CancelResponse.ACCEPT

    def tell(self, signal: Signal) -> None:
        super().tell(signal)
        if (
            isinstance(signal, Refused | Done)
            and (handle := self._goals.pop(signal.errand, None)) is not None
        ):
            came = isinstance(signal, Done) and signal.complete
            handle.execute(partial(self._settle, came=came))

    def _settle(self, handle: Any, came: bool) -> Any:
        if handle.is_cancel_requested:
            handle.canceled()
        elif came:
            handle.succeed()
        else:
            handle.abort()
        return self._kind.Result()
