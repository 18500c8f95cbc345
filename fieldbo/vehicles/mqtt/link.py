"""A robot, or a cell, on an MQTT bus. What follows is all that its program has to keep to, in any language.

Every message is a JSON object (UTF-8) on a topic below the one that both sides are told, in what follows
``fieldbo/boat``. Nothing is retained but ``status``. Numbers are finite; ``null`` stands for one that is
missing, and keys that are not known are to be passed over. So is a message that can't be understood: anyone
may publish anything, and nothing comes of it. Neither side keeps a session with the broker: nothing waits
there for a robot that is away.

To the robot, at QoS 1:

``fieldbo/boat/goal``
    Go there and sample, or set this and measure::

        {"id": "lake-1/7#3f2a91c4", "home": false, "level": 0, "seconds": 212.5,
         "site": {"along": 350.0, "depth": 4.5}, "units": {"along": "m", "depth": "m"},
         "place": {"latitude": 47.31, "longitude": 8.5847, "altitude": 401.5}}

    ``site`` has every axis of the domain. A variable that is ``null`` there is left free: it is not to be
    set, and comes as it comes. ``home`` is true on the way home, where nothing is read. ``level`` is the
    sensor's setting. ``seconds`` is how long it is reckoned to take, or null. ``place`` (degrees on WGS 84,
    metres) is there only where it is known how the axes lie on the ground.

    The same id again is the same errand, and comes whenever one side has been away. A robot that is at it
    goes on; one that has done it answers as before. A goal with another id takes the place of the one under
    way.
``fieldbo/boat/cancel``
    ``{"id": ...}``: give it up, and answer with a result that has ``"complete": false`` and what it cost so
    far, also if it never came: then it is not to be begun any more. What is done is passed over.
``fieldbo/boat/hold``
    ``{}``: stay where you are until the next goal; what was under way is answered as if it were cancelled.
``fieldbo/boat/ask``
    ``{"id": ...}``: answer as before if it is known what came of it; else pass it over.

From the robot:

``fieldbo/boat/status`` (QoS 1, retained)
    ``{"online": true}`` after each connection to the broker, once the robot hears goals, and
    ``{"online": false}`` before it leaves and as its last will. The robot keeps to one client id, so that the
    will of an earlier connection does not come after a later one is there.
``fieldbo/boat/telemetry`` (QoS 0)
    The heartbeat: several times within the watchdog's time (``watch.silence_s`` in the vehicle file), once a
    second for example, and from the part of the program that does the work. All keys may be left out::

        {"position": {"along": 120.4, "depth": 0.0}, "battery": 5210.0, "battery_share": 0.87}

    ``battery`` is what is left in the world's cost unit, ``battery_share`` the same as a share of full.
``fieldbo/boat/result`` (QoS 1)
    What came of a goal, with its id::

        {"id": "lake-1/7#3f2a91c4", "part": 0, "last": true, "complete": true,
         "position": {"along": 351.2, "depth": 4.5}, "cost": 214.0, "duration_s": 214.0,
         "readings": [{"site": {"along": 351.2, "depth": 4.5}, "value": 1.62, "seconds": 211.8,
                       "channels": {"temperature": 14.2}}]}

    ``position`` is where the robot is now. Readings stand in the order in which they were taken, the last at
    the goal or nearest to it; the way home may have none. ``seconds`` count from when the goal came, by the
    robot's clock; a ``value`` that could not be read is null. Of a cell, ``site`` says what every variable
    turned out to be, those left free too. ``cost`` (in the world's unit) and ``duration_s`` may be left out.
    A long leg may report in parts 0, 1, ..., all but the last with ``"last": false``; ``part`` (up to a
    million), ``last`` and ``complete`` may be left out of a result that is whole.
``fieldbo/boat/refused`` (QoS 1)
    ``{"id": ..., "reason": "shallow water"}``: nothing was moved.

Where the goal has a ``place``, a position and the site of a reading may be given as one, too.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.mqtt.client import Broker, MqttClient
from fieldbo.vehicles.remote.link import (
    Alive,
    At,
    Charge,
    Connection,
    Done,
    Down,
    Goal,
    Hear,
    Link,
    Refused,
    Signal,
)

TO_ROBOT = ("goal", "cancel", "hold", "ask")
FROM_ROBOT = ("status", "telemetry", "result", "refused")

_PLACE = ("latitude", "longitude", "altitude")

_GLOBE = (90.0, 360.0, math.inf)
"""How far a place can be from 0; east may be counted all the way round."""

_MOST, _LONGEST = 10**6, 1000
"""No part and no level has a higher number, and no id more characters."""


@dataclass(frozen=True)
class Mqtt(Broker, Link):
    """The ``[link]`` of a robot on an MQTT bus.

    Parameters
    ----------
    host, port, user_from, password_from, tls, ca_file
        As of a `Broker`.
    topic : str
        What the topics of this robot begin with.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    topic: str = "fieldbo/robot"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.topic.split("/")) or set("+#\0") & set(self.topic) or self.topic.startswith("$"):
            raise InputError(
                f"topic = {self.topic!r}",
                expected="names with / between them, without + and #, for example fieldbo/boat",
                where="link.topic",
            )

    @property
    def address(self) -> str:
        """The broker and the topic."""
        return f"{self.url}/{self.topic}"

    def open(self, mission: Mission, ground: Ground | None, hear: Hear) -> Connection:
        return _Connection(self, Codec(mission.world.domain.axes, ground), hear)


