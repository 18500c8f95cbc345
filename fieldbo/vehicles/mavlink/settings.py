"""The settings of a MAVLink link, the limits of its fence, and how its vehicle stands to a mission.

That is: where its heights count from, its distance from a wall, and its heading.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, PositiveFloat
from shapely.geometry import Polygon

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Ground, Origin, example, heading
from fieldbo.errors import InputError, VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.file import implied_speed
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


Settings = TypeVar("Settings", bound=MavlinkSettings)

_LEVEL_M = 0.01  # heights that differ by less are the same
_AWAY_DEGREES = 90.0 + 1e-6
_DIGITS = 9  # of a heading
_SPEEDS_DIFFER = 0.1
_HIGHEST_M = {"boat": 10.0, "rover": 10.0, "submarine": 10.0}
_LOWEST_M = -10.0
_HIGHEST_IN_AIR_M = 120.0  # above which few are allowed to fly


def located(
    ground: Ground | None, axes: Sequence[Axis], link: MavlinkSettings, armed: ArrayLike | None = None
) -> Ground:
    """Return where a vehicle's sites lie: at the distance that it keeps from a wall, in its own heights.

    Parameters
    ----------
    ground : Ground or None
        Where the domain lies.
    axes : sequence of Axis
        The domain's.
    link : MavlinkSettings
        With `stand_off`, and with `altitude`: if that is "relative", heights count from where the vehicle is
        armed, and the origin's altitude says how far above this it starts.
    armed : (k, d) array, optional
        Where the vehicle is armed. A depth counts from the surface wherever that is.

    Raises
    ------
    VehicleError
        There is no ground, or its origin is unknown.
    InputError
        The world is not vertical, but `stand_off` is not 0; or relative heights count from several heights.
    """
    if ground is None or ground.origin is None:
        raise VehicleError(
            "a MAVLink vehicle needs latitude and longitude, but the domain's location is not given\n"
            f"  fix:      add to the vehicle file, with your own coordinates:\n\n{example(axes)}"
        )
    if link.altitude == "relative" and armed is not None:
        ground = _lower(ground, _height_m(ground, np.atleast_2d(np.asarray(armed, dtype=float))))
    return _beside(ground, link.stand_off)


def places_armed(mission: Mission) -> Array:
    """Return where a mission's vehicles are armed (k, d): at the start, and after a change of the battery."""
    starts = [spec.start for spec in mission.vehicles]
    changes = [spec.home for spec in mission.vehicles if spec.batteries > 1 and spec.home is not None]
    return np.array([*starts, *changes])


def _height_m(ground: Ground, armed: Array) -> float:
    """Return the one height of places (k, d) above the origin's site, in metres."""
    up = ground.towards[2]
    heights = (np.where(up < 0, 0.0, armed) - ground.zero) @ up
    if float(np.ptp(heights)) > _LEVEL_M:
        found = ", ".join(f"{height:g} m" for height in np.unique(heights.round(3)).tolist())
        raise InputError(
            'altitude = "relative", but the starts and the homes where batteries are changed have different '
            f"heights: {found}",
            expected="one height at which the vehicle is armed, from which all heights count",
            where="link.altitude",
            fix='write altitude = "absolute" and the origin\'s altitude above sea level, or start and change '
            "batteries at one height",
        )
    return float(heights[0])


def _lower(ground: Ground, by_m: float) -> Ground:
    origin = ground.origin
    assert origin is not None
    return replace(ground, origin=Origin(origin.latitude, origin.longitude, origin.altitude - by_m))


def _beside(ground: Ground, stand_off: float) -> Ground:
    """Return a ground moved sideways by a distance."""
    if stand_off == 0.0:
        return ground
    if not _is_wall(ground):
        raise InputError(
            f"stand_off = {stand_off:g}, but the world is not vertical",
            expected="a world with one horizontal axis and one of height or depth",
            where="link.stand_off",
        )
    aside = [[stand_off * metres for metres in (*_right(ground), 0.0)]]
    return replace(ground, origin=Origin(*ground.degrees(aside)[0].tolist()))


def _is_wall(ground: Ground) -> bool:
    level = ground.towards[2] == 0
    return len(level) == 2 and int(level.sum()) == 1


def _right(ground: Ground) -> tuple[float, float]:
    """Return the unit vector (east, north) to the right of the horizontal axis of a vertical world."""
    east, north, _ = ground.towards[:, ground.towards[2] == 0][:, 0].tolist()
    return north, -east


# -- heading -----------------------------------------------------------------------------------------------


