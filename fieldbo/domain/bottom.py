"""The bottom of a lake or sea: how deep the water is, and how deep probes may go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.georeference import reprojected
from fieldbo.errors import InputError

_LEAST_WEIGHT = 1e-12  # a place on the middle of an unknown cell takes the depth of those around it


@dataclass(frozen=True, eq=False)
class Bottom:
    """The depth of the bottom on a raster; in between, it is interpolated bilinearly.

    Parameters
    ----------
    x, y : (n,) array and (m,) array
        Coordinates of the cells' middles, increasing; at least two each.
    depth : (m, n) array
        In metres, positive down; NaN where it is unknown, and not positive on land.
    crs : str, optional
        Coordinate reference system of `x` and `y`; longitude or easting comes first.
    domain_crs : str, optional
        Coordinate reference system of the places asked for; by default, the same.
    clearance : float
        Height above the bottom, in metres, that probes keep.
    least_depth : float
        Depth of the water, in metres, below which there are no sites.
    source : str
        What the raster is, for people.

    Examples
    --------
    >>> slope = Bottom(np.array([0.0, 10.0]), np.array([0.0, 10.0]), np.array([[2.0, 4.0], [2.0, 4.0]]))
    >>> slope.depth_at([[5.0, 3.0], [40.0, 3.0]])
    array([ 3., nan])
    """

    x: Array
    y: Array
    depth: Array
    crs: str | None = None
    domain_crs: str | None = None
    clearance: float = 0.0
    least_depth: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        if self.depth.shape != (len(self.y), len(self.x)) or min(self.depth.shape) < 2:
            raise InputError(
                f"the bathymetry has {' x '.join(map(str, self.depth.shape))} cells, with {len(self.y)} and "
                f"{len(self.x)} coordinates",
                expected="at least 2 x 2 cells, with one coordinate for each row and column",
            )

    def depth_at(self, places: ArrayLike) -> Array:
        """Return the depth of the bottom (n,) at horizontal places (n, 2), in metres; NaN if it is unknown.

        Next to cells without a depth, those with one count alone. A raster ends half a cell beyond the
        middles of its outermost cells.
        """
        xy = np.atleast_2d(np.asarray(places, dtype=float))
        if self.crs is not None and self.domain_crs is not None and self.crs != self.domain_crs:
            xy = reprojected(xy, self.domain_crs, self.crs)
        column, right, inside_x = _cell(self.x, xy[:, 0])
        row, up, inside_y = _cell(self.y, xy[:, 1])
        total, weight = np.zeros(len(xy)), np.zeros(len(xy))
        for k in (0, 1):
            for i in (0, 1):
                depth = self.depth[row + k, column + i]
                known = np.isfinite(depth)
                share = np.maximum((up if k else 1 - up) * (right if i else 1 - right), _LEAST_WEIGHT)
                total += np.where(known, share * depth, 0.0)
                weight += np.where(known, share, 0.0)
        known = (weight > 0) & inside_x & inside_y
        return np.where(known, total / np.where(known, weight, 1.0), np.nan)

    def reach_at(self, places: ArrayLike) -> Array:
        """Return the greatest depth (n,) of probes at places (n, 2): 0, the surface, where it is unknown."""
        return np.fmax(self.depth_at(places) - self.clearance, 0.0)


def _cell(ticks: Array, x: Array) -> tuple[NDArray[np.int64], Array, Mask]:
    """Return the tick before each coordinate, the fraction of the way to the next one, and a mask."""
    index = np.clip(np.searchsorted(ticks, x) - 1, 0, len(ticks) - 2)
    fraction = (x - ticks[index]) / (ticks[index + 1] - ticks[index])
    inside = (fraction >= -0.5) & (fraction <= 1.5)
    return index, np.clip(fraction, 0.0, 1.0), inside
