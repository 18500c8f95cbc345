"""The settings of a MAVLink link, and the limits of its fence: corners, altitudes, a distance."""

from __future__ import annotations

import hashlib
import math
import os
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveFloat
from shapely.geometry import Polygon

from fieldbo.errors import InputError, VehicleError
from fieldbo.validation import settings
from fieldbo.vehicles.remote.settings import Limit

_SCHEMES = ("udpin", "udpout", "tcp")
_SERIAL = ("/dev/", "COM")

SystemId = Annotated[int, Field(ge=1, le=255)]


@settings("link")
class MavlinkSettings:
    """How to reach a vehicle by MAVLink, and what it sends."""

    connection: str = "udpin:0.0.0.0:14550"
    """udpin:0.0.0.0:14550 to listen; udpout:HOST:PORT or tcp:HOST:PORT to call; or a serial port such as
    /dev/ttyUSB0."""
    reading: str = "reading"
    """Name, of at most 10 letters, of the NAMED_VALUE_FLOAT that carries the readings in the world's unit."""
    system: SystemId = 1
    """System id of the vehicle."""
    component: SystemId = 1
    """Component id of the vehicle's autopilot."""
    own_system: SystemId = 255
    """System id of fieldbo as a ground station; no other ground station may use it. The autopilot's ground
    station failsafe watches one id, usually 255 (ArduPilot: MAV_GCS_SYSID or SYSID_MYGCS)."""
    altitude: Literal["absolute", "relative"] = "absolute"
    """What heights count from: "absolute" for sea level, as the frame's origin says; "relative" for where the
    vehicle is armed, which is the mission's start, or the surface if the world has a depth. The origin's
    altitude then says how far above this place the start or the surface is, normally 0."""
    battery: int = 0
    """Id of the battery, if there are several."""
    baud: int = 57_600
    """Baud rate of a serial port."""
    bytes_per_s: PositiveFloat | None = None
    """What the link carries from the vehicle, in bytes per second: a sensor that reads on the way more often
    is rejected. Default: a tenth of baud on a serial port, else not limited."""
    fence: Fence | None = None
    """Limits in addition to the world's outline and obstacles; waypoints outside them, or reached on a path
    that leaves them, are rejected. Every key is optional: { corners = [[47.2, 8.5], [47.2, 8.7],
    [47.4, 8.6]], lowest = 380, highest = 420, radius = 2000 }."""
    upload_fence: bool = False
    """Replace the vehicle's own fence with fieldbo's, before the first order and with plan --upload; by
    default the two are only compared, and differences are reported."""
    firmware: Literal["ardupilot", "px4"] | None = None
    """Firmware of the autopilot, for plans, and for how many points of a fence it stores."""
    vehicle: Literal["boat", "rover", "copter", "plane", "submarine"] | None = None
    """Type of the vehicle, for plans, and for how many points of a fence it stores."""
    fence_points: Annotated[int, Field(ge=3)] | None = None
    """How many points of a fence the autopilot stores, by default 63 on PX4 (boards with little memory: 15),
    70 on ArduPilot's copters and 84 on its other vehicles (on an SD card more: BRD_SD_FENCE). A fence of more
    is simplified, so that it allows less."""
    speed: Annotated[float, Field(gt=0)] | None = None
    """Speed over ground in plans, in m/s."""
    yaw: Annotated[float, Field(ge=0, lt=360)] | None = None
    """Heading of the vehicle, in degrees clockwise from north; by default it faces the wall if stand_off is
    set, and is else up to the autopilot. In plans for ArduPilot it needs WP_YAW_BEHAVIOR = 0."""
    yaw_away: bool = False
    """Whether yaw may point away from the wall, as for a camera that looks backwards."""
    stand_off: float = 0.0
    """Distance in metres from a vertical world, such as a facade: to the right of the direction of its
    horizontal axis, or to the left if negative."""
    camera: bool = False
    """Whether plans take a photo at each site."""
    signing_key_from: str | None = None
    """Environment variable that holds the passphrase with which messages are signed, as in MAVProxy."""

    def __post_init__(self) -> None:
        scheme, _, rest = self.connection.partition(":")
        if not (self.serial or (scheme in _SCHEMES and _is_host_and_port(rest))):
            raise InputError(
                f"connection = {self.connection!r}",
                expected="udpin:0.0.0.0:14550, udpout:HOST:PORT, tcp:HOST:PORT or a serial port",
                where="link.connection",
            )
        if not 1 <= len(self.reading.encode()) <= 10:
            raise InputError(
                f"reading = {self.reading!r}",
                expected="the name of a NAMED_VALUE_FLOAT, 1 to 10 letters",
                where="link.reading",
            )
        if self.own_system == self.system:
            raise InputError(
                f"own_system = {self.own_system}, the vehicle's own number",
                expected="a number other than system",
                where="link.own_system",
            )
        if not math.isfinite(self.stand_off):
            raise InputError(
                f"stand_off = {self.stand_off}", expected="a finite number of metres", where="link.stand_off"
            )

    @property
    def signing_key(self) -> bytes | None:
        """The key of 32 bytes that signs messages; None to sign none.

        Raises
        ------
        VehicleError
            The environment variable is not set.
        """
        if self.signing_key_from is None:
            return None
        passphrase = os.environ.get(self.signing_key_from)
        if not passphrase:
            raise VehicleError(
                f"the environment variable {self.signing_key_from} is not set: it must hold the passphrase "
                "that signs MAVLink messages"
            )
        return hashlib.sha256(passphrase.encode()).digest()

    @property
    def address(self) -> str:
        """Where to find the vehicle."""
        return f"{self.connection}, system {self.system}"

    @property
    def serial(self) -> bool:
        """Whether the connection is a serial port."""
        return self.connection.startswith(_SERIAL)


def _is_host_and_port(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and ":" not in host and port.isdecimal() and 0 < int(port) < 65_536


@settings("fence")
class Fence:
    """Limits in addition to those of the world, which `fieldbo.vehicles.mavlink.geofence` combines.

    fieldbo checks them before it sends a waypoint, along with the straight path there.
    """

    corners: tuple[tuple[float, float], ...] = ()
    """Latitude and longitude of at least three corners, in order; empty for no such limit."""
    lowest: Limit = -math.inf
    """Lowest altitude in metres, measured as in the vehicle file's frame."""
    highest: Limit = math.inf
    """Highest altitude in metres, measured as in the vehicle file's frame."""
    radius: Annotated[float, Field(gt=0, allow_inf_nan=True)] = math.inf
    """Largest distance from the frame's origin, in metres."""

    def __post_init__(self) -> None:
        places = np.array(self.corners, dtype=float).reshape(-1, 2)
        if not (np.abs(places) <= [90.0, 180.0]).all():
            raise InputError(
                f"corners = {places.tolist()}",
                expected="latitude and longitude of each corner, in degrees",
                where="fence.corners",
            )
        if self.corners and not (len(self.corners) >= 3 and Polygon(self.corners).is_valid):
            raise InputError(
                f"corners = {places.tolist()}",
                expected="at least three corners, in order around an area whose sides do not cross",
                where="fence.corners",
            )
        if not self.lowest < self.highest:
            raise InputError(
                f"lowest = {self.lowest}", expected=f"below highest, {self.highest}", where="fence.lowest"
            )
