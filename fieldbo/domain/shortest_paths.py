"""The cheapest ways round obstacles that bend at corners.

A way is made of straight legs that are free, and bends only at corners of what is free. Between two points
that see each other it is the straight leg: no detour may be cheaper, which holds for every price here. Other
ways are the shortest paths through the visibility graph. With the symbols of the code:

==============  ===============================================================================
``price``       of straight legs, whether free or not: (P, d), (N, d) to (P, N); may be dearer one way
``between``     from corner to corner along free legs, (V, V)
``reach``       from points to corners along free legs, (P, V)
``leave``       from corners to points on one free leg, (V, N)
==============  ===============================================================================
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.visibility import Visibility
from fieldbo.errors import InputError

Price = Callable[[Array, Array], Array]
"""Prices (P, N) of straight legs from starts (P, d) to ends (N, d)."""

Stops = NDArray[np.int32]

_MOST_BYTES = 256 * 2**20  # of prices that are kept: the matrix of 5,000 sites and a bit; as much of points
_FEW = 16  # points of which that is quicker found than looked up
_BLOCK = 2**18  # legs priced at once

T = TypeVar("T")

_Key = tuple[Any, *tuple[bytes, ...]]  # what it is, and the points that it is of


class LruBytes(Generic[T]):
    """What was found lately, by key; the oldest is forgotten when all together is too large.

    Parameters
    ----------
    most : int
        How many bytes may be kept, of keys and values.
    size : Callable
        How many a value has.
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most, self.size, self.total = most, size, 0
        self._found: OrderedDict[_Key, T] = OrderedDict()

    def get(self, key: _Key, make: Callable[[], T]) -> T:
        """Return the value of `key`, made where it is not known; too large a one is not kept."""
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        value = make()
        if self._bytes(key, value) <= self.most:
            self._found[key] = value
            self.total += self._bytes(key, value)
            while self.total > self.most:
                self.total -= self._bytes(*self._found.popitem(last=False))
        return value

    def _bytes(self, key: _Key, value: T) -> int:
        return self.size(value) + sum(map(len, key[1:]))


@dataclass(frozen=True, eq=False)
class _Points:
    """Points, and what the ways between them and the corners cost.

    Attributes
    ----------
    points : (P, d) array
    at : (P, d) array
        Where their ways begin: themselves, or the nearest free points.
    outside : (P,) bool array
        Which of them are not free.
    seen : (P, V) array
        From `at` to corners in one free leg.
    reach : (P, V) array
        From `at` to corners.
    leave : (V, P) array
        From corners to `points` in one free leg.
    """

    points: Array
    at: Array
    outside: Mask
    seen: Array
    reach: Array
    leave: Array

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        kept = (self.points, self.at, self.outside, self.seen, self.reach, self.leave)
        return sum(part.nbytes for part in kept)

    def entry(self, price: Price) -> Array:
        """Return what the ways from `points` to `at` cost, (P, 1)."""
        found = np.zeros((len(self.points), 1))
        for k in np.flatnonzero(self.outside):
            found[k] = price(self.points[k : k + 1], self.at[k : k + 1])
        return found


