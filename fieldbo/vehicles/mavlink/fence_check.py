"""What contradicts a fence, and how much of it an autopilot stores; a fence with fewer corners that fits.

An inclusion may only shrink, and an exclusion only grow, and neither into the area that the vehicle needs.
Two moves reduce the corners of a polygon by one: to leave a corner out, and to replace an edge by the point
where its neighbours meet. Either cuts a triangle off an inclusion, or adds one to an exclusion. The smallest
triangle goes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.places import place_text
from fieldbo.errors import InputError, counted
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.mavlink.geofence import (
    STRAIGHT_M,
    GeoFence,
    Zone,
    allowed,
    in_degrees,
    in_metres,
    placed_region,
    room_m,
)
from fieldbo.vehicles.mavlink.settings import MavlinkSettings

_PX4_POINTS = 63
"""PX4 stores 64 items, polygons' corners and circles; its older versions need one of them themselves."""

_COPTER_POINTS, _ARDUPILOT_POINTS = 70, 84
"""Fence storage of ArduPilot on boards with 16 KiB, in items of 8 bytes."""

_ITEM_BYTES, _HEADER_BYTES, _POLYGON_BYTES, _CIRCLE_BYTES = 8, 4, 2, 13  # on ArduPilot
_MOST_CORNERS = 255  # of one polygon, on ArduPilot
_NAMES = {"px4": "PX4", "ardupilot": "ArduPilot"}
_ROUNDING = 1e-9  # of an area, relative
_ROUNDING_M = 0.01


def points_held(link: MavlinkSettings) -> int | None:
    """Return how many points of a fence the autopilot stores; None if its firmware is unknown."""
    if link.fence_points is not None or link.firmware is None:
        return link.fence_points
    if link.firmware == "px4":
        return _PX4_POINTS
    return _COPTER_POINTS if link.vehicle in (None, "copter") else _ARDUPILOT_POINTS


def points_needed(zones: Sequence[Zone], link: MavlinkSettings) -> int:
    """Return how many points of an autopilot's storage zones take.

    PX4 counts each corner and each circle. ArduPilot counts bytes, 8 for each point that it stores.

    Examples
    --------
    >>> square = Zone(True, ((47, 8), (47, 9), (48, 9), (48, 8)))
    >>> [points_needed([square], MavlinkSettings(firmware=name)) for name in ("px4", "ardupilot")]
    [4, 5]
    """
    corners = sum(len(zone.corners) for zone in zones)
    circles = sum(not zone.corners for zone in zones)
    if link.firmware != "ardupilot":
        return corners + circles
    polygons = len(zones) - circles
    used = _HEADER_BYTES + _POLYGON_BYTES * polygons + _ITEM_BYTES * corners + _CIRCLE_BYTES * circles
    return math.ceil(used / _ITEM_BYTES)


def fits(zones: Sequence[Zone], link: MavlinkSettings) -> bool:
    """Return True if the autopilot stores zones, or its firmware is unknown."""
    held = points_held(link)
    if held is None or points_needed(zones, link) > held:
        return held is None
    return link.firmware != "ardupilot" or all(len(zone.corners) <= _MOST_CORNERS for zone in zones)


def storable(fence: GeoFence, link: MavlinkSettings, needed: BaseGeometry, fix: str) -> GeoFence:
    """Return a fence that the autopilot stores: the same, or one with fewer corners that allows less.

    Parameters
    ----------
    fence : GeoFence
    link : MavlinkSettings
    needed : geometry
        The area, in local metres, that must stay allowed as far as it is.
    fix : str
        What else to do if there is none.

    Raises
    ------
    InputError
        There is none.
    """
    if fits(fence.zones, link):
        return fence
    area = allowed(fence.zones, fence.ground)
    assert area is not None  # a fence of many points has an inclusion
    keep = shapely.intersection(area, needed).buffer(-_ROUNDING_M)
    shapely.prepare(keep)
    rings = [_Ring.of(zone, fence) for zone in fence.zones if zone.corners]
    circles = [zone for zone in fence.zones if not zone.corners]
    zones = [*fence.zones]
    while not fits(zones, link) and _reduced(rings, keep, link):
        zones = [*(ring.zone(fence) for ring in rings), *circles]
    simple = replace(fence, zones=tuple(zones))
    if not fits(zones, link) or not _is_within(simple, area, keep):
        raise _too_large(fence, simple, link, fix)
    return simple


