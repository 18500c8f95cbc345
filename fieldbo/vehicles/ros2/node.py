"""A ROS 2 node in its own thread, the goals of an action, and the planner's topic, for the links over ROS 2.

All calls to ROS are made in the node's thread: rclpy loses answers to requests from other threads. What the
planner says on its own topic is its claim to a robot, and also its sign of life.
"""

from __future__ import annotations

import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fieldbo.errors import VehicleError
from fieldbo.vehicles.remote.contact import BEAT_S, Claim
from fieldbo.vehicles.remote.link import Heartbeat, OnReport, Reconnected, Unreachable

CHECK_S = 0.25
"""Interval at which to check who is there."""

_ANSWER_S = 2.0
"""Send a goal again if there is no answer for this long."""

FLUSH_S = 1.0
"""How long the last messages may take to arrive when the link closes."""

_SYSTEM = "source your ROS 2: source /opt/ros/jazzy/setup.bash; or pip install 'fieldbo[ros2]'"


def ros(module: str, fix: str = _SYSTEM) -> Any:
    """Import a module of ROS 2.

    Raises
    ------
    VehicleError
        It is not installed; the error includes `fix`.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise VehicleError(f"ROS 2 cannot be used: {error}\n  fix:      {fix}") from error


class Node:
    """A ROS 2 node that spins in its own thread.

    Create subscriptions, actions and timers before you start it.

    Parameters
    ----------
    domain_id : int or None
        None for the domain in ``ROS_DOMAIN_ID``.
    namespace : str

    Raises
    ------
    VehicleError
        ROS 2 is not installed, or cannot be started.
    """

    def __init__(self, domain_id: int | None, namespace: str) -> None:
        rclpy, signals = ros("rclpy"), ros("rclpy.signals")
        self._context = rclpy.Context()
        try:
            rclpy.init(
                context=self._context,
                domain_id=domain_id,
                signal_handler_options=signals.SignalHandlerOptions.NO,  # Ctrl-C belongs to the runner
            )
            self.ros = rclpy.create_node(
                f"fieldbo_{os.getpid()}_{id(self):x}",
                namespace=namespace,
                context=self._context,
                start_parameter_services=False,
                enable_rosout=False,
            )
        except RuntimeError as error:  # no middleware, or no folder for logs
            raise VehicleError(f"ROS 2 cannot be used: {error}") from error
        self._executor = ros("rclpy.executors").SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.ros)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = self.ros.create_guard_condition(self._do_work)
        self._registered: list[Any] = []
        self._ended = False
        self._thread = threading.Thread(target=self._spin, name="fieldbo-ros2", daemon=True)

    def listen(self, kind: Any, topic: str, take: Callable[[Any], None]) -> None:
        """Call `take` with each message of a topic, whether or not its publisher is reliable."""
        self.ros.create_subscription(kind, topic, take, ros("rclpy.qos").qos_profile_sensor_data)

    def repeat(self, work: Callable[[], None], every_s: float = CHECK_S) -> None:
        """Do something at regular intervals by a steady clock."""
        clocks = ros("rclpy.clock")
        self.ros.create_timer(every_s, work, clock=clocks.Clock(clock_type=clocks.ClockType.STEADY_TIME))

    def register(self, action: Any) -> Any:
        """Return an action client or server after registering it to be destroyed with the node."""
        self._registered.append(action)
        return action

    def start(self) -> None:
        """Start to spin."""
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def do(self, work: Callable[[], None]) -> None:
        """Do something in the node's thread, after everything queued before."""
        self._work.put(work)
        self._wake.trigger()

    def _do_work(self) -> None:
        while not self._work.empty():
            self._work.get()()

    def _spin(self) -> None:
        while not self._ended:
            self._executor.spin_once()

    def close(self) -> None:
        """Do what is queued, then end the thread."""
        self.do(self._end)
        self._thread.join()
        self._executor.shutdown()
        for action in self._registered:
            action.destroy()
        self.ros.destroy_node()
        self._context.try_shutdown()

    def _end(self) -> None:
        self._ended = True


@dataclass(eq=False)
class ActionGoal:
    """A goal of an action, and its callbacks.

    Attributes
    ----------
    message : Any
        The action's goal message.
    on_result : Callable
        Called with the final status and the action's result.
    on_feedback : Callable
        Called with the action's feedback.
    on_rejection : Callable
        Called if no robot accepts the goal.
    sent_to : frozenset of bytes
        The servers to which the goal was sent.
    handle : Any
        The goal's handle, once a robot has accepted it.
    """

    message: Any
    on_result: Callable[[int, Any], None]
    on_feedback: Callable[[Any], None]
    on_rejection: Callable[[], None] = lambda: None
    sent_to: frozenset[bytes] = frozenset()
    handle: Any = None


