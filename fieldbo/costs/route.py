"""The order in which several sites are best visited."""

from __future__ import annotations

from functools import cache

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel

_EXACT = 8  # sites: more have too many orders to look at
_ROUNDS = 20
_LEAST_GAIN = 1e-6  # of travel: less is rounding


def shortest_order(cost: CostModel, start: Array, sites: Array) -> list[int]:
    """Return the indices of `sites` in an order of little travel, from `start` and back to nowhere.

    The shortest of all for up to eight sites (Held and Karp 1962). For more the nearest site next; then 2-opt
    and relocation, taking the first improvement, until there is none. Sites between which travel costs
    nothing keep their order.

    Parameters
    ----------
    cost : CostModel
        Its travel part is what counts; it may be asymmetric.
    start : (d,) array
    sites : (k, d) array

    Examples
    --------
    >>> from fieldbo.costs.euclidean import Euclidean
    >>> shortest_order(Euclidean(), np.array([0.0]), np.array([[5.0], [1.0], [3.0]]))
    [1, 2, 0]
    """
    travel = cost.travel(np.vstack([start, sites]), np.vstack([start, sites]))
    if len(sites) <= _EXACT:
        return _shortest(travel)
    order, left = [0], list(range(1, len(travel)))
    while left:
        order.append(left.pop(int(np.argmin(travel[order[-1], left]))))
    for _ in range(_ROUNDS):
        better = _improved(travel, order)
        if better is None:
            break
        order = better
    return [n - 1 for n in order[1:]]


def _shortest(travel: Array) -> list[int]:
    """Return the shortest order of all, by what each set of sites that is left takes from each site."""

    @cache
    def rest(here: int, left: frozenset[int]) -> float:
        return min((float(travel[here, n]) + rest(n, left - {n}) for n in left), default=0.0)

    here, order, left = 0, list[int](), frozenset(range(1, len(travel)))
    while left:
        here = min(sorted(left), key=lambda n: float(travel[here, n]) + rest(n, left - {n}))
        order.append(here - 1)
        left -= {here}
    return order


def _improved(travel: Array, order: list[int]) -> list[int] | None:
    """Return the first order that reversing a stretch, or moving a site, makes shorter; the start stays."""
    length = _length(travel, order)
    n = len(order)
    for i in range(1, n - 1):
        for j in range(i + 1, n):
            turned = [*order[:i], *order[i : j + 1][::-1], *order[j + 1 :]]
            moved = [*order[:i], *order[i + 1 : j + 1], order[i], *order[j + 1 :]]
            fetched = [*order[:i], order[j], *order[i:j], *order[j + 1 :]]
            for other in (turned, moved, fetched):
                if _length(travel, other) < length - _LEAST_GAIN:
                    return other
    return None


def _length(travel: Array, order: list[int]) -> float:
    return float(travel[order[:-1], order[1:]].sum())
