"""Where a domain lies on the ground: from its axes to local metres and to degrees.

=====  =================================================================================
s      (d,) a site, in the domain's axes
z      (d,) ``zero``: the site at the origin
A      (3, d) the unit vector in which each axis points, one column per axis
l      (3,) local metres from the origin: east, north, up; ``l = A (s - z)``
=====  =================================================================================

The columns of A are orthogonal, so ``s = z + A^T l``; this drops any part of l that is off the domain's line
or plane. An azimuthal equidistant projection around the origin, on the WGS 84 ellipsoid, gives the degrees:
distances and bearings from the origin are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field as Bounds

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.axes import Axis, is_depth, is_height
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import Georeference
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.validation import settings

if TYPE_CHECKING:
    from pyproj import Proj


_EXAMPLE = "origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }"
_COMPASS = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
_DIRECTIONS = ("along", "right", "left", "height", "depth")


@settings("frame.origin")
class Origin:
    """A point on the ground."""

    latitude: Annotated[float, Bounds(ge=-90, le=90)]
    """Degrees north on WGS 84."""
    longitude: Annotated[float, Bounds(ge=-180, le=180)]
    """Degrees east on WGS 84."""
    altitude: float = 0.0
    """Metres above the vehicle's own reference, such as sea level."""


@settings("frame")
class Frame:
    """The directions in which a domain's axes point; name each axis exactly once.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> survey = [Axis("x", "m", 0, 900), Axis("y", "m", 0, 400)]
    >>> Frame(along="x", left="y").over(survey).local([[300, 40]]).tolist()
    [[300.0, 40.0, 0.0]]
    """

    origin: Origin | None = None
    """The point on the ground of the site `zero`. Omit it for a robot with its own local map."""
    bearing: float = 90.0
    """Direction of the axis `along`, in degrees clockwise from north; 90 is east."""
    along: str | None = None
    """The axis that points along the bearing."""
    right: str | None = None
    """The axis that points to the right of the bearing."""
    left: str | None = None
    """The axis that points to the left of the bearing."""
    height: str | None = None
    """The axis that points up."""
    depth: str | None = None
    """The axis that points down."""
    zero: Mapping[str, float] = field(default_factory=dict)
    """Coordinates of the site at the origin, by axis; 0 for an axis that is not listed."""

    def __post_init__(self) -> None:
        for direction, opposite in (("right", "left"), ("height", "depth")):
            if getattr(self, direction) is not None and getattr(self, opposite) is not None:
                raise InputError(
                    f"both {direction} and {opposite}", expected="one of them", where=f"frame.{opposite}"
                )

    @classmethod
    def usual(cls, axes: Sequence[Axis]) -> Frame | None:
        """Return the default frame of axes; None if they do not describe a place.

        A depth points down and a height points up. Of the other axes, the first points east and the second
        north.

        Examples
        --------
        >>> from fieldbo.domain.axes import Axis
        >>> Frame.usual([Axis("along", "m", 0, 30), Axis("height", "m", 0, 18)]).axes
        {'along': 'along', 'height': 'height'}
        """
        depths = [a.name for a in axes if is_depth(a.name)]
        heights = [a.name for a in axes if is_height(a.name)]
        flat = [a.name for a in axes if a.name not in (*depths, *heights)]
        if any(a.unit != "m" for a in axes) or len(depths) + len(heights) > 1 or len(flat) > 2:
            return None
        along, left, height, depth = (next(iter(n), None) for n in (flat, flat[1:], heights, depths))
        return cls(along=along, left=left, height=height, depth=depth)

    @property
    def axes(self) -> dict[str, str]:
        """The axis of each direction that has one: ``{"along": "x", "height": "z"}``."""
        named = {direction: getattr(self, direction) for direction in _DIRECTIONS}
        return {direction: axis for direction, axis in named.items() if axis is not None}

    @property
    def directions(self) -> dict[str, Array]:
        """The unit vector (east, north, up) in which each axis points."""
        towards = self._towards
        return {axis: towards[direction] for direction, axis in self.axes.items()}

    def over(self, axes: Sequence[Axis]) -> Ground:
        """Return the location of a domain with these axes.

        Parameters
        ----------
        axes : sequence of Axis
            The domain's axes, in its order.

        Raises
        ------
        InputError
            An axis is named twice or not at all, is not an axis of the domain, or is not in metres.
        """
        names = [axis.name for axis in axes]
        for key, name in (*self.axes.items(), *((f"zero.{name}", name) for name in self.zero)):
            if name not in names:
                raise UnknownNameError.of("axis", name, names, where=f"frame.{key}")
        _check_metres(axes)
        direction_of: dict[str, str] = {}
        for direction, name in self.axes.items():
            if name in direction_of:
                raise InputError(
                    f"the axis {name!r} points both {direction_of[name]} and {direction}",
                    expected="each axis once",
                    where=f"frame.{direction}",
                )
            direction_of[name] = direction
        for name in names:
            if name not in direction_of:
                raise InputError(
                    f"the axis {name!r} has no direction",
                    expected="each axis of the domain once: " + ", ".join(names),
                    where="frame",
                    fix=f'assign it to one of {", ".join(_DIRECTIONS)}, for example along = "{name}"',
                )
        towards = self._towards
        return Ground(
            frozen_array(np.stack([towards[direction_of[name]] for name in names], axis=1)),
            frozen_array([self.zero.get(name, 0.0) for name in names]),
            self.origin,
        )

    @property
    def _towards(self) -> dict[str, Array]:
        """Unit vectors (east, north, up) by direction, rounded to 15 digits: due east has no northing."""
        turned = math.radians(self.bearing)
        ahead = np.round([math.sin(turned), math.cos(turned), 0.0], 15)
        right = np.array([ahead[1], -ahead[0], 0.0])
        up = np.array([0.0, 0.0, 1.0])
        return {"along": ahead, "right": right, "left": -right, "height": up, "depth": -up}


