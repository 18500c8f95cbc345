"""A link to a boat, drone or submarine whose autopilot speaks MAVLink 2, such as ArduPilot or PX4.

fieldbo acts as a ground station that guides the vehicle: it repeatedly sends the place to go to, since nobody
acknowledges it, and takes the vehicle's position, battery and readings from the messages that it streams.
`fieldbo.vehicles.mavlink.station` describes when fieldbo has control, and when a pilot has.

By itself, an autopilot goes straight back to where it was armed: return to launch, and most failsafes, know
nothing of the routes around obstacles. What lies in between is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import ClassVar, Literal

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground
from fieldbo.domain.places import place_text
from fieldbo.errors import VehicleError, counted
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.mavlink.fence_check import (
    check_geofence,
    describe_geofence,
    simplified,
    storable,
    whole_world,
)
from fieldbo.vehicles.mavlink.flight_plan import Waypoint
from fieldbo.vehicles.mavlink.geofence import GeoFence, geofence
from fieldbo.vehicles.mavlink.settings import (
    MavlinkSettings,
    describe_stance,
    faced,
    located,
    places_armed,
    stance_doubts,
)
from fieldbo.vehicles.remote.link import Capacity, Connection, Link, OnReport
from fieldbo.vehicles.remote.track import Fixes

_FRAME_BYTES, _SIGNATURE_BYTES = 12, 13
"""Bytes of a message around its payload, and of its signature, if any."""


@settings("link")
class Mavlink(MavlinkSettings, Link):
    """A link to a vehicle whose autopilot speaks MAVLink 2."""

    reports: ClassVar[bool] = False
    follows_routes: ClassVar[bool] = False
    needs_origin: ClassVar[bool] = True
    battery_in: ClassVar[Literal["percent", "either"]] = "percent"

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        """Start to listen and to send heartbeats; return at once.

        Raises
        ------
        VehicleError
            pymavlink is not installed, the domain's place is unknown, or the sensor has several settings.
        InputError
            The fence contradicts the world or the mission, or has more points than the autopilot stores; or
            `yaw` points away from the wall.
        """
        fence = self.guarding(self.geofence(mission, ground), mission)
        if mission.world.sensor.settings > 1:
            raise VehicleError(
                f"the sensor of {mission.world.name} has {mission.world.sensor.settings} settings, "
                "but MAVLink offers no way to select one"
            )
        from fieldbo.vehicles.mavlink.station import GroundStation

        _ = self.signing_key  # raises an error here rather than in the station's thread
        check_geofence(fence, mission)
        return GroundStation(faced(self, fence.ground), fence, Fixes(mission), on_report)

    def capacity(self, domain: Domain) -> Capacity | None:
        """Return what is left next to positions at 5 Hz, heartbeats and the battery at 1 Hz."""
        bytes_per_s, key = self.bytes_per_s, "bytes_per_s"
        if bytes_per_s is None and self.serial:
            bytes_per_s, key = self.baud / 10.0, "baud"
        if bytes_per_s is None:
            return None
        around = _FRAME_BYTES + (0 if self.signing_key_from is None else _SIGNATURE_BYTES)
        others = 5 * (around + 28) + (around + 9) + (around + 54)
        return Capacity(bytes_per_s - others, around + 18, key)

    def placed(self, ground: Ground | None, domain: Domain) -> Ground | None:
        """Return where the vehicle's sites lie: at the distance that it keeps from a wall."""
        if ground is None or ground.origin is None:
            return ground
        return located(ground, domain.axes, self)

    def check(self, mission: Mission, ground: Ground | None) -> list[str]:
        """Return what contradicts the world's costs, or the heights; the fence must fit the mission."""
        if ground is not None and ground.origin is not None:
            check_geofence(self.geofence(mission, ground), mission)
        return stance_doubts(self, ground, mission)

    def describe(self, mission: Mission, ground: Ground | None) -> list[str]:
        """Return the heading, the heights and the fence, and what the autopilot does by itself."""
        whole = self.geofence(mission, ground)
        fence = self.guarding(whole, mission)
        return [
            *describe_stance(faced(self, fence.ground), fence.ground, mission),
            *describe_geofence(fence, mission, self),
            *(f"  fence     {line}" for line in simplified(whole, fence, self)),
            *(f"warning: {warning}" for warning in from_sites(mission, fence)),
        ]

    def geofence(self, mission: Mission, ground: Ground | None) -> GeoFence:
        """Return the fence of a mission whose axes lie on `ground`.

        Raises
        ------
        VehicleError
            Where the domain lies is unknown.
        InputError
            The world and the vehicle file have no area in common, or several; `stand_off` does not fit the
            world; or relative heights count from several places.
        """
        axes = mission.world.domain.axes
        return geofence(mission, located(ground, axes, self, places_armed(mission)), self.fence)

    def guarding(self, fence: GeoFence, mission: Mission) -> GeoFence:
        """Return the fence for guided flight: as the autopilot stores it, if it is uploaded.

        Raises
        ------
        InputError
            The autopilot does not store it, even with as few points as the mission's routes allow.
        """
        if not self.upload_fence:
            return fence
        otherwise = "or set upload_fence = false; the fence of a plan needs to hold only its own route"
        return storable(fence, self, whole_world(mission, fence), otherwise)


