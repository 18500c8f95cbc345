"""Where a domain lies on the ground: the tie between its axes, local metres, and degrees.

=====  =================================================================================
s      (d,) a site, in the domain's axes
z      (d,) ``zero``: the site that lies at the origin
A      (3, d) one column an axis: the direction it leads in, of length 1
l      (3,) local metres from the origin: east, north, up; ``l = A (s - z)``
=====  =================================================================================

The columns of A are at right angles, so ``s = z + A^T l``; of l that drops what lies off the domain's line or
plane. Degrees come from l by an azimuthal equidistant projection about the origin, on the WGS 84 ellipsoid:
distances and bearings from the origin are true.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.axes import Axis, is_depth
from fieldbo.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from pyproj import Proj

_EXAMPLE = "origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }"
_DIRECTIONS = ("along", "right", "left", "height", "depth")


@dataclass(frozen=True)
class Origin:
    """A point on the ground.

    Parameters
    ----------
    latitude, longitude : float
        Degrees on WGS 84, north and east positive.
    altitude : float
        Metres, above whatever the vehicle counts from.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    latitude: float
    longitude: float
    altitude: float = 0.0

    def __post_init__(self) -> None:
        for name, most in (("latitude", 90.0), ("longitude", 180.0), ("altitude", math.inf)):
            value = getattr(self, name)
            if not (math.isfinite(value) and abs(value) <= most):
                raise InputError(
                    f"{name} = {value}",
                    expected=f"-{most:g} to {most:g} degrees" if math.isfinite(most) else "a finite number",
                    where=f"frame.origin.{name}",
                )


