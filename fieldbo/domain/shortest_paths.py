"""The cheapest routes around obstacles, as shortest paths in a visibility graph.

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.lru import LruBytes
from fieldbo.domain.visibility import Visibility
from fieldbo.errors import InputError

Price = Callable[[Array, Array], Array]
"""A function that returns the cost (P, N) of straight legs from starts (P, d) to ends (N, d)."""

Stops = NDArray[np.int32]

_MOST_BYTES = (
    256 * 2**20
)  # of cached costs, somewhat more than a matrix over 5,000 sites; the same for points
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
    >>> from fieldbo.domain.visibility import Outline
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
            return self._connected(points)
        return self._point_sets.get(("points", points.tobytes()), lambda: self._connected(points))

    def _connected(self, points: Array) -> _Points:
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
