"""Plans that an autopilot follows by itself: as MAVLink items, their upload, and their files.

A plan is a sequence of waypoints that follow the routes as they were priced, around obstacles. Taking off and
landing are up to the pilot.

A plan for QGroundControl holds the mission and the fence. The text that MAVProxy and Mission Planner read,
``QGC WPL 110``, holds rows of one kind, so that the mission and the fence are two files. In the mission's,
row 0 is the home. The fence's has no home, which MAVProxy would send as a part of the fence; and its rows are
numbered from 1, or Mission Planner would take row 0 for the home and drop it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mavlink.fence_check import too_many
from fieldbo.vehicles.mavlink.geofence import GeoFence
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.wire import Item, Transfer, fence_items, mavutil, opened, settle_fence

WAYPOINT, _YAW, _SPEED = 16, 115, 178  # MAV_CMD_NAV_WAYPOINT, _CONDITION_YAW, _DO_CHANGE_SPEED
_SHOOT, _CAPTURE = 203, 2000  # MAV_CMD_DO_DIGICAM_CONTROL, MAV_CMD_IMAGE_START_CAPTURE
_MISSION_FRAME = 2  # MAV_FRAME_MISSION: the item has no place
_ARDUPILOT, _PX4 = 3, 12  # MAV_AUTOPILOT
_AUTOPILOTS: dict[int, Literal["ardupilot", "px4"]] = {_ARDUPILOT: "ardupilot", _PX4: "px4"}


@dataclass(frozen=True, eq=False)
class Track:
    """The points that a vehicle passes in straight legs.

    Attributes
    ----------
    points : (k, d) array
        The first is where the vehicle is armed.
    is_site : (k,) bool array
        Where a sample is taken.
    """

    points: Array
    is_site: Mask


def firsts(way: Track) -> NDArray[np.int64]:
    """Return the rows of a track's points without consecutive repeats."""
    return np.flatnonzero(np.append(True, (np.diff(way.points, axis=0) != 0).any(axis=1)))


def stays(way: Track, stay_s: ArrayLike) -> Array:
    """Return the seconds at each point of a track without consecutive repeats; their stays add up."""
    return np.add.reduceat(np.where(way.is_site, stay_s, 0.0), firsts(way))


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


_FIRMWARE = {None: 0, "ardupilot": 3, "px4": 12}  # MAV_AUTOPILOT
_VEHICLES = {None: 0, "plane": 1, "copter": 2, "rover": 10, "boat": 11, "submarine": 12}  # MAV_TYPE
_FRAMES = {5: 0, 6: 3}  # in files, MAV_FRAMEs are those of degrees that are no integers
_USUAL_SPEED = 5.0
_DIGITS = 9  # of degrees: a tenth of a millimetre
_STATION = "fieldbo"
_HEADER = f"QGC WPL 110\n# {_STATION}\n"


def is_ours(text: str) -> bool:
    r"""Return True if a plan in any of the formats was written by fieldbo.

    Examples
    --------
    >>> is_ours('{"groundStation": "QGroundControl"}'), is_ours("QGC WPL 110\n# fieldbo\n")
    (False, True)
    """
    if text.startswith(_HEADER):
        return True
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("groundStation") == _STATION


# -- QGroundControl ----------------------------------------------------------------------------------------


def plan_file(route: Sequence[Waypoint], fence: GeoFence, link: MavlinkSettings, home: Array) -> str:
    """Return the text of a ``.plan`` file, including the fence.

    Parameters
    ----------
    route : sequence of Waypoint
    fence : GeoFence
    link : MavlinkSettings
    home : (d,) array
        The planned home, in the domain's axes.
    """
    speed = _USUAL_SPEED if link.speed is None else link.speed
    plan = {
        "fileType": "Plan",
        "groundStation": _STATION,
        "version": 1,
        "mission": {
            "version": 2,
            "firmwareType": _FIRMWARE[link.firmware],
            "vehicleType": _VEHICLES[link.vehicle],
            "globalPlanAltitudeMode": _altitude_mode(link),
            "cruiseSpeed": speed,
            "hoverSpeed": speed,
            "plannedHomePosition": _in_file(fence.ground.geodetic(home)[0].tolist()),
            "items": [_simple(number, item, link) for number, item in enumerate(items(route, link), start=1)],
        },
        "geoFence": _geofence(fence),
        "rallyPoints": {"points": [], "version": 2},
    }
    return json.dumps(plan, indent=4, allow_nan=False) + "\n"


