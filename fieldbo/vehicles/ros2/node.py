"""A node of ROS 2 in a thread of its own, and the goals of an action, for the links over ROS 2.

Whatever is done with ROS is done in the node's thread: rclpy loses answers to what other threads send.
"""

from __future__ import annotations

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
from fieldbo.vehicles.remote.link import Alive, Down, Hear

TEND_S = 0.25
"""So often it is looked who is there."""

_ANSWER_S = 2.0
"""A goal to which there is no answer for so long is sent once more."""

FAREWELL_S = 1.0
"""On closing, what was sent last is given so long to arrive."""

_SYSTEM = "source your ROS 2: source /opt/ros/jazzy/setup.bash; or pip install 'fieldbo[ros2]'"


def ros(module: str, fix: str = _SYSTEM) -> Any:
    """Return a module of ROS 2.

    Raises
    ------
    VehicleError
        It is not there; `mend` says how to get it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise VehicleError(f"ROS 2 can't be used: {error}\n  fix:      {fix}") from error


class Node:
    """A ROS 2 node that spins in a thread of its own.

    What it listens to, its actions and its timers are made before it is started.

    Parameters
    ----------
    domain_id : int or None
        None: what ``ROS_DOMAIN_ID`` says.
    namespace : str

    Raises
    ------
    VehicleError
        ROS 2 is not there, or can't be started.
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
        except RuntimeError as error:  # a middleware that is not there, a folder for logs that can't be made
            raise VehicleError(f"ROS 2 can't be used: {error}") from error
        self._executor = ros("rclpy.executors").SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.ros)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = self.ros.create_guard_condition(self._do_work)
        self._owned: list[Any] = []
        self._ended = False
        self._thread = threading.Thread(target=self._spin, name="fieldbo-ros2", daemon=True)

    def listen(self, kind: Any, topic: str, take: Callable[[Any], None]) -> None:
        """Have `take` called with each message of a topic, whether or not its sender repeats lost ones."""
        self.ros.create_subscription(kind, topic, take, ros("rclpy.qos").qos_profile_sensor_data)

    def often(self, work: Callable[[], None], every_s: float = TEND_S) -> None:
        """Have something done again and again, whatever the clock on the wall does."""
        clocks = ros("rclpy.clock")
        self.ros.create_timer(every_s, work, clock=clocks.Clock(clock_type=clocks.ClockType.STEADY_TIME))

    def own(self, action: Any) -> Any:
        """Return an action's client or server, which is destroyed with the node."""
        self._owned.append(action)
        return action

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def do(self, work: Callable[[], None]) -> None:
        """Have something done in the node's thread, after all that was given before."""
        self._work.put(work)
        self._wake.trigger()

    def _do_work(self) -> None:
        while not self._work.empty():
            self._work.get()()

    def _spin(self) -> None:
        while not self._ended:
            self._executor.spin_once()

    def close(self) -> None:
        """Do what was given, and end the thread."""
        self.do(self._end)
        self._thread.join()
        self._executor.shutdown()
        for action in self._owned:
            action.destroy()
        self.ros.destroy_node()
        self._context.try_shutdown()

    def _end(self) -> None:
        self._ended = True


@dataclass(eq=False)
class ActionGoal:
    """A goal of an action, and who hears of it.

    Attributes
    ----------
    message : Any
        The action's goal.
    on_result : Callable
        Called with the status at the end, and the action's result.
    on_feedback : Callable
        Called with the action's feedback.
    on_refusal : Callable
        Called if no robot takes the goal on.
    given : frozenset of bytes
        The programs to which it was sent.
    handle : Any
        Of the goal, once a robot has taken it on.
    """

    message: Any
    on_result: Callable[[int, Any], None]
    on_feedback: Callable[[Any], None]
    on_refusal: Callable[[], None] = lambda: None
    given: frozenset[bytes] = frozenset()
    handle: Any = None


