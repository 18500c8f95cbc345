"""The ground station of a MAVLink link: it takes goals, guides the vehicle, and listens to it.

Who has control of the vehicle:

- fieldbo never arms the vehicle, takes off or lands: a pilot does. A goal waits until the vehicle is armed.
- With its first goal, fieldbo requests the guided mode (GUIDED on ArduPilot, else OFFBOARD, as on PX4).
- Once in that mode, it never requests it again. Whoever switches the vehicle to another mode, or disarms it,
  has control: the goal under way ends there, cut short, and fieldbo sends no target. The next goal waits
  until someone returns control by selecting the guided mode. A restart of the vehicle resets all this.
- The vehicle may have been moved while fieldbo had no control, or had to wait for it. A target from before
  is no longer sent: `Reconnected` asks for the goal again, on a route from where the vehicle is now.
- To hold, fieldbo sends the vehicle to where it plausibly is, and again when it is next heard of. It keeps
  the guided mode: in other modes, a boat drifts, or a drone obeys the sticks of a remote control that nobody
  holds.

The autopilot's ground station failsafe watches fieldbo's heartbeats, sent each second as system `own_system`.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from errno import EADDRINUSE
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import VehicleError
from fieldbo.vehicles.mavlink.geofence import GeoFence
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.wire import PacketSequence, Transfer, lock_file, mavutil, opened, settle_fence
from fieldbo.vehicles.remote.gauge import ShareReader
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Connection,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    OnReport,
    PositionReport,
    Reading,
    Reconnected,
    Taken,
    Unreachable,
)
from fieldbo.vehicles.remote.track import Fixes

if TYPE_CHECKING:
    from filelock import BaseFileLock

_log = logging.getLogger(__name__)

_TURN_S = 0.05
_HEARTBEAT_S = 1.0  # usual interval of ground stations and vehicles
_TARGET_S = 0.5  # PX4 leaves OFFBOARD if it receives no target for a second
_INSIST_S, _REMIND_S = 2.0, 5.0  # ArduPilot replans at each target: after _INSIST_S, send it every _REMIND_S
_REQUEST_S = 1.0
_SOON_S = 2.0  # a target is outdated if fieldbo gets control later than this
_REOPEN_S = 1.0  # wait before reopening a broken link
_STALE_S = 2.0  # request positions if none came for this long
_OTHERS = 3  # heartbeats of another ground station after which it is reported
_SET_BACK_MS, _FRESH_MS = 2_000, 60_000  # a clock set back this far, to less than that, means a restart

_STATION = 6  # MAV_TYPE_GCS
_POSITION_ONLY = 0b110111111000  # mask of a target without velocity, acceleration, yaw and yaw rate
_POSITION_AND_YAW = 0b100111111000
_FRAMES = {"absolute": 5, "relative": 6}  # MAV_FRAME_GLOBAL_INT, MAV_FRAME_GLOBAL_RELATIVE_ALT_INT
_OFFBOARD = 6  # PX4's main mode
_NO_CELL = 65_535  # the voltage in mV of a cell that a battery does not have
_STREAMS = {33: 5.0, 147: 1.0}  # GLOBAL_POSITION_INT, BATTERY_STATUS: rates in Hz


class _Control(Enum):
    """Who has control of the vehicle."""

    FREE = "fieldbo has not requested it yet"
    REQUESTED = "fieldbo is requesting the guided mode"
    OURS = "fieldbo"
    PILOT = "a pilot, who took over"


class _InterruptedError(Exception):
    """Something else is to be done first."""


@dataclass
class _Timer:
    """Something that is due at regular intervals."""

    every_s: float
    next_s: float = 0.0

    def due(self) -> bool:
        now = time.monotonic()
        if now < self.next_s:
            return False
        self.next_s = now + self.every_s
        return True


class GroundStation(Connection):
    """The ground station. Its state belongs to its one thread, which executes what is put into `_todo`."""

    def __init__(
        self, link: MavlinkSettings, fence: GeoFence, fixes: Fixes[Array], on_report: OnReport
    ) -> None:
        self._link, self._mavutil, self._ground, self._report = link, mavutil(link), fence.ground, on_report
        self._shares = ShareReader(
            "battery_remaining", 100, on_report, "mend the autopilot's battery monitor"
        )
        self._fence, self._fence_is_settled, self._fixes = fence, False, fixes
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._closing = threading.Event()
        self._broken = ""  # why there is no connection
        self._lock: BaseFileLock | None = None
        self._sent: deque[int] = deque(maxlen=30)  # sequence numbers of our latest heartbeats
        self._others = 0
        self._wire: Any = None
        self._control = _Control.FREE
        self._goal: Goal | None = None
        self._began_s = 0.0
        self._target: Array | None = None  # latitude, longitude, altitude
        self._to_stay = False  # at the next plausible position
        self._held_s = self._requested_s = -math.inf
        self._aimed_s = self._opened_s = time.monotonic()
        self._is_outdated = False  # the goal, whose route began where the vehicle was
        self._position: Array | None = None
        self._position_s = -math.inf
        self._mode: tuple[int, int, int] | None = None  # the guided mode, as requested
        self._sequence = PacketSequence()
        self._boot_ms = 0
        self._last_reading: tuple[int, int, int, str] | None = None  # who sent it, when, and its value
        self._keeps_target = False  # whether the autopilot remembers a target
        self._insist_until_s = 0.0
        self._heartbeat, self._sending = _Timer(_HEARTBEAT_S), _Timer(_TARGET_S)
        self._requesting, self._streams = _Timer(_REQUEST_S), _Timer(_STALE_S)
        self._thread = threading.Thread(target=self._run, name=f"mavlink {link.address}", daemon=True)
        self._thread.start()

    # -- called by others ------------------------------------------------------------------------------

    def claim(self, session: str, mission: str) -> None:
        """Lock the connection on this machine: UDP would let two programs share a port, each half deaf."""
        from filelock import FileLock, Timeout

        lock = FileLock(lock_file(self._link), timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            self._report(self._in_use())
        except OSError:  # another user's
            return
        else:
            self._lock = lock

    def go(self, goal: Goal) -> None:
        self._todo.put(partial(self._go, goal))

    def cancel(self, goal: str) -> None:
        self._todo.put(partial(self._cancel, goal))

    def hold(self) -> None:
        self._todo.put(self._hold)

    def unsent(self) -> str:
        if self._broken or not self._todo.empty():
            return self._broken or "it waits to be sent"
        if self._goal is not None and self._control is _Control.REQUESTED:
            return (
                "the vehicle is not in its guided mode"
                if self._mode
                else "the vehicle has not said that it is armed"
            )
        if not self._to_stay or self._control not in (_Control.REQUESTED, _Control.OURS):
            return ""
        if self._target is None:
            return "no plausible position of the vehicle is known"
        return "no position of the vehicle was heard since"

    def close(self) -> None:
        self._closing.set()
        self._thread.join(2.0)
        if self._lock is not None:
            self._lock.release()

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        link = self._link
        while not self._closing.is_set():
            try:
                self._wire = opened(
                    link,
                    link.connection,
                    self._mavutil,
                    system=link.own_system,
                    component=self._mavutil.mavlink.MAV_COMP_ID_MISSIONPLANNER,
                )
                self._broken = ""
                try:
                    while not self._closing.is_set():
                        self._turn()
                    self._flush()
                finally:
                    self._wire.close()
            except OSError as error:
                self._broken = f"{link.connection}: {error}"
                self._report(self._in_use() if error.errno == EADDRINUSE else Unreachable(self._broken))
                self._closing.wait(_REOPEN_S)

    def _in_use(self) -> Taken:
        return Taken(
            f"another program uses {self._link.connection}: another fieldbo, or a ground station",
            "stop it, or have a router such as mavlink-router send the vehicle's messages to two ports",
        )

    def _turn(self) -> None:
        """Execute what was put in, process the next message, and send what is due."""
        while not self._todo.empty():
            self._todo.get()()
        message = self._wire.recv_match(blocking=True, timeout=_TURN_S)
        sender = None if message is None else message.get_srcSystem()
        if sender == self._link.system:
            self._take(message)
        elif sender == self._link.own_system and message.get_type() == "HEARTBEAT":
            self._take_other_station(message)
        self._send_what_is_due()

    def _flush(self) -> None:
        """Send the last target three times, since nobody acknowledges it."""
        for _ in range(3):
            self._sending.next_s = 0.0
            self._turn()

    def _send_what_is_due(self) -> None:
        if self._heartbeat.due():
            self._beat()
        if not self._position_is_fresh and self._streams.due():
            for number, hertz in _STREAMS.items():
                self._command(511, number, 1e6 / hertz)  # MAV_CMD_SET_MESSAGE_INTERVAL, in microseconds
        if self._goal is None:
            self._give_up_control()
        elif self._control is _Control.REQUESTED and time.monotonic() > self._aimed_s + _SOON_S:
            self._is_outdated = True
            self._drop_target()
        if self._mode is None or self._control not in (_Control.REQUESTED, _Control.OURS):
            return
        if not self._fence_is_settled and self._goal is not None and not self._goal.home:
            self._settle_fence()
            return
        if self._to_stay and self._position_is_fresh and (fix := self._fixes.newest_plausible()) is not None:
            self._stay(*fix)
        remind = self._keeps_target and time.monotonic() > self._insist_until_s
        self._sending.every_s = _REMIND_S if remind else _TARGET_S
        if self._target is not None and self._sending.due():
            self._send_target(self._target)
        if self._control is _Control.REQUESTED and self._goal is not None and self._requesting.due():
            self._requested_s = time.monotonic()
            self._command(176, *self._mode)  # MAV_CMD_DO_SET_MODE

    def _beat(self) -> None:
        self._sent.append(self._wire.mav.seq)
        self._wire.mav.heartbeat_send(_STATION, 8, 0, 0, 4)  # without an autopilot, active

    def _send_target(self, target: Array) -> None:
        latitude, longitude, altitude = target.tolist()
        yaw = self._link.yaw
        self._wire.mav.set_position_target_global_int_send(
            int(1000 * (self._aimed_s - self._opened_s)),  # tells two visits to the same place apart
            self._link.system,
            self._link.component,
            _FRAMES[self._link.altitude],
            _POSITION_ONLY if yaw is None else _POSITION_AND_YAW,
            round(latitude * 1e7),
            round(longitude * 1e7),
            altitude,
            *(0.0,) * 6,
            0.0 if yaw is None else math.radians((yaw + 180.0) % 360.0 - 180.0),
            0.0,
        )

    def _command(self, command: int, *values: float) -> None:
        rest = (0.0,) * (7 - len(values))
        self._wire.mav.command_long_send(self._link.system, self._link.component, command, 0, *values, *rest)

    @property
    def _position_is_fresh(self) -> bool:
        return time.monotonic() <= self._position_s + _STALE_S

    # -- goals -----------------------------------------------------------------------------------------

    def _go(self, goal: Goal) -> None:
        under_way = self._goal is not None and self._goal.id == goal.id
        accepted = under_way and self._target is not None  # this is a later point of its route
        if not (accepted or goal.home) and (why := self._objection(goal)) is not None:
            self._refuse(goal, why, under_way)
            return
        self._began_s = self._began_s if under_way else time.monotonic()
        self._goal, self._is_outdated = goal, False
        self._aim(self._ground.geodetic(goal.site)[0])
        if self._control is _Control.FREE:
            self._control = _Control.REQUESTED

    def _objection(self, goal: Goal) -> str | None:
        """Return why the fence forbids the route to a goal from where the vehicle is; None if it does not."""
        route = goal.route if len(goal.route) else goal.site
        return self._fence.objection_on(self._ground.geodetic(route), self._position)

    def _refuse(self, goal: Goal, why: str, under_way: bool) -> None:
        """Reject a goal, or cut it short if the vehicle may have moved for it."""
        if not under_way:
            self._report(GoalRejected(goal.id, why))
            return
        _log.warning("%s: %s is cut short: %s", self._link.address, goal.id, why)
        self._cut_short(why)
        self._hold()

    def _settle_fence(self) -> None:
        """Compare the vehicle's own fence with ours, and upload ours if asked to, before the first target."""
        results = self._mavutil.mavlink.enums["MAV_MISSION_RESULT"]
        transfer = Transfer(self._wire, self._link, results, self._take, self._beat_unless_interrupted)
        try:
            for note in settle_fence(transfer, self._fence, self._link.upload_fence):
                _log.warning("%s: %s", self._link.address, note)
            self._fence_is_settled = True
        except _InterruptedError:
            return
        except VehicleError as error:
            goal = self._goal
            self._hold()
            if goal is not None:
                self._report(GoalRejected(goal.id, f"the fence could not be uploaded: {error}"))

    def _beat_unless_interrupted(self) -> None:
        """Let no transfer delay what was put in meanwhile, such as the trip home."""
        if self._closing.is_set() or not self._todo.empty():
            raise _InterruptedError
        self._beat()

    def _cancel(self, goal: str) -> None:
        if self._goal is not None and self._goal.id == goal:
            self._hold()

    def _hold(self) -> None:
        """Make the vehicle's plausible position the target."""
        self._goal, self._target, self._to_stay = None, None, True
        self._held_s = time.monotonic()
        self._give_up_control()

    def _give_up_control(self) -> None:
        """Request no mode any more; what was requested a moment ago may have been granted, so wait for it."""
        if self._control is _Control.REQUESTED and time.monotonic() > self._requested_s + _SOON_S:
            self._control = _Control.FREE

    def _stay(self, arrived_s: float, place: Array) -> None:
        """Hold at a place, and once more where the vehicle is next heard of: the link may have been cut."""
        heard_since = arrived_s > self._held_s
        if heard_since or self._target is None:
            self._set_target(place)
        self._to_stay = not heard_since

    def _aim(self, target: Array) -> None:
        """Go to a target instead of staying."""
        self._to_stay = False
        self._set_target(target)

    def _set_target(self, target: Array) -> None:
        """Send this target from now on, and at once."""
        self._target = target
        self._insist()
        self._aimed_s = time.monotonic()

    def _drop_target(self) -> None:
        """Send no target until there is a new one; an autopilot that needs one stays where it is."""
        self._target = None
        self._to_stay |= not self._keeps_target

    def _start_over(self) -> None:
        """Ask for the goal again: the vehicle may have been moved away from where its route began."""
        self._is_outdated = False
        self._drop_target()
        self._report(Reconnected())

    def _insist(self) -> None:
        self._sending.next_s, self._insist_until_s = 0.0, time.monotonic() + _INSIST_S

    # -- messages --------------------------------------------------------------------------------------

    def _take(self, message: Any) -> None:
        """Receive a message of the vehicle unless it is a duplicate or late."""
        if self._sequence.is_new(message):
            self._receive(message)

    def _take_other_station(self, heartbeat: Any) -> None:
        """Warn if another ground station has the same system id: a router may also return our own."""
        if heartbeat.type != _STATION or heartbeat.get_seq() in self._sent:
            return
        self._others += 1
        if self._others == _OTHERS:
            number = self._link.own_system
            _log.warning(
                "another ground station is on %s with the same system id, %d: while it runs, the autopilot "
                "cannot tell when fieldbo is gone; give one of them another number (link.own_system)",
                self._link.connection,
                number,
            )

    def _receive(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "NAMED_VALUE_FLOAT":  # may come from an onboard computer
            if message.name == self._link.reading:
                self._take_reading(message)
            else:
                self._report(ChannelReport(message.name, message.value))
        elif message.get_srcComponent() != self._link.component:
            return
        elif kind == "HEARTBEAT":
            self._take_heartbeat(message)
        elif kind == "GLOBAL_POSITION_INT":
            self._take_position(message)
        elif kind == "BATTERY_STATUS":
            self._take_battery(message)
        elif kind == "WIND":
            self._report(ChannelReport("wind", message.speed))
        elif kind == "WIND_COV":
            self._report(ChannelReport("wind", math.hypot(message.wind_x, message.wind_y)))

    def _take_heartbeat(self, heartbeat: Any) -> None:
        """Note the sign of life, and who has control."""
        self._report(Heartbeat())
        self._keeps_target = heartbeat.autopilot == self._mavutil.mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA
        mode, guided = self._guided_mode(heartbeat)
        armed = bool(heartbeat.base_mode & self._mavutil.mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        self._mode = mode if armed else None  # request nothing of a disarmed vehicle
        if armed and heartbeat.custom_mode == guided:
            if self._control in (_Control.REQUESTED, _Control.PILOT):
                if self._control is _Control.PILOT or self._is_outdated:
                    self._start_over()
                self._control = _Control.OURS
                self._insist()
        elif self._control is _Control.OURS:
            self._control = _Control.PILOT
            why = "a pilot took control of the vehicle"
            _log.warning("%s: %s; select its guided mode to let fieldbo go on", self._link.address, why)
            self._cut_short(why)

    def _guided_mode(self, heartbeat: Any) -> tuple[tuple[int, int, int], int]:
        """Return the guided mode as it is requested, and as a heartbeat shows it."""
        mavlink = self._mavutil.mavlink
        custom = mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
        if self._keeps_target:
            number = (self._mavutil.mode_mapping_byname(heartbeat.type) or {}).get("GUIDED", 4)
            return (custom, number, 0), number
        return (custom, _OFFBOARD, 0), _OFFBOARD << 16

    def _cut_short(self, why: str) -> None:
        """End the goal under way where the vehicle is."""
        goal, self._goal, self._target = self._goal, None, None
        if goal is None:
            return
        if self._position is None:
            self._report(GoalRejected(goal.id, why))
            return
        none = np.empty(0)
        self._report(
            GoalResult(
                goal.id,
                position=self._ground.from_geodetic(self._position)[0],
                sites=np.empty((0, len(goal.site))),
                values=none,
                seconds=none,
                duration_s=time.monotonic() - self._began_s,
                complete=False,
            )
        )

    def _take_battery(self, message: Any) -> None:
        if message.id != self._link.battery:
            return
        share = self._shares.read(message.battery_remaining)
        if not math.isnan(share):
            self._report(BatteryReport(share=share))
        millivolts = [cell for cell in message.voltages if cell != _NO_CELL]
        if any(millivolts):
            self._report(ChannelReport("voltage", sum(millivolts) / 1000))

    def _take_position(self, message: Any) -> None:
        latitude, longitude = message.lat / 1e7, message.lon / 1e7
        known = (message.lat, message.lon) != (0, 0) and abs(latitude) <= 90 and abs(longitude) <= 180
        if message.time_boot_ms < min(self._boot_ms - _SET_BACK_MS, _FRESH_MS):
            self._control = _Control.FREE if self._goal is None else _Control.REQUESTED
            self._start_over()
        self._boot_ms = message.time_boot_ms
        if not known:  # without a fix, the autopilot sends zeros
            return
        height = message.alt if self._link.altitude == "absolute" else message.relative_alt
        self._position = np.array([latitude, longitude, height / 1000])
        self._position_s = time.monotonic()
        site = self._ground.from_geodetic(self._position)[0]
        if self._fence.objection(self._position) is None:
            self._fixes.take(site, self._position, self._position_s)
        self._report(PositionReport(site))

    def _take_reading(self, message: Any) -> None:
        """Report a reading if it is new and the vehicle's position is known.

        The same value of the same time is a repeat; a sensor without a clock sends 0 as the time.
        """
        if not self._position_is_fresh:
            return
        sender = message.get_srcSystem(), message.get_srcComponent()
        reading = (*sender, message.time_boot_ms, str(message.value))
        if message.time_boot_ms == 0 or reading != self._last_reading:
            self._report(Reading(message.value))
        self._last_reading = reading
