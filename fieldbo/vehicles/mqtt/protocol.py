"""The MQTT protocol between fieldbo and a robot, or a factory cell: all that your robot's program must do.

Write the program in any language. It connects to the same MQTT broker as fieldbo and uses nine topics below
one common prefix, the `topic` in the vehicle file; here it is ``fieldbo/boat``.

====================  =========  ======================================  ===================================
topic                 QoS        when it is sent                         what it says
====================  =========  ======================================  ===================================
*to the robot*
``.../goal``          1          a new order, or one to confirm          go there and sample
``.../cancel``        1          an order takes too long                 abandon this goal
``.../hold``          1          the run was interrupted                 stay in place
``.../ask``           1          after a break, or when a run resumes    what became of this goal?
``.../planner``       0, retain  about once a second; as the last will   the planner is online, or offline
*from the robot*
``.../status``        1, retain  on connecting; as the last will         the program is online, or offline
``.../telemetry``     0          about once a second                     sign of life, position, battery
``.../result``        1          a goal is done, or cut short            readings, position, cost
``.../refused``       1          a goal cannot be carried out            why not
====================  =========  ======================================  ===================================

Every payload is a JSON object in UTF-8. Numbers are finite; ``null`` means unknown. Both sides ignore keys
that they do not know, and messages that they cannot understand. A cost or a battery level that is anything
but a number, such as ``"45.0"``, is not used, and the user is told. Only ``status`` and ``planner`` are
retained; ignore any retained message, since it is stale. Connect with a clean session, so that the broker
stores nothing for you.

An example
----------
The robot connects, subscribes to the five topics, then announces itself::

    fieldbo/boat/status     {"online": true}
    fieldbo/boat/telemetry  {"position": {"along": 120.4, "depth": 0.0}, "battery_share": 0.87}

fieldbo sends a goal; the robot travels and keeps sending telemetry; then it answers::

    fieldbo/boat/goal       {"id": "lake-1/7#3f2a91c4", "home": false, "level": 0, "seconds": 212.5,
                             "site": {"along": 350.0, "depth": 4.5}, "units": {"along": "m", "depth": "m"},
                             "route": [{"along": 350.0, "depth": 4.5}]}
    fieldbo/boat/telemetry  {"position": {"along": 231.9, "depth": 2.1}, "battery_share": 0.85}
    fieldbo/boat/result     {"id": "lake-1/7#3f2a91c4", "position": {"along": 351.2, "depth": 4.5},
                             "cost": 214.0, "duration_s": 214.0,
                             "readings": [{"site": {"along": 351.2, "depth": 4.5}, "value": 1.62,
                                           "seconds": 211.8}]}

Messages to the robot
---------------------
``goal``
    Go to `site` and sample there; in a factory cell, set the variables in `site` and measure.

    - ``id`` (text): identifies the goal for all time.
    - ``site`` (object): the coordinate on every axis of the domain, by name. ``null`` means that the variable
      is left free: do not set it, and report the value that it took.
    - ``units`` (object): the unit of each axis, by name.
    - ``place`` (object): the same site as ``latitude``, ``longitude`` (degrees, WGS 84) and ``altitude`` (m).
      Present only if the vehicle file's ``[frame]`` has an origin; so is ``places``, the same for the route.
    - ``level`` (integer): which of the sensor's levels to use.
    - ``home`` (true or false): the trip home, on which you need not sample.
    - ``seconds`` (number or null): the expected duration.
    - ``route`` (array of objects): the points to pass in turn, each like ``site``; the last one is the site.
      Drive straight from point to point, without shortcuts: the route avoids every obstacle. It has one point
      if it is straight, and none if variables are left free.
    - ``planner_silence_s`` (number) and ``return_route`` (array of objects): what to do if you hear nothing
      from the planner for this many seconds, by your own clock. An empty ``return_route`` means: stay in
      place, and answer the goal under way as if it had been cancelled. Otherwise finish the goal under way,
      which your battery covers together with the trip home, then pass these points in turn, from the goal's
      site; the last one is home. If the goal did not end at its site, stay in place: the points do not lead
      there from elsewhere. The latest goal decides; ``hold`` ends it. To go home by yourself, you must report
      your position and battery: the next route starts where you are, and nothing else accounts for what that
      trip used. If you report neither, fieldbo does not start.

    The same id again is the same goal: fieldbo repeats it whenever either side was offline. If you are
    working on it, continue; if you have finished it, send its result again. A goal with another id replaces
    the one under way: answer that one as if it had been cancelled.
``cancel``
    ``{"id": ...}``. Abandon the goal, and answer with a result that has ``"complete": false`` and the cost so
    far. Do so even if you never received the goal; then do not start it later. If it is already done, do
    nothing.
``hold``
    ``{}``. Stay in place until the next goal; answer the goal under way as if it had been cancelled.
``ask``
    ``{"id": ...}``. If you know the result of this goal, send it again; if not, do nothing. Its readings
    count. Its position may be out of date: if you send positions in your telemetry, only these say where you
    are now.
``planner``
    ``{"online": true, "session": "3f2a91c4", "run": "lake-1", "mission": "lake-level-set", "host": "laptop",
    "since_s": 1763845512.0}``: fieldbo's own sign of life, and its claim on the robot. Every message to you
    counts as a sign of life, except retained ones and ``{"online": false, ...}``, which withdraws the claim.
    There is one planner per robot: a second one sees the claim and does not start, unless the first has gone.

Messages from the robot
-----------------------
``status``
    ``{"online": true}`` after each connection, once you have subscribed. Register ``{"online": false}`` as
    the last will, retained, and publish it before you disconnect. Always use the same client id, so that the
    will of an old connection cannot arrive after you are back.
``telemetry``
    The sign of life. Send it several times within the watchdog's time (``watch.silence_s`` in the vehicle
    file, 5 s by default), from the part of the program that does the work. All keys are optional:

    - ``position`` (object): where the robot is, by axis.
    - ``battery`` (number): what is left, in the world's cost unit.
    - ``battery_share`` (number): the same as a fraction of full, 0 to 1. (A program that sends percent needs
      ``battery_scale = 100`` in the vehicle file.)
    - ``channels`` (object): other quantities, numbers by name, such as ``{"wind": 7.2, "voltage": 12.4}``. A
      mission's holds watch them, and the record keeps them. ``null`` means unknown.

    After an order, report the battery just before you send the result. A later report also counts, once it
    cannot predate the result (``battery.delay_s`` in the vehicle file).
``result``
    The outcome of a goal. Only ``id`` is required:

    - ``id`` (text): the goal's.
    - ``position`` (object): where the robot is now, by axis.
    - ``readings`` (array of objects): in the order in which they were taken, the last at the site or nearest
      to it; empty if there are none.

      - ``site`` (object): where it was taken, by axis; in a cell the value of every variable, including those
        left free.
      - ``value`` (number or null): the reading in the world's unit; null if it failed.
      - ``seconds`` (number): when it was taken, in seconds since you received the goal. Readings on the way
        (``along`` in the world's sensor) count only with it, in order, and near the route.
      - ``channels`` (object): other quantities measured there, numbers by name.
    - ``cost`` (number): what it cost, in the world's cost unit.
    - ``duration_s`` (number): how long it took, in seconds.
    - ``complete`` (true or false, by default true): false if the goal was cut short.
    - ``part`` (integer from 0, at most a million) and ``last`` (true or false): a long goal may report in
      parts 0, 1, ..., all but the final one with ``"last": false``. By default part 0, which is the last. A
      part that arrives after the last one still counts; the same part again does not.
    - ``corrects`` (true or false, by default false): true if you reported this part before, with wrong
      values. Send all of its ``readings`` again, in the same order; only their values count, ``null`` for one
      that failed. Anything else stays as it was reported.
``refused``
    ``{"id": ..., "reason": "shallow water"}``. You do not carry out the goal, and nothing has moved.

If the goal has a ``place``, you may give positions and the sites of readings in that form, too.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    PositionReport,
    Report,
    Unreachable,
)

TO_ROBOT = ("goal", "cancel", "hold", "ask", "planner")
FROM_ROBOT = ("status", "telemetry", "result", "refused")

_PLACE = ("latitude", "longitude", "altitude")

_GLOBE = (90.0, 360.0, math.inf)
"""Bounds of a place; longitude may also count from 0 to 360."""

_FULL = 0.1234567890123456
"""A number with all digits that a message may have."""

_MOST, _LONGEST = 10**6, 1000
"""Highest number of a part or a level, and most characters of an id."""

_MOST_CHANNELS = 100
"""Number of channels in a message that are looked at."""


def json_object(name: str, payload: bytes) -> dict[str, Any]:
    """Return the JSON object in a message.

    Parameters
    ----------
    name : str
        Name of the topic, for errors.
    payload : bytes

    Raises
    ------
    InputError
        The payload is not a JSON object.
    """
    try:
        body = json.loads(payload.decode())
        json.dumps(body, ensure_ascii=False).encode()  # "\\ud800" is half a character and cannot be encoded
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or nested too deeply
        body = None
    if not isinstance(body, dict):
        raise InputError(f"{payload[:80]!r} on topic {name}", expected="a JSON object")
    return body


class Codec:
    """Translates between messages and reports or goals in a domain.

    Parameters
    ----------
    axes : sequence of Axis
        The domain's axes.
    ground : Ground, optional
        Where they lie; with a known origin, goals also carry degrees.

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

    @property
    def reading_bytes(self) -> int:
        """Bytes that one reading takes in a result, with all digits of its numbers."""
        numbers = {axis.name: _FULL for axis in self.axes}
        return len(json.dumps({"site": numbers, "value": _FULL, "seconds": _FULL}).encode()) + 2

    def place(self, site: ArrayLike) -> dict[str, float | None]:
        """Return a site (d,) as an object by axis; null for NaN."""
        values = np.asarray(site, dtype=float).tolist()
        return {axis.name: or_null(value) for axis, value in zip(self.axes, values, strict=True)}

    def site(self, place: Any) -> Array:
        """Return the site (d,) of an object by axis, or in degrees; NaN for missing coordinates."""
        given = place if isinstance(place, Mapping) else {}
        if self.ground is not None and _PLACE[0] in given:
            point = [number(given.get(name)) for name in _PLACE]
            on_globe = (np.abs(point) <= _GLOBE).all()
            return self.ground.from_geodetic(point)[0] if on_globe else np.full(len(self.axes), np.nan)
        return np.array([number(given.get(axis.name)) for axis in self.axes])

    def goal(self, goal: Goal) -> dict[str, Any]:
        """Return the body of a goal's message."""
        body = {
            "id": goal.id,
            "home": goal.home,
            "level": goal.level,
            "seconds": or_null(goal.seconds),
            "site": self.place(goal.site),
            "units": {axis.name: axis.unit for axis in self.axes},
            "route": [self.place(point) for point in goal.route],
        }
        if math.isfinite(goal.planner_silence_s):
            body["planner_silence_s"] = goal.planner_silence_s
            body["return_route"] = [self.place(point) for point in goal.return_route]
        if self.ground is not None:
            body["place"] = self._degrees(goal.site)
            body["places"] = [self._degrees(point) for point in goal.route]
        return body

    def _degrees(self, site: Array) -> dict[str, float]:
        """Return a site (d,) as latitude, longitude and altitude."""
        assert self.ground is not None
        return dict(zip(_PLACE, self.ground.geodetic(site)[0].tolist(), strict=True))

    def reports(self, name: str, body: Mapping[str, Any]) -> list[Report]:
        """Return the reports in a message from the robot.

        Raises
        ------
        InputError
            The message cannot be understood.
        """
        match name:
            case "status":
                return [
                    Heartbeat() if flag(body, "online") else Unreachable("the robot's program is offline")
                ]
            case "telemetry":
                return self._telemetry(body)
            case "result":
                return [self._result(body)]
            case _:
                return [GoalRejected(goal_id(body), str(body.get("reason") or "no reason given"))]

    def _telemetry(self, body: Mapping[str, Any]) -> list[Report]:
        reports: list[Report] = [Heartbeat()]
        if body.get("position") is not None:
            reports.append(PositionReport(self.site(body["position"])))
        battery = {"share": body.get("battery_share"), "amount": body.get("battery")}
        given = {key: amount(value) for key, value in battery.items() if value is not None}
        if given:
            reports.append(BatteryReport(**given))
        channels = {} if body.get("channels") is None else body["channels"]
        if not isinstance(channels, Mapping):
            channels = {"": channels}  # one that nobody can use, and the user is told
        reports += [
            ChannelReport(name, amount(value)) for name, value in islice(channels.items(), _MOST_CHANNELS)
        ]
        return reports

    def _result(self, body: Mapping[str, Any]) -> GoalResult:
        readings = body.get("readings") or []
        if not isinstance(readings, list) or not all(isinstance(reading, Mapping) for reading in readings):
            raise _odd("readings", readings, "a list of objects")
        channels = [reading.get("channels") or {} for reading in readings]
        for channel in channels:
            if not isinstance(channel, Mapping):
                raise _odd("channels", channel, "an object: numbers by name")
        return GoalResult(
            goal=goal_id(body),
            position=self.site(body.get("position")),
            sites=np.array([self.site(reading.get("site")) for reading in readings]).reshape(
                -1, len(self.axes)
            ),
            values=np.array([number(reading.get("value")) for reading in readings]),
            seconds=np.array([number(reading.get("seconds")) for reading in readings]),
            cost=amount(body.get("cost")),
            duration_s=number(body.get("duration_s")),
            part=whole(body, "part"),
            last=flag(body, "last", True),
            complete=flag(body, "complete", True),
            corrects=flag(body, "corrects", False),
            channels={
                name: np.array([number(channel.get(name)) for channel in channels])
                for name in sorted({name for channel in channels for name in channel})
            }
            or None,
        )