class ShortestPaths:
    """The cheapest ways between points, round what is not free.

    What the corners see of a set of sites, and the prices between sites, are kept for the next time.

    Parameters
    ----------
    sight : Visibility
    price : Callable
        Must not make a detour cheaper than the straight leg.

    Examples
    --------
    >>> import shapely
    >>> from scipy.spatial.distance import cdist
    >>> from fieldbo.domain.visibility import Outline
    >>> court = shapely.Polygon(shapely.box(0, 0, 3, 3).exterior, [shapely.box(1, 1, 2, 2).exterior])
    >>> ways = ShortestPaths(Outline(court, 3.0), cdist)
    >>> ways.travel(np.array([[1.0, 1.5]]), np.array([[2.0, 1.5]]))
    array([[2.]])
    >>> ways.path(np.array([0.0, 1.5]), np.array([2.0, 1.0])).tolist()
    [[0.0, 1.5], [1.0, 1.0], [2.0, 1.0]]
    """

    def __init__(self, sight: Visibility, price: Price) -> None:
        self.sight, self.price = sight, price
        self._sets = LruBytes[_Points](_MOST_BYTES, lambda found: found.nbytes)
        self._prices = LruBytes[Array](_MOST_BYTES, lambda found: found.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShortestPaths, (self.sight, self.price)  # what is kept is made anew

    def travel(self, starts: Array, ends: Array) -> Array:
        """Return the prices (P, N) of the cheapest ways from `starts` (P, d) to `ends` (N, d).

        A start that is not free, as of a vehicle adrift, goes straight to the nearest free point first.

        Returns
        -------
        (P, N) array
            Not to be written to; infinite where there is no way, or the end is not free.
        """
        return self._known("travel", starts, ends, self._travel)

    def along(self, starts: Array, ends: Array, other: Price) -> Array:
        """Return another price (P, N) of the same ways: those of `travel`, each leg by `other`."""
        return self._known(("along", other), starts, ends, lambda a, b: self._along(a, b, other))

    def path(self, start: Array, end: Array) -> Array:
        """Return the cheapest way from `start` (d,) to `end` (d,), as (k, d) points, both included.

        Raises
        ------
        InputError
            There is none.
        """
        if not np.isfinite(self.travel(start[None], end[None])[0, 0]):
            raise InputError(
                f"there is no way from {start.tolist()} to {end.tolist()}",
                expected="free places that neither obstacles nor the outline part",
                where="domain.obstacles",
            )
        a, b = self._points(start[None]), self._points(end[None])
        corner = int(self._last(a, b)[0, 0])
        bends: list[Array] = []
        if corner >= 0:
            first = int(self._first(a)[0, corner])
            while corner != first:
                bends.append(self.sight.corners[corner])
                corner = int(self._before[first, corner])
            bends.append(self.sight.corners[first])
        way = np.stack([start, a.at[0], *bends[::-1], end])
        moves = np.any(np.diff(way, axis=0) != 0, axis=1)
        return way[[0, *(np.flatnonzero(moves) + 1)]] if moves.any() else way[[0, -1]]

    def _known(self, what: object, starts: Array, ends: Array, price: Price) -> Array:
        """Return prices (P, N), from what is kept where they are known."""

        def made() -> Array:
            found = price(starts, ends)
            found.setflags(write=False)
            return found

        return self._prices.get((what, starts.tobytes(), ends.tobytes()), made)

    def _travel(self, starts: Array, ends: Array) -> Array:
        from fieldbo.domain._path_loops import take_stop

        a, b = self._points(starts), self._points(ends)
        found = self._direct(a, b)
        take_stop(a.reach, b.leave, found)
        found += a.entry(self.price)
        found[:, b.outside] = np.inf
        return found

    def _along(self, starts: Array, ends: Array, other: Price) -> Array:
        a, b = self._points(starts), self._points(ends)
        found = other(a.at, b.points)
        last, corners = self._last(a, b), self.sight.corners
        bent = np.nonzero(last >= 0)
        if len(bent[0]):
            first = self._first(a)[bent[0], last[bent]]
            reach = self._known(("between", other), corners, corners, lambda *_: self._between_along(other))
            leave = self._known(("leave", other), corners, b.points, other)
            found[bent] = (
                other(a.at, corners)[bent[0], first] + reach[first, last[bent]] + leave[last[bent], bent[1]]
            )
        found += a.entry(other)
        found[~np.isfinite(self.travel(starts, ends))] = np.inf
        return found

    # -- the graph -------------------------------------------------------------------------------------

    @cached_property
    def _graph(self) -> tuple[Array, Stops]:
        from scipy.sparse.csgraph import csgraph_from_dense, dijkstra

        corners = self.sight.corners
        if not len(corners):
            return np.empty((0, 0)), np.empty((0, 0), np.int32)
        legs = np.where(self.sight.free(corners, corners), self.price(corners, corners), np.inf)
        graph = csgraph_from_dense(legs, null_value=np.inf)  # a leg may cost nothing
        between, before = dijkstra(graph, return_predecessors=True)
        return between, before

    @property
    def _between(self) -> Array:
        """Prices (V, V) from corner (row) to corner (column)."""
        return self._graph[0]

    @property
    def _before(self) -> Stops:
        """The corner before each (column) on the way from another (row), (V, V)."""
        return self._graph[1]

    def _between_along(self, other: Price) -> Array:
        """Return another price (V, V) of the ways between corners."""
        corners, size = self.sight.corners, len(self.sight.corners)
        legs, first = other(corners, corners), np.arange(size)[:, None]
        total, at = np.zeros((size, size)), np.tile(np.arange(size), (size, 1))
        while True:  # one leg back on all ways at once
            before = self._before[first, at]
            going = np.nonzero((at != first) & (before >= 0))
            if not len(going[0]):
                return total
            total[going] += legs[before[going], at[going]]
            at[going] = before[going]

    # -- points and the graph --------------------------------------------------------------------------

    def _points(self, points: Array) -> _Points:
        if len(points) <= _FEW:
            return self._look_about(points)
        return self._sets.get(("points", points.tobytes()), lambda: self._look_about(points))

    def _look_about(self, points: Array) -> _Points:
        """Find out what points (P, d) see of the corners, and what the ways there cost."""
        from fieldbo.domain._path_loops import take_stop

        points = np.array(points, order="C")  # one kind of array: each is compiled for
        outside = ~self.sight.inside(points)
        at = points
        if outside.any():
            at = points.copy()
            at[outside] = self.sight.nearest(points[outside])
        corners = self.sight.corners
        free = self.sight.free(at, corners)
        seen = np.where(free, self.price(at, corners), np.inf)
        reach = np.full(seen.shape, np.inf)
        take_stop(seen, self._between, reach)
        leave = np.ascontiguousarray(np.where(free.T, self.price(corners, points), np.inf))
        return _Points(points, at, outside, seen, reach, leave)

    def _direct(self, a: _Points, b: _Points) -> Array:
        """Return the prices (P, N) of free straight legs, infinite where they are not free."""
        found = np.empty((len(a.at), len(b.points)))
        rows = max(1, _BLOCK // len(b.points))
        for k in range(0, len(found), rows):
            found[k : k + rows] = self.price(a.at[k : k + rows], b.points)
        found[~self.sight.free(a.at, b.points)] = np.inf
        return found

    def _last(self, a: _Points, b: _Points) -> Stops:
        """Return the last corner (P, N) on each way; -1 where it has none."""
        from fieldbo.domain._path_loops import stops

        return np.asarray(stops(a.reach, b.leave, self._direct(a, b)))

    def _first(self, a: _Points) -> Stops:
        """Return the first corner (P, V) on the way to each; -1 where there is no way."""
        from fieldbo.domain._path_loops import stops

        return np.asarray(stops(a.seen, self._between, np.full(a.seen.shape, np.inf)))
