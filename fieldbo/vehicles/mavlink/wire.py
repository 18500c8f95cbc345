"""The wire of a MAVLink link: opening it, one program per connection, and packets that come twice."""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from types import ModuleType
from typing import Any

from fieldbo.errors import VehicleError
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
class Sequence:
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
