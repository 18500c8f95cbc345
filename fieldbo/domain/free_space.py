"""The free part of a domain: inside the outline, outside obstacles, and above the bottom of the water."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo.domain.axes import Axis
from fieldbo.domain.georeference import is_geographic, reprojected, turned_to
from fieldbo.domain.obstacles import MITRE, Obstacle, Region, check_obstacles
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
            if is_geographic(self.crs):  # longitudes of the raster may run from 0 to 360
                xy = turned_to(xy, float(self.x[0] + self.x[-1]) / 2.0)
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


_COLUMNS = 200  # of water, along each axis, over which depths are averaged
_THIN = 1e-9  # times the longest extent; a thinner gap is rounding, and is closed


def with_clearance(
    axes: Sequence[Axis], obstacles: Sequence[Obstacle], clearance: float
) -> tuple[Obstacle, ...]:
    """Return the obstacles, each grown by the clearance.

    Raises
    ------
    InputError
        The clearance is negative or not finite, or the axes have different units.
    """
    if not (np.isfinite(clearance) and clearance >= 0):
        raise InputError(
            f"clearance = {clearance}", expected="a finite number of at least 0", where="domain.clearance"
        )
    if clearance > 0 and len(units := {a.unit for a in axes}) > 1:
        raise InputError(
            f"a clearance needs one unit, but the axes are in {' and '.join(sorted(units))}",
            expected="the same unit on all axes, so that distances are defined",
            where="domain.clearance",
            fix="make the obstacles larger instead",
        )
    return tuple(o.grown(clearance) for o in obstacles)


def shrunk(outline: Region, clearance: float) -> Region:
    """Return the part of an outline at least `clearance` away from its edge and its holes.

    Raises
    ------
    InputError
        Nothing is left.

    Examples
    --------
    >>> shrunk(shapely.box(0, 0, 8, 4), 1.0).bounds
    (1.0, 1.0, 7.0, 3.0)
    """
    if clearance == 0.0:
        return outline
    inner = shapely.buffer(outline, -clearance, join_style="mitre", mitre_limit=MITRE)
    parts = [p for p in shapely.get_parts(inner) if p.area > _THIN * outline.area]
    if not parts:
        raise InputError(
            f"a clearance of {clearance:g} leaves nothing of the outline",
            expected="an outline that is wider than twice the clearance",
            where="domain.clearance",
            fix="lower the clearance, or correct the outline",
        )
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


@dataclass(frozen=True, eq=False)
class FreeSpace:
    """The free part of the box between `low` and `high`.

    Parameters
    ----------
    low, high : (d,) array
    region : shapely.Polygon or MultiPolygon, optional
        The free part, over the first two axes; None means the whole box. With a third axis, a depth, the
        free part is a prism.
    boxes : (b, d) array and (b, d) array, optional
        With more axes: low and high ends of boxes that make up the free part and share at most faces; None
        means the whole box.
    bottom : Bottom, optional
        Where a prism ends.
    """

    low: Array
    high: Array
    region: Region | None = None
    boxes: tuple[Array, Array] | None = None
    bottom: Bottom | None = None

    @classmethod
    def on(
        cls,
        axes: Sequence[Axis],
        obstacles: Sequence[Obstacle],
        outline: Region | None = None,
        clearance: float = 0.0,
    ) -> FreeSpace:
        """Return what obstacles leave of an outline, or of the box between the axes' ends."""
        low, high = frozen_array([a.low for a in axes]), frozen_array([a.high for a in axes])
        return cls.around(obstacles, low, high, outline, clearance)

    @classmethod
    def around(
        cls,
        obstacles: Sequence[Obstacle],
        low: Array,
        high: Array,
        outline: Region | None = None,
        clearance: float = 0.0,
        bottom: Bottom | None = None,
    ) -> FreeSpace:
        """Return what obstacles leave of an outline, or of the box between `low` and `high` (d,).

        The free space keeps the `clearance` from the outline; obstacles include theirs. Gaps without width
        are closed: obstacles that touch form one, and nothing passes between an obstacle and an edge that it
        touches.

        Raises
        ------
        InputError
            An obstacle does not fit the box, or nothing is left.

        Examples
        --------
        >>> FreeSpace.around([Obstacle("mast", (1, 0), (2, 3))], np.zeros(2), np.array([4.0, 3.0])).measure
        9.0
        >>> FreeSpace.around([Obstacle("tank", (1, 0, 0), (2, 2, 5))], np.zeros(3), np.full(3, 3.0)).measure
        21.0
        """
        flat = len(low) if outline is None else 2
        check_obstacles(obstacles, low[:flat], high[:flat], outline)
        outline = None if outline is None else shrunk(outline, clearance)
        if not obstacles:
            return cls(low, high, outline, bottom=bottom)
        if flat == 2:
            ends = np.stack([low, high])[:, :2]
            whole = shapely.box(*ends.ravel()) if outline is None else outline
            precision = 10.0 * float(np.spacing(np.abs(ends).max()))  # of the coordinates
            finest = max(0.1 * _THIN * float(np.min(ends[1] - ends[0])), precision)
            return cls(low, high, _region(obstacles, whole, finest), bottom=bottom)
        boxes = [(low, high)]
        for obstacle in obstacles:
            boxes = [part for box in boxes for part in _boxes_around(obstacle, *box)]
        boxes = [(a, b) for a, b in boxes if np.all(b - a > _THIN * (high - low))]
        if not boxes:
            raise _nothing_left()
        return cls(low, high, boxes=(np.array([a for a, _ in boxes]), np.array([b for _, b in boxes])))

    @property
    def measure(self) -> float:
        """Length, area or volume."""
        if self.region is not None:
            return float(self.region.area) * self._mean_height
        low, high = self.boxes or (self.low[None], self.high[None])
        return float(np.prod(high - low, axis=1).sum())

    @property
    def _mean_height(self) -> float:
        """The mean height of a prism's columns; 1 over two axes."""
        if len(self.low) == 2:
            return 1.0
        if self.bottom is None:
            return float(self.high[2] - self.low[2])
        ticks = np.linspace(self.low[:2], self.high[:2], _COLUMNS, axis=1)
        places = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
        inside = places[shapely.contains_xy(self.region, places)]
        return float(np.mean(np.clip(self.bottom.reach_at(inside), self.low[2], self.high[2])) - self.low[2])

    @property
    def convex(self) -> bool:
        """Whether every straight leg between two of its points stays inside it."""
        if self.bottom is not None and len(self.low) > 2:
            return False
        if self.region is None:
            return self.boxes is None
        if isinstance(self.region, shapely.MultiPolygon) or len(self.region.interiors):
            return False
        corners = shapely.points(shapely.get_coordinates(self.region))
        depth = shapely.distance(corners, self.region.convex_hull.boundary).max()  # the area may be tiny
        return bool(depth <= _THIN * (self.high - self.low).max())

    def contains(self, points: ArrayLike) -> Mask:
        """Return a mask (n,) of the points (n, d) that are free, edges included."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        inside: Mask = np.all(~self.beyond(x), axis=1)
        if self.region is not None:
            inside &= shapely.intersects_xy(self._with_edge, *(x - self.low)[:, :2].T)
            if self.bottom is not None and x.shape[1] > 2:
                inside[inside] &= x[inside, 2] <= self.bottom.reach_at(x[inside, :2]) + self._slack[2]
        elif self.boxes is not None:
            low, high = (self.boxes[0] - self._slack).T, (self.boxes[1] + self._slack).T
            within = [(x[:, j, None] >= low[j]) & (x[:, j, None] <= high[j]) for j in range(len(low))]
            inside &= np.logical_and.reduce(within).any(axis=1)
        return inside

    def beyond(self, points: ArrayLike) -> Mask:
        """Return a mask (n, d) of the coordinates of points (n, d) that lie outside the box."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        return ~((x >= self.low - self._slack) & (x <= self.high + self._slack))

    @cached_property
    def _slack(self) -> Array:
        """How far (d,) coordinates may lie outside, so that a point survives being written as text."""
        return _THIN * (self.high - self.low)

    @cached_property
    def _with_edge(self) -> Region:
        """The region, expanded by the slack, relative to `low`, and prepared for many queries."""
        assert self.region is not None
        larger = expanded(self.region, _THIN * float((self.high - self.low).max()), self.low[:2])
        shapely.prepare(larger)
        return larger