@dataclass(frozen=True)
class Frame:
    """What a file says of how a domain's axes lie: each of them is named exactly once.

    Parameters
    ----------
    origin : Origin, optional
        Where `zero` is; a robot in a map of its own has none.
    bearing : float
        Where the axis `along` leads, in degrees clockwise from north; 90 is east.
    along, right, left : str, optional
        The axis that leads along the bearing, and the one to the right or to the left of it.
    height, depth : str, optional
        The axis that leads upwards or downwards.
    zero : mapping of str to float
        The coordinates of the site at the origin, by axis; 0 where nothing is said.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> survey = [Axis("x", "m", 0, 900), Axis("y", "m", 0, 400)]
    >>> Frame(along="x", left="y").over(survey).local([[300, 40]]).tolist()
    [[300.0, 40.0, 0.0]]
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    origin: Origin | None = None
    bearing: float = 90.0
    along: str | None = None
    right: str | None = None
    left: str | None = None
    height: str | None = None
    depth: str | None = None
    zero: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not math.isfinite(self.bearing):
            raise InputError(
                f"bearing = {self.bearing}",
                expected="degrees clockwise from north: 0 is north, 90 east",
                where="frame.bearing",
            )
        for one, other in (("right", "left"), ("height", "depth")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise InputError(f"both {one} and {other}", expected="one of them", where=f"frame.{other}")
        for name, value in self.zero.items():
            if not math.isfinite(value):
                raise InputError(f"{name} = {value}", expected="a finite number", where=f"frame.zero.{name}")

    @classmethod
    def usual(cls, axes: Sequence[Axis]) -> Frame | None:
        """Return how axes are taken to lie where no file says so; None where they are no place.

        A depth leads downwards and a height upwards; of the others the first leads east, the second north.

        Examples
        --------
        >>> from fieldbo.domain.axes import Axis
        >>> Frame.usual([Axis("along", "m", 0, 30), Axis("height", "m", 0, 18)]).axes
        {'along': 'along', 'height': 'height'}
        """
        depths = [a.name for a in axes if is_depth(a.name)]
        heights = [a.name for a in axes if _is_height(a.name)]
        flat = [a.name for a in axes if a.name not in (*depths, *heights)]
        if any(a.unit != "m" for a in axes) or len(depths) + len(heights) > 1 or len(flat) > 2:
            return None
        along, left, height, depth = (next(iter(n), None) for n in (flat, flat[1:], heights, depths))
        return cls(along=along, left=left, height=height, depth=depth)

    @property
    def axes(self) -> dict[str, str]:
        """The axis that leads in each direction of which there is one: ``{"along": "x", "height": "z"}``."""
        named = {direction: getattr(self, direction) for direction in _DIRECTIONS}
        return {direction: axis for direction, axis in named.items() if axis is not None}

    def over(self, axes: Sequence[Axis]) -> Ground:
        """Return where a domain of these axes lies.

        Parameters
        ----------
        axes : sequence of Axis
            The domain's, in its order.

        Raises
        ------
        InputError
            An axis is named twice, not at all, or is none of the domain's; or one is not in metres.
        """
        names = [axis.name for axis in axes]
        for key, name in (*self.axes.items(), *((f"zero.{name}", name) for name in self.zero)):
            if name not in names:
                raise UnknownNameError.of("axis", name, names, where=f"frame.{key}")
        _check_metres(axes)
        leads: dict[str, str] = {}
        for direction, name in self.axes.items():
            if name in leads:
                raise InputError(
                    f"{name!r} leads both {leads[name]} and {direction}",
                    expected="each axis once",
                    where=f"frame.{direction}",
                )
            leads[name] = direction
        for name in names:
            if name not in leads:
                raise InputError(
                    f"nothing says where the axis {name!r} leads",
                    expected="each axis of the domain once: " + ", ".join(names),
                    where="frame",
                    fix=f'name it under one of {", ".join(_DIRECTIONS)}, for example along = "{name}"',
                )
        towards = self._towards
        return Ground(
            frozen_array(np.stack([towards[leads[name]] for name in names], axis=1)),
            frozen_array([self.zero.get(name, 0.0) for name in names]),
            self.origin,
        )

    @property
    def _towards(self) -> dict[str, Array]:
        """Unit vectors east, north, up; to 15 digits, so that due east has no northing."""
        turned = math.radians(self.bearing)
        ahead = np.round([math.sin(turned), math.cos(turned), 0.0], 15)
        right = np.array([ahead[1], -ahead[0], 0.0])
        up = np.array([0.0, 0.0, 1.0])
        return {"along": ahead, "right": right, "left": -right, "height": up, "depth": -up}


@dataclass(frozen=True, eq=False)
class Ground:
    """Where the sites of a domain are: in local metres and, where the origin is known, in degrees.

    Parameters
    ----------
    towards : (3, d) array
        The direction in which each axis leads: east, north, up, of length 1.
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
        turned: Array = (np.atleast_2d(np.asarray(sites, dtype=float)) - self.zero) @ self.towards.T
        return turned + 0.0  # no -0

    def sites(self, local: ArrayLike) -> Array:
        """Return the sites (k, d) nearest to points (k, 3) in metres east, north, up of the origin."""
        found: Array = np.atleast_2d(np.asarray(local, dtype=float)) @ self.towards + self.zero
        return found + 0.0

    def off(self, local: ArrayLike) -> Array:
        """Return how far points (k, 3) lie off the domain's line or plane (k,), in metres."""
        points = np.atleast_2d(np.asarray(local, dtype=float))
        return np.asarray(np.linalg.norm(points - self.local(self.sites(points)), axis=1))

    def geodetic(self, sites: ArrayLike) -> Array:
        """Return sites (k, d) as latitude, longitude (degrees, WGS 84) and altitude (m), (k, 3).

        Raises
        ------
        InputError
            It is not known where the origin is.
        """
        origin, projection = self._known_origin, self._projection
        east, north, up = self.local(sites).T
        longitude, latitude = projection(east, north, inverse=True, errcheck=True)
        return np.stack([latitude, longitude, up + origin.altitude], axis=1)

    def from_geodetic(self, geodetic: ArrayLike) -> Array:
        """Return the sites (k, d) nearest to points (k, 3) of latitude, longitude and altitude.

        Raises
        ------
        InputError
            It is not known where the origin is.
        """
        origin, projection = self._known_origin, self._projection
        latitude, longitude, altitude = np.atleast_2d(np.asarray(geodetic, dtype=float)).T
        east, north = projection(longitude, latitude, errcheck=True)
        return self.sites(np.stack([east, north, altitude - origin.altitude], axis=1))

    @property
    def _known_origin(self) -> Origin:
        if self.origin is None:
            raise InputError(
                "latitude and longitude are asked for, and nothing says where the domain lies",
                expected="the origin: the point on the ground of the domain's zero",
                where="frame.origin",
                fix=f"put it into [frame]: {_EXAMPLE}",
            )
        return self.origin

    @cached_property
    def _projection(self) -> Proj:
        """From longitude and latitude to metres east and north of the origin."""
        from pyproj import Proj

        origin = self._known_origin
        return Proj(proj="aeqd", lat_0=origin.latitude, lon_0=origin.longitude, datum="WGS84", units="m")


def _is_height(name: str) -> bool:
    return name.strip().lower().startswith(("height", "altitude"))


def example(axes: Sequence[Axis]) -> str:
    """Return a table that ties axes to the ground, for what is said to a user who has none.

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
    leads = (Frame.usual(axes) or Frame(along="along", depth="depth")).axes
    named = (f'{direction} = "{name}"' for direction, name in leads.items())
    return "\n".join(["[frame]", _EXAMPLE, "bearing = 90", *named])


def _check_metres(axes: Sequence[Axis]) -> None:
    """Raise an `InputError` unless all axes are in metres."""
    for axis in axes:
        if axis.unit != "m":
            unit = f"in {axis.unit}" if axis.unit else "a number without a unit"
            raise InputError(
                f"the axis {axis.name!r} is {unit}",
                expected="axes in metres (m): only such a domain lies on the ground",
                where="frame",
            )
