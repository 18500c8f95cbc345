"""Whether readings can come from one move: their times in order, their places near its route."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain

_OFF_ROUTE = 0.1
"""How far from its route a vehicle may be, as a fraction of the domain's longest side: vehicles drift."""


def off_route_m(domain: Domain) -> float:
    """Return how far from its route a vehicle may read, in metres: a tenth of the domain's longest side."""
    return _OFF_ROUTE * float(domain.extent.max())


def distances_from(route: Array, sites: Array) -> Array:
    """Return the distances (n,) of sites from a route.

    Parameters
    ----------
    route : (k, d) array
        Points, with straight legs in between; k is at least 1.
    sites : (n, d) array

    Examples
    --------
    >>> distances_from(np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[2.0, 3.0], [7.0, 4.0]]))
    array([3., 5.])
    """
    starts, ends = (route[:-1], route[1:]) if len(route) > 1 else (route, route)
    legs = ends - starts
    squares = np.maximum((legs**2).sum(axis=1), np.finfo(float).tiny)
    nearest = np.full(len(sites), np.inf)
    for start, leg, square in zip(starts, legs, squares, strict=True):
        share = np.clip((sites - start) @ leg / square, 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(sites - start - share[:, None] * leg, axis=1))
    return nearest


def in_order(times: Array) -> Mask:
    """Return which times (n,) to keep so that none decreases and as few as possible are left out.

    Examples
    --------
    >>> in_order(np.array([1.0, 2.0, 9.0, 3.0, 4.0])).tolist()
    [True, True, False, True, True]
    """
    kept = np.zeros(len(times), dtype=bool)
    if not (np.diff(times) < 0).any():
        return ~kept
    # Of all rising series of each length, the one with the lowest end, and its links backwards.
    ends, lasts, before = list[float](), list[int](), list[int]()
    for k, time in enumerate(times.tolist()):
        length = bisect_right(ends, time)
        before.append(lasts[length - 1] if length else -1)
        ends[length : length + 1], lasts[length : length + 1] = [time], [k]
    k = lasts[-1]
    while k >= 0:
        kept[k], k = True, before[k]
    return kept
