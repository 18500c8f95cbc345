"""The simulated robot on MQTT; `fieldbo.vehicles.mqtt.protocol` describes the protocol."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mqtt.client import MqttClient, Presence
from fieldbo.vehicles.mqtt.link import Mqtt
from fieldbo.vehicles.mqtt.protocol import (
    TO_ROBOT,
    Codec,
    flag,
    goal_id,
    json_object,
    number,
    or_null,
    whole,
)
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Goal,
    GoalRejected,
    GoalResult,
    PositionReport,
    Report,
)
from fieldbo.vehicles.simulators.robot import PlannerWatch, Robot

_TICK_S = 0.02

_ALONE_S = 0.5
"""Another simulated robot would be heard within this time."""

_PART_READINGS = 100
"""Readings on the way in one message: about 12 kB."""

Say = Callable[[str], object]


def serve(robot: Robot, link: Mqtt, ground: Ground | None, say: Say) -> None:
    """Carry out the goals that arrive, until Ctrl-C.

    Parameters
    ----------
    robot : Robot
    link : Mqtt
    ground : Ground or None
        Where the world lies.
    say : Callable
        Prints a line; ``ready`` once goals can arrive.
    """
    _wait_for_broker(link, say)
    robot.part_readings = _PART_READINGS
    codec, watch = Codec(robot.world.domain.axes, ground), PlannerWatch(robot)
    todo: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def receive(name: str, payload: bytes, retained: bool) -> None:
        if not retained:  # a retained goal is stale
            todo.put(lambda: _obey(robot, watch, codec, name, payload, say))

    client = MqttClient(
        link,
        link.topic,
        subscribe=TO_ROBOT,
        on_message=receive,
        on_ready=lambda: todo.put(lambda: say("ready")),
        on_failure=lambda why: todo.put(lambda: say(why)),
        presence=Presence("status", link.topic),
    )
    try:
        while True:
            with suppress(queue.Empty):
                todo.get(timeout=_TICK_S)()
            if (done := watch.check()) is not None:
                say(done)
            for name, body, qos in messages(codec, robot.tick()):
                client.publish(name, body, qos=qos)
    finally:
        client.close()


def _wait_for_broker(link: Mqtt, say: Say) -> None:
    """Wait until the broker answers; fail if another robot is already there."""
    ready, other = threading.Event(), threading.Event()
    listener = MqttClient(
        link,
        link.topic,
        subscribe=("telemetry",),
        on_message=lambda *_: other.set(),
        on_ready=ready.set,
        on_failure=say,
    )
    try:
        ready.wait()
        if other.wait(_ALONE_S):
            raise VehicleError(
                f"there is already a robot at {link.address}\n"
                "  fix:      stop that robot first, or choose another topic"
            )
    finally:
        listener.close()


def _obey(robot: Robot, watch: PlannerWatch, codec: Codec, name: str, payload: bytes, say: Say) -> None:
    """Do what a message says; ignore what cannot be understood, since anyone may publish anything."""
    try:
        body = json_object(name, payload)
        if name != "planner" or flag(body, "online"):
            watch.hear()
        match name:
            case "planner":
                return
            case "goal":
                goal = goal_of(codec, body)
                robot.go(goal)
                watch.begin(goal)
            case "cancel":
                robot.cancel(goal_id(body))
            case "ask":
                robot.ask(goal_id(body))
            case _:
                watch.end()
                robot.hold()
    except InputError as error:
        say(f"ignored a message: {error.problem}; expected: {error.expected}")
    except Exception as error:
        say(f"ignored a message: {error!r}")


def goal_of(codec: Codec, body: Mapping[str, Any]) -> Goal:
    """Return the goal in a message.

    Raises
    ------
    InputError
        The message cannot be understood.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> codec = Codec([Axis("sugar", "g/l", 0, 9), Axis("pH", "", 0, 9)])
    >>> goal_of(codec, {"id": "m/3", "site": {"sugar": 2, "pH": None}}).controls
    array([ True, False])
    """
    if not isinstance(body.get("site"), Mapping):
        raise InputError(f"a goal with the keys {sorted(body)}"[:80], expected="a site: numbers by axis")
    site = codec.site(body["site"])
    free = np.isnan(site)
    return Goal(
        goal_id(body),
        site,
        controls=~free if free.any() else None,
        level=whole(body, "level"),
        home=flag(body, "home", False),
        seconds=number(body.get("seconds")),
        route=_points(codec, body.get("route")),
        planner_silence_s=number(body.get("planner_silence_s")),
        return_route=_points(codec, body.get("return_route")),
    )


def _points(codec: Codec, given: Any) -> Array:
    """Return the points (k, d) in a list of objects by axis.

    Raises
    ------
    InputError
        The value is not such a list.
    """
    points = [] if given is None else given
    if not isinstance(points, list) or not all(isinstance(point, Mapping) for point in points):
        raise InputError(f"return_route = {points}"[:80], expected="a list of points: numbers by axis")
    return np.array([codec.site(point) for point in points]).reshape(-1, len(codec.axes))


def messages(codec: Codec, reports: list[Report]) -> list[tuple[str, dict[str, Any], int]]:
    """Return a robot's reports as messages: topic, body and quality of service."""
    telemetry: dict[str, Any] = {}
    answers: list[tuple[str, dict[str, Any], int]] = []
    for report in reports:
        match report:
            case PositionReport():
                telemetry["position"] = codec.place(report.position)
            case BatteryReport():
                telemetry |= {"battery": report.amount, "battery_share": report.share}
            case ChannelReport():
                telemetry.setdefault("channels", {})[report.name] = report.value
            case GoalRejected():
                answers.append(("refused", {"id": report.goal, "reason": report.reason}, 1))
            case GoalResult():
                answers.append(("result", result_body(codec, report), 1))
    return [*([("telemetry", telemetry, 0)] if telemetry else []), *answers]


def result_body(codec: Codec, result: GoalResult) -> dict[str, Any]:
    """Return the body of a result's message."""
    channels = result.channels or {}
    return {
        "id": result.goal,
        "part": result.part,
        "last": result.last,
        "complete": result.complete,
        "position": codec.place(result.position),
        "cost": or_null(result.cost),
        "duration_s": or_null(result.duration_s),
        "readings": [
            {
                "site": codec.place(site),
                "value": or_null(result.values[k]),
                "seconds": or_null(result.seconds[k]),
                "channels": {name: or_null(values[k]) for name, values in channels.items()},
            }
            for k, site in enumerate(result.sites)
        ],
    }