_MOST_SITES = 200
"""How many sites of a world are tried."""

_MOST_NAMES = 3
_DIGITS = 7  # of places
_ROUNDING_M = 0.05
_BEYOND = "the fence"
_SUBJECT = "return to launch, and most failsafes, go straight to where the vehicle was armed"
_REMEDY = (
    "let failsafes hold or retrace the way instead (ArduPilot: Hold or SmartRTL; PX4: Hold in NAV_DLL_ACT "
    "and NAV_RCL_ACT), or set rally points"
)


def crossings(mission: Mission, fence: GeoFence, places: Array, armed: Array) -> dict[str, Mask]:
    """Return from which places the straight way back crosses what is closed.

    Parameters
    ----------
    mission : Mission
    fence : GeoFence
    places : (n, d) array
    armed : (d,) array
        Where the vehicle was armed.

    Returns
    -------
    dict of str to (n,) bool array
        By the name of an obstacle or hole, or "the fence" for its edge; without those that nothing crosses.
    """
    ends = np.broadcast_to(armed, places.shape)
    starts, targets = (fence.ground.local(points)[:, :2] for points in (places, ends))
    legs = shapely.linestrings(np.stack([starts, targets], axis=1))
    moves = np.abs(starts - targets).max(axis=1) > _ROUNDING_M
    found: dict[str, Mask] = {}
    for zone in fence.zones:
        shape = zone.shape(fence.ground)
        if zone.inclusion:
            found[_BEYOND] = moves & ~shapely.covers(shape.buffer(_ROUNDING_M), legs)
        else:
            found[zone.name] = moves & shapely.intersects(shape.buffer(-_ROUNDING_M), legs)
    for obstacle in mission.world.domain.solid:
        if obstacle.name in fence.left_out:
            found[obstacle.name] = np.array([obstacle.crosses(place, armed) for place in places], dtype=bool)
    return {name: mask for name, mask in found.items() if mask.any()}


def from_waypoints(
    mission: Mission, fence: GeoFence, route: Sequence[Waypoint], armed: Array, which: str = ""
) -> list[str]:
    """Return a warning that names the waypoints of a plan from which the straight way back is not free.

    Parameters
    ----------
    mission : Mission
    fence : GeoFence
    route : sequence of Waypoint
    armed : (d,) array
        Where the vehicle was armed.
    which : str
        How the warning begins, with several plans.
    """
    geodetic = np.array([(point.latitude, point.longitude, point.altitude) for point in route])
    found = crossings(mission, fence, fence.ground.from_geodetic(geodetic), armed)
    parts = [
        f"{_through(name)} from {_number(mask)}{_at(fence, geodetic[mask, 2])}"
        for name, mask in found.items()
    ]
    return [f"{which}{_warning(parts, found, mission, fence)}"] if found else []


