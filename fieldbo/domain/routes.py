"""Which straight legs are free of obstacles, and the cheapest routes around what is in the way.

There are two kinds of free space: an outline with holes over two axes, and boxes in a box over any number of
axes. A leg may touch an edge or a corner: tests use the free space expanded by a few billionths of the
extent, so that rounding never closes a route along a wall. Nothing passes where two obstacles touch, even in
a single point.

A route consists of straight free legs and bends only at corners of the free space. Between two points that
see each other it is the straight leg, because no cost model here makes a detour cheaper. All other routes are
shortest paths in the graph of the corners that see each other. In the code:

==============  ===============================================================================
``price``       of straight legs, free or not: (P, d), (N, d) to (P, N); may be asymmetric
``between``     cheapest cost from corner to corner along free legs, (V, V)
``reach``       cheapest cost from points to corners along free legs, (P, V)
``leave``       cost from corners to points on one free leg, (V, N)
==============  ===============================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, LruBytes, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import expanded
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError

_GROWN = 4e-9  # times the longest extent; more than a site may lie outside its domain
_SEAL = 1e-6  # times the longest extent; the reach of the seal where obstacles touch
_PIECES = 12  # of each edge of a box, at least; routes bend where pieces meet
_MOST_PIECES = 48


class Visibility(ABC):
    """A free space, as straight legs see it.

    Attributes
    ----------
    corners : (V, d) array
        Points at which the cheapest route between two points may bend.
    """

    corners: Array

    @abstractmethod
    def free(self, starts: Array, ends: Array) -> Mask:
        """Return a mask (P, N) of the straight legs from `starts` (P, d) to `ends` (N, d) that are free."""

    @abstractmethod
    def free_legs(self, starts: Array, ends: Array) -> Mask:
        """Return a mask (n,) of the straight legs from each of `starts` (n, d) to its end that are free."""

    @abstractmethod
    def inside(self, points: Array) -> Mask:
        """Return a mask (n,) of the points (n, d) that are free, edges included."""

    @abstractmethod
    def nearest(self, points: Array) -> Array:
        """Return the free points (n, d) nearest to `points` (n, d)."""


class Outline(Visibility):
    """The inside of one or more polygons with holes; routes bend at their reflex corners.

    Parameters
    ----------
    region : shapely.Polygon or shapely.MultiPolygon
    extent : float
        Length of the domain's longest axis.

    Examples
    --------
    >>> court = shapely.Polygon(shapely.box(0, 0, 3, 3).exterior, [shapely.box(1, 1, 2, 2).exterior])
    >>> visibility = Outline(court, 3.0)
    >>> visibility.free(np.array([[0.0, 0.0]]), np.array([[3.0, 1.0], [2.0, 1.0], [3.0, 3.0]]))
    array([[ True,  True, False]])
    """

    def __init__(self, region: Region, extent: float) -> None:
        self.region, self._slack = _seal_touching(region, _SEAL * extent), _GROWN * extent
        self.corners = np.unique(_reflex(self.region), axis=0).reshape(-1, 2)
        self._origin = np.array(self.region.bounds[:2])

    @cached_property
    def _rings(self) -> tuple[Array, Array, Array]:
        """The rings that legs may not cross, expanded: corners, index of each first corner, and bounds."""
        parts = shapely.get_parts(expanded(self.region, self._slack, self._origin))
        # A single convex part contains every leg between two of its points.
        convex = len(parts) == 1 and parts[0].exterior.convex_hull.equals(shapely.Polygon(parts[0].exterior))
        rings = [r for p in parts for r in ([] if convex else [p.exterior]) + list(p.interiors)]
        loops = [shapely.get_coordinates(r)[:-1] for r in rings]
        corners = np.concatenate([np.empty((0, 2)), *loops])
        first = np.cumsum([0, *map(len, loops)])
        bounds = np.array([r.bounds for r in rings]).reshape(-1, 4)
        return corners, first, bounds

    def free(self, starts: Array, ends: Array) -> Mask:
        from fieldbo.domain._path_loops import free_in_outline

        return np.asarray(free_in_outline(starts - self._origin, ends - self._origin, *self._rings))

    def free_legs(self, starts: Array, ends: Array) -> Mask:
        from fieldbo.domain._path_loops import legs_in_outline

        return np.asarray(legs_in_outline(starts - self._origin, ends - self._origin, *self._rings))

    def inside(self, points: Array) -> Mask:
        return np.asarray(shapely.dwithin(shapely.points(points), self.region, self._slack))

    def nearest(self, points: Array) -> Array:
        legs = shapely.shortest_line(shapely.points(points), self.region)
        return shapely.get_coordinates(legs)[1::2]


def _seal_touching(region: Region, reach: float) -> Region:
    """Return a region without the points at which two of its rings touch, and their surroundings."""
    rings = [r for part in shapely.get_parts(region) for r in (part.exterior, *part.interiors)]
    pairs = shapely.STRtree(rings).query(rings, predicate="intersects")
    touching = [shapely.intersection(rings[i], rings[j]) for i, j in pairs.T if i < j]
    points = shapely.get_coordinates(touching)
    if not len(points):
        return region
    seal = shapely.union_all(shapely.box(*(points - reach).T, *(points + reach).T))
    open_region = shapely.difference(region, seal)
    assert isinstance(open_region, Region)
    return open_region


def _reflex(region: Region) -> Array:
    """Return the corners (V, 2) at which the free space has an angle of more than 180 degrees."""
    corners = [np.empty((0, 2))]
    for part in shapely.get_parts(shapely.orient_polygons(region)):
        for ring in (part.exterior, *part.interiors):
            here = shapely.get_coordinates(ring)[:-1]
            incoming, outgoing = here - np.roll(here, 1, axis=0), np.roll(here, -1, axis=0) - here
            # The free space lies on the left.
            corners.append(here[incoming[:, 0] * outgoing[:, 1] - incoming[:, 1] * outgoing[:, 0] < 0])
    return np.concatenate(corners)


class Boxes(Visibility):
    """The inside of a box, outside of others.

    The shortest route around a box may bend anywhere on its edges. Here it bends where equal pieces of an
    edge meet, at most half a piece away. Each edge has 12 pieces, or up to 48 so that a piece is no longer
    than a twelfth of the shortest side of the free space. Among five random boxes, 99 in 100 routes are less
    than 0.5% too long; the others, mostly at most 5% too long, are short ones close around a long edge.

    Parameters
    ----------
    low, high : (d,) array
        Opposite corners of the free space.
    lows, highs : (B, d) array
        Opposite corners of the boxes in it, which may reach beyond it.

    Examples
    --------
    >>> visibility = Boxes(np.zeros(3), np.full(3, 3.0), np.full((1, 3), 1.0), np.full((1, 3), 2.0))
    >>> visibility.free(np.zeros((1, 3)), np.array([[3.0, 3.0, 3.0], [3.0, 0.0, 3.0]]))
    array([[False,  True]])
    """

    def __init__(self, low: Array, high: Array, lows: Array, highs: Array) -> None:
        self.low, self.high, self.lows, self.highs = low, high, lows, highs
        extent = float(np.max(high - low))
        self._slack, self._reach = _GROWN * extent, _SEAL * extent
        longest = float(np.min(high - low)) / _PIECES
        points = np.concatenate([_edge_points(a, b, longest) for a, b in self._clipped()])
        self.corners = np.unique(points[self.inside(points)], axis=0)

    def _clipped(self) -> list[tuple[Array, Array]]:
        return [
            (np.maximum(a, self.low), np.minimum(b, self.high))
            for a, b in zip(self.lows, self.highs, strict=True)
        ]

    @cached_property
    def _shrunk(self) -> tuple[Array, Array]:
        """Low and high corners of the boxes that no leg may enter; they are shrunk, so that legs may touch.

        A box at the edge of the free space extends to infinity, and a thin box seals the place where two
        boxes touch.
        """
        seals = [
            seal
            for k, box in enumerate(self._clipped())
            for other in self._clipped()[:k]
            if (seal := self._seal(box, other)) is not None
        ]
        lows = np.concatenate([self.lows, *(a[None] for a, _ in seals)])
        highs = np.concatenate([self.highs, *(b[None] for _, b in seals)])
        return (
            np.where(lows <= self.low + self._slack, -np.inf, lows + self._slack),
            np.where(highs >= self.high - self._slack, np.inf, highs - self._slack),
        )

    def _seal(self, box: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array] | None:
        """Return the box (low, high) around the face or edge that two boxes share; None if there is none."""
        low, high = np.maximum(box[0], other[0]), np.minimum(box[1], other[1])
        flat = high - low <= self._slack
        if not flat.any() or np.any(high - low < -self._slack):
            return None
        return low - self._reach * flat, high + self._reach * flat

    def free(self, starts: Array, ends: Array) -> Mask:
        from fieldbo.domain._path_loops import free_among_boxes

        return np.asarray(free_among_boxes(starts, ends, *self._shrunk))

    def free_legs(self, starts: Array, ends: Array) -> Mask:
        from fieldbo.domain._path_loops import legs_among_boxes

        return np.asarray(legs_among_boxes(starts, ends, *self._shrunk))

    def inside(self, points: Array) -> Mask:
        x, (low, high) = points[:, None], self._shrunk
        within = np.all((points >= self.low - self._slack) & (points <= self.high + self._slack), axis=1)
        return np.asarray(within & ~np.any(np.all((x > low) & (x < high), axis=2), axis=1))

    def nearest(self, points: Array) -> Array:
        nearest = np.clip(points, self.low, self.high)
        for k in np.flatnonzero(~self.inside(nearest)):
            sides = [(j, side[j]) for box in self._clipped() for side in box for j in range(len(self.low))]
            moved = np.repeat(nearest[k : k + 1], len(sides), axis=0)
            moved[np.arange(len(sides)), [j for j, _ in sides]] = [x for _, x in sides]
            candidates = np.concatenate([moved, self.corners])
            candidates = candidates[self.inside(candidates)]
            if len(candidates):
                nearest[k] = candidates[np.argmin(np.linalg.norm(candidates - points[k], axis=1))]
        return nearest


def _edge_points(low: Array, high: Array, longest: float) -> Array:
    """Return the ends (n, d) of equal pieces of all edges of a box, corners included."""
    d, shares = len(low), []
    for j in range(d):
        pieces = int(np.clip(np.ceil((high[j] - low[j]) / longest), _PIECES, _MOST_PIECES))
        ticks = np.linspace(0.0, 1.0, pieces + 1)
        for ends in product((0.0, 1.0), repeat=d - 1):
            line = np.insert(np.tile(ends, (len(ticks), 1)), j, ticks, axis=1)
            shares.append(line)
    return low + np.concatenate(shares) * (high - low)


def visibility_in(domain: Domain) -> Visibility | None:
    """Return the visibility in a domain; None if every leg between two of its points is free."""
    if domain.clear:
        return None
    extent = float(domain.extent.max())
    if domain.region is not None:
        return Outline(domain.region, extent)
    boxes = [(o.low, o.high) for o in domain.obstacles]
    return Boxes(domain.low, domain.high, np.array([a for a, _ in boxes]), np.array([b for _, b in boxes]))


Price = Callable[[Array, Array], Array]
"""A function that returns the cost (P, N) of straight legs from starts (P, d) to ends (N, d)."""

Stops = NDArray[np.int32]

_MOST_BYTES = (
    256 * 2**20
)  # of cached costs, a little more than a matrix over 5,000 sites; and of cached points
_FEW = 16  # points that are processed again faster than looked up
_BLOCK = 2**18  # legs priced at once


@dataclass(frozen=True, eq=False)
class _Points:
    """Points, and the costs between them and the corners.

    Attributes
    ----------
    points : (P, d) array
    at : (P, d) array
        Where their routes start: the points themselves, or the nearest free points.
    outside : (P,) bool array
        Which points are not free.
    seen : (P, V) array
        Costs from `at` to corners on one free leg.
    reach : (P, V) array
        Costs from `at` to corners.
    leave : (V, P) array
        Costs from corners to `points` on one free leg.
    """

    points: Array
    at: Array
    outside: Mask
    seen: Array
    reach: Array
    leave: Array

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take."""
        arrays = (self.points, self.at, self.outside, self.seen, self.reach, self.leave)
        return sum(array.nbytes for array in arrays)

    def entry(self, price: Price) -> Array:
        """Return the costs (P, 1) from `points` to `at`."""
        costs = np.zeros((len(self.points), 1))
        for k in np.flatnonzero(self.outside):
            costs[k] = price(self.points[k : k + 1], self.at[k : k + 1])
        return costs


