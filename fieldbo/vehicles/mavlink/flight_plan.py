"""Plans that an autopilot follows by itself: QGroundControl's file format, and MAVLink's mission protocol.

A plan is a sequence of waypoints. Taking off and landing are up to the pilot.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError, VehicleError
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.wire import mavutil, opened

_WAYPOINT = 16  # MAV_CMD_NAV_WAYPOINT
_ARDUPILOT = 3  # MAV_AUTOPILOT_ARDUPILOTMEGA
_CANCELLED = 15  # MAV_MISSION_OPERATION_CANCELLED: the vehicle aborted the transfer
_TRIES = 8
_HEARTBEAT_S = 30.0
_QUIET_S = 3.0  # restart a transfer after this much silence


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
    """

    latitude: float
    longitude: float
    altitude: float
    stay_s: float = 0.0


def waypoints(sites: ArrayLike, ground: Ground, link: MavlinkSettings, stay_s: float = 0.0) -> list[Waypoint]:
    """Return waypoints for sites (k, d) in order; consecutive repeats become one.

    Raises
    ------
    InputError
        There are no sites, or a leg leads out of the link's fence.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.frame import Frame, Origin
    >>> ground = Frame(Origin(47.31, 8.58, 406.0), along="x").over([Axis("x", "m", 0, 900)])
    >>> route = waypoints([[0.0], [500.0]], ground, MavlinkSettings("udpin:0.0.0.0:14550", reading="chl"))
    >>> [round(waypoint.longitude, 4) for waypoint in route]
    [8.58, 8.5866]
    """
    if not np.size(sites):
        raise InputError("the plan has no sites", expected="at least one site")
    rows = np.atleast_2d(np.asarray(sites, dtype=float))
    changed = np.append(True, (np.diff(rows, axis=0) != 0).any(axis=1))
    places: Array = ground.geodetic(rows[changed])
    origin = ground.origin
    assert origin is not None
    for k, place in enumerate(places if link.fence is not None else []):
        assert link.fence is not None
        before = places[k - 1] if k else None
        why = link.fence.objection(place, before, [origin.latitude, origin.longitude, 0.0])
        if why is not None:
            raise InputError(
                f"waypoint {k + 1}: {why}", expected="a route within the fence", where="link.fence"
            )
    return [Waypoint(place[0], place[1], place[2], stay_s) for place in places.tolist()]


# -- QGroundControl ----------------------------------------------------------------------------------------


def plan_file(route: Sequence[Waypoint], ground: Ground, link: MavlinkSettings) -> str:
    """Return the text of a ``.plan`` file, including the link's fence.

    Parameters
    ----------
    route : sequence of Waypoint
    ground : Ground
        Its origin becomes the planned home.
    link : MavlinkSettings
    """
    origin = ground.origin
    assert origin is not None
    plan = {
        "fileType": "Plan",
        "groundStation": "fieldbo",
        "version": 1,
        "mission": {
            "version": 2,
            "firmwareType": 0,
            "vehicleType": 0,
            "globalPlanAltitudeMode": _altitude_mode(link),
            "cruiseSpeed": 5,
            "hoverSpeed": 5,
            "plannedHomePosition": [origin.latitude, origin.longitude, origin.altitude],
            "items": [_item(number, waypoint, link) for number, waypoint in enumerate(route, start=1)],
        },
        "geoFence": _geofence(ground, link),
        "rallyPoints": {"points": [], "version": 2},
    }
    return json.dumps(plan, indent=4, allow_nan=False) + "\n"


def _altitude_mode(link: MavlinkSettings) -> int:
    return 2 if link.altitude == "absolute" else 1


def _item(number: int, waypoint: Waypoint, link: MavlinkSettings) -> dict[str, Any]:
    """Return a simple item; a yaw of null leaves the heading to the vehicle."""
    return {
        "type": "SimpleItem",
        "autoContinue": True,
        "command": _WAYPOINT,
        "doJumpId": number,
        "frame": 0 if link.altitude == "absolute" else 3,  # MAV_FRAME_GLOBAL, _GLOBAL_RELATIVE_ALT
        "params": [waypoint.stay_s, 0, 0, None, waypoint.latitude, waypoint.longitude, waypoint.altitude],
        "Altitude": waypoint.altitude,
        "AltitudeMode": _altitude_mode(link),
        "AMSLAltAboveTerrain": None,
    }