def whole_world(mission: Mission, fence: GeoFence) -> BaseGeometry:
    """Return the area in local metres through which routes of a mission may lead."""
    return placed_region(mission.world.domain, fence.ground)


def routed(routes: Sequence[Array], mission: Mission, fence: GeoFence) -> BaseGeometry:
    """Return the area in local metres around routes (k, d), with the room that the fence leaves them."""
    lines = [shapely.LineString(fence.ground.local(route)[:, :2]) for route in routes]
    return shapely.union_all(lines).buffer(room_m(mission.world.domain))


# -- in words ----------------------------------------------------------------------------------------------


def too_many(fence: GeoFence, link: MavlinkSettings) -> str:
    """Return in words that the autopilot, or some firmware, stores no such fence; nothing if it does."""
    number, held = points_needed(fence.zones, link), points_held(link)
    if held is not None and not fits(fence.zones, link):
        return (
            f"the fence has {number} points, but {_firmware(link)} stores {held}: it cannot hold this fence"
        )
    if held is not None or number <= _PX4_POINTS:
        return ""
    return (
        f"the fence has {number} points; PX4 stores {_PX4_POINTS}, ArduPilot {_COPTER_POINTS} on copters and "
        f"{_ARDUPILOT_POINTS} on others: set firmware and vehicle in [link], so that fieldbo can simplify it"
    )


def simplified(whole: GeoFence, fence: GeoFence, link: MavlinkSettings) -> list[str]:
    """Return a line on what simplifying a fence cost; none if it is the same."""
    if fence is whole:
        return []
    before, after = (allowed(one.zones, one.ground) for one in (whole, fence))
    assert before is not None
    assert after is not None
    many, few = (points_needed(one.zones, link) for one in (whole, fence))
    return [
        f"simplified from {many} points to {few}, since {_firmware(link)} stores {points_held(link)}; it "
        f"allows {after.area / before.area:.1%} of the area"
    ]


def _firmware(link: MavlinkSettings) -> str:
    return _NAMES.get(link.firmware or "", "the autopilot")


def _too_large(fence: GeoFence, simple: GeoFence, link: MavlinkSettings, fix: str) -> InputError:
    number, fewest = points_needed(fence.zones, link), points_needed(simple.zones, link)
    return InputError(
        f"the fence has {number} points, but {_firmware(link)} stores {points_held(link)}; simplified as far "
        f"as the routes allow, it still has {fewest}",
        expected=f"a fence of at most {points_held(link)} points",
        where="link.fence_points" if link.fence_points else "link.firmware",
        fix="simplify the outline and the zones to avoid, or raise clearance in [domain] of the world; "
        f"{fix}; or, if the board stores more, set fence_points in [link]",
    )


