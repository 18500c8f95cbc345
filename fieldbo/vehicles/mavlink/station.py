"""The ground station of a MAVLink link: takes errands, guides the vehicle, and listens to it.

Who has the vehicle:

- fieldbo never arms a vehicle, and never takes off or lands: a pilot does. An errand waits until it is armed.
- With its first errand it asks for the guided mode (ArduPilot's GUIDED; else OFFBOARD, as PX4 has it).
- Once in that mode, it never asks again. Whoever takes the vehicle out of it, or disarms it, has it: the
  errand that is out ends there, cut short, and nothing more is sent. The next errand waits until the vehicle
  is given back by putting it into the guided mode. One that was switched off and on again is as at first.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import VehicleError
from fieldbo.vehicles.remote.link import (
    Alive,
    At,
    Charge,
    Connection,
    Done,
    Down,
    Goal,
    Hear,
    Read,
    Refused,
)

if TYPE_CHECKING:
    from fieldbo.vehicles.mavlink.link import Mavlink

_TURN_S = 0.05
_BEAT_S = 1.0  # ground stations and vehicles give a sign of life so often
_POINT_S = 0.5  # PX4 leaves OFFBOARD if it hears no place for a second;
_INSIST_S, _REMIND_S = 2.0, 5.0  # ArduPilot keeps it, and plans anew each time: for so long, then so often
_ASK_S = 1.0
_AGAIN_S = 1.0  # a link that broke is opened again after so long
_STALE_S = 2.0  # a vehicle that has not said where it is for so long is asked to
_OVERTAKEN_S = 1.0  # packets overtake each other by less
_SET_BACK_MS, _FRESH_MS = 2_000, 60_000  # a clock that went back so far, to less than that, was switched on

_ONLY_A_PLACE = 0b110111111000  # of a target: no velocity, acceleration, yaw nor yaw rate
_FRAMES = {"absolute": 5, "relative": 6}  # MAV_FRAME_GLOBAL_INT, MAV_FRAME_GLOBAL_RELATIVE_ALT_INT
_OFFBOARD = 6  # PX4's main mode
_STREAMS = {33: 5.0, 147: 1.0}  # GLOBAL_POSITION_INT, BATTERY_STATUS: how often a second


def mavutil(link: Mavlink) -> ModuleType:
    """Return pymavlink's `mavutil`, set to MAVLink 2.

    Raises
    ------
    VehicleError
        It is not installed, or what serial ports need is not.
    """
    if link.serial:
        _imported("serial", "pyserial")
    os.environ["MAVLINK20"] = "1"  # read by pymavlink when it is imported
    os.environ.setdefault("MAVLINK_DIALECT", "common")
    return _imported("pymavlink.mavutil", "pymavlink")


def _imported(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise VehicleError(
            f"{package} is not installed\n  fix:      pip install 'fieldbo[mavlink]'"
        ) from None


def opened(address: str, module: ModuleType, *, system: int, component: int, baud: int = 57_600) -> Any:
    """Return an open wire to `address` on which `system` and `component` speak; a TCP wire that ends says so.

    Raises
    ------
    OSError
        It can't be opened.
    """
    wire = module.mavlink_connection(
        address, baud=baud, source_system=system, source_component=component, retries=1, udp_timeout=10
    )

    def ended() -> None:
        raise ConnectionError(f"{address} hung up")

    wire.handle_eof = wire.handle_disconnect = ended
    return wire


class _Helm(Enum):
    """Who has the vehicle."""

    FREE = "nobody was asked for it yet"
    ASKED = "it is asked for the guided mode"
    OURS = "fieldbo"
    THEIRS = "a pilot, who took it"


@dataclass
class _Clockwork:
    """Something that is due every so many seconds."""

    every_s: float
    next_s: float = 0.0

    def due(self) -> bool:
        now = time.monotonic()
        if now < self.next_s:
            return False
        self.next_s = now + self.every_s
        return True


@dataclass
class Sequence:
    """Tells what is news: packets are numbered, 0 to 255 and round again, by each component for itself."""

    newest: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)

    def is_news(self, message: Any) -> bool:
        """Say whether a packet is no double, and was not overtaken by another."""
        sender, number = (message.get_srcSystem(), message.get_srcComponent()), message.get_seq()
        newest, came_s = self.newest.get(sender, (0, -math.inf))
        now = time.monotonic()
        if (newest - number) % 256 < 128 and now < came_s + _OVERTAKEN_S:
            return False
        self.newest[sender] = number, now
        return True


class GroundStation(Connection):
    """The ground station; all of its state belongs to its one thread, which does what is put into `_todo`."""

    def __init__(self, link: Mavlink, ground: Ground, hear: Hear) -> None:
        self._link, self._mavutil, self._ground, self._hear = link, mavutil(link), ground, hear
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._closing = threading.Event()
        self._wire: Any = None
        self._helm = _Helm.FREE
        self._errand: Goal | None = None
        self._began_s = 0.0
        self._target: Array | None = None  # latitude, longitude, altitude
        self._to_stay = False  # at the next place that is heard of
        self._target_ms = 0  # when it was given: the same place may be gone to two times
        self._opened_s = time.monotonic()
        self._place: Array | None = None
        self._placed_s = -math.inf
        self._mode: tuple[int, int, int] | None = None  # the guided one, as it is asked for
        self._sequence = Sequence()
        self._boot_ms = 0
        self._keeps = False  # whether the autopilot keeps a place that it was given
        self._insist_until_s = 0.0
        self._beat, self._point = _Clockwork(_BEAT_S), _Clockwork(_POINT_S)
        self._asking, self._streams = _Clockwork(_ASK_S), _Clockwork(_STALE_S)
        self._thread = threading.Thread(target=self._run, name=f"mavlink {link.address}", daemon=True)
        self._thread.start()

    # -- called from outside ---------------------------------------------------------------------------

    def go(self, errand: Goal) -> None:
        self._todo.put(partial(self._go, errand))

    def cancel(self, errand: str) -> None:
        self._todo.put(partial(self._cancel, errand))

    def hold(self) -> None:
        self._todo.put(self._hold)

    def close(self) -> None:
        self._closing.set()
        self._thread.join(2.0)

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        link = self._link
        while not self._closing.is_set():
            try:
                self._wire = opened(
                    link.connection,
                    self._mavutil,
                    system=link.own_system,
                    component=self._mavutil.mavlink.MAV_COMP_ID_MISSIONPLANNER,
                    baud=link.baud,
                )
                try:
                    while not self._closing.is_set():
                        self._turn()
                    self._part()
                finally:
                    self._wire.close()
            except OSError as error:
                self._hear(Down(f"{link.connection}: {error}"))
                self._closing.wait(_AGAIN_S)

    def _turn(self) -> None:
        """Do what was put in, take in a message if one comes, and send what is due."""
        while not self._todo.empty():
            self._todo.get()()
        message = self._wire.recv_match(blocking=True, timeout=_TURN_S)
        theirs = message is not None and message.get_srcSystem() == self._link.system
        if theirs and self._sequence.is_news(message):
            self._heard(message)
        self._send_what_is_due()

    def _part(self) -> None:
        """Send what was to be sent last, three times, as nobody acknowledges it."""
        for _ in range(3):
            self._point.next_s = 0.0
            self._turn()

    def _send_what_is_due(self) -> None:
        if self._beat.due():
            self._wire.mav.heartbeat_send(6, 8, 0, 0, 4)  # a ground station, no autopilot, active
        if not self._placed_lately and self._streams.due():
            for number, hertz in _STREAMS.items():
                self._command(511, number, 1e6 / hertz)  # MAV_CMD_SET_MESSAGE_INTERVAL, in microseconds
        if self._mode is None or self._helm not in (_Helm.ASKED, _Helm.OURS):
            return
        if self._to_stay and self._place is not None and self._placed_lately:
            self._aim(self._place)
        remind = self._keeps and time.monotonic() > self._insist_until_s
        self._point.every_s = _REMIND_S if remind else _POINT_S
        if self._target is not None and self._point.due():
            self._send_target(self._target)
        if self._helm is _Helm.ASKED and self._asking.due():
            self._command(176, *self._mode)  # MAV_CMD_DO_SET_MODE

    def _send_target(self, target: Array) -> None:
        latitude, longitude, altitude = target.tolist()
        self._wire.mav.set_position_target_global_int_send(
            self._target_ms,
            self._link.system,
            self._link.component,
            _FRAMES[self._link.altitude],
            _ONLY_A_PLACE,
            round(latitude * 1e7),
            round(longitude * 1e7),
            altitude,
            *(0.0,) * 8,
        )

    def _command(self, command: int, *values: float) -> None:
        rest = (0.0,) * (7 - len(values))
        self._wire.mav.command_long_send(self._link.system, self._link.component, command, 0, *values, *rest)

    @property
    def _placed_lately(self) -> bool:
        return time.monotonic() <= self._placed_s + _STALE_S

    # -- errands ---------------------------------------------------------------------------------------

    def _go(self, errand: Goal) -> None:
        target = self._ground.geodetic(errand.site)[0]
        if self._link.fence is not None and (why := self._objection(target)) is not None:
            self._hear(Refused(errand.id, why))
            return
        self._errand, self._began_s = errand, time.monotonic()
        self._aim(target)
        if self._helm is _Helm.FREE:
            self._helm = _Helm.ASKED

    def _objection(self, target: Array) -> str | None:
        assert self._link.fence is not None
        origin = self._ground.origin
        assert origin is not None
        return self._link.fence.objection(target, self._place, [origin.latitude, origin.longitude, 0.0])

    def _cancel(self, errand: str) -> None:
        if self._errand is not None and self._errand.id == errand:
            self._hold()

    def _hold(self) -> None:
        """Make where it is the place to go to: a mode of its own would be taken for a pilot's."""
        self._errand, self._target, self._to_stay = None, None, True
        if self._helm is _Helm.ASKED:
            self._helm = _Helm.FREE

    def _aim(self, target: Array) -> None:
        """Send a place from now on, and at once."""
        self._target, self._to_stay = target, False
        self._insist()
        self._target_ms = int(1000 * (time.monotonic() - self._opened_s))

    def _insist(self) -> None:
        self._point.next_s, self._insist_until_s = 0.0, time.monotonic() + _INSIST_S

    # -- messages --------------------------------------------------------------------------------------

    def _heard(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "NAMED_VALUE_FLOAT":  # may come from a computer on board
            self._reading(message)
        elif message.get_srcComponent() != self._link.component:
            return
        elif kind == "HEARTBEAT":
            self._beaten(message)
        elif kind == "GLOBAL_POSITION_INT":
            self._placed(message)
        elif kind == "BATTERY_STATUS":
            self._charged(message)

    def _beaten(self, heartbeat: Any) -> None:
        """Take in a sign of life, and who has the vehicle."""
        self._hear(Alive())
        self._keeps = heartbeat.autopilot == self._mavutil.mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA
        mode, guided = self._guided_mode(heartbeat)
        armed = bool(heartbeat.base_mode & self._mavutil.mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        self._mode = mode if armed else None  # of one that is not armed nothing is asked
        if armed and heartbeat.custom_mode == guided:
            if self._helm in (_Helm.ASKED, _Helm.THEIRS):
                self._helm = _Helm.OURS
                self._insist()
        elif self._helm is _Helm.OURS:
            self._helm = _Helm.THEIRS
            self._cut_short()

    def _guided_mode(self, heartbeat: Any) -> tuple[tuple[int, int, int], int]:
        """Return the guided mode as it is asked for, and as a heartbeat shows it."""
        mavlink = self._mavutil.mavlink
        custom = mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
        if self._keeps:
            number = (self._mavutil.mode_mapping_byname(heartbeat.type) or {}).get("GUIDED", 4)
            return (custom, number, 0), number
        return (custom, _OFFBOARD, 0), _OFFBOARD << 16

    def _cut_short(self) -> None:
        """End the errand that is out where the vehicle is."""
        errand, self._errand, self._target = self._errand, None, None
        if errand is None:
            return
        if self._place is None:
            self._hear(Refused(errand.id, "a pilot took the vehicle"))
            return
        none = np.empty(0)
        self._hear(
            Done(
                errand.id,
                position=self._ground.from_geodetic(self._place)[0],
                sites=np.empty((0, len(errand.site))),
                values=none,
                seconds=none,
                duration_s=time.monotonic() - self._began_s,
                complete=False,
            )
        )

    def _charged(self, message: Any) -> None:
        if message.id == self._link.battery and 0 <= message.battery_remaining <= 100:  # -1: not known
            self._hear(Charge(share=message.battery_remaining / 100))

    def _placed(self, message: Any) -> None:
        latitude, longitude = message.lat / 1e7, message.lon / 1e7
        known = (message.lat, message.lon) != (0, 0) and abs(latitude) <= 90 and abs(longitude) <= 180
        if message.time_boot_ms < min(self._boot_ms - _SET_BACK_MS, _FRESH_MS):
            self._helm = _Helm.FREE if self._errand is None else _Helm.ASKED
        self._boot_ms = message.time_boot_ms
        if not known:  # zeros are told as long as nothing is
            return
        height = message.alt if self._link.altitude == "absolute" else message.relative_alt
        self._place = np.array([latitude, longitude, height / 1000])
        self._placed_s = time.monotonic()
        self._hear(At(self._ground.from_geodetic(self._place)[0]))

    def _reading(self, message: Any) -> None:
        """Pass a reading on, if it is known where the vehicle is."""
        if message.name == self._link.reading and self._placed_lately:
            self._hear(Read(message.value))