class _Connection(Connection):
    """Says again what was said last, and asks for what was not answered, when robot or broker were away."""

    def __init__(self, link: Mqtt, codec: Codec, hear: Hear) -> None:
        self._codec, self._hear = codec, hear
        self._said: tuple[str, dict[str, Any]] | None = None
        self._unanswered: list[str] = []
        self._bus = MqttClient(
            link,
            link.topic,
            hears=FROM_ROBOT,
            heard=self._heard,
            up=self._say_again,
            down=lambda why: hear(Down(why)),
        )

    def go(self, errand: Goal) -> None:
        self._unanswered.append(errand.id)
        self._say("goal", self._codec.goal(errand))

    def cancel(self, errand: str) -> None:
        self._say("cancel", {"id": errand})

    def hold(self) -> None:
        self._unanswered.clear()
        self._say("hold", {})

    def ask(self, errand: str) -> bool:
        self._say("ask", {"id": errand})
        return True

    def close(self) -> None:
        self._bus.close()

    def _say(self, name: str, body: dict[str, Any]) -> None:
        self._said = name, body
        self._bus.publish(name, body)

    def _say_again(self) -> None:
        said = self._said
        for errand in list(self._unanswered):
            if said is None or said[0] != "goal" or said[1]["id"] != errand:
                self._bus.publish("ask", {"id": errand})
        if said is not None:
            self._bus.publish(*said)

    def _heard(self, name: str, payload: bytes, retained: bool) -> None:
        """Pass on what the robot says; what is retained was said long ago, and is no sign of life."""
        for signal in self._codec.signals(name, read(name, payload)):
            if retained and not isinstance(signal, Down):
                continue
            if isinstance(signal, Refused) or (isinstance(signal, Done) and signal.last):
                self._answered(signal.errand)
            if isinstance(signal, Alive) and name == "status":
                self._say_again()
            self._hear(signal)

    def _answered(self, errand: str) -> None:
        """Say no more what was said of an errand that is settled."""
        if errand in self._unanswered:
            self._unanswered.remove(errand)
        if self._said is not None and self._said[1].get("id") == errand:
            self._said = None


def read(name: str, payload: bytes) -> dict[str, Any]:
    """Return the JSON object in a message.

    Parameters
    ----------
    name : str
        Of its topic, for errors.
    payload : bytes

    Raises
    ------
    InputError
        It is none.
    """
    try:
        body = json.loads(payload.decode())
        json.dumps(body, ensure_ascii=False).encode()  # "\\ud800" is half a character, which can't be written
    except (ValueError, RecursionError):  # neither UTF-8 nor JSON, or nested without end
        body = None
    if not isinstance(body, dict):
        raise InputError(f"{payload[:80]!r} on topic {name}", expected="a JSON object")
    return body


