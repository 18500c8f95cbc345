"""The wire of a MAVLink link: opening it, packets that come twice, and MAVLink's mission protocol.

One program may use a connection. Missions and fences are uploaded item by item and downloaded again: the
receiver requests one item after the other, and lost ones again; a transfer that falls silent is restarted.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from types import ModuleType
from typing import Any

from fieldbo.errors import VehicleError
from fieldbo.vehicles.mavlink.geofence import GeoFence, Zone
from fieldbo.vehicles.mavlink.settings import MavlinkSettings

_OVERTAKE_S = 1.0  # packets overtake each other by less than this

_FAR_AHEAD = 64  # so many packets are rarely lost in a row


def mavutil(link: MavlinkSettings) -> ModuleType:
    """Return pymavlink's `mavutil`, set to MAVLink 2 for the whole program.

    Raises
    ------
    VehicleError
        pymavlink is not installed, or pyserial is missing for a serial port.
    """
    if link.serial:
        _import("serial", "pyserial")
    os.environ["MAVLINK20"] = "1"  # read by pymavlink when it is imported
    os.environ.setdefault("MAVLINK_DIALECT", "ardupilotmega")  # all that is common, and ArduPilot's WIND
    module = _import("pymavlink.mavutil", "pymavlink")
    if module.mavlink.WIRE_PROTOCOL_VERSION != "2.0":  # the program imported it before, for MAVLink 1
        module.set_dialect(os.environ["MAVLINK_DIALECT"])
    return module


def _import(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise VehicleError(
            f"{package} is not installed\n  fix:      pip install 'fieldbo[mavlink]'"
        ) from None


def opened(link: MavlinkSettings, address: str, module: ModuleType, *, system: int, component: int) -> Any:
    """Return an open connection to `address`, one end of a link, for a system and component.

    It raises an error if the TCP connection closes. Messages are signed if the link has a key, and others
    are then ignored.

    Raises
    ------
    OSError
        The connection cannot be opened.
    """
    wire = module.mavlink_connection(
        address, baud=link.baud, source_system=system, source_component=component, retries=1, udp_timeout=10
    )

    def ended() -> None:
        raise ConnectionError(f"{address} hung up")

    wire.handle_eof = wire.handle_disconnect = ended
    if address.startswith("udp"):
        _parse_each_datagram(wire)
    if (key := link.signing_key) is not None:
        wire.setup_signing(key)
        wire.first_byte = False  # else pymavlink may change to a parser that has no key
    return wire


def _parse_each_datagram(wire: Any) -> None:
    """Drop an incomplete packet at the end of its datagram.

    pymavlink would complete it with the next datagram, and so lose a message of the vehicle.
    """
    receive = wire.recv_msg

    def received() -> Any:
        parser = wire.mav
        message = parser.parse_char(b"")
        if message is None:
            parser.buf_index = len(parser.buf)
            return receive()
        wire.post_message(message)
        return message

    wire.recv_msg = received


def lock_file(link: MavlinkSettings) -> Path:
    """Return the file that one program on this machine locks for a connection, or for a vehicle behind it."""
    scheme, _, rest = link.connection.partition(":")
    name = link.connection if link.serial else f"{rest}-{link.system}"
    name = rest.rpartition(":")[2] if scheme == "udpin" else name
    return Path(gettempdir()) / f"fieldbo-mavlink-{re.sub(r'[^A-Za-z0-9]+', '-', name)}.lock"


@dataclass
class PacketSequence:
    """Recognises new packets: each component numbers its own from 0 to 255, then starts over.

    A packet that is late by half a cycle looks like one far ahead. It is taken, but hides none of those
    between until another one comes behind it.
    """

    newest: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)
    far_ahead: dict[tuple[int, int], int] = field(default_factory=dict)

    def is_new(self, message: Any) -> bool:
        """Return True unless the packet is a duplicate or was overtaken by another."""
        sender, number = (message.get_srcSystem(), message.get_srcComponent()), message.get_seq()
        newest, came_s = self.newest.get(sender, (0, -math.inf))
        now, ahead = time.monotonic(), (number - newest) % 256
        if now < came_s + _OVERTAKE_S:
            if not 0 < ahead <= 128:
                return False
            behind = (number - self.far_ahead.get(sender, number)) % 256
            if ahead > _FAR_AHEAD and not 0 < behind <= _FAR_AHEAD:
                self.far_ahead[sender] = number
                return True
        self.far_ahead.pop(sender, None)
        self.newest[sender] = number, now
        return True


MISSION, FENCE = 0, 1  # MAV_MISSION_TYPE
_POLYGONS, _CIRCLES = {True: 5001, False: 5002}, {True: 5003, False: 5004}  # MAV_CMD_NAV_FENCE_...
_NO_PLACE = 2  # MAV_FRAME_MISSION
_CANCELLED = 15  # MAV_MISSION_OPERATION_CANCELLED: the vehicle aborted the transfer
_TRIES = 8
_HEARTBEAT_S = 30.0
_QUIET_S = 3.0  # restart a transfer after this much silence
_ASK_S = 1.0  # repeat a request in a download after this much silence
_ASKS, _PATIENT_ASKS = 6, 12  # requests to a vehicle that may not answer, and to one that has answered


@dataclass(frozen=True)
class Item:
    """One item of a mission or a fence.

    Attributes
    ----------
    command : int
        A MAV_CMD.
    frame : int
        A MAV_FRAME.
    params : tuple of float
        The first four parameters; NaN leaves one to the vehicle.
    x, y : float
        Latitude and longitude in degrees, or parameters 5 and 6 of a command without a place.
    z : float
        Altitude in metres, or parameter 7.
    """

    command: int
    frame: int
    params: tuple[float, float, float, float]
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0

    @property
    def per_unit(self) -> float:
        """The factor by which x and y are multiplied in messages."""
        return 1.0 if self.frame == _NO_PLACE else 1e7


class Transfer:
    """Missions and fences on their way to and from a vehicle.

    Parameters
    ----------
    wire
        An open connection of pymavlink.
    link : MavlinkSettings
    results : mapping of int
        The enum MAV_MISSION_RESULT.
    on_other : Callable, optional
        Takes the vehicle's other messages that arrive meanwhile.
    beat : Callable, optional
        Sends a heartbeat; by default that of a ground station.
    """

    def __init__(
        self,
        wire: Any,
        link: MavlinkSettings,
        results: dict[int, Any],
        on_other: Callable[[Any], None] | None = None,
        beat: Callable[[], None] | None = None,
    ) -> None:
        self.wire, self.link, self.results, self.on_other = wire, link, results, on_other
        self.beat = beat or partial(wire.mav.heartbeat_send, 6, 8, 0, 0, 4)  # of a ground station
        self._beat_s = -math.inf

    def autopilot(self) -> int:
        """Wait for the vehicle, and return its MAV_AUTOPILOT.

        Raises
        ------
        VehicleError
            No vehicle answers.
        """
        heartbeat = self._next(_HEARTBEAT_S, None, "HEARTBEAT")
        if heartbeat is None:
            raise VehicleError(
                f"no vehicle answers at {self.link.address}: no heartbeat of system {self.link.system}"
            )
        return int(heartbeat.autopilot)

    def upload(self, items: Sequence[Item], kind: int = MISSION) -> None:
        """Replace the vehicle's mission or fence.

        Raises
        ------
        VehicleError
            The vehicle does not accept the items, or the link is too poor.
        """
        what = "mission" if kind == MISSION else "fence"
        for _ in range(_TRIES):
            if self._try(items, kind, what):
                return
        raise VehicleError(
            f"the vehicle did not accept the {what} in {_TRIES} tries: the link is too poor, or the vehicle "
            f"does not support {what} uploads"
        )

    def _try(self, items: Sequence[Item], kind: int, what: str) -> bool:
        """Try once; return True if the vehicle accepted all items."""
        self.wire.mav.mission_count_send(self.link.system, self.link.component, len(items), kind)
        while True:
            message = self._next(_QUIET_S, kind, "MISSION_REQUEST_INT", "MISSION_REQUEST", "MISSION_ACK")
            if message is None:
                return False
            if message.get_type() != "MISSION_ACK":
                if 0 <= message.seq < len(items):
                    self._send_item(message.seq, items[message.seq], kind)
            elif message.type == 0:
                return True
            elif message.type == _CANCELLED:
                return False
            else:
                raise VehicleError(f"the vehicle rejected the {what}: {self._name(message.type)}")

    def _send_item(self, number: int, item: Item, kind: int) -> None:
        self.wire.mav.mission_item_int_send(
            self.link.system,
            self.link.component,
            number,
            item.frame,
            item.command,
            int(number == 0 and kind == MISSION),
            1,
            *item.params,
            round(item.x * item.per_unit),
            round(item.y * item.per_unit),
            item.z,
            kind,
        )

    def download(self, kind: int = MISSION, *, answers: bool = False) -> list[Item] | None:
        """Return the vehicle's mission or fence; None if it does not answer.

        Ask for the count for longer if the vehicle is known to answer.
        """
        link, mav, items = self.link, self.wire.mav, list[Item]()
        ask = partial(mav.mission_request_list_send, link.system, link.component, kind)
        count = self._asked(ask, kind, asks=_PATIENT_ASKS if answers else _ASKS)
        if count is None:
            return None
        for number in range(count.count):
            item = self._asked(
                partial(mav.mission_request_int_send, link.system, link.component, number, kind), kind, number
            )
            if item is None:
                return None
            params = (item.param1, item.param2, item.param3, item.param4)
            per_unit = Item(item.command, item.frame, params).per_unit
            items.append(Item(item.command, item.frame, params, item.x / per_unit, item.y / per_unit, item.z))
        mav.mission_ack_send(link.system, link.component, 0, kind)
        return items

    def _asked(
        self, ask: Callable[[], None], kind: int, number: int | None = None, asks: int = _PATIENT_ASKS
    ) -> Any:
        """Ask for the count of items, or for an item; return the answer, or None."""
        wanted = "MISSION_COUNT" if number is None else "MISSION_ITEM_INT"
        for _ in range(asks):
            ask()
            while (message := self._next(_ASK_S, kind, wanted, "MISSION_ACK")) is not None:
                if message.get_type() == "MISSION_ACK":
                    if message.type:
                        return None  # such as unsupported
                elif number is None or message.seq == number:
                    return message
        return None

    def _next(self, patience_s: float, kind: int | None, *names: str) -> Any:
        """Return the next message of these names and kind from the vehicle to us; None if it is late."""
        end = time.monotonic() + patience_s
        while (left := end - time.monotonic()) > 0:
            if time.monotonic() > self._beat_s + 1.0:
                self._beat_s = time.monotonic()
                self.beat()
            message = self.wire.recv_match(blocking=True, timeout=min(left, 0.5))
            if message is None or message.get_srcSystem() != self.link.system:
                continue
            target = getattr(message, "target_system", self.link.own_system)
            ours = message.get_srcComponent() == self.link.component and target in (0, self.link.own_system)
            fits = kind in (None, getattr(message, "mission_type", kind))
            if ours and fits and message.get_type() in names:
                return message
            if self.on_other is not None:
                self.on_other(message)
        return None

    def _name(self, result: int) -> str:
        entry = self.results.get(result)
        return f"error {result}" if entry is None else str(entry.name).removeprefix("MAV_MISSION_").lower()


# -- fences ------------------------------------------------------------------------------------------------


_REMEDY = (
    "it stays where fieldbo may send it only while it follows fieldbo's targets; to have it keep the same "
    "fence by itself, set upload_fence = true in [link]"
)


def settle_fence(transfer: Transfer, fence: GeoFence, upload: bool) -> list[str]:
    """Compare a vehicle's own fence with `fence`, and upload that if asked to; return what to report.

    Raises
    ------
    VehicleError
        The vehicle does not accept the fence, or holds another one afterwards.
    """
    if not fence.zones:
        return []
    held = transfer.download(FENCE)
    notes = []
    difference = None if held is None else fence.difference(zones_of(held))
    if difference is not None:
        notes.append(difference if upload else f"{difference}: {_REMEDY}")
    elif held is None:
        notes.append("the vehicle's own fence could not be downloaded, so it was not compared")
    if not upload or (held is not None and difference is None):
        return notes
    transfer.upload(fence_items(fence.zones), FENCE)
    back = transfer.download(FENCE, answers=True)
    if back is None:
        raise VehicleError("the vehicle accepted the fence, but it cannot be read back")
    if (difference := fence.difference(zones_of(back))) is not None:
        raise VehicleError(f"the vehicle's fence differs from the one uploaded: {difference}")
    return [*notes, "uploaded the fence, and verified it by reading it back"]


def fence_items(zones: Sequence[Zone]) -> list[Item]:
    """Return the items of a fence.

    Examples
    --------
    >>> zones = [Zone(False, ((47, 8), (47, 9), (48, 9))), Zone(True, radius=5.0, centre=(47, 8))]
    >>> [(item.command, item.params[0]) for item in fence_items(zones)]
    [(5002, 3.0), (5002, 3.0), (5002, 3.0), (5003, 5.0)]
    """
    items = []
    for zone in zones:
        if zone.corners:
            command, first, places = _POLYGONS[zone.inclusion], float(len(zone.corners)), zone.corners
        else:
            command, first, places = _CIRCLES[zone.inclusion], zone.radius, (zone.centre,)
        for latitude, longitude in places:
            items.append(Item(command, 0, (first, 0.0, 0.0, 0.0), latitude, longitude))
    return items


def zones_of(items: Sequence[Item]) -> list[Zone]:
    """Return the zones of a vehicle's fence; other items, such as a return point, are ignored."""
    zones, rest = [], list(items)
    while rest:
        item = rest.pop(0)
        place = (item.x, item.y)
        if item.command in _CIRCLES.values():
            zones.append(Zone(item.command == _CIRCLES[True], centre=place, radius=item.params[0]))
        elif item.command in _POLYGONS.values():
            more, rest = rest[: int(item.params[0]) - 1], rest[int(item.params[0]) - 1 :]
            corners = (place, *((other.x, other.y) for other in more))
            if len(corners) >= 3:
                zones.append(Zone(item.command == _POLYGONS[True], corners))
    return zones