def _geofence(ground: Ground, link: MavlinkSettings) -> dict[str, Any]:
    """Return the fence's polygon (clockwise) and circle."""
    from shapely.geometry import Polygon

    polygons, circles, fence, origin = [], [], link.fence, ground.origin
    assert origin is not None
    if fence is not None and fence.corners:
        by_longitude = Polygon([(longitude, latitude) for latitude, longitude in fence.corners])
        corners = list(fence.corners[::-1] if by_longitude.exterior.is_ccw else fence.corners)
        polygons.append({"inclusion": True, "polygon": [list(corner) for corner in corners], "version": 1})
    if fence is not None and math.isfinite(fence.radius):
        circle = {"center": [origin.latitude, origin.longitude], "radius": fence.radius}
        circles.append({"circle": circle, "inclusion": True, "version": 1})
    return {"circles": circles, "polygons": polygons, "version": 2}


# -- the mission protocol ----------------------------------------------------------------------------------


def upload(route: Sequence[Waypoint], ground: Ground, link: MavlinkSettings) -> None:
    """Upload the route to the vehicle, replacing its mission.

    The vehicle requests one item after the other, and lost ones again; a transfer that falls silent is
    restarted.

    Raises
    ------
    VehicleError
        No vehicle answers, it does not accept the mission, or the link is too poor.
    """
    module = mavutil(link)
    try:
        wire = opened(link.connection, module, system=link.own_system, component=190, baud=link.baud)
    except OSError as error:
        raise VehicleError(f"{link.connection} cannot be opened: {error}") from None
    try:
        _Transfer(wire, link, route, ground, module.mavlink.enums["MAV_MISSION_RESULT"]).run()
    except OSError as error:
        raise VehicleError(f"the link broke during the upload: {error}") from None
    finally:
        wire.close()


class _Transfer:
    """One mission on its way to a vehicle."""

    def __init__(
        self,
        wire: Any,
        link: MavlinkSettings,
        route: Sequence[Waypoint],
        ground: Ground,
        results: dict[int, Any],
    ) -> None:
        self.wire, self.link, self.results = wire, link, results
        origin = ground.origin
        assert origin is not None
        self.home = Waypoint(origin.latitude, origin.longitude, origin.altitude)
        self.items = list(route)
        self._beat_s = -math.inf

    def run(self) -> None:
        """Send the mission, with retries."""
        heartbeat = self._next(_HEARTBEAT_S, "HEARTBEAT")
        if heartbeat is None:
            raise VehicleError(
                f"no vehicle answers at {self.link.address}: no heartbeat of system {self.link.system}"
            )
        if heartbeat.autopilot == _ARDUPILOT:
            self.items.insert(0, self.home)  # ArduPilot overwrites item 0 with its home
        for _ in range(_TRIES):
            if self._try():
                return
        raise VehicleError(
            f"the vehicle did not accept the mission in {_TRIES} tries: the link is too poor, or the vehicle "
            "accepts none (the simulated boat does not)"
        )

    def _try(self) -> bool:
        """Try once; return True if the vehicle accepted all items."""
        link, mav = self.link, self.wire.mav
        mav.mission_count_send(link.system, link.component, len(self.items), 0)
        while True:
            message = self._next(_QUIET_S, "MISSION_REQUEST_INT", "MISSION_REQUEST", "MISSION_ACK")
            if message is None:
                return False
            if message.get_type() != "MISSION_ACK":
                self._send_item(message.seq)
            elif message.type == 0:
                return True
            elif message.type == _CANCELLED:
                return False
            else:
                raise VehicleError(f"the vehicle rejected the mission: {self._name(message.type)}")

    def _send_item(self, number: int) -> None:
        if not 0 <= number < len(self.items):
            return
        waypoint, link = self.items[number], self.link
        self.wire.mav.mission_item_int_send(
            link.system,
            link.component,
            number,
            5 if link.altitude == "absolute" else 6,  # MAV_FRAME_GLOBAL_INT, _GLOBAL_RELATIVE_ALT_INT
            _WAYPOINT,
            int(number == 0),
            1,
            waypoint.stay_s,
            0.0,
            0.0,
            math.nan,
            round(waypoint.latitude * 1e7),
            round(waypoint.longitude * 1e7),
            waypoint.altitude,
            0,
        )

    def _next(self, patience_s: float, *kinds: str) -> Any:
        """Return the next message of these kinds from the vehicle to us; None if none comes in time."""
        end = time.monotonic() + patience_s
        while (left := end - time.monotonic()) > 0:
            if time.monotonic() > self._beat_s + 1.0:
                self._beat_s = time.monotonic()
                self.wire.mav.heartbeat_send(6, 8, 0, 0, 4)
            message = self.wire.recv_match(type=list(kinds), blocking=True, timeout=min(left, 0.5))
            if message is None or message.get_srcSystem() != self.link.system:
                continue
            target = getattr(message, "target_system", self.link.own_system)
            if message.get_srcComponent() == self.link.component and target in (0, self.link.own_system):
                return message
        return None

    def _name(self, result: int) -> str:
        entry = self.results.get(result)
        return f"error {result}" if entry is None else str(entry.name).removeprefix("MAV_MISSION_").lower()