def _in_file(place: Sequence[float]) -> list[float]:
    """Return latitude, longitude and what follows as a file holds them."""
    latitude, longitude, *rest = place
    return [round(latitude, _DIGITS), round(longitude, _DIGITS), *rest]


def _altitude_mode(link: MavlinkSettings) -> int:
    return 2 if link.altitude == "absolute" else 1


def _simple(number: int, item: Item, link: MavlinkSettings) -> dict[str, Any]:
    """Return a simple item; a yaw of null leaves the heading to the vehicle."""
    params = [
        None if math.isnan(value) else value for value in (*item.params, *_in_file((item.x, item.y, item.z)))
    ]
    simple = {
        "type": "SimpleItem",
        "autoContinue": True,
        "command": item.command,
        "doJumpId": number,
        "frame": _FRAMES.get(item.frame, item.frame),
        "params": params,
    }
    if item.command == WAYPOINT:
        mode = _altitude_mode(link)
        simple |= {"Altitude": item.z, "AltitudeMode": mode, "AMSLAltAboveTerrain": None}
    return simple


def _geofence(fence: GeoFence) -> dict[str, Any]:
    """Return the fence's polygons and circles."""
    polygons = [
        {"inclusion": zone.inclusion, "polygon": [_in_file(corner) for corner in zone.corners], "version": 1}
        for zone in fence.zones
        if zone.corners
    ]
    circles = [
        {
            "circle": {"center": _in_file(zone.centre), "radius": zone.radius},
            "inclusion": zone.inclusion,
            "version": 1,
        }
        for zone in fence.zones
        if not zone.corners
    ]
    return {"circles": circles, "polygons": polygons, "version": 2}


# -- text ------------------------------------------------------------------------------------------------


def waypoint_file(route: Sequence[Waypoint], fence: GeoFence, link: MavlinkSettings, home: Array) -> str:
    """Return the text of a mission as ``QGC WPL 110``, with the home as row 0.

    Parameters
    ----------
    route : sequence of Waypoint
    fence : GeoFence
        Its ground is where the home lies.
    link : MavlinkSettings
    home : (d,) array
        The planned home, in the domain's axes.
    """
    first = home_item(fence.ground.geodetic(home)[0].tolist(), link)
    first = replace(first, frame=0, z=first.z if link.altitude == "absolute" else 0.0)
    unset = 0.0 if link.firmware == "ardupilot" else math.nan  # for PX4, a heading of 0 is north
    return _text([first, *items(route, link)], 0, unset)


def fence_file(fence: GeoFence) -> str:
    """Return the text of a fence as ``QGC WPL 110``, in rows from 1, without a home."""
    return _text(fence_items(fence.zones), 1)


def _text(rows: Sequence[Item], first: int, unset: float = 0.0) -> str:
    return _HEADER + "".join(_row(number, item, unset) for number, item in enumerate(rows, start=first))


def _row(number: int, item: Item, unset: float) -> str:
    """Return a row: its number, whether it is current, frame, command, seven parameters, and to go on."""
    values = [*item.params, *_in_file((item.x, item.y, item.z))]
    known = [unset if math.isnan(value) else value for value in values]
    numbers = ["NaN" if math.isnan(value) else f"{value:.{_DIGITS}f}" for value in known]
    head = number, int(number == 0), _FRAMES.get(item.frame, item.frame), item.command
    return "\t".join([*map(str, head), *numbers, "1"]) + "\n"