def from_sites(mission: Mission, fence: GeoFence) -> list[str]:
    """Return a warning about sites of a mission from which the straight way back to a start is not free."""
    sites = mission.world.domain.sites
    some = sites[:: 1 + len(sites) // _MOST_SITES]
    starts = np.unique([spec.start for spec in mission.vehicles], axis=0)
    found = [crossings(mission, fence, some, start) for start in starts]
    masks = [mask for crossed in found for mask in crossed.values()]
    if not masks:
        return []
    names = [*dict.fromkeys(name for crossed in found for name in crossed)]
    blocked = np.logical_or.reduce(masks)
    example = place_text(mission.world.domain, some[int(np.argmax(blocked))].round(_DIGITS))
    part = f"from {int(blocked.sum())} of {counted(len(some), 'site')}, such as {example}, {_all(names)}"
    return [_warning([part], names, mission, fence)]


# -- in words ----------------------------------------------------------------------------------------------


def _warning(parts: Iterable[str], found: Iterable[str], mission: Mission, fence: GeoFence) -> str:
    return f"{_SUBJECT}: {', '.join(parts)}{_tops(found, mission, fence)}; {_REMEDY}"


def _all(names: Sequence[str]) -> str:
    """Return what is crossed, with the names of the first few obstacles.

    Examples
    --------
    >>> _all(["the fence", "island", "pier", "reef", "buoy"])
    'through island, pier, reef and 1 other, and out of the fence'
    """
    solid = [name for name in names if name != _BEYOND]
    others = len(solid) - _MOST_NAMES
    through = _through(", ".join(solid[:_MOST_NAMES])) + (
        f" and {counted(others, 'other')}" if others > 0 else ""
    )
    beyond = [_through(_BEYOND)] if _BEYOND in names else []
    return ", and ".join([*([through] if solid else []), *beyond])


def _through(name: str) -> str:
    return f"out of {name}" if name == _BEYOND else f"through {name}"


def _number(mask: Mask) -> str:
    """Return the numbers of waypoints, counted from 1, as text with ranges.

    Examples
    --------
    >>> _number(np.array([False, True, True, True, False, True])), _number(np.array([True]))
    ('waypoints 2-4, 6', 'waypoint 1')
    """
    numbers = (np.flatnonzero(mask) + 1).tolist()
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ]
    text = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"waypoint{'s' if len(numbers) > 1 else ''} {text}"


def _at(fence: GeoFence, altitudes: Array) -> str:
    """Return the heights of waypoints, if the world has heights."""
    if not fence.ground.towards[2].any():
        return ""
    low, high = altitudes.min(), altitudes.max()
    return f" at {low:.4g} m" if high - low < _ROUNDING_M else f" at {low:.4g} to {high:.4g} m"


def _tops(found: Iterable[str], mission: Mission, fence: GeoFence) -> str:
    """Return how high the obstacles are beside a wall, above which the return altitude must be."""
    up = fence.ground.towards[2]
    if not (up > 0).any():
        return ""
    domain, axis = mission.world.domain, int(np.argmax(up))
    tops = []
    for obstacle in domain.solid:
        if obstacle.name in [*found]:
            place = domain.low.copy()
            place[axis] = obstacle.polygon.bounds[2 + axis] if obstacle.corners else obstacle.high[axis]
            tops.append(float(fence.ground.geodetic(place)[0, 2]))
    if not tops:
        return ""
    return (
        f"; these reach up to {max(tops):.4g} m, and the vehicle climbs to its return altitude first "
        "(ArduPilot: RTL_ALT; PX4: RTL_RETURN_ALT), whatever is above it"
    )
