"""Plans that an autopilot follows by itself, as MAVLink items, and their upload.

A plan is a sequence of waypoints that follow the routes as they were priced, around obstacles. Taking off and
landing are up to the pilot.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mavlink.fence_storage import too_many
from fieldbo.vehicles.mavlink.geofence import GeoFence
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.track import Track, firsts, stays
from fieldbo.vehicles.mavlink.transfer import Item, Transfer, settle_fence
from fieldbo.vehicles.mavlink.wire import mavutil, opened

WAYPOINT, _YAW, _SPEED = 16, 115, 178  # MAV_CMD_NAV_WAYPOINT, _CONDITION_YAW, _DO_CHANGE_SPEED
_SHOOT, _CAPTURE = 203, 2000  # MAV_CMD_DO_DIGICAM_CONTROL, MAV_CMD_IMAGE_START_CAPTURE
_MISSION_FRAME = 2  # MAV_FRAME_MISSION: the item has no place
_ARDUPILOT, _PX4 = 3, 12  # MAV_AUTOPILOT
_AUTOPILOTS: dict[int, Literal["ardupilot", "px4"]] = {_ARDUPILOT: "ardupilot", _PX4: "px4"}


@dataclass(frozen=True)
class Waypoint:
    """A place to go to.

    Attributes
    ----------
    latitude, longitude : float
        Degrees on WGS 84.
    altitude : float
        Metres, measured as the link's `altitude` states.
    stay_s : float
        How long to stay there, in seconds.
    is_site : bool
        Whether a sample is taken there; at others, the route only bends.
    within : float
        Acceptance radius in metres; 0 leaves it to the autopilot.
    """

    latitude: float
    longitude: float
    altitude: float
    stay_s: float = 0.0
    is_site: bool = True
    within: float = 0.0


def waypoints(way: Track, fence: GeoFence, stay_s: ArrayLike = 0.0, within: float = 0.0) -> list[Waypoint]:
    """Return waypoints for a track, without its start; consecutive repeats become one.

    Parameters
    ----------
    way : Track
    fence : GeoFence
    stay_s : float or (k,) array
        How long to stay at each site, or at each point, in seconds. Stays at consecutive repeats add up.
    within : float
        Acceptance radius in metres.

    Raises
    ------
    InputError
        A leg leads out of the fence.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.frame import Frame, Origin
    >>> ground = Frame(Origin(47.31, 8.58, 406.0), along="x").over([Axis("x", "m", 0, 900)])
    >>> way = Track(np.array([[0.0], [100.0], [500.0]]), np.array([False, False, True]))
    >>> [(round(point.longitude, 4), point.stay_s) for point in waypoints(way, GeoFence(ground), 4.0)]
    [(8.5813, 0.0), (8.5866, 4.0)]
    """
    places = fence.ground.geodetic(way.points).tolist()
    for k in range(1, len(places)):
        why = fence.objection(places[k], places[k - 1])
        if why is not None:
            raise InputError(f"waypoint {k}: {why}", expected="a route within the fence", where="link.fence")
    first = firsts(way)
    sampled = np.logical_or.reduceat(way.is_site, first).tolist()
    found = []
    for row, stay, is_site in zip(first.tolist(), stays(way, stay_s).tolist(), sampled, strict=True):
        if row > 0 or is_site:
            latitude, longitude, altitude = places[row]
            found.append(Waypoint(latitude, longitude, altitude, stay, is_site, within))
    return found


def items(route: Sequence[Waypoint], link: MavlinkSettings) -> list[Item]:
    """Return the items of a mission: speed and heading first, then waypoints, with a photo at each site."""
    found = []
    if link.speed is not None:
        found.append(Item(_SPEED, _MISSION_FRAME, (1.0, link.speed, -1.0, 0.0)))  # over ground
    yaw = math.nan if link.yaw is None else link.yaw
    if link.yaw is not None and link.firmware == "ardupilot":  # which ignores the heading of a waypoint
        found.append(Item(_YAW, _MISSION_FRAME, (yaw, 0.0, 0.0, 0.0)))
    frame = 5 if link.altitude == "absolute" else 6  # MAV_FRAME_GLOBAL_INT, _GLOBAL_RELATIVE_ALT_INT
    for point in route:
        # ArduPilot keeps whole seconds, and drops the rest.
        stay_s = math.ceil(point.stay_s - 1e-9) if link.firmware == "ardupilot" else point.stay_s
        params = (stay_s, point.within, 0.0, yaw)
        found.append(Item(WAYPOINT, frame, params, point.latitude, point.longitude, point.altitude))
        if link.camera and point.is_site:
            found.append(_photo(link))
    return found


def home_item(place: Sequence[float], link: MavlinkSettings) -> Item:
    """Return the item of a home at latitude, longitude and altitude."""
    latitude, longitude, altitude = place
    return items([Waypoint(latitude, longitude, altitude, is_site=False)], link)[-1]


def _photo(link: MavlinkSettings) -> Item:
    """Return an item that takes one photo; all versions of ArduPilot support the older command."""
    if link.firmware == "ardupilot":
        return Item(_SHOOT, _MISSION_FRAME, (0.0, 0.0, 0.0, 0.0), x=1.0)
    return Item(_CAPTURE, _MISSION_FRAME, (0.0, 0.0, 1.0, 0.0))


# -- upload ------------------------------------------------------------------------------------------------


@contextmanager
def _open(link: MavlinkSettings) -> Iterator[Transfer]:
    """Open the link for transfers.

    Raises
    ------
    VehicleError
        The link cannot be opened, or breaks.
    """
    module = mavutil(link)
    try:
        wire = opened(link, link.connection, module, system=link.own_system, component=190)
    except OSError as error:
        raise VehicleError(f"{link.connection} cannot be opened: {error}") from None
    try:
        yield Transfer(wire, link, module.mavlink.enums["MAV_MISSION_RESULT"])
    except OSError as error:
        raise VehicleError(f"the link broke during the transfer: {error}") from None
    finally:
        wire.close()


def _check_storage(fence: GeoFence, link: MavlinkSettings, autopilot: int) -> None:
    """Raise a `VehicleError` if the fence is to be uploaded, and this autopilot cannot store it."""
    firmware = _AUTOPILOTS.get(autopilot)
    if firmware is None or not link.upload_fence:
        return
    if why := too_many(fence, replace(link, firmware=firmware)):
        raise VehicleError(f"{why}\n  fix:      set firmware = {json.dumps(firmware)} in [link]")


def upload(route: Sequence[Waypoint], fence: GeoFence, link: MavlinkSettings, home: Array) -> list[str]:
    """Upload the route to the vehicle, replacing its mission, and settle the fence; return what to report.

    The vehicle's own fence is compared with `fence`, and replaced only if the link's `upload_fence` says so.

    Raises
    ------
    VehicleError
        No vehicle answers, it does not accept the mission or the fence, or the link is too poor.
    """
    with _open(link) as wire:
        autopilot = wire.autopilot()
        found, given = _AUTOPILOTS.get(autopilot, link.firmware), link.firmware
        mission = items(route, replace(link, firmware=found))
        _check_storage(fence, link, autopilot)
        if autopilot == _ARDUPILOT:  # which overwrites item 0 with its home
            mission = [home_item(fence.ground.geodetic(home)[0].tolist(), link), *mission]
        notes = settle_fence(wire, fence, link.upload_fence)  # before the mission that needs it
        if found != given and given is not None:
            notes.append(
                f"the vehicle runs {found}, but its file says {given}: the plan was sent as for {found}"
            )
        wire.upload(mission)
    return notes