def expanded(region: Region, slack: float, origin: Array) -> Region:
    """Return a region, expanded by a tiny slack, in coordinates relative to `origin` (2,).

    In coordinates far from 0, such as eastings, so small a slack would be lost to rounding, and
    with it narrow holes.
    """
    larger = shapely.transform(region, lambda x: x - origin).buffer(slack, join_style="mitre")
    assert isinstance(larger, Region)
    return larger


def _region(obstacles: Sequence[Obstacle], whole: Region, finest: float) -> Region:
    """Return what obstacles leave of a region, rounded to less than `finest`, without tiny parts."""
    step = 10.0 ** np.floor(np.log10(finest))  # a power of ten keeps decimals as they are
    taken = shapely.union_all([o.polygon for o in obstacles], grid_size=step)
    free = shapely.difference(whole, taken, grid_size=step)
    parts = [p for p in shapely.get_parts(free) if isinstance(p, shapely.Polygon)]
    parts = [p for p in parts if p.area > _THIN * whole.area]
    if not parts:
        raise _nothing_left()
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


def _boxes_around(obstacle: Obstacle, low: Array, high: Array) -> list[tuple[Array, Array]]:
    """Return the boxes that an obstacle leaves of one box: along each axis, those before and behind it."""
    first, last = np.maximum(low, obstacle.low), np.minimum(high, obstacle.high)
    if np.any(first >= last):
        return [(low, high)]
    parts = []
    for j in range(len(low)):
        before, behind = high.copy(), low.copy()
        before[j], behind[j] = first[j], last[j]
        parts += [(low, before), (behind, high)]
        low, high = low.copy(), high.copy()
        low[j], high[j] = first[j], last[j]
    return [(a, b) for a, b in parts if np.all(a < b)]


def _nothing_left() -> InputError:
    return InputError(
        "obstacles cover the whole domain",
        expected="obstacles, with their clearance, that leave free space for a site",
        where="domain.obstacles",
        fix="make them smaller, or lower the clearance",
    )
