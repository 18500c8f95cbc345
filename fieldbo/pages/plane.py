"""Where a map draws the points of a domain: on the Earth, or in a plane along its axes.

Leaflet takes every point as a latitude and a longitude. On the Earth they are that, in degrees, and Leaflet
draws them in Web Mercator. In a plane they are a height and a distance from the left, in units of which the
map is 1000 wide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import Georeference
from fieldbo.domain.obstacles import Obstacle, Region

_WIDTH = 1000.0
_HIGHEST = 84.0  # degrees: beyond them Web Mercator distorts too much
_PLAIN_RATIO = 0.65  # height over width of a map whose axes have different units
_LONGEST = 5.0  # length over width up to which axes of one unit are drawn to the same scale
_EDGE = 33  # points along each edge of a domain's box, which may be curved on the map


class Plane(ABC):
    """Converts points of a domain to points of its map, and back.

    Parameters
    ----------
    domain : Domain
    axes : (int, int)
        The axes that are drawn, across and up.
    """

    kind: str
    """``"earth"`` or ``"plane"``."""

    digits: int
    """Decimals of a point on the map that are visible."""

    def __init__(self, domain: Domain, axes: tuple[int, int]) -> None:
        self.domain, self.axes = domain, axes
        self.low, self.extent = domain.low[list(axes)], domain.extent[list(axes)]

    @abstractmethod
    def to_map(self, points: ArrayLike) -> Array:
        """Return points (k, d) of the domain as points (k, 2) of the map: latitude, longitude."""

    @abstractmethod
    def to_domain(self, points: Array) -> Array:
        """Return points (k, 2) of the map as coordinates (k, 2) along the drawn axes."""

    def height(self, latitudes: ArrayLike) -> Array:
        """Return heights on the screen, in units of a longitude, of latitudes."""
        return np.asarray(latitudes, dtype=float)

    def latitude(self, heights: ArrayLike) -> Array:
        """Return the latitudes of heights on the screen: the inverse of `height`."""
        return np.asarray(heights, dtype=float)

    @abstractmethod
    def described(self) -> list[dict[str, Any]]:
        """Return both axes as the map labels them: name, unit, and value at, and per, unit of the map."""

    def drawn(self, points: ArrayLike) -> list[list[float]]:
        """Return points (k, d) of the domain as a page holds them."""
        return [[round(x, self.digits) + 0.0 for x in row] for row in self.to_map(points).tolist()]

    def whole(self, points: Array) -> Array:
        """Return points (k, 2) along the drawn axes as points (k, d) of the domain."""
        whole = np.tile(self.domain.low, (len(points), 1))
        whole[:, list(self.axes)] = points
        return whole

    @property
    def ground(self) -> Region:
        """The outline over the drawn axes; without one, the box of the domain."""
        outline = self.domain.outline
        return shapely.box(*self.low, *(self.low + self.extent)) if outline is None else outline

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """The obstacles over the drawn axes, without their clearance."""
        return tuple(obstacle for obstacle in self.domain.solid if obstacle.dimension == 2)

    @property
    def ratio(self) -> float:
        """Height over width of the map."""
        low, high = self.bounds
        return float((self.height(high[0]) - self.height(low[0])) / (high[1] - low[1]))

    def on_screen(self, points: ArrayLike) -> Array:
        """Return points (k, d) of the domain as shares (k, 2) of the map, from its left and from its top."""
        (low, high), at = self.bounds, self.to_map(points)
        top, bottom = self.height(high[0]), self.height(low[0])
        across = (at[:, 1] - low[1]) / (high[1] - low[1])
        return np.stack([across, (top - self.height(at[:, 0])) / (top - bottom)], axis=1)

    def pixels(self, rows: int, columns: int) -> Array:
        """Return the middles (rows * columns, 2) of pixels, as points of the map, from the top left."""
        low, high = self.bounds
        latitudes = self.latitude(_centres(self.height(high[0]), self.height(low[0]), rows))
        down, across = np.meshgrid(latitudes, _centres(low[1], high[1], columns), indexing="ij")
        return np.stack([down.ravel(), across.ravel()], axis=1)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Two corners (2,) of the map between which the box of the domain lies."""
        along = np.linspace(0.0, 1.0, _EDGE)
        zero, one = np.zeros(_EDGE), np.ones(_EDGE)
        edges = np.concatenate(
            [np.stack(pair, axis=1) for pair in ((along, zero), (along, one), (zero, along), (one, along))]
        )
        corners = self.to_map(self.whole(self.low + edges * self.extent))
        return corners.min(axis=0), corners.max(axis=0)


