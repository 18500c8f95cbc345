"""One fence from the world and the vehicle file, as fieldbo checks it and as autopilots hold it.

A route keeps the world's clearance from the outline and the obstacles. The fence leaves the route room: half
of the clearance, and at least `ROOM_M`. It therefore runs half-way between a route along the edge of the
clearance and the shore or obstacle, so that neither fieldbo nor the autopilot stops a vehicle for a small
error of position.

Autopilots disagree on several inclusions: ArduPilot keeps to all of them, PX4 to any. Here there is at most
one: what the world and the vehicle file both include.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import ArrayLike
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground
from fieldbo.domain.obstacles import MITRE, Obstacle
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.mavlink.settings import Fence

ROOM_M = 0.05
"""The least room between a route and the fence, in metres; messages resolve a centimetre."""

_ROUNDING_M = 0.05  # points this close to the fence are inside
STRAIGHT_M, _STRAIGHT_DEGREES = 1000.0, 0.01  # edges up to this long are straight in metres and in degrees
_MOST_PIECES = 2000  # of a polygon's edge
_ARCS = 16  # straight pieces per quarter of a circle
_AREA = "a fence from the world's outline and the vehicle file's [link] fence with one common area"


@dataclass(frozen=True)
class Zone:
    """A polygon or a circle that a vehicle must stay inside (an inclusion) or outside (an exclusion).

    Attributes
    ----------
    inclusion : bool
    corners : tuple of (latitude, longitude)
        In order around a polygon; empty for a circle.
    centre : (latitude, longitude)
        Of a circle.
    radius : float
        Of a circle, in metres.
    name : str
        Of an exclusion, for people; a vehicle does not keep it.
    """

    inclusion: bool
    corners: tuple[tuple[float, float], ...] = ()
    centre: tuple[float, float] = (math.nan, math.nan)
    radius: float = 0.0
    name: str = ""

    def shape(self, ground: Ground) -> BaseGeometry:
        """Return the zone in local metres: east, north."""
        if self.corners:
            polygon = shapely.Polygon(_unbroken(self.corners))
            longest = max(_STRAIGHT_DEGREES, polygon.length / _MOST_PIECES)
            ring = shapely.get_coordinates(shapely.segmentize(polygon, longest))
            return shapely.make_valid(shapely.Polygon(in_metres(ring, ground)))
        return shapely.Point(in_metres([self.centre], ground)[0]).buffer(self.radius, quad_segs=_ARCS)


@dataclass(frozen=True, eq=False)
class GeoFence:
    """Where a vehicle may be.

    Attributes
    ----------
    ground : Ground
    zones : tuple of Zone
        At most one inclusion, and exclusions; none if nothing limits the vehicle on the ground.
    limits : Fence
        Lowest and highest altitude.
    left_out : tuple of str
        Obstacles that no polygon on the ground can express.
    """

    ground: Ground
    zones: tuple[Zone, ...] = ()
    limits: Fence = field(default_factory=Fence)
    left_out: tuple[str, ...] = ()

    @property
    def inclusion(self) -> Zone | None:
        return next((zone for zone in self.zones if zone.inclusion), None)

    @cached_property
    def _allowed(self) -> BaseGeometry | None:
        """Where the vehicle may be, in local metres, with the tolerance of rounding; None for anywhere."""
        area = allowed(self.zones, self.ground)
        if area is None:
            return None
        area = area.buffer(_ROUNDING_M, join_style="mitre")
        shapely.prepare(area)
        return area

    def holds(self, places: ArrayLike) -> Mask:
        """Return a mask (n,) of the places (n, 3) of latitude, longitude and altitude that are inside.

        Edges are inside.
        """
        rows = np.atleast_2d(np.asarray(places, dtype=float))
        inside: Mask = (rows[:, 2] >= self.limits.lowest - _ROUNDING_M) & (
            rows[:, 2] <= self.limits.highest + _ROUNDING_M
        )
        if self._allowed is not None:
            inside &= shapely.intersects_xy(self._allowed, *in_metres(rows[:, :2], self.ground).T)
        return inside

    def objection(self, target: ArrayLike, start: ArrayLike | None = None) -> str | None:
        """Return why the vehicle must not go straight to a place; None if it may.

        Parameters
        ----------
        target : (3,) array
            Latitude, longitude, altitude.
        start : (3,) array, optional
            Where the vehicle is. A vehicle outside may come in.
        """
        latitude, longitude, altitude = np.asarray(target, dtype=float)
        lowest, highest, place = self.limits.lowest, self.limits.highest, f"{latitude:.6f}, {longitude:.6f}"
        if altitude < lowest - _ROUNDING_M:
            return f"altitude {altitude:.6g} m is below the fence at {lowest:g} m"
        if altitude > highest + _ROUNDING_M:
            return f"altitude {altitude:.6g} m is above the fence at {highest:g} m"
        if not self.holds(target)[0]:
            return f"{place} is outside the fence"
        if start is None or self._allowed is None:
            return None
        ends = in_metres(np.array([start, target], dtype=float)[:, :2], self.ground)
        begins_inside = shapely.intersects_xy(self._allowed, *ends[0])
        if begins_inside and not shapely.covers(self._allowed, shapely.LineString(ends)):
            return f"the path to {place} leads out of the fence"
        return None

    def objection_on(self, route: Array, start: Array | None = None) -> str | None:
        """Return why the vehicle must not pass the places of a route (k, 3) in turn; None if it may.

        Parameters
        ----------
        route : (k, 3) array
        start : (3,) array, optional
            Where the vehicle is. A vehicle outside may come in.
        """
        reasons = (self.objection(end, begin) for begin, end in pairwise([start, *route]))
        return next((why for why in reasons if why is not None), None)

    def difference(self, zones: Sequence[Zone]) -> str | None:
        """Return in words how a vehicle's zones differ from this fence; None if they do not.

        Examples
        --------
        >>> from fieldbo.domain.axes import Axis
        >>> from fieldbo.domain.frame import Frame, Origin
        >>> axes = [Axis("x", "m", 0, 100), Axis("y", "m", 0, 50)]
        >>> ground = Frame(Origin(47.31, 8.58), along="x", left="y").over(axes)
        >>> fence = GeoFence(ground, (Zone(True, centre=(47.31, 8.58), radius=100.0),))
        >>> fence.difference(fence.zones) is None
        True
        >>> fence.difference([])
        'the vehicle has no fence'
        """
        if not zones:
            return "the vehicle has no fence" if self.zones else None
        ours, theirs = allowed(self.zones, self.ground), allowed(zones, self.ground)
        if ours is None:
            return None
        if theirs is None:
            return "the vehicle's own fence has no inclusion"
        missing, beyond = _remainder(ours, theirs), _remainder(theirs, ours)
        differences = []
        if missing is not None:
            differences.append(f"keeps the vehicle out of {missing} that fieldbo's fence allows")
        if beyond is not None:
            differences.append(f"lets the vehicle into {beyond} that fieldbo's fence excludes")
        return f"the vehicle's own fence {' and '.join(differences)}" if differences else None


def allowed(zones: Iterable[Zone], ground: Ground) -> BaseGeometry | None:
    """Return the area in local metres that zones allow; None if there is no inclusion."""
    zones = list(zones)
    inclusions = [zone.shape(ground) for zone in zones if zone.inclusion]
    if not inclusions:
        return None
    exclusions = [zone.shape(ground) for zone in zones if not zone.inclusion]
    area: BaseGeometry = shapely.difference(
        shapely.intersection_all(inclusions), shapely.union_all(exclusions)
    )
    return area


def _remainder(area: BaseGeometry, other: BaseGeometry) -> str | None:
    """Return the part of an area that another lacks, as text; None if it is only rounding."""
    rest = shapely.difference(area, other.buffer(2 * _ROUNDING_M, join_style="mitre"))
    return f"{rest.area:.0f} m2" if rest.area > 0.01 else None


# -- making it ---------------------------------------------------------------------------------------------


def geofence(mission: Mission, ground: Ground, extra: Fence | None) -> GeoFence:
    """Return the fence of a mission on the ground.

    Parameters
    ----------
    mission : Mission
    ground : Ground
        With a known origin.
    extra : Fence, optional
        Further limits, from the vehicle file.

    Raises
    ------
    InputError
        The world and the vehicle file have no area in common, or several.
    """
    domain, extra = mission.world.passable, extra or Fence()
    flat = _flat(ground)
    left_out = tuple(o.name for o in domain.solid)
    include: list[BaseGeometry] = []
    exclude: list[tuple[str, BaseGeometry]] = []
    if len(flat) == 2:
        world, exclude, left_out = _of_world(domain, ground, flat)
        include.append(world)
    origin = ground.origin
    assert origin is not None
    if extra.corners:
        include.append(Zone(True, extra.corners).shape(ground))
    if math.isfinite(extra.radius):
        circle = Zone(True, centre=(origin.latitude, origin.longitude), radius=extra.radius)
        if not include:
            return GeoFence(ground, (circle,), extra, left_out)
        include.append(circle.shape(ground))
    if not include:
        return GeoFence(ground, (), extra, left_out)
    inner = _one(shapely.intersection_all(include), mission, ground)
    holes = [(f"hole {k}", shapely.Polygon(ring)) for k, ring in enumerate(inner.interiors, start=1)]
    outer = shapely.Polygon(inner.exterior)
    corners = _corners(outer, ground) if len(flat) == 2 or len(include) > 1 else _clockwise(extra.corners)
    obstacles = ((name, part) for name, shape in exclude for part in _parts(shape) if outer.intersects(part))
    exclusions = (Zone(False, _corners(part, ground), name=name) for name, part in (*holes, *obstacles))
    zones = (Zone(True, corners), *exclusions)
    return GeoFence(ground, zones, extra, left_out)


def placed_region(domain: Domain, ground: Ground) -> BaseGeometry:
    """Return the area in local metres in which vehicles move; of a vertical world, the line below it."""
    flat = _flat(ground)
    if len(flat) != 2:
        return shapely.MultiPoint(ground.local(domain.sites)[:, :2]).convex_hull
    region = shapely.box(*domain.low[flat], *domain.high[flat]) if domain.region is None else domain.region
    return _placed(region, ground, flat)


def _flat(ground: Ground) -> list[int]:
    """Return the indices of the horizontal axes."""
    return np.flatnonzero(ground.towards[2] == 0).tolist()


def room_m(domain: Domain) -> float:
    """Return how far the fence is from routes along the edge of the clearance, in metres."""
    return max(domain.clearance / 2.0, ROOM_M)


def _of_world(
    domain: Domain, ground: Ground, flat: list[int]
) -> tuple[BaseGeometry, list[tuple[str, BaseGeometry]], tuple[str, ...]]:
    """Return the inclusion and the named exclusions of a world in local metres, and what is left out."""
    room = room_m(domain)
    if domain.outline is None:
        whole = _grown(shapely.box(*domain.low[flat], *domain.high[flat]), room)
    else:
        whole = _grown(domain.outline, room - domain.clearance)
    exclude, left_out = [], []
    for obstacle in domain.solid:
        shape = _footprint(obstacle, domain, flat)
        if shape is None:
            left_out.append(obstacle.name)
            continue
        larger = _grown(shape, domain.clearance - room)
        placed = _placed(shape if larger.is_empty else larger, ground, flat)
        exclude.append((obstacle.name, placed))
    return _placed(whole, ground, flat), exclude, tuple(left_out)


def _footprint(obstacle: Obstacle, domain: Domain, flat: list[int]) -> BaseGeometry | None:
    """Return the area that an obstacle covers; None if a vehicle may pass above or below it."""
    if obstacle.dimension == 2:
        return obstacle.polygon
    low, high = np.array(obstacle.low), np.array(obstacle.high)
    tall = [j for j in range(domain.dimension) if j not in flat]
    if (low[tall] > domain.low[tall]).any() or (high[tall] < domain.high[tall]).any():
        return None
    footprint: BaseGeometry = shapely.box(*low[flat], *high[flat])
    return footprint


def _placed(shape: BaseGeometry, ground: Ground, flat: list[int]) -> BaseGeometry:
    """Return a shape over the horizontal axes in local metres."""

    def local(points: Array) -> Array:
        sites = np.tile(ground.zero, (len(points), 1))
        sites[:, flat] = points
        return ground.local(sites)[:, :2]

    return shapely.transform(shape, local)


def _grown(shape: BaseGeometry, by: float) -> BaseGeometry:
    """Return a shape with everything closer to it than `by` metres; a negative number shrinks it."""
    return shapely.buffer(shape, by, join_style="mitre", mitre_limit=MITRE)


def _one(area: BaseGeometry, mission: Mission, ground: Ground) -> shapely.Polygon:
    """Return the part of an area that the mission's vehicles start in."""
    parts = _parts(area)
    if not parts:
        raise InputError(
            "the [link] fence of the vehicle file and the world have no area in common",
            expected=_AREA,
            where="link.fence",
            fix="correct the fence's corners (latitude first) or radius, or the origin in [frame]",
        )
    if len(parts) == 1:
        return parts[0]
    starts = ground.local([spec.start for spec in mission.vehicles])[:, :2]
    near = [p for p in parts if shapely.dwithin(shapely.points(starts), p, _ROUNDING_M).all()]
    if len(near) != 1:
        raise InputError(
            f"the [link] fence of the vehicle file divides the world into {len(parts)} areas",
            expected=_AREA,
            where="link.fence",
            fix="enlarge the fence so that the areas connect",
        )
    return near[0]


