"""Where a vehicle must stay: corners on the ground, altitudes, and a distance from the frame's origin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from shapely.geometry import LineString, Point, Polygon

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError

_METRES_A_DEGREE = 111_195.0


@dataclass(frozen=True)
class Fence:
    """A fence that is checked before each waypoint leaves; the way there has to lie within it, too.

    It is no substitute for the fence of the vehicle itself, which also holds when the link is down.

    Parameters
    ----------
    corners : sequence of (float, float)
        Latitude and longitude of at least three corners, in order; none: no such fence.
    lowest, highest : float
        Altitudes in metres, counted as in the vehicle file's frame.
    radius : float
        Metres from the frame's origin.

    Examples
    --------
    >>> bay = Fence(corners=((47.0, 8.0), (47.0, 8.1), (47.1, 8.1), (47.1, 8.0)), highest=500.0)
    >>> bay.objection([47.05, 8.05, 480.0]) is None
    True
    >>> bay.objection([47.05, 8.05, 520.0])
    'altitude 520 m lies above the fence, 500 m'
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    corners: tuple[tuple[float, float], ...] = ()
    lowest: float = -math.inf
    highest: float = math.inf
    radius: float = math.inf

    def __post_init__(self) -> None:
        places = np.array(self.corners, dtype=float).reshape(-1, 2)
        if not (np.isfinite(places) & (np.abs(places) <= [90.0, 180.0])).all():
            raise InputError(
                f"corners = {places.tolist()}",
                expected="latitude and longitude of each, in degrees",
                where="fence.corners",
            )
        if self.corners and not (len(self.corners) >= 3 and Polygon(self.corners).is_valid):
            raise InputError(
                f"corners = {places.tolist()}",
                expected="at least three corners, in order round an area: no two sides cross",
                where="fence.corners",
            )
        if not self.lowest < self.highest:
            raise InputError(
                f"lowest = {self.lowest}", expected=f"below highest, {self.highest}", where="fence.lowest"
            )
        if not self.radius > 0:
            raise InputError(f"radius = {self.radius}", expected="metres above 0", where="fence.radius")

    def objection(
        self, target: ArrayLike, start: ArrayLike | None = None, origin: ArrayLike | None = None
    ) -> str | None:
        """Return why the way to a place may not be gone, or None.

        Parameters
        ----------
        target : (3,) array
            Latitude, longitude, altitude.
        start : (3,) array, optional
            Where the vehicle is; a straight way from there is checked. One that is outside may come in.
        origin : (3,) array, optional
            From where `radius` counts.
        """
        latitude, longitude, altitude = np.asarray(target, dtype=float)
        if altitude < self.lowest:
            return f"altitude {altitude:.6g} m lies below the fence, {self.lowest:g} m"
        if altitude > self.highest:
            return f"altitude {altitude:.6g} m lies above the fence, {self.highest:g} m"
        place = f"{latitude:.6f}, {longitude:.6f}"
        if origin is not None and (far := _apart_m(np.asarray(target), np.asarray(origin))) > self.radius:
            return f"{place} lies {far:.0f} m from the origin, and the fence {self.radius:g} m"
        if self.corners:
            area, end = Polygon(self.corners), (latitude, longitude)
            if not area.covers(Point(end)):
                return f"{place} lies outside of the fence"
            begin = end if start is None else tuple(np.asarray(start, dtype=float)[:2])
            inside = area.covers(Point(begin))
            if inside and not area.covers(LineString([begin, end])):
                return f"the way to {place} leads out of the fence"
        return None


def _apart_m(a: Array, b: Array) -> float:
    """Return how far apart two places are, good to 1% over the distance that a vehicle goes."""
    north, east = (a[:2] - b[:2]) * _METRES_A_DEGREE
    return math.hypot(north, east * math.cos(math.radians((a[0] + b[0]) / 2)))
