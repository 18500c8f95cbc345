"""The area that a vehicle must not leave: corners, altitudes, and a distance from the frame's origin."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field
from shapely.geometry import LineString, Point, Polygon

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError
from fieldbo.validation import settings
from fieldbo.vehicles.remote.settings import Limit

_METRES_PER_DEGREE = 111_195.0


@settings("fence")
class Fence:
    """A fence that fieldbo checks before it sends a waypoint, along with the straight path there.

    It does not replace the vehicle's own fence, which also works when the link is down.

    Examples
    --------
    >>> bay = Fence(corners=((47.0, 8.0), (47.0, 8.1), (47.1, 8.1), (47.1, 8.0)), highest=500.0)
    >>> bay.objection([47.05, 8.05, 480.0]) is None
    True
    >>> bay.objection([47.05, 8.05, 520.0])
    'altitude 520 m is above the fence at 500 m'
    """

    corners: tuple[tuple[float, float], ...] = ()
    """Latitude and longitude of at least three corners, in order; empty for no such limit."""
    lowest: Limit = -math.inf
    """Lowest altitude in metres, measured as in the vehicle file's frame."""
    highest: Limit = math.inf
    """Highest altitude in metres, measured as in the vehicle file's frame."""
    radius: Annotated[float, Field(gt=0, allow_inf_nan=True)] = math.inf
    """Largest distance from the frame's origin, in metres."""

    def __post_init__(self) -> None:
        places = np.array(self.corners, dtype=float).reshape(-1, 2)
        if not (np.abs(places) <= [90.0, 180.0]).all():
            raise InputError(
                f"corners = {places.tolist()}",
                expected="latitude and longitude of each corner, in degrees",
                where="fence.corners",
            )
        if self.corners and not (len(self.corners) >= 3 and Polygon(self.corners).is_valid):
            raise InputError(
                f"corners = {places.tolist()}",
                expected="at least three corners, in order around an area whose sides do not cross",
                where="fence.corners",
            )
        if not self.lowest < self.highest:
            raise InputError(
                f"lowest = {self.lowest}", expected=f"below highest, {self.highest}", where="fence.lowest"
            )

    def objection(
        self, target: ArrayLike, start: ArrayLike | None = None, origin: ArrayLike | None = None
    ) -> str | None:
        """Return why the vehicle must not go to a place; None if it may.

        Parameters
        ----------
        target : (3,) array
            Latitude, longitude, altitude.
        start : (3,) array, optional
            Where the vehicle is; the straight path from there is checked, too. A vehicle outside may come in.
        origin : (3,) array, optional
            Centre of `radius`.
        """
        latitude, longitude, altitude = np.asarray(target, dtype=float)
        if altitude < self.lowest:
            return f"altitude {altitude:.6g} m is below the fence at {self.lowest:g} m"
        if altitude > self.highest:
            return f"altitude {altitude:.6g} m is above the fence at {self.highest:g} m"
        place = f"{latitude:.6f}, {longitude:.6f}"
        if origin is not None and (far := _apart_m(np.asarray(target), np.asarray(origin))) > self.radius:
            return f"{place} is {far:.0f} m from the origin, beyond the fence at {self.radius:g} m"
        if self.corners:
            area, end = Polygon(self.corners), (latitude, longitude)
            if not area.covers(Point(end)):
                return f"{place} is outside the fence"
            begin = end if start is None else tuple(np.asarray(start, dtype=float)[:2])
            inside = area.covers(Point(begin))
            if inside and not area.covers(LineString([begin, end])):
                return f"the path to {place} leads out of the fence"
        return None


def _apart_m(a: Array, b: Array) -> float:
    """Return the distance between two places in metres, accurate to 1% over a vehicle's range."""
    north, east = (a[:2] - b[:2]) * _METRES_PER_DEGREE
    return math.hypot(north, east * math.cos(math.radians((a[0] + b[0]) / 2)))