@dataclass(frozen=True, eq=False)
class Ground:
    """Converts sites of a domain to local metres and, if the origin is known, to degrees.

    Parameters
    ----------
    towards : (3, d) array
        The unit vector (east, north, up) in which each axis points, one column per axis.
    zero : (d,) array
        The site at the origin.
    origin : Origin, optional

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> lake = [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]
    >>> ground = Frame(Origin(47.31, 8.58, 406.0), along="along", depth="depth").over(lake)
    >>> ground.local([[100, 5]]).tolist()
    [[100.0, 0.0, -5.0]]
    >>> ground.geodetic([[100, 5]]).round(4).tolist()
    [[47.31, 8.5813, 401.0]]
    """

    towards: Array
    zero: Array
    origin: Origin | None = None

    def local(self, sites: ArrayLike) -> Array:
        """Return sites (k, d) in metres from the origin (k, 3): east, north, up."""
        metres: Array = (np.atleast_2d(np.asarray(sites, dtype=float)) - self.zero) @ self.towards.T
        return metres + 0.0  # no -0

    def sites(self, local: ArrayLike) -> Array:
        """Return the sites (k, d) nearest to points (k, 3) in local metres: east, north, up."""
        nearest: Array = np.atleast_2d(np.asarray(local, dtype=float)) @ self.towards + self.zero
        return nearest + 0.0

    def off(self, local: ArrayLike) -> Array:
        """Return the distances (k,) in metres of points (k, 3) from the domain's line or plane."""
        points = np.atleast_2d(np.asarray(local, dtype=float))
        return np.asarray(np.linalg.norm(points - self.local(self.sites(points)), axis=1))

    def geodetic(self, sites: ArrayLike) -> Array:
        """Return sites (k, d) as latitude, longitude (degrees, WGS 84) and altitude (m), (k, 3).

        Raises
        ------
        InputError
            The frame has no origin.
        """
        return self.degrees(self.local(sites))

    def from_geodetic(self, geodetic: ArrayLike) -> Array:
        """Return the sites (k, d) nearest to points (k, 3) of latitude, longitude and altitude.

        Raises
        ------
        InputError
            The frame has no origin.
        """
        return self.sites(self.metres(geodetic))

    def degrees(self, local: ArrayLike) -> Array:
        """Return points (k, 3) in local metres as latitude, longitude and altitude, (k, 3)."""
        origin, projection = self._known_origin, self._projection
        east, north, up = np.atleast_2d(np.asarray(local, dtype=float)).T
        longitude, latitude = projection(east, north, inverse=True, errcheck=True)
        return np.stack([latitude, longitude, up + origin.altitude], axis=1)

    def metres(self, geodetic: ArrayLike) -> Array:
        """Return points (k, 3) of latitude, longitude and altitude in local metres, (k, 3)."""
        origin, projection = self._known_origin, self._projection
        latitude, longitude, altitude = np.atleast_2d(np.asarray(geodetic, dtype=float)).T
        east, north = projection(longitude, latitude, errcheck=True)
        return np.stack([east, north, altitude - origin.altitude], axis=1)

    @property
    def _known_origin(self) -> Origin:
        if self.origin is None:
            raise InputError(
                "latitude and longitude are needed, but the frame has no origin",
                expected="the origin: the point on the ground where the domain's zero lies",
                where="frame.origin",
                fix=f"add it to [frame]: {_EXAMPLE}",
            )
        return self.origin

    @cached_property
    def _projection(self) -> Proj:
        """Converts longitude and latitude to metres east and north of the origin."""
        from pyproj import Proj

        origin = self._known_origin
        return Proj(proj="aeqd", lat_0=origin.latitude, lon_0=origin.longitude, datum="WGS84", units="m")


def heading(towards: ArrayLike) -> str:
    """Return where a unit vector (east, north, up) leads: up, down, or its bearing with a compass point.

    Examples
    --------
    >>> heading([1.0, 0.0, 0.0]), heading([0.0, 0.0, -1.0])
    ('90° (east)', 'down')
    """
    east, north, up = np.asarray(towards, dtype=float).tolist()
    if east == north == 0.0:
        return "up" if up > 0 else "down"
    degrees = math.degrees(math.atan2(east, north)) % 360.0
    return f"{round(degrees, 1) % 360.0:g}° ({_COMPASS[round(degrees / 45.0) % 8]})"


