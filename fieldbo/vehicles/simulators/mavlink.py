"""A simulated boat at the other end of a MAVLink link, with the modes of ArduPilot's Rover.

It stands armed and in HOLD. In GUIDED it goes where SET_POSITION_TARGET_GLOBAL_INT says; a target is a new
one if its place or its time is. Once there it reads, and streams that value until it leaves.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mavlink.link import Mavlink, located
from fieldbo.vehicles.mavlink.station import Sequence, mavutil, opened
from fieldbo.vehicles.remote.link import At, Charge, Done, Goal, Refused, Signal
from fieldbo.vehicles.simulators.robot import Robot

_TURN_S = 0.02
_BEAT_S = 0.5
_NEAR_M = 0.05
"""A target this near a site stands for it: a centimetre is the finest that can be sent."""

_BOAT, _ARDUPILOT, _GUIDED, _HOLD = 11, 3, 15, 4
_SET_MODE, _ARM, _INTERVAL = 176, 400, 511
_ACCEPTED, _DENIED, _UNSUPPORTED = 0, 2, 3
_NO_VOLTAGES = [65_535] * 10


def mirrored(link: Mavlink) -> str:
    """Return the other end of a link's connection.

    Raises
    ------
    InputError
        It is a serial port, which has no other end on this machine.

    Examples
    --------
    >>> mirrored(Mavlink("udpin:0.0.0.0:14550", reading="chl"))
    'udpout:127.0.0.1:14550'
    """
    scheme, _, rest = link.connection.partition(":")
    host, _, port = rest.rpartition(":")
    if link.serial:
        raise InputError(
            f"connection = {link.connection!r}",
            expected="udpin, udpout or tcp: the simulated robot has no serial cable",
            where="link.connection",
        )
    if scheme == "udpin":
        return f"udpout:{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    return f"{'udpin' if scheme == 'udpout' else 'tcpin'}:{host}:{port}"


def serve(robot: Robot, link: Mavlink, ground: Ground | None, say: Callable[[str], object]) -> None:
    """Be the vehicle that `link` reaches, until Ctrl-C.

    Raises
    ------
    VehicleError
        pymavlink is missing, the connection can't be opened, or it is not known where the domain lies.
    """
    address, module = mirrored(link), mavutil(link)
    boat = _Boat(robot, link, located(ground, robot.world.domain.axes), say)
    while True:  # a ground station on TCP may hang up, and another call
        try:
            boat.wire = opened(address, module, system=link.system, component=link.component)
        except OSError as error:
            raise VehicleError(f"{address} can't be opened: {error}") from None
        with boat.wire:
            say("ready")
            while not _hung_up(boat.wire.port):
                boat.turn()
                time.sleep(_TURN_S)


def _hung_up(port: socket.socket | None) -> bool:
    """Say whether a TCP connection was ended at the other end; of UDP nobody knows."""
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

    def __init__(self, robot: Robot, link: Mavlink, ground: Ground, say: Callable[[str], object]) -> None:
        self.robot, self.link, self.ground, self.say = robot, link, ground, say
        self.wire: Any = None
        self.mode, self.armed = _HOLD, True
        self.reading: float | None = None
        self.count = 0
        self.sequence = Sequence()
        self._target: tuple[int, ...] | None = None
        self._beat_s = 0.0

    def turn(self) -> None:
        """Take in what came, go on, and tell."""
        while (message := self.wire.recv_msg()) is not None:
            self.heard(message)
        for signal in self.robot.tick():
            self.tell(signal)

    # -- what comes ------------------------------------------------------------------------------------

    def heard(self, message: Any) -> None:
        """Act upon a message that is meant for this vehicle."""
        meant = getattr(message, "target_system", None) == self.link.system
        if not meant or not self.sequence.is_news(message):
            return
        kind = message.get_type()
        if kind == "SET_POSITION_TARGET_GLOBAL_INT":
            self._guided(message)
        elif kind == "COMMAND_LONG":
            result = self._obeyed(message)
            self.wire.mav.command_ack_send(message.command, result)

    def _guided(self, message: Any) -> None:
        target = (message.time_boot_ms, message.lat_int, message.lon_int, round(100 * message.alt))
        if not self.armed or self.mode != _GUIDED or target == self._target:
            return
        self._target, self.reading = target, None
        there = [message.lat_int / 1e7, message.lon_int / 1e7, message.alt]
        self.robot.go(Goal(f"{self.count}#target", self._site(self.ground.from_geodetic(there)[0])))
        self.count += 1

    def _site(self, told: Array) -> Array:
        domain = self.robot.world.domain
        site = domain.clipped(told) if domain.continuous else domain.sites[domain.nearest(told)]
        return np.asarray(site if np.abs(site - told).max() <= _NEAR_M else told)

    def _obeyed(self, message: Any) -> int:
        """Obey a command, and return the result."""
        if message.command == _INTERVAL:
            return _ACCEPTED  # all of it is streamed anyway
        if message.command == _SET_MODE:
            if message.param2 not in (_GUIDED, _HOLD):
                return _DENIED
            self.mode = int(message.param2)
        elif message.command == _ARM:
            self.armed = bool(message.param1)
        else:
            return _UNSUPPORTED
        if not self.armed or self.mode != _GUIDED:
            self._target = None
            self.robot.hold()
        self.say(f"{'armed' if self.armed else 'disarmed'}, {'GUIDED' if self.mode == _GUIDED else 'HOLD'}")
        return _ACCEPTED

    # -- what is told ----------------------------------------------------------------------------------

    def tell(self, signal: Signal) -> None:
        """Send what a signal of the robot says."""
        if isinstance(signal, At):
            self._send_heartbeat()
            self._send_place(signal.position)
            if self.reading is not None:
                name = self.link.reading.encode()
                self.wire.mav.named_value_float_send(self._clock_ms, name, self.reading)
        elif isinstance(signal, Charge) and signal.share is not None:
            self._send_battery(round(100 * signal.share))
        elif isinstance(signal, Done) and signal.complete:
            self.reading = float(signal.values[-1])
        elif isinstance(signal, Refused):
            self.wire.mav.statustext_send(4, signal.reason.encode()[:50])

    @property
    def _clock_ms(self) -> int:
        return max(0, int(1000 * self.robot.clock_s / self.robot.speedup)) % 2**32

    def _send_heartbeat(self) -> None:
        if time.monotonic() < self._beat_s:
            return
        self._beat_s = time.monotonic() + _BEAT_S
        base = 1 | (128 if self.armed else 0) | (8 if self.mode == _GUIDED else 0)
        self.wire.mav.heartbeat_send(_BOAT, _ARDUPILOT, base, self.mode, 4 if self.armed else 3)

    def _send_place(self, position: Array) -> None:
        latitude, longitude, altitude = self.ground.geodetic(position)[0].tolist()
        degrees, millimetres = [round(latitude * 1e7), round(longitude * 1e7)], round(altitude * 1000)
        heights = (millimetres, 0) if self.link.altitude == "absolute" else (0, millimetres)
        self.wire.mav.global_position_int_send(self._clock_ms, *degrees, *heights, 0, 0, 0, 65_535)

    def _send_battery(self, percent: int) -> None:
        number = self.link.battery
        self.wire.mav.battery_status_send(number, 0, 0, 32_767, _NO_VOLTAGES, -1, -1, -1, percent)