class ActionGoals:
    """The goals of an action, one at a time; a server that restarts is reported, to be sent its goal again.

    Call all methods but `flush` and `unsent` in the node's thread.

    Parameters
    ----------
    node : Node
        Not started yet.
    kind : type
        Type of the action.
    name : str
        Name of the action.
    on_report : Callable
        Takes reports of whether there is a server.
    """

    def __init__(self, node: Node, kind: Any, name: str, on_report: OnReport) -> None:
        self._node, self._name, self._report = node, name, on_report
        self._client = node.register(ros("rclpy.action").ActionClient(node.ros, kind, name))
        self._current: ActionGoal | None = None
        self._forgotten = False
        self._sent_s = -math.inf
        self._servers: frozenset[bytes] = frozenset()
        self._unanswered = 0  # requests
        node.repeat(self._check)

    @property
    def idle(self) -> bool:
        """Whether no goal is outstanding, or the robot may have forgotten it."""
        return self._current is None or self._forgotten

    def begin(self, goal: ActionGoal) -> None:
        """Send a goal as soon as there is a server; it replaces the current one."""
        self._current, self._forgotten = goal, False
        self._check()

    def send(self, goal: ActionGoal) -> None:
        """Send a goal once, next to the current one."""
        self._send(goal, self._follow)

    def cancel(self) -> None:
        """Cancel the current goal, if any; its result is still reported."""
        goal, self._current = self._current, None
        if goal is not None and goal.handle is not None:
            self._cancel_handle(goal.handle)

    def unsent(self) -> str:
        """Return why a request has not reached the robot; empty if all have. Callable from any thread."""
        return f"the robot that serves {self._name} has not answered" if self._unanswered else ""

    def flush(self) -> None:
        """Wait briefly until everything sent has arrived; call this outside the node's thread."""
        end, done = time.monotonic() + FLUSH_S, threading.Event()
        self._node.do(done.set)
        done.wait(FLUSH_S)
        while self._unanswered and time.monotonic() < end:
            time.sleep(0.01)

    def _check(self) -> None:
        """Check who is there; send the current goal unless it was sent and may still be answered."""
        servers, goal = self._find_servers(), self._current
        if servers - self._servers:
            self._report(Heartbeat())
        elif self._servers and not servers:
            self._report(Unreachable(f"no robot serves {self._name} any more"))
        self._servers = servers
        if goal is None or not servers:
            return
        unanswered = goal.handle is None and time.monotonic() > self._sent_s + _ANSWER_S
        if goal.sent_to and not servers <= goal.sent_to:
            goal.sent_to |= servers
            self._forgotten = True
            self._report(Reconnected())
        elif unanswered or not goal.sent_to:
            goal.sent_to, self._sent_s = servers, time.monotonic()
            self._send(goal, self._answered)

    def _find_servers(self) -> frozenset[bytes]:
        """Return who serves the action; a program that restarts is a new server."""
        if not self._client.server_is_ready():
            return frozenset()
        publishers = self._node.ros.get_publishers_info_by_topic(f"{self._name}/_action/feedback")
        return frozenset(bytes(publisher.endpoint_gid) for publisher in publishers)

    def _send(self, goal: ActionGoal, take: Callable[[ActionGoal, Any], None]) -> None:
        """Send a goal, and call `take` with its handle when the answer arrives."""
        sent = self._client.send_goal_async(
            goal.message, feedback_callback=lambda message: goal.on_feedback(message.feedback)
        )
        self._await(sent, lambda handle: take(goal, handle))

    def _cancel_handle(self, handle: Any) -> None:
        self._await(handle.cancel_goal_async(), lambda answer: None)

    def _await(self, sent: Any, take: Callable[[Any], None]) -> None:
        def answered(answer: Any) -> None:
            take(answer.result())
            self._unanswered -= 1

        self._unanswered += 1
        sent.add_done_callback(answered)

    def _answered(self, goal: ActionGoal, handle: Any) -> None:
        """Process whether a goal was accepted; cancel it if it was given up before."""
        accepted_before = goal.handle is not None
        self._follow(goal, handle)
        if handle.accepted and goal is not self._current:
            self._cancel_handle(handle)
        elif not handle.accepted and not accepted_before and goal is self._current:
            self._current = None
            goal.on_rejection()

    def _follow(self, goal: ActionGoal, handle: Any) -> None:
        """Wait for the result of an accepted goal."""
        if handle.accepted:
            goal.handle = handle
            handle.get_result_async().add_done_callback(lambda answer: self._ended(goal, answer.result()))

    def _ended(self, goal: ActionGoal, answer: Any) -> None:
        self._current = None if goal is self._current else self._current
        goal.on_result(answer.status, answer.result)


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