# -- fewer corners -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Ring:
    """The corners of a zone, which moves reduce.

    Attributes
    ----------
    corners : (n, 2) array
        In local metres, anticlockwise around an inclusion and clockwise around an exclusion: what a move cuts
        off or adds lies at a left turn.
    inclusion : bool
    name : str
    barred : set of bytes
        Triangles that reach into the area that the vehicle needs.
    """

    corners: Array
    inclusion: bool
    name: str
    barred: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, zone: Zone, fence: GeoFence) -> _Ring:
        ring = shapely.LinearRing(in_metres(zone.corners, fence.ground))
        turned = ring if ring.is_ccw == zone.inclusion else ring.reverse()
        return cls(shapely.get_coordinates(turned)[:-1], zone.inclusion, zone.name)

    def zone(self, fence: GeoFence) -> Zone:
        """Return the zone, clockwise on the map."""
        clockwise = self.corners[::-1] if self.inclusion else self.corners
        return Zone(self.inclusion, in_degrees(clockwise, fence.ground), name=self.name)

    def moves(self) -> Iterator[tuple[float, int, Array | None]]:
        """Yield the area of each move's triangle, its first corner, and the point that replaces an edge."""
        before, here = np.roll(self.corners, 1, axis=0), self.corners
        after, beyond = np.roll(here, -1, axis=0), np.roll(here, -2, axis=0)
        turns = _cross(here - before, after - here)
        for k in np.flatnonzero(turns > 0).tolist():
            yield float(turns[k]) / 2.0, k, None
        along, back = here - before, after - beyond
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = _cross(along, back)
            first = _cross(beyond - before, back) / apart
            second = _cross(beyond - before, along) / apart
        next_turns = np.roll(turns, -1)
        both = (turns > 0) & (next_turns > 0)
        meets = _is_met(first, turns) & _is_met(second, next_turns) & ~both
        for k in np.flatnonzero(meets).tolist():
            point = before[k] + first[k] * along[k]
            yield abs(float(_cross(here[k] - point, after[k] - point))) / 2.0, k, point

    def triangle(self, first: int, point: Array | None) -> Array:
        """Return the corners (3, 2) of what a move cuts off or adds."""
        following = (first + 1) % len(self.corners)
        if point is None:
            return self.corners[[first - 1, first, following]]
        return np.stack([self.corners[first], self.corners[following], point])

    def without(self, first: int, point: Array | None) -> Array:
        """Return the corners after a move."""
        if point is None:
            return np.delete(self.corners, first, axis=0)
        changed = self.corners.copy()
        changed[first] = point
        return np.delete(changed, (first + 1) % len(changed), axis=0)


def _cross(a: Array, b: Array) -> Array:
    product: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def _is_met(share: Array, turns: Array) -> Mask:
    """Return a mask of the points on an edge if its corner is cut off, or beyond it if it is extended."""
    mask: Mask = np.where(turns > 0, (share > 0) & (share < 1), share > 1)
    return mask


def _reduced(rings: list[_Ring], keep: BaseGeometry, link: MavlinkSettings) -> bool:
    """Make the smallest move that is possible; return False if there is none."""
    large = [ring for ring in rings if link.firmware == "ardupilot" and len(ring.corners) > _MOST_CORNERS]
    moves = [
        (area, number, first, point)
        for number, ring in enumerate(rings)
        if len(ring.corners) > 3 and (not large or ring in large)
        for area, first, point in ring.moves()
    ]
    for _, number, first, point in sorted(moves, key=lambda move: move[:3]):
        ring = rings[number]
        triangle = ring.triangle(first, point)
        key = triangle.tobytes()
        if key in ring.barred:
            continue
        if shapely.intersects(keep, shapely.Polygon(triangle)):
            ring.barred.add(key)
            continue
        corners = ring.without(first, point)
        if _bent(corners) > _bent(ring.corners):
            continue
        outer, inner = shapely.Polygon(ring.corners), shapely.Polygon(corners)
        if not ring.inclusion:
            outer, inner = inner, outer
        if outer.is_valid and inner.is_valid and _covers(outer, inner):
            ring.corners = corners
            return True
    return False


def _bent(corners: Array) -> int:
    """Return how many edges are so long that they are not straight in metres and in degrees."""
    return int((np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1) > STRAIGHT_M).sum())


def _covers(outer: shapely.Polygon, inner: shapely.Polygon) -> bool:
    return bool(shapely.difference(inner, outer).area <= _ROUNDING * outer.area)


def _is_within(fence: GeoFence, area: BaseGeometry, keep: BaseGeometry) -> bool:
    """Return True if a fence allows what is needed, and nothing beyond an area."""
    mine = allowed(fence.zones, fence.ground)
    assert mine is not None
    inside = shapely.covers(area.buffer(_ROUNDING_M), mine)
    return bool(inside and shapely.covers(mine.buffer(_ROUNDING_M), keep))


_MOST_TRIPS = 200
"""How many trips home are checked."""

_MOST_NAMES = 3
"""How many names are listed."""


