"""The limits in a vehicle file: corners, altitudes, and a distance from the frame's origin."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field
from shapely.geometry import Polygon

from fieldbo.errors import InputError
from fieldbo.validation import settings
from fieldbo.vehicles.remote.settings import Limit


@settings("fence")
class Fence:
    """Limits in addition to those of the world, which `fieldbo.vehicles.mavlink.geofence` combines.

    fieldbo checks them before it sends a waypoint, along with the straight path there.
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