def _parts(shape: BaseGeometry) -> list[shapely.Polygon]:
    return [p for p in shapely.get_parts(shape) if isinstance(p, shapely.Polygon) and p.area > 0]


def _corners(polygon: shapely.Polygon, ground: Ground) -> tuple[tuple[float, float], ...]:
    """Return the corners of a polygon in local metres as latitude and longitude, clockwise on the map."""
    fine = shapely.segmentize(polygon, STRAIGHT_M)
    return in_degrees(shapely.get_coordinates(shapely.orient_polygons(fine, exterior_cw=True))[:-1], ground)


def in_degrees(ring: Array, ground: Ground) -> tuple[tuple[float, float], ...]:
    """Return points (n, 2) in local metres as latitude and longitude."""
    places = ground.degrees(np.column_stack([ring, np.zeros(len(ring))]))
    return tuple((latitude, longitude) for latitude, longitude in places[:, :2].tolist())


def _unbroken(corners: Sequence[tuple[float, float]]) -> Array:
    """Return corners (n, 2) of latitude and longitude without a jump of 360° at the antimeridian."""
    latitude, longitude = np.array(corners).T
    return np.column_stack([latitude, np.unwrap(longitude, period=360.0)])


def _clockwise(corners: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    """Return corners (latitude, longitude) in clockwise order on the map."""
    by_longitude = shapely.LinearRing(_unbroken(corners)[:, ::-1])
    return corners[::-1] if by_longitude.is_ccw else corners


def in_metres(places: Any, ground: Ground) -> Array:
    """Return places (n, 2) of latitude and longitude in local metres: east, north, (n, 2)."""
    rows = np.asarray(places, dtype=float).reshape(-1, 2)
    return ground.metres(np.column_stack([rows, np.zeros(len(rows))]))[:, :2]