class ActionGoals:
    """The goals of an action, one at a time; a robot that was started anew is given the one that is out.

    But for `say_farewell`, its methods are called in the node's thread.

    Parameters
    ----------
    node : Node
        Not started yet.
    kind : type
        Of the action.
    name : str
        Of the action.
    hear : Callable
        Takes signals: whether there is a robot.
    """

    def __init__(self, node: Node, kind: Any, name: str, hear: Hear) -> None:
        self._node, self._name, self._hear = node, name, hear
        self._client = node.own(ros("rclpy.action").ActionClient(node.ros, kind, name))
        self._out: ActionGoal | None = None
        self._asked_s = -math.inf
        self._servers: frozenset[bytes] = frozenset()
        self._owed = 0  # answers to what was sent
        node.often(self._tend)

    @property
    def idle(self) -> bool:
        """Whether no goal is out."""
        return self._out is None

    def begin(self, goal: ActionGoal) -> None:
        """Send a goal as soon as there is a robot, in the place of the one that is out."""
        self._out = goal
        self._tend()

    def send(self, goal: ActionGoal) -> None:
        """Send a goal beside the one that is out, and only now."""
        self._send(goal, self._follow)

    def give_up(self) -> None:
        """Cancel the goal that is out, if any; what comes of it is still told."""
        goal, self._out = self._out, None
        if goal is not None and goal.handle is not None:
            self._cancel(goal.handle)

    def say_farewell(self) -> None:
        """Wait until all that was sent has arrived, but not for long; not called in the node's thread."""
        end, done = time.monotonic() + FAREWELL_S, threading.Event()
        self._node.do(done.set)
        done.wait(FAREWELL_S)
        while self._owed and time.monotonic() < end:
            time.sleep(0.01)

    def _tend(self) -> None:
        """Look who is there; send what is out to those who were not given it, or do not answer."""
        servers = self._found()
        if servers - self._servers:
            self._hear(Alive())
        elif self._servers and not servers:
            self._hear(Down(f"nobody serves {self._name} any more"))
        self._servers, goal = servers, self._out
        if goal is None or not servers:
            return
        unanswered = goal.handle is None and time.monotonic() > self._asked_s + _ANSWER_S
        if unanswered or not servers <= goal.given:
            goal.given, self._asked_s = servers, time.monotonic()
            self._send(goal, self._answered)

    def _found(self) -> frozenset[bytes]:
        """Return who serves the action; a program that was started anew is another one."""
        if not self._client.server_is_ready():
            return frozenset()
        told = self._node.ros.get_publishers_info_by_topic(f"{self._name}/_action/feedback")
        return frozenset(bytes(one.endpoint_gid) for one in told)

    def _send(self, goal: ActionGoal, take: Callable[[ActionGoal, Any], None]) -> None:
        """Send a goal, and have `take` called with its handle when there is an answer."""
        sent = self._client.send_goal_async(
            goal.message, feedback_callback=lambda told: goal.on_feedback(told.feedback)
        )
        self._await(sent, lambda handle: take(goal, handle))

    def _cancel(self, handle: Any) -> None:
        self._await(handle.cancel_goal_async(), lambda answer: None)

    def _await(self, sent: Any, take: Callable[[Any], None]) -> None:
        def answered(answer: Any) -> None:
            take(answer.result())
            self._owed -= 1

        self._owed += 1
        sent.add_done_callback(answered)

    def _answered(self, goal: ActionGoal, handle: Any) -> None:
        """Take in whether a goal was taken on; cancel it where it was given up before that."""
        taken_on_before = goal.handle is not None
        self._follow(goal, handle)
        if handle.accepted and goal is not self._out:
            self._cancel(handle)
        elif not handle.accepted and not taken_on_before and goal is self._out:
            self._out = None
            goal.on_refusal()

    def _follow(self, goal: ActionGoal, handle: Any) -> None:
        """Wait for what comes of a goal that was taken on."""
        if handle.accepted:
            goal.handle = handle
            handle.get_result_async().add_done_callback(lambda answer: self._ended(goal, answer.result()))

    def _ended(self, goal: ActionGoal, answer: Any) -> None:
        self._out = None if goal is self._out else self._out
        goal.on_result(answer.status, answer.result)