def channel_value(payload: bytes, key: str = "") -> float:
    """Return the number in a message of any program: the payload, or a key of the JSON object in it.

    NaN if the key is missing or null, infinity for anything but a finite number.

    Examples
    --------
    >>> channel_value(b"7.2"), channel_value(b'{"wind": 7.2}', "wind"), channel_value(b"{}", "wind")
    (7.2, 7.2, nan)
    >>> channel_value(b"strong"), channel_value(b"NaN"), channel_value(b"7.2", "wind")
    (inf, inf, inf)
    """
    try:
        given = json.loads(payload.decode())
    except (ValueError, RecursionError):
        return math.inf
    if not key:
        return amount(given)
    return amount(given.get(key)) if isinstance(given, dict) else math.inf


def goal_id(body: Mapping[str, Any]) -> str:
    """Return the id of the goal that a message is about.

    Raises
    ------
    InputError
        The message has no valid id.
    """
    name = body.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise _odd("id", name, f"the id of the goal, of at most {_LONGEST} characters")
    return name


def flag(body: Mapping[str, Any], name: str, default: bool | None = None) -> bool:
    """Return a key of a message that is true or false.

    Raises
    ------
    InputError
        The key is neither, or it is missing and there is no default.
    """
    given = default if body.get(name) is None else body[name]
    if not isinstance(given, bool):
        raise _odd(name, given, "true or false")
    return given


