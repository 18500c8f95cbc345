"""A simulated vehicle at the other end of a MAVLink link, with the modes of ArduPilot or PX4.

It starts armed, in the mode in which it stays in place; relative heights count from there. In the guided mode
it goes to the target in SET_POSITION_TARGET_GLOBAL_INT; a target is new if its place or its time is. It also
goes where MAV_CMD_DO_REPOSITION says, as ground stations ask for it. It streams what it reads on the way; on
arrival it samples, and streams that value until it leaves. It stores missions and fences, and gives them
back, but follows neither.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mavlink.settings import MavlinkSettings, located
from fieldbo.vehicles.mavlink.wire import PacketSequence, mavutil, opened
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    GoalRejected,
    GoalResult,
    PositionReport,
    Reading,
    Report,
)
from fieldbo.vehicles.simulators.robot import Robot

_TYPES = {"plane": 1, "copter": 2, "rover": 10, "boat": 11, "submarine": 12}
"""MAV_TYPE."""

_ARDUPILOT, _PX4 = 3, 12
"""MAV_AUTOPILOT."""

_MODES = {
    "plane": (15, 12, "LOITER"),
    "copter": (4, 5, "LOITER"),
    "rover": (15, 4, "HOLD"),
    "boat": (15, 4, "HOLD"),
    "submarine": (4, 16, "POSHOLD"),
}
"""ArduPilot's numbers of GUIDED, and of the mode in which the vehicle stays in place; that mode's name."""

_OFFBOARD = 6 << 16
_PX4_HOLD = (4 << 16) | (3 << 24)
"""PX4's custom modes: the main mode, and the sub-mode above it."""


@dataclass(frozen=True)
class Autopilot:
    """An autopilot as its heartbeats show it.

    Attributes
    ----------
    kind, vehicle : int
        MAV_AUTOPILOT and MAV_TYPE.
    guided, hold : int
        Custom modes: the one in which it goes where it is told, and the one in which it stays in place.
    names : tuple of str
        Of both.
    repositions_in : int
        The custom mode in which it obeys MAV_CMD_DO_REPOSITION.
    """

    kind: int
    vehicle: int
    guided: int
    hold: int
    names: tuple[str, str]
    repositions_in: int

    @classmethod
    def of(cls, link: MavlinkSettings) -> Autopilot:
        """Return the autopilot that a vehicle file names, by default ArduPilot on a boat.

        Examples
        --------
        >>> Autopilot.of(MavlinkSettings(firmware="px4", vehicle="copter")).names
        ('OFFBOARD', 'HOLD')
        """
        name = link.vehicle or "boat"
        if link.firmware == "px4":
            return cls(_PX4, _TYPES[name], _OFFBOARD, _PX4_HOLD, ("OFFBOARD", "HOLD"), _PX4_HOLD)
        guided, hold, stays = _MODES[name]
        return cls(_ARDUPILOT, _TYPES[name], guided, hold, ("GUIDED", stays), guided)

    def requested(self, main: float, sub: float) -> int | None:
        """Return the custom mode that MAV_CMD_DO_SET_MODE asks for; None for one that it does not have."""
        mode = int(main) if self.kind == _ARDUPILOT else (int(main) << 16) | (int(sub) << 24)
        return mode if mode in (self.guided, self.hold) else None

    def name(self, mode: int) -> str:
        """Return the name of one of its modes."""
        return self.names[mode == self.hold]


_TURN_S = 0.02
_HEARTBEAT_S = 0.5
_ASK_S = 0.5  # request a lost item again
_NEAR_M = 0.05
"""A target this close to a site counts as the site: messages resolve a centimetre."""

_SET_MODE, _REPOSITION, _ARM, _INTERVAL = 176, 192, 400, 511
_CHANGE_MODE = 1
"""Flag of a reposition: change to the mode in which it is obeyed."""
_HEIGHTS = {"absolute": (0, 5), "relative": (3, 6)}
"""MAV_FRAME of global places, by what their altitude is measured from."""
_ACCEPTED, _DENIED, _UNSUPPORTED = 0, 2, 3
_NO_VOLTAGES = [65_535] * 10


def mirrored(link: MavlinkSettings) -> str:
    """Return the connection string of the other end of a link.

    Raises
    ------
    InputError
        The connection is a serial port, whose other end is not on this machine.

    Examples
    --------
    >>> mirrored(MavlinkSettings("udpin:0.0.0.0:14550", reading="chl"))
    'udpout:127.0.0.1:14550'
    """
    scheme, _, rest = link.connection.partition(":")
    host, _, port = rest.rpartition(":")
    if link.serial:
        raise InputError(
            f"connection = {link.connection!r}",
            expected="udpin, udpout or tcp: the simulated robot has no serial port",
            where="link.connection",
        )
    if scheme == "udpin":
        return f"udpout:{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    return f"{'udpin' if scheme == 'udpout' else 'tcpin'}:{host}:{port}"