def check_geofence(fence: GeoFence, mission: Mission) -> list[str]:
    """Return warnings about sites that a fence excludes.

    Raises
    ------
    InputError
        The fence excludes a start, a home, all sites, or the trip from a start home.
    """
    ground, world = fence.ground, mission.world
    for spec in mission.vehicles:
        for name, place in (("start", spec.start), ("home", spec.home)):
            if place is not None and (why := fence.objection(ground.geodetic(place)[0])) is not None:
                raise _contradiction(
                    f"the {name} {place_text(world.domain, place)} is not allowed: {why}", name
                )
        if (why := _objection_home(fence, mission, spec.start, spec.home)) is not None:
            raise _contradiction(f"the fence allows no trip home from the start: {why}", "trip home")
    sites = world.domain.sites
    inside = fence.holds(ground.geodetic(sites))
    if not inside.any():
        raise _contradiction(f"the fence excludes all {counted(len(inside), 'site')}", "sites")
    if inside.all():
        return []
    warnings = [
        f"the fence excludes {int((~inside).sum())} of {len(inside)} sites: orders to them will be rejected"
    ]
    some = sites[inside][:: 1 + int(inside.sum()) // _MOST_TRIPS]
    cut_off = [
        site
        for site in some
        for spec in mission.vehicles
        if _objection_home(fence, mission, site, spec.home) is not None
    ]
    if cut_off:
        warnings.append(
            f"the trip home leaves the fence from some sites, such as {place_text(world.domain, cut_off[0])}"
        )
    return warnings


def _contradiction(problem: str, what: str) -> InputError:
    return InputError(
        problem,
        expected=f"a fence around the {what}",
        where="link.fence",
        fix="enlarge the fence of the vehicle file, or correct the origin in [frame]",
    )


def _objection_home(fence: GeoFence, mission: Mission, site: Array, home: Array | None) -> str | None:
    """Return why the trip home from a site (d,) must not be taken; None if it may, or there is no home."""
    if home is None:
        return None
    places = fence.ground.geodetic(mission.world.cost.path(site, home))
    return fence.objection_on(places[1:], places[0])


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")


def describe_geofence(fence: GeoFence, mission: Mission, link: MavlinkSettings) -> list[str]:
    """Return a fence in words, and warnings."""
    upload = link.upload_fence
    clearance, unit = mission.world.domain.clearance, mission.world.domain.axes[0].unit
    exclusions = [zone.name for zone in fence.zones if not zone.inclusion]
    parts = []
    if fence.inclusion is not None:
        parts.append(f"inclusion of {fence.inclusion.shape(fence.ground).area:.0f} m2")
        named = f" ({_few(exclusions)})" if exclusions else ""
        parts.append(counted(len(exclusions), "exclusion") + named)
        room = room_m(mission.world.domain)
        parts.append(f"{room:g} {unit} from routes, which keep a clearance of {clearance:g} {unit}")
    limits = [
        f"{word} {value:g} m"
        for word, value in (("from", fence.limits.lowest), ("up to", fence.limits.highest))
        if math.isfinite(value)
    ]
    parts += [f"altitudes {' '.join(limits)}"] if limits else []
    if not fence.zones:  # autopilots hold zones; fieldbo alone checks altitudes
        use = "checked by fieldbo alone" if parts else "nothing to compare or upload"
    else:
        use = "uploaded before the first order" if upload else "only compared with the vehicle's own"
    lines = [f"  fence     {', '.join(parts) or 'none'}; {use}"]
    if fence.left_out:
        missing = f"{counted(len(fence.left_out), 'obstacle')} ({_few(fence.left_out)})"
        lines.append(f"  fence     omits {missing}: no area on the ground expresses them; routes avoid them")
    warnings = [*check_geofence(fence, mission), *filter(None, [too_many(fence, link)])]
    if upload and clearance == 0.0 and fence.zones:
        warnings.append(
            "with no clearance, the slightest position error at the edge of the world breaches the fence: "
            "set clearance and outline in [domain]"
        )
    return lines + [f"warning: {warning}" for warning in warnings]