class Codec:
    """Writes and reads what stands in messages of the places of a domain.

    Parameters
    ----------
    axes : sequence of Axis
        The domain's.
    ground : Ground, optional
        Where they lie; then places are written in degrees, too.

    Examples
    --------
    >>> codec = Codec([Axis("x", "m", 0, 9), Axis("t", "K", 0, 9)])
    >>> codec.place([3.0, np.nan])
    {'x': 3.0, 't': None}
    >>> codec.site({"t": 2, "x": None})
    array([nan,  2.])
    """

    def __init__(self, axes: Sequence[Axis], ground: Ground | None = None) -> None:
        self.axes = tuple(axes)
        self.ground = ground if ground is not None and ground.origin is not None else None

    def place(self, site: ArrayLike) -> dict[str, float | None]:
        """Return a site (d,) by axis; None for NaN."""
        values = np.asarray(site, dtype=float).tolist()
        return {axis.name: told(value) for axis, value in zip(self.axes, values, strict=True)}

    def site(self, place: Any) -> Array:
        """Return the site (d,) of a place by axis, or in degrees; NaN for what is missing."""
        given = place if isinstance(place, Mapping) else {}
        if self.ground is not None and _PLACE[0] in given:
            point = [number(given.get(name)) for name in _PLACE]
            on_globe = (np.abs(point) <= _GLOBE).all()
            return self.ground.from_geodetic(point)[0] if on_globe else np.full(len(self.axes), np.nan)
        return np.array([number(given.get(axis.name)) for axis in self.axes])

    def goal(self, errand: Goal) -> dict[str, Any]:
        """Return an errand as it is sent."""
        body = {
            "id": errand.id,
            "home": errand.home,
            "level": errand.level,
            "seconds": told(errand.seconds),
            "site": self.place(errand.site),
            "units": {axis.name: axis.unit for axis in self.axes},
        }
        if self.ground is not None:
            body["place"] = dict(zip(_PLACE, self.ground.geodetic(errand.site)[0].tolist(), strict=True))
        return body

    def signals(self, name: str, body: Mapping[str, Any]) -> list[Signal]:
        """Return what a message of the robot says.

        Raises
        ------
        InputError
            It can't be understood.
        """
        match name:
            case "status":
                return [Alive() if flag(body, "online") else Down("the robot's program is offline")]
            case "telemetry":
                return self._telemetry(body)
            case "result":
                return [self._done(body)]
            case _:
                return [Refused(identity(body), str(body.get("reason") or "no reason given"))]

    def _telemetry(self, body: Mapping[str, Any]) -> list[Signal]:
        signals: list[Signal] = [Alive()]
        if body.get("position") is not None:
            signals.append(At(self.site(body["position"])))
        charge = {"share": body.get("battery_share"), "amount": body.get("battery")}
        if any(value is not None for value in charge.values()):
            signals.append(Charge(**{k: None if v is None else number(v) for k, v in charge.items()}))
        return signals

    def _done(self, body: Mapping[str, Any]) -> Done:
        given = body.get("readings") or []
        if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
            raise _odd("readings", given, "a list of objects")
        channels = [one.get("channels") or {} for one in given]
        for one in channels:
            if not isinstance(one, Mapping):
                raise _odd("channels", one, "an object: numbers by name")
        return Done(
            errand=identity(body),
            position=self.site(body.get("position")),
            sites=np.array([self.site(one.get("site")) for one in given]).reshape(-1, len(self.axes)),
            values=np.array([number(one.get("value")) for one in given]),
            seconds=np.array([number(one.get("seconds")) for one in given]),
            cost=number(body.get("cost")),
            duration_s=number(body.get("duration_s")),
            part=whole(body, "part"),
            last=flag(body, "last", True),
            complete=flag(body, "complete", True),
            channels={
                name: np.array([number(one.get(name)) for one in channels])
                for name in sorted({name for one in channels for name in one})
            }
            or None,
        )


def identity(body: Mapping[str, Any]) -> str:
    """Return the id of the goal that a message is about.

    Raises
    ------
    InputError
        It has none.
    """
    name = body.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise _odd("id", name, f"the id of the goal, of at most {_LONGEST} characters")
    return name


def flag(body: Mapping[str, Any], name: str, left_out: bool | None = None) -> bool:
    """Return what is true or false in a message; `left_out` where nothing is said.

    Raises
    ------
    InputError
        It is neither.
    """
    given = left_out if body.get(name) is None else body[name]
    if not isinstance(given, bool):
        raise _odd(name, given, "true or false")
    return given


def whole(body: Mapping[str, Any], name: str) -> int:
    """Return a whole number in a message; 0 where nothing is said.

    Raises
    ------
    InputError
        It is none, or none that can be meant.
    """
    value = 0.0 if body.get(name) is None else number(body[name])
    if not (value.is_integer() and 0 <= value <= _MOST):
        raise _odd(name, body[name], f"a whole number, 0 to {_MOST}")
    return int(value)


def number(given: Any) -> float:
    """Return a number as it was told; NaN of anything else, and of what is not finite.

    Examples
    --------
    >>> number(3), number("3"), number(True), number(10**400)
    (3.0, nan, nan, nan)
    """
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number and abs(given) <= sys.float_info.max else math.nan


def told(value: float) -> float | None:
    """Return a number as it is told: None of one that is not finite."""
    return float(value) if math.isfinite(value) else None


def _odd(name: str, given: object, expected: str) -> InputError:
    return InputError(f"{name} = {json.dumps(given)[:80]}", expected=expected)