def serve(robot: Robot, link: MavlinkSettings, ground: Ground | None, say: Callable[[str], object]) -> None:
    """Simulate the vehicle that `link` reaches, until Ctrl-C.

    Raises
    ------
    VehicleError
        pymavlink is not installed, the connection cannot be opened, or the domain's place is unknown.
    """
    address, module = mirrored(link), mavutil(link)
    boat = _Boat(robot, link, located(ground, robot.world.domain.axes, link, robot.position), say)
    while True:  # over TCP, one ground station may hang up and another connect
        try:
            boat.wire = opened(link, address, module, system=link.system, component=link.component)
        except OSError as error:
            raise VehicleError(f"{address} cannot be opened: {error}") from None
        with boat.wire:
            say("ready")
            while not _hung_up(boat.wire.port):
                boat.turn()
                time.sleep(_TURN_S)


def _hung_up(port: socket.socket | None) -> bool:
    """Return True if the other end closed a TCP connection; UDP has no such signal."""
    if port is None or port.type is not socket.SOCK_STREAM:
        return False
    try:
        return not port.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


class _Boat:
    """Translates between messages and the robot."""

    def __init__(
        self, robot: Robot, link: MavlinkSettings, ground: Ground, say: Callable[[str], object]
    ) -> None:
        self.robot, self.link, self.ground, self.say = robot, link, ground, say
        self.wire: Any = None
        self.autopilot = Autopilot.of(link)
        self.mode, self.armed = self.autopilot.hold, True
        self.reading: float | None = None
        self._read_at = -1  # the number of the target where it was taken
        self.count = 0
        self.sequence = PacketSequence()
        self._target: tuple[int, ...] | None = None
        self._heartbeat_s = 0.0
        self._stored: dict[int, list[Any]] = {}  # items by kind: a mission, a fence
        self._asking: tuple[int, int] | None = None  # system and component that send items
        self._ask_s = 0.0
        self._incoming: tuple[int, int, list[Any]] | None = None  # kind, count, and items so far

    def turn(self) -> None:
        """Process the messages that arrived, advance the robot, and send its reports."""
        while (message := self.wire.recv_msg()) is not None:
            self.receive(message)
        if time.monotonic() > self._ask_s:
            self._ask_for_item()
        for report in self.robot.tick():
            self.send(report)

    # -- receiving -------------------------------------------------------------------------------------

    def receive(self, message: Any) -> None:
        """Act on a message that is meant for this vehicle."""
        for_us = getattr(message, "target_system", None) == self.link.system
        if not for_us or not self.sequence.is_new(message):
            return
        kind = message.get_type()
        if kind == "SET_POSITION_TARGET_GLOBAL_INT":
            self._take_target(message)
        elif kind in ("COMMAND_LONG", "COMMAND_INT"):
            self.wire.mav.command_ack_send(message.command, self._execute(message))
        elif kind.startswith("MISSION_"):
            self._take_items(kind, message)

    def _ask_for_item(self) -> None:
        """Request the next item, again and again if it is lost."""
        if self._asking is not None and self._incoming is not None:
            number, _, items = self._incoming
            self.wire.mav.mission_request_int_send(*self._asking, len(items), number)
            self._ask_s = time.monotonic() + _ASK_S

    def _take_items(self, kind: str, message: Any) -> None:
        """Take part in the mission protocol: store items, and give them back."""
        mav, system, component = self.wire.mav, message.get_srcSystem(), message.get_srcComponent()
        stored = self._stored.get(message.mission_type, [])
        if kind == "MISSION_COUNT":
            self._incoming = (message.mission_type, message.count, [])
        elif kind == "MISSION_REQUEST_LIST":
            mav.mission_count_send(system, component, len(stored), message.mission_type)
        elif kind == "MISSION_REQUEST_INT" and message.seq < len(stored):
            mav.mission_item_int_send(system, component, *stored[message.seq])
        if kind not in ("MISSION_COUNT", "MISSION_ITEM_INT") or self._incoming is None:
            return
        number, count, items = self._incoming
        if kind == "MISSION_ITEM_INT" and (message.mission_type, message.seq) == (number, len(items)):
            items.append([getattr(message, name) for name in message.get_fieldnames()[2:]])
        if len(items) < count:
            self._asking = system, component
            self._ask_for_item()
        else:
            self._asking = None
            self._stored[number] = items
            self.say(f"stored {len(items)} items of kind {number}")
            mav.mission_ack_send(system, component, 0, number)

    def _take_target(self, message: Any) -> None:
        target = (message.time_boot_ms, message.lat_int, message.lon_int, round(100 * message.alt))
        if self.armed and self.mode == self.autopilot.guided and target != self._target:
            self._go_to(target, [message.lat_int / 1e7, message.lon_int / 1e7, message.alt])

    def _go_to(self, target: tuple[int, ...], place: list[float]) -> None:
        """Go to a place: latitude, longitude and altitude."""
        self._target, self.reading = target, None
        self.robot.go_to(f"target {self.count}", self.ground.from_geodetic(place)[0], _NEAR_M)
        self.count += 1

    def _execute(self, message: Any) -> int:
        """Execute a command and return its result."""
        if message.command == _INTERVAL:
            return _ACCEPTED  # everything is streamed anyway
        if message.command == _REPOSITION:
            return self._reposition(message)
        if message.command == _SET_MODE:
            mode = self.autopilot.requested(message.param2, message.param3)
            if mode is None:
                return _DENIED
            self.mode = mode
        elif message.command == _ARM:
            self.armed = bool(message.param1)
        else:
            return _UNSUPPORTED
        if not self.armed or self.mode != self.autopilot.guided:
            self._target = None
            self.robot.hold()
        self.say(f"{'armed' if self.armed else 'disarmed'}, {self.autopilot.name(self.mode)}")
        return _ACCEPTED

    def _reposition(self, message: Any) -> int:
        """Go where a ground station says, in whole units of 1e-7 degrees or, in COMMAND_LONG, in degrees."""
        mode = self.autopilot.repositions_in
        if message.get_type() == "COMMAND_INT":
            place = [message.x / 1e7, message.y / 1e7, message.z]
            known = message.frame in _HEIGHTS[self.link.altitude]
        else:
            place = [message.param5, message.param6, message.param7]
            known = self.link.altitude == "absolute"
        if not (self.armed and known and (self.mode == mode or int(message.param2) & _CHANGE_MODE)):
            return _DENIED
        self.mode = mode
        self._go_to((), place)
        self.say(f"armed, {self.autopilot.name(mode)}, repositioned")
        return _ACCEPTED

    # -- sending ---------------------------------------------------------------------------------------

    def send(self, report: Report) -> None:
        """Send a report of the robot as messages."""
        if isinstance(report, PositionReport):
            self._send_heartbeat()
            self._send_position(report.position)
            if self.reading is not None:
                self._send_reading(self.reading)
        elif isinstance(report, Reading):
            self._send_reading(report.value)
        elif isinstance(report, ChannelReport):
            self._send_named(report.name, report.value)
        elif isinstance(report, BatteryReport) and report.share is not None:
            self._send_battery(round(100 * report.share))
        elif isinstance(report, GoalResult) and report.complete and len(report.values):
            self._take_reading(report)
        elif isinstance(report, GoalRejected):
            self.wire.mav.statustext_send(4, report.reason.encode()[:50])

    def _take_reading(self, result: GoalResult) -> None:
        """Stream a result's reading, unless it is late and older than the one that is streamed."""
        number = int(result.goal.split()[1])
        if number >= self._read_at:
            self._read_at, self.reading = number, float(result.values[-1])

    def _send_reading(self, value: float) -> None:
        self._send_named(self.link.reading, value)

    def _send_named(self, name: str, value: float) -> None:
        self.wire.mav.named_value_float_send(self._clock_ms, name.encode()[:10], value)

    @property
    def _clock_ms(self) -> int:
        return max(0, int(1000 * self.robot.boot_s)) % 2**32

    def _send_heartbeat(self) -> None:
        if time.monotonic() < self._heartbeat_s:
            return
        self._heartbeat_s = time.monotonic() + _HEARTBEAT_S
        is_guided, kind = self.mode == self.autopilot.guided, (self.autopilot.vehicle, self.autopilot.kind)
        base = 1 | (128 if self.armed else 0) | (8 if is_guided else 0)
        self.wire.mav.heartbeat_send(*kind, base, self.mode, 4 if self.armed else 3)

    def _send_position(self, position: Array) -> None:
        latitude, longitude, altitude = self.ground.geodetic(position)[0].tolist()
        degrees, millimetres = [round(latitude * 1e7), round(longitude * 1e7)], round(altitude * 1000)
        heights = (millimetres, 0) if self.link.altitude == "absolute" else (0, millimetres)
        self.wire.mav.global_position_int_send(self._clock_ms, *degrees, *heights, 0, 0, 0, 65_535)

    def _send_battery(self, percent: int) -> None:
        number = self.link.battery
        self.wire.mav.battery_status_send(number, 0, 0, 32_767, _NO_VOLTAGES, -1, -1, -1, percent)