class ShortestPaths:
    """The cheapest routes between points, around everything that is not free.

    What the corners see of a set of sites, and the costs between sites, are cached.

    Parameters
    ----------
    visibility : Visibility
    price : Callable
        The cost of straight legs; it must not make a detour cheaper than the straight leg.

    Examples
    --------
    >>> import shapely
    >>> from scipy.spatial.distance import cdist
    >>> from fieldbo.domain.routes import Outline
    >>> court = shapely.Polygon(shapely.box(0, 0, 3, 3).exterior, [shapely.box(1, 1, 2, 2).exterior])
    >>> paths = ShortestPaths(Outline(court, 3.0), cdist)
    >>> paths.travel(np.array([[1.0, 1.5]]), np.array([[2.0, 1.5]]))
    array([[2.]])
    >>> paths.path(np.array([0.0, 1.5]), np.array([2.0, 1.0])).tolist()
    [[0.0, 1.5], [1.0, 1.0], [2.0, 1.0]]
    """

    def __init__(self, visibility: Visibility, price: Price) -> None:
        self.visibility, self.price = visibility, price
        self._point_sets = LruBytes[_Points](_MOST_BYTES, lambda points: points.nbytes)
        self._costs = LruBytes[Array](_MOST_BYTES, lambda costs: costs.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShortestPaths, (self.visibility, self.price)  # the caches are rebuilt

    def travel(self, starts: Array, ends: Array) -> Array:
        """Return the costs of the cheapest routes.

        A start that is not free, such as a drifting vehicle's, first goes straight to the nearest free point.

        Parameters
        ----------
        starts : (P, d) array
        ends : (N, d) array

        Returns
        -------
        (P, N) array
            Read-only; infinite if there is no route or the end is not free.
        """
        return self._cached("travel", starts, ends, self._travel)

    def along(self, starts: Array, ends: Array, other: Price) -> Array:
        """Return another cost (P, N) of the routes of `travel`, with each leg priced by `other`."""
        return self._cached(("along", other), starts, ends, lambda a, b: self._along(a, b, other))

    def path(self, start: Array, end: Array) -> Array:
        """Return the cheapest route from `start` (d,) to `end` (d,) as (k, d) points, both included.

        Raises
        ------
        InputError
            There is no route.
        """
        if not np.isfinite(self.travel(start[None], end[None])[0, 0]):
            raise InputError(
                f"there is no route from {start.tolist()} to {end.tolist()}",
                expected="free places that neither obstacles nor the outline separate",
                where="domain.obstacles",
            )
        a, b = self._points(start[None]), self._points(end[None])
        corner = int(self._last(a, b)[0, 0])
        bends: list[Array] = []
        if corner >= 0:
            first = int(self._first(a)[0, corner])
            while corner != first:
                bends.append(self.visibility.corners[corner])
                corner = int(self._before[first, corner])
            bends.append(self.visibility.corners[first])
        route = np.stack([start, a.at[0], *bends[::-1], end])
        moves = np.any(np.diff(route, axis=0) != 0, axis=1)
        return route[[0, *(np.flatnonzero(moves) + 1)]] if moves.any() else route[[0, -1]]

    def _cached(self, what: object, starts: Array, ends: Array, price: Price) -> Array:
        """Return costs (P, N), from the cache if possible."""

        def make() -> Array:
            costs = price(starts, ends)
            costs.setflags(write=False)
            return costs

        return self._costs.get((what, starts.tobytes(), ends.tobytes()), make)

    def _travel(self, starts: Array, ends: Array) -> Array:
        from fieldbo.domain._path_loops import take_stop

        a, b = self._points(starts), self._points(ends)
        costs = self._direct(a, b)
        take_stop(a.reach, b.leave, costs)
        costs += a.entry(self.price)
        costs[:, b.outside] = np.inf
        return costs

    def _along(self, starts: Array, ends: Array, other: Price) -> Array:
        a, b = self._points(starts), self._points(ends)
        costs = other(a.at, b.points)
        last, corners = self._last(a, b), self.visibility.corners
        bent = np.nonzero(last >= 0)
        if len(bent[0]):
            first = self._first(a)[bent[0], last[bent]]
            reach = self._cached(("between", other), corners, corners, lambda *_: self._between_along(other))
            leave = self._cached(("leave", other), corners, b.points, other)
            costs[bent] = (
                other(a.at, corners)[bent[0], first] + reach[first, last[bent]] + leave[last[bent], bent[1]]
            )
        costs += a.entry(other)
        costs[~np.isfinite(self.travel(starts, ends))] = np.inf
        return costs

    # -- the graph -------------------------------------------------------------------------------------

    @cached_property
    def _graph(self) -> tuple[Array, Stops]:
        from scipy.sparse.csgraph import csgraph_from_dense, dijkstra

        corners = self.visibility.corners
        if not len(corners):
            return np.empty((0, 0)), np.empty((0, 0), np.int32)
        legs = np.where(self.visibility.free(corners, corners), self.price(corners, corners), np.inf)
        graph = csgraph_from_dense(legs, null_value=np.inf)  # a leg may cost nothing
        between, before = dijkstra(graph, return_predecessors=True)
        return between, before

    @property
    def _between(self) -> Array:
        """Costs (V, V) from corner (row) to corner (column)."""
        return self._graph[0]

    @property
    def _before(self) -> Stops:
        """The corner before each corner (column) on the route from another corner (row), (V, V)."""
        return self._graph[1]

    def _between_along(self, other: Price) -> Array:
        """Return another cost (V, V) of the routes between corners."""
        corners, size = self.visibility.corners, len(self.visibility.corners)
        legs, first = other(corners, corners), np.arange(size)[:, None]
        total, at = np.zeros((size, size)), np.tile(np.arange(size), (size, 1))
        while True:  # go back one leg on all routes at once
            before = self._before[first, at]
            going = np.nonzero((at != first) & (before >= 0))
            if not len(going[0]):
                return total
            total[going] += legs[before[going], at[going]]
            at[going] = before[going]

    # -- points and the graph --------------------------------------------------------------------------

    def _points(self, points: Array) -> _Points:
        if len(points) <= _FEW:
            return self._connect(points)
        return self._point_sets.get(("points", points.tobytes()), lambda: self._connect(points))

    def _connect(self, points: Array) -> _Points:
        """Return points (P, d) with the corners that they see, and the costs of getting there."""
        from fieldbo.domain._path_loops import take_stop

        points = np.array(points, order="C")  # loops compile again for each memory layout
        outside = ~self.visibility.inside(points)
        at = points
        if outside.any():
            at = points.copy()
            at[outside] = self.visibility.nearest(points[outside])
        corners = self.visibility.corners
        free = self.visibility.free(at, corners)
        seen = np.where(free, self.price(at, corners), np.inf)
        reach = np.full(seen.shape, np.inf)
        take_stop(seen, self._between, reach)
        leave = np.ascontiguousarray(np.where(free.T, self.price(corners, points), np.inf))
        return _Points(points, at, outside, seen, reach, leave)

    def _direct(self, a: _Points, b: _Points) -> Array:
        """Return the costs (P, N) of straight legs; infinite if they are not free."""
        costs = np.empty((len(a.at), len(b.points)))
        rows = max(1, _BLOCK // len(b.points))
        for k in range(0, len(costs), rows):
            costs[k : k + rows] = self.price(a.at[k : k + rows], b.points)
        costs[~self.visibility.free(a.at, b.points)] = np.inf
        return costs

    def _last(self, a: _Points, b: _Points) -> Stops:
        """Return the last corner (P, N) of each route; -1 if it has none."""
        from fieldbo.domain._path_loops import stops

        return np.asarray(stops(a.reach, b.leave, self._direct(a, b)))

    def _first(self, a: _Points) -> Stops:
        """Return the first corner (P, V) on the route to each corner; -1 if there is no route."""
        from fieldbo.domain._path_loops import stops

        return np.asarray(stops(a.seen, self._between, np.full(a.seen.shape, np.inf)))
