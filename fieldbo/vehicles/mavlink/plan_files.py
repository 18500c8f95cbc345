"""Files of plans: QGroundControl's, and the text that MAVProxy and Mission Planner read.

A plan for QGroundControl holds the mission and the fence. The text format, ``QGC WPL 110``, holds rows of one
kind, so that the mission and the fence are two files. In the mission's, row 0 is the home. The fence's has no
home, which MAVProxy would send as a part of the fence; and its rows are numbered from 1, or Mission Planner
would take row 0 for the home and drop it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fieldbo._numerics.arrays import Array
from fieldbo.vehicles.mavlink.flight_plan import WAYPOINT, Waypoint, home_item, items
from fieldbo.vehicles.mavlink.geofence import GeoFence
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.transfer import Item, fence_items

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