def whole(body: Mapping[str, Any], name: str) -> int:
    """Return a key of a message that is a whole number, by default 0.

    Raises
    ------
    InputError
        The key is not a whole number in the valid range.
    """
    value = 0.0 if body.get(name) is None else number(body[name])
    if not (value.is_integer() and 0 <= value <= _MOST):
        raise _odd(name, body[name], f"a whole number, 0 to {_MOST}")
    return int(value)


def number(given: Any) -> float:
    """Return a number of a message; NaN for anything else, and for numbers that are not finite.

    Examples
    --------
    >>> number(3), number("3"), number(True), number(10**400)
    (3.0, nan, nan, nan)
    """
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number and abs(given) <= sys.float_info.max else math.nan


def amount(given: Any) -> float:
    """Return a cost or a level of a message: NaN if none was given, infinity for what is no finite number.

    Examples
    --------
    >>> amount(3), amount(None), amount("3"), amount(math.nan)
    (3.0, nan, inf, inf)
    """
    read = number(given)
    return math.inf if given is not None and math.isnan(read) else read


def or_null(value: float) -> float | None:
    """Return a number for a message: None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def _odd(name: str, given: object, expected: str) -> InputError:
    return InputError(f"{name} = {json.dumps(given)[:80]}", expected=expected)