def example(axes: Sequence[Axis]) -> str:
    """Return an example of a [frame] table for these axes, for messages.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> print(example([Axis("x", "m", 0, 30), Axis("y", "m", 0, 18)]))
    [frame]
    origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }
    bearing = 90
    along = "x"
    left = "y"
    """
    directions = (Frame.usual(axes) or Frame(along="along", depth="depth")).axes
    named = (f'{direction} = "{name}"' for direction, name in directions.items())
    return "\n".join(["[frame]", _EXAMPLE, "bearing = 90", *named])


def _check_metres(axes: Sequence[Axis]) -> None:
    for axis in axes:
        if axis.unit != "m":
            unit = f"in {axis.unit}" if axis.unit else "without a unit"
            raise InputError(
                f"the axis {axis.name!r} is {unit}",
                expected="axes in metres (m), so that the domain can be placed on the ground",
                where="frame",
            )


_STEP_M = 1.0
_QUARTER_M = 1e7  # of the Earth's circumference; a position farther from the origin is a fault


@dataclass(frozen=True, eq=False)
class ProjectedGround(Ground):
    """The ground of a domain with a CRS: its sites become degrees through the CRS, and then local metres.

    Grid north of a CRS differs from true north, and its metres from those on the ground. Local metres, the
    ones of robots and fences, are true ones around the origin.

    Parameters
    ----------
    towards, zero, origin
        As for `Ground`; the directions are those at the origin.
    georeference : Georeference
    """

    georeference: Georeference = None  # type: ignore[assignment]

    @classmethod
    def at(cls, domain: Domain, origin: Origin | None = None) -> ProjectedGround:
        """Return the ground of a domain with a CRS, around an origin, by default the domain's middle."""
        georeference = domain.georeference
        assert georeference is not None
        middle = (domain.low + domain.high) / 2.0
        flat = list(georeference.axes)
        others = [j for j in range(domain.dimension) if j not in flat]
        middle[others] = 0.0
        if origin is None:
            latitude, longitude = georeference.degrees(middle)[0].tolist()
            origin = Origin(latitude, longitude)
        zero = georeference.site([origin.latitude, origin.longitude], middle)
        towards = np.zeros((3, domain.dimension))
        for j in others:
            towards[2, j] = -1.0 if is_depth(domain.axes[j].name) else 1.0
        ground = cls(frozen_array(towards), frozen_array(zero), origin, georeference)
        for j in flat:
            step = zero.copy()
            step[j] += _STEP_M
            ahead = ground.local(step)[0]
            towards[:2, j] = (ahead / np.linalg.norm(ahead))[:2]
        return replace(ground, towards=frozen_array(towards))

    def local(self, sites: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(sites, dtype=float))
        up = (points - self.zero) @ self.towards[2]
        return self.metres(
            np.column_stack([self.georeference.degrees(points), up + self._known_origin.altitude])
        )

    def sites(self, local: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(local, dtype=float))
        on_globe = np.abs(points).max(axis=1, keepdims=True) < _QUARTER_M  # False for NaN
        points = np.where(on_globe, points, np.nan)
        sites = self.zero + np.outer(points[:, 2], self.towards[2])
        sites[:, list(self.georeference.axes)] = self.georeference.metres_if_any(self.degrees(points)[:, :2])
        return sites

    def geodetic(self, sites: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(sites, dtype=float))
        up = (points - self.zero) @ self.towards[2] + self._known_origin.altitude
        return np.column_stack([self.georeference.degrees(points), up])

    def from_geodetic(self, geodetic: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(geodetic, dtype=float))
        up = points[:, 2] - self._known_origin.altitude
        sites = self.zero + np.outer(up, self.towards[2])
        sites[:, list(self.georeference.axes)] = self.georeference.metres_if_any(points[:, :2])
        return sites


def ground_of(domain: Domain, frame: Frame | None = None) -> Ground | None:
    """Return where a domain lies: from its CRS, from a frame, or from the names of its axes.

    Parameters
    ----------
    domain : Domain
    frame : Frame, optional
        For a domain with a CRS it may only hold an origin, the zero of the robot's local map.

    Returns
    -------
    Ground or None
        None if the axes are not positions on the ground.

    Raises
    ------
    InputError
        The frame does not fit the axes, or contradicts the CRS.
    """
    if domain.georeference is None:
        frame = frame or Frame.usual(domain.axes)
        return None if frame is None else frame.over(domain.axes)
    if frame is not None and (frame.axes or frame.zero or frame.bearing != Frame().bearing):
        raise InputError(
            "the frame gives directions or a zero, but the world has a CRS, which places its axes",
            expected=f"only an origin: the world is in {domain.georeference.name}",
            where="frame",
            fix="delete every key of [frame] but origin, or the whole table",
        )
    return ProjectedGround.at(domain, None if frame is None else frame.origin)