def faced(link: Settings, ground: Ground) -> Settings:
    """Return a link's settings with the heading of the vehicle, which faces the wall unless `yaw` is set.

    Parameters
    ----------
    link : MavlinkSettings
    ground : Ground

    Raises
    ------
    InputError
        `yaw` points away from the wall, and `yaw_away` does not say that this is meant.

    Examples
    --------
    >>> from fieldbo.domain.frame import Frame
    >>> wall = [Axis("along", "m", 0, 30), Axis("height", "m", 0, 18)]
    >>> ground = Frame(Origin(47.31, 8.58), along="along", height="height").over(wall)  # it runs east
    >>> faced(MavlinkSettings(stand_off=4.0), ground).yaw, faced(MavlinkSettings(stand_off=-4.0), ground).yaw
    (0.0, 180.0)
    """
    wall = _towards_wall(ground, link.stand_off)
    if wall is None:
        return link
    if link.yaw is None:
        return replace(link, yaw=wall)
    off = abs((link.yaw - wall + 180.0) % 360.0 - 180.0)
    if off > _AWAY_DEGREES and not link.yaw_away:
        raise InputError(
            f"yaw = {link.yaw:g} points away from the wall, which lies at {wall:g}° from the vehicle",
            expected="a heading within 90° of the wall",
            where="link.yaw",
            fix="delete yaw, so that the vehicle faces the wall; change the sign of stand_off if the vehicle "
            "is on the other side; or, if it is to look away, write yaw_away = true",
        )
    return link


def _towards_wall(ground: Ground, stand_off: float) -> float | None:
    """Return the heading that faces the wall, in degrees clockwise from north; None if that is unknown."""
    if stand_off == 0.0 or not _is_wall(ground):
        return None
    east, north = _right(ground)
    side = -math.copysign(1.0, stand_off)
    return round(math.degrees(math.atan2(side * east, side * north)), _DIGITS) % 360.0


# -- in words ----------------------------------------------------------------------------------------------


def describe_stance(link: MavlinkSettings, ground: Ground, mission: Mission) -> list[str]:
    """Return lines on a vehicle's stand-off, heading and heights.

    Parameters
    ----------
    link : MavlinkSettings
        With its heading: see `faced`.
    ground : Ground
        As from `located`.
    mission : Mission
    """
    lines = []
    if _is_wall(ground):
        lines.append(f"  stand-off {_side(link, ground)}; {_heading(link, ground)}")
    elif link.yaw is not None:
        lines.append(f"  yaw       {_heading(link, ground)}")
    return [*lines, f"  heights   {_heights(link, ground, mission)}"]


def _side(link: MavlinkSettings, ground: Ground) -> str:
    if link.stand_off == 0.0:
        return "0 m: on the line of the frame's origin"
    side = "right" if link.stand_off > 0 else "left"
    east, north = (math.copysign(1.0, link.stand_off) * metres for metres in _right(ground))
    towards = heading([east, north, 0.0])
    return f"{abs(link.stand_off):g} m to the {side} of the horizontal axis, towards {towards}"


def _heading(link: MavlinkSettings, ground: Ground) -> str:
    if link.yaw is None:
        return "the heading is up to the autopilot"
    turned = math.radians(link.yaw)
    words = f"yaw {heading([math.sin(turned), math.cos(turned), 0.0])}"
    wall = _towards_wall(ground, link.stand_off)
    return words if wall is None else f"{words}, facing the wall" if link.yaw == wall else f"{words}, as set"


def _heights(link: MavlinkSettings, ground: Ground, mission: Mission) -> str:
    heights = ground.geodetic(mission.world.domain.sites)[:, 2]
    low, high = float(heights.min()), float(heights.max())
    values = f"{low:.6g} m" if math.isclose(low, high, abs_tol=1e-6) else f"{low:.6g} to {high:.6g} m"
    if link.altitude == "absolute":
        return f"{values} above sea level, as the origin's altitude says"
    up = ground.towards[2]
    start = mission.vehicles[0].start
    where = "the start"
    if (up < 0).any():
        where = "at the surface"
    elif (up > 0).any():
        where = f"the start, at {mission.world.domain.axes[int(np.argmax(up))].name} {start @ up:g} m"
    return f"{values} above where the vehicle is armed: {where}"


def stance_doubts(link: MavlinkSettings, ground: Ground | None, mission: Mission) -> list[str]:
    """Return warnings of a speed that the world's costs contradict, and of heights unlikely to be meant."""
    warnings, implied = list[str](), implied_speed(ground, mission.world)
    if link.speed is not None and implied is not None and abs(link.speed / implied - 1.0) > _SPEEDS_DIFFER:
        warnings.append(
            f"speed = {link.speed:g} m/s in [link], but the world's costs imply {implied:.3g} m/s: correct "
            "one of them, otherwise travel times and battery use will differ from the declared ones"
        )
    altitude = 0.0 if ground is None or ground.origin is None else ground.origin.altitude
    highest = _HIGHEST_M.get(link.vehicle or "", _HIGHEST_IN_AIR_M)
    if link.altitude == "relative" and not _LOWEST_M <= altitude <= highest:
        warnings.append(
            f'altitude = "relative" in [link], but the origin in [frame] has an altitude of {altitude:g} m: '
            "the mission would begin that high above the place where the vehicle is armed; set the origin's "
            'altitude to 0, or altitude = "absolute"'
        )
    return warnings
