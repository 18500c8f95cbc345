"""The best order in which to visit several sites."""

from __future__ import annotations

from functools import cache

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel

_EXACT = 8  # sites; more have too many orders for an exact search


def shortest_order(cost: CostModel, start: Array, sites: Array) -> list[int]:
    """Return the indices of `sites` in an order that needs little travel, from `start` to any last site.

    For up to eight sites the order is optimal (Held and Karp 1962). For more, the nearest remaining site
    comes next; then 2-opt and relocation take the first improvement until there is none. Sites that are free
    to travel between keep their order.

    Parameters
    ----------
    cost : CostModel
        Only its travel cost counts; it may be asymmetric.
    start : (d,) array
    sites : (k, d) array

    Examples
    --------
    >>> from fieldbo.costs import Euclidean
    >>> shortest_order(Euclidean(), np.array([0.0]), np.array([[5.0], [1.0], [3.0]]))
    [1, 2, 0]
    """
    travel = cost.travel(np.vstack([start, sites]), np.vstack([start, sites]))
    if len(sites) <= _EXACT:
        return _shortest(travel)
    order, left = [0], list(range(1, len(travel)))
    while left:
        order.append(left.pop(int(np.argmin(travel[order[-1], left]))))
    from fieldbo.costs._route_loops import shorten

    route = np.array(order)
    shorten(travel, route)
    return [int(n) - 1 for n in route[1:]]


def _shortest(travel: Array) -> list[int]:
    """Return the optimal order, by dynamic programming over the sites that remain."""

    @cache
    def rest(here: int, left: frozenset[int]) -> float:
        return min((float(travel[here, n]) + rest(n, left - {n}) for n in left), default=0.0)

    here, order, left = 0, list[int](), frozenset(range(1, len(travel)))
    while left:
        here = min(sorted(left), key=lambda n: float(travel[here, n]) + rest(n, left - {n}))
        order.append(here - 1)
        left -= {here}
    return order
