"""A short tour of readings: each stop is where it adds most to the others, per unit of cost.

===========  ========================================================================
``W``        candidates for a stop
``places``   where the tour starts, place 0, and the candidates
``travel``   cost of travelling from each place to each other
===========  ========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Whole
from fieldbo.policies.level_set.outlook import Outlook

LEAST_SHARE = 0.7  # of the first stop's gain per cost, which each stop must bring
_CHEAPEST = 1e-9  # of the dearest trip: what a detour costs at least, should the triangle inequality fail


class Planned(NamedTuple):
    """A tour: the candidates where it stops, in order; the risk that it is expected to remove; its cost."""

    stops: list[int]
    gain: float
    cost: float


@dataclass(frozen=True, eq=False)
class Prices:
    """What a tour costs.

    Parameters
    ----------
    travel : (W + 1, W + 1) array
    home : (W + 1,) array
        Cost of the trip home from each place; zeros without a home.
    sampling : (W,) array
        Cost of a reading at each candidate, once there; above 0.
    left : float
        What the tour and the trip home may cost together.
    """

    travel: Array
    home: Array
    sampling: Array
    left: float

    def detours(self, route: list[int]) -> tuple[Array, Whole]:
        """Return the extra cost of each candidate as one more stop, and where in the route it would come.

        The cheapest place in the route, the latest of ties. The cost is infinite if the battery is too low.

        Parameters
        ----------
        route : list of int
            Places, the first of them 0.
        """
        here, next_ = np.array(route), np.array(route[1:], dtype=int)
        extra = self.travel[here, 1:].copy()
        extra[:-1] += self.travel[1:, next_].T - self.travel[here[:-1], next_][:, None]
        gap = len(route) - 1 - np.argmin(extra[::-1], axis=0)
        detour = np.take_along_axis(extra, gap[None], axis=0)[0]
        detour = np.maximum(detour + self.sampling, _CHEAPEST * float(self.travel.max()))
        home = np.where(gap == len(route) - 1, self.home[1:], self.home[route[-1]])
        return np.where(self.of(route) + detour + home <= self.left, detour, np.inf), gap + 1

    def of(self, route: list[int]) -> float:
        """Return the cost of a route, its readings included."""
        return float(
            self.travel[route[:-1], route[1:]].sum() + self.sampling[np.array(route[1:], int) - 1].sum()
        )


def planned(outlook: Outlook, prices: Prices, most: int) -> Planned:
    """Return a tour of up to `most` stops.

    Insert the stop that adds most per unit of cost, again and again, until that falls below a share of what
    the first one brings. Then change the order of the stops to shorten the travel.
    """
    from fieldbo.costs._route_loops import shorten

    route, gain, least = [0], 0.0, 0.0
    while len(route) <= most:
        gains = outlook.gains()
        detours, places = prices.detours(route)
        rates = gains / detours
        best = int(np.argmax(rates))
        if rates[best] <= least:
            break
        least = least or LEAST_SHARE * float(rates[best])
        route.insert(int(places[best]), best + 1)
        gain += float(gains[best])
        outlook.read(best)
    order = np.array(route)
    shorten(prices.travel, np.zeros(len(prices.travel)), order)
    route = order.tolist()
    return Planned([place - 1 for place in route[1:]], gain, prices.of(route))
