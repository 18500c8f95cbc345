"""The simulated robot on ROS 2: depending on the link, it serves Visit or NavigateToPose, or uses topics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Goal,
    GoalRejected,
    GoalResult,
    PositionReport,
    Reading,
    Report,
)
from fieldbo.vehicles.ros2.link import MESSAGES, Ros2, Ros2Link, pose_of
from fieldbo.vehicles.ros2.node import TOPIC, Node, latched, ros
from fieldbo.vehicles.ros2.streams import NAV2, Ros2Nav2, Ros2Topics
from fieldbo.vehicles.simulators.robot import PlannerWatch, Robot

_TURN_S = 0.05
_NEAR_M = 1e-6
"""A pose this close to a site counts as the site: converting between them rounds."""


def serve(robot: Robot, link: Ros2Link, ground: Ground | None, say: Callable[[str], object]) -> None:
    """Simulate the robot that `link` reaches, until Ctrl-C.

    Raises
    ------
    InputError
        The robot goes by poses, and where the domain lies is unknown.
    """
    node = Node(link.domain_id, link.namespace)
    adapter = _adapter(robot, link, ground, node)

    def turn() -> None:
        if (done := adapter.watch.check()) is not None:
            say(done)
        for report in robot.tick():
            adapter.send(report)

    node.repeat(turn, _TURN_S)
    node.start()
    say("ready")
    try:
        while node.running:
            time.sleep(0.1)
    except KeyboardInterrupt:
        say("switched off")
    finally:
        node.close()


def _adapter(robot: Robot, link: Ros2Link, ground: Ground | None, node: Node) -> _Visitor | _Streamer:
    """Return the adapter between a kind of link and the robot."""
    if isinstance(link, Ros2):
        return _Visitor(robot, link, ground, node)
    if ground is None:
        raise InputError(
            "the robot goes by poses, but the vehicle file does not say where the domain lies",
            expected="a [frame]",
            where="frame",
        )
    if isinstance(link, Ros2Nav2):
        return _Navigator(robot, link, ground, node)
    assert isinstance(link, Ros2Topics)
    return _Follower(robot, link, ground, node)


def _watch(robot: Robot, node: Node) -> PlannerWatch:
    """Return the watch over the planner, which hears its topic."""
    watch = PlannerWatch(robot)
    node.ros.create_subscription(ros("std_msgs.msg").String, TOPIC, lambda _: watch.hear(), latched())
    return watch


class _State:
    """Publishes the robot's pose, battery and channels."""

    def __init__(self, link: Ros2Link, ground: Ground | None, node: Node) -> None:
        self.link, self.ground, self.node = link, ground, node
        self._battery_state = ros("sensor_msgs.msg").BatteryState
        self._battery = node.ros.create_publisher(self._battery_state, link.battery, 10)
        self._pose = node.ros.create_publisher(ros("geometry_msgs.msg").PoseStamped, link.pose, 10)
        self._number = ros("std_msgs.msg").Float64
        self._channels = {
            name: node.ros.create_publisher(self._number, topic, 10) for name, topic in link.channels.items()
        }

    def send(self, report: PositionReport | BatteryReport | ChannelReport) -> None:
        if isinstance(report, ChannelReport):
            if report.name in self._channels:
                self._channels[report.name].publish(self._number(data=report.value))
        elif isinstance(report, BatteryReport):
            share = math.nan if report.share is None else report.share
            self._battery.publish(self._battery_state(percentage=share, present=True))
        elif self.ground is not None:
            self._pose.publish(pose_of(self.link, self.node, self.ground, report.position))


