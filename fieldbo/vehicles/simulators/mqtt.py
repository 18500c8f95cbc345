"""The simulated robot on an MQTT bus; what it keeps to is told in `fieldbo.vehicles.mqtt.link`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mqtt.client import MqttClient
from fieldbo.vehicles.mqtt.link import TO_ROBOT, Codec, Mqtt, flag, identity, number, read, told, whole
from fieldbo.vehicles.remote.link import At, Charge, Done, Goal, Refused, Signal
from fieldbo.vehicles.simulators.robot import Robot

_TICK_S = 0.02

_ALONE_S = 0.5
"""Another simulated robot would be heard within this time."""

Say = Callable[[str], object]


def serve(robot: Robot, link: Mqtt, ground: Ground | None, say: Say) -> None:
    """Carry out what comes over the bus, until Ctrl-C.

    Parameters
    ----------
    robot : Robot
    link : Mqtt
    ground : Ground or None
        Where the world lies.
    say : Callable
        Prints a line for whoever watches; ``ready`` once goals can come.
    """
    _wait_for_broker(link, say)
    codec = Codec(robot.world.domain.axes, ground)
    heard: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def hear(name: str, payload: bytes, retained: bool) -> None:
        if not retained:  # a goal of another day
            heard.put(lambda: _obey(robot, codec, name, payload, say))

    bus = MqttClient(
        link,
        link.topic,
        hears=TO_ROBOT,
        heard=hear,
        up=lambda: heard.put(lambda: say("ready")),
        down=lambda why: heard.put(lambda: say(why)),
        present="status",
    )
    try:
        while True:
            with suppress(queue.Empty):
                heard.get(timeout=_TICK_S)()
            for name, body, qos in messages(codec, robot.tick()):
                bus.publish(name, body, qos=qos)
    finally:
        bus.close()


def _wait_for_broker(link: Mqtt, say: Say) -> None:
    """Wait until the broker is there; no other robot may be."""
    up, other = threading.Event(), threading.Event()
    listener = MqttClient(link, link.topic, ("telemetry",), heard=lambda *_: other.set(), up=up.set, down=say)
    try:
        up.wait()
        if other.wait(_ALONE_S):
            raise VehicleError(
                f"there is a robot at {link.address} already: end that one first, or choose another topic"
            )
    finally:
        listener.close()


def _obey(robot: Robot, codec: Codec, name: str, payload: bytes, say: Say) -> None:
    """Do as one message says; pass over what can't be understood, for anyone may publish anything."""
    try:
        body = read(name, payload)
        match name:
            case "goal":
                robot.go(errand(codec, body))
            case "cancel":
                robot.cancel(identity(body))
            case "ask":
                robot.ask(identity(body))
            case _:
                robot.hold()
    except InputError as error:
        say(f"passed over: {error.problem}; expected: {error.expected}")
    except Exception as error:
        say(f"passed over: {error!r}")


def errand(codec: Codec, body: Mapping[str, Any]) -> Goal:
    """Return the errand in a goal.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> codec = Codec([Axis("sugar", "g/l", 0, 9), Axis("pH", "", 0, 9)])
    >>> errand(codec, {"id": "m/3", "site": {"sugar": 2, "pH": None}}).controls
    array([ True, False])
    """
    if not isinstance(body.get("site"), Mapping):
        raise InputError(f"a goal with the keys {sorted(body)}"[:80], expected="a site: numbers by axis")
    site = codec.site(body["site"])
    free = np.isnan(site)
    return Goal(
        identity(body),
        site,
        controls=~free if free.any() else None,
        level=whole(body, "level"),
        home=flag(body, "home", False),
        seconds=number(body.get("seconds")),
    )


def messages(codec: Codec, signals: list[Signal]) -> list[tuple[str, dict[str, Any], int]]:
    """Return what a robot has to say as messages: topic, body and quality of service."""
    telemetry: dict[str, Any] = {}
    answers: list[tuple[str, dict[str, Any], int]] = []
    for signal in signals:
        match signal:
            case At():
                telemetry["position"] = codec.place(signal.position)
            case Charge():
                telemetry |= {"battery": signal.amount, "battery_share": signal.share}
            case Refused():
                answers.append(("refused", {"id": signal.errand, "reason": signal.reason}, 1))
            case Done():
                answers.append(("result", result(codec, signal), 1))
    return [*([("telemetry", telemetry, 0)] if telemetry else []), *answers]


def result(codec: Codec, done: Done) -> dict[str, Any]:
    """Return what was done as it is told."""
    channels = done.channels or {}
    return {
        "id": done.errand,
        "part": done.part,
        "last": done.last,
        "complete": done.complete,
        "position": codec.place(done.position),
        "cost": told(done.cost),
        "duration_s": told(done.duration_s),
        "readings": [
            {
                "site": codec.place(site),
                "value": told(done.values[k]),
                "seconds": told(done.seconds[k]),
                "channels": {name: told(read[k]) for name, read in channels.items()},
            }
            for k, site in enumerate(done.sites)
        ],
    }
