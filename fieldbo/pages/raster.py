"""A map's pixels: which site each of them shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldbo.pages.plane import Plane

LONGEST_SIDE = 400
"""Pixels along the longer side of a raster."""


@dataclass(frozen=True, eq=False)
class Raster:
    """An image of site numbers.

    It is made once. To draw a belief, each pixel takes the value of its site.

    Attributes
    ----------
    pixels : (rows, columns) int array
        Position in `shown` of the nearest site, from the top left corner; -1 outside of the domain.
    shown : (S,) int array
        The sites that any pixel shows.
    """

    pixels: NDArray[np.int64]
    shown: NDArray[np.int64]


def raster_of(plane: Plane, longest: int = LONGEST_SIDE) -> Raster:
    """Return the raster of a domain over two axes, between the bounds of its map.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.domain import Domain
    >>> from fieldbo.domain.obstacles import Obstacle
    >>> from fieldbo.pages.plane import Flat
    >>> axes = [Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)]
    >>> pond = Domain.grid(axes, (3, 2), obstacles=[Obstacle("islet", (1.2, 0), (1.8, 0.4))])
    >>> raster_of(Flat(pond, (0, 1)), 8).pixels
    array([[ 1,  1,  3,  3,  3,  3,  5,  5],
           [ 1,  1,  3,  3,  3,  3,  5,  5],
           [ 0,  0,  2,  2,  2, -1, -1,  4],
           [ 0,  0,  2,  2,  2, -1, -1,  4]])
    """
    from scipy.spatial import KDTree

    domain, ratio = plane.domain, plane.ratio
    rows, columns = (max(1, round(longest * min(1.0, side))) for side in (ratio, 1.0 / ratio))
    points = plane.to_domain(plane.pixels(rows, columns))
    inside = np.flatnonzero(np.isfinite(points).all(axis=1))
    inside = inside[domain.contains(points[inside])]
    per_unit = np.array([1.0, ratio]) / domain.extent if plane.kind == "plane" else np.ones(2)
    _, nearest = KDTree(domain.sites * per_unit).query(points[inside] * per_unit)
    shown, position = np.unique(nearest, return_inverse=True)
    pixels = np.full(len(points), -1, dtype=np.int64)
    pixels[inside] = position
    return Raster(pixels.reshape(rows, columns), shown.astype(np.int64))