class Flat(Plane):
    """A map along the axes themselves, to scale if they have the same unit and similar lengths.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> lake = Domain.grid([Axis("along", "m", 0, 100), Axis("depth", "m", 0, 50, "down")], (3, 2))
    >>> plane = Flat(lake, (0, 1))
    >>> plane.drawn([[50, 0], [100, 50]])
    [[0.0, 500.0], [-500.0, 1000.0]]
    >>> plane.to_domain(plane.to_map([[20, 30]])).tolist()
    [[20.0, 30.0]]
    """

    kind, digits = "plane", 2

    def __init__(self, domain: Domain, axes: tuple[int, int]) -> None:
        super().__init__(domain, axes)
        across, up = (domain.axes[j] for j in axes)
        height = float(self.extent[1] / self.extent[0])
        to_scale = across.unit == up.unit and 1.0 / _LONGEST < height < _LONGEST
        sizes = _WIDTH * np.array([1.0, height if to_scale else _PLAIN_RATIO])
        signs = np.array([-1.0 if axis.positive == "down" else 1.0 for axis in (across, up)])
        self._per_unit = signs * sizes / self.extent

    def to_map(self, points: ArrayLike) -> Array:
        flat = np.atleast_2d(np.asarray(points, dtype=float))[:, list(self.axes)]
        return np.asarray(((flat - self.low) * self._per_unit)[:, ::-1])

    def to_domain(self, points: Array) -> Array:
        return np.asarray(points[:, ::-1] / self._per_unit + self.low)

    def described(self) -> list[dict[str, Any]]:
        return [
            {
                "name": self.domain.axes[j].name,
                "unit": self.domain.axes[j].unit,
                "at": float(low),
                "per": float(1.0 / per_unit),
            }
            for j, low, per_unit in zip(self.axes, self.low, self._per_unit, strict=True)
        ]


class OnEarth(Plane):
    """A map in latitude and longitude, which Leaflet draws in Web Mercator.

    Longitudes continue beyond 180 degrees where a domain crosses the antimeridian.

    Parameters
    ----------
    domain : Domain
    georeference : Georeference
    """

    kind, digits = "earth", 7

    def __init__(self, domain: Domain, georeference: Georeference) -> None:
        super().__init__(domain, georeference.axes)
        self._georeference = georeference
        self._middle = float(georeference.degrees(((domain.low + domain.high) / 2.0)[None])[0, 1])

    def to_map(self, points: ArrayLike) -> Array:
        degrees = self._georeference.degrees(points)
        degrees[:, 1] = self._middle + (degrees[:, 1] - self._middle + 180.0) % 360.0 - 180.0
        return degrees

    def to_domain(self, points: Array) -> Array:
        degrees = np.array(points)
        degrees[:, 1] = (degrees[:, 1] + 180.0) % 360.0 - 180.0
        return self._georeference.metres_if_any(degrees)

    def height(self, latitudes: ArrayLike) -> Array:
        return np.asarray(np.degrees(np.arctanh(np.sin(np.radians(latitudes)))))

    def latitude(self, heights: ArrayLike) -> Array:
        return np.asarray(np.degrees(np.arcsin(np.tanh(np.radians(heights)))))

    def described(self) -> list[dict[str, Any]]:
        return [{"name": name, "unit": "°", "at": 0.0, "per": 1.0} for name in ("longitude", "latitude")]


def plane_of(domain: Domain) -> Plane | None:
    """Return the map of a domain: of its two axes, or of the two horizontal ones besides a depth or a height.

    None if there are no such axes, or if the variables of the domain are settings.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> plane_of(Domain.box([Axis("x", "", 0, 1)], 8)) is None
    True
    """
    if domain.controls is not None:
        return None
    earth = domain.georeference
    if earth is not None:
        latitudes = earth.degrees(np.stack([domain.low, domain.high]))[:, 0]
        if np.abs(latitudes).max() < _HIGHEST:
            return OnEarth(domain, earth)
        return Flat(domain, earth.axes)
    if domain.dimension == 2 or (domain.dimension == 3 and domain.has_depth):
        return Flat(domain, (0, 1)) if (domain.extent[:2] > 0.0).all() else None
    return None


def _centres(first: ArrayLike, last: ArrayLike, count: int) -> Array:
    """Return the middles (count,) of equal parts between two ends."""
    return np.asarray(first + np.subtract(last, first) * (np.arange(count) + 0.5) / count)


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