class _Visitor:
    """Serves Visit. All action goals with one id are the same goal, and are answered together."""

    def __init__(self, robot: Robot, link: Ros2, ground: Ground | None, node: Node) -> None:
        actions = ros("rclpy.action")
        self.robot, self.state = robot, _State(link, ground, node)
        self.watch = _watch(robot, node)
        self._kind, self._server = ros("fieldbo_msgs.action", MESSAGES).Visit, actions.server
        self._handles: dict[str, list[Any]] = {}
        server = actions.ActionServer(
            node.ros,
            self._kind,
            link.action,
            execute_callback=_settle,  # called with the result
            goal_callback=self._accept,
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )
        node.register(server)

    def _accept(self, goal: Any) -> Any:
        known = not goal.recall or self.robot.knows(goal.id)
        return self._server.GoalResponse.ACCEPT if known else self._server.GoalResponse.REJECT

    def _begin(self, handle: Any) -> None:
        goal = handle.request
        self._handles.setdefault(goal.id, []).append(handle)
        if goal.recall:
            self.robot.ask(goal.id)
            return
        site = np.array(goal.site)
        controls = np.isfinite(site)
        received = Goal(
            goal.id,
            site,
            None if controls.all() else controls,
            level=goal.level,
            home=goal.home,
            route=np.array(goal.route).reshape(-1, len(site)),
            planner_silence_s=goal.planner_silence_s,
            return_route=np.array(goal.return_route).reshape(-1, len(site)),
        )
        self.watch.hear()
        self.robot.go(received)
        self.watch.begin(received)

    def _cancel(self, handle: Any) -> Any:
        self.watch.end()
        self.robot.cancel(handle.request.id)
        return self._server.CancelResponse.ACCEPT

    def send(self, report: Report) -> None:
        """Send a report of the robot to everyone who has a goal here."""
        if isinstance(report, PositionReport | BatteryReport | ChannelReport):
            self.state.send(report)
        if isinstance(report, PositionReport):
            feedback = self._kind.Feedback(position=report.position.tolist(), progress=math.nan)
            for handle in [handle for handles in self._handles.values() for handle in handles]:
                handle.publish_feedback(feedback)
        elif isinstance(report, GoalRejected | GoalResult):
            for handle in self._handles.pop(report.goal, []):
                handle.execute(partial(_settle, result=self._result(report)))

    def _result(self, report: GoalRejected | GoalResult) -> Any:
        kind = self._kind.Result
        if isinstance(report, GoalRejected):
            return kind(outcome=kind.REJECTED, reason=report.reason)
        return kind(
            outcome=kind.DONE if report.complete else kind.ABORTED,
            sites=report.sites.ravel().tolist(),
            values=report.values.tolist(),
            seconds=report.seconds.tolist(),
            position=report.position.tolist(),
            cost=report.cost,
            duration=report.duration_s,
        )


def _settle(handle: Any, result: Any) -> Any:
    """End a goal of Visit according to its result."""
    if handle.is_cancel_requested:
        handle.canceled()
    elif result.outcome == result.DONE:
        handle.succeed()
    else:
        handle.abort()
    return result


class _Streamer:
    """Streams the robot's pose, its readings on the way, and its last reading while it stays at a site."""

    def __init__(self, robot: Robot, link: Ros2Topics | Ros2Nav2, ground: Ground, node: Node) -> None:
        self.robot, self.ground, self.state = robot, ground, _State(link, ground, node)
        self.watch = _watch(robot, node)
        self._number = ros("std_msgs.msg").Float64
        self._reading = node.ros.create_publisher(self._number, link.reading, 10)
        self._count = 0

    def go(self, pose: Any) -> str:
        """Go to a pose; return the goal's id."""
        place = pose.pose.position
        goal_id, self._count = f"goal {self._count}", self._count + 1
        self.robot.go_to(goal_id, self.ground.sites([[place.x, place.y, place.z]])[0], _NEAR_M)
        return goal_id

    def send(self, report: Report) -> None:
        """Publish a report of the robot."""
        if isinstance(report, PositionReport | BatteryReport | ChannelReport):
            self.state.send(report)
        if isinstance(report, Reading):
            self._reading.publish(self._number(data=report.value))
        if isinstance(report, PositionReport) and math.isfinite(self.robot.reading):
            self._reading.publish(self._number(data=self.robot.reading))


class _Follower(_Streamer):
    """Goes to the pose on a topic; the same pose again changes nothing."""

    def __init__(self, robot: Robot, link: Ros2Topics, ground: Ground, node: Node) -> None:
        super().__init__(robot, link, ground, node)
        self._target: Any = None
        kind = ros("geometry_msgs.msg").PoseStamped
        node.ros.create_subscription(kind, link.goal, self._receive, 10)

    def _receive(self, pose: Any) -> None:
        if pose != self._target:
            self._target = pose
            self.go(pose)


class _Navigator(_Streamer):
    """Serves NavigateToPose, one goal at a time."""

    def __init__(self, robot: Robot, link: Ros2Nav2, ground: Ground, node: Node) -> None:
        super().__init__(robot, link, ground, node)
        actions = ros("rclpy.action")
        self._kind, self._server = ros("nav2_msgs.action", NAV2).NavigateToPose, actions.server
        self._handles: dict[str, Any] = {}
        server = actions.ActionServer(
            node.ros,
            self._kind,
            link.action,
            execute_callback=self._settle,  # called with the outcome
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )
        node.register(server)

    def _begin(self, handle: Any) -> None:
        self._handles[self.go(handle.request.pose)] = handle

    def _cancel(self, handle: Any) -> Any:
        """Cancel a goal; one that a later goal has replaced is over, and must not end that one."""
        for goal, begun in list(self._handles.items()):
            if begun is handle:
                self.robot.cancel(goal)
        return self._server.CancelResponse.ACCEPT

    def send(self, report: Report) -> None:
        super().send(report)
        if not isinstance(report, GoalRejected | GoalResult):
            return
        if (handle := self._handles.pop(report.goal, None)) is not None:
            arrived = isinstance(report, GoalResult) and report.complete
            handle.execute(partial(self._settle, arrived=arrived))

    def _settle(self, handle: Any, arrived: bool) -> Any:
        if handle.is_cancel_requested:
            handle.canceled()
        elif arrived:
            handle.succeed()
        else:
            handle.abort()
        return self._kind.Result()
