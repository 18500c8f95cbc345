"""Detours of a tour to candidates for one more stop."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldbo._numerics.compiled import compiled


@compiled()
def cheapest_detours(
    travel: Any, home: Any, sampling: Any, left: Any, route: Any, detours: Any, places: Any
) -> None:
    """Set the extra cost of each candidate as one more stop of a route, and its place in the route.

    The cheapest place, the latest of ties. The cost is infinite if more than `left` would be spent, with the
    trip home.

    Parameters
    ----------
    travel : (W + 1, W + 1) array
    home : (W + 1,) array
    sampling : (W,) array
    left : float
    route : (k,) int array
        Places, the first of them 0.
    detours : (W,) array
    places : (W,) int array
    """
    k, spent = len(route), 0.0
    for i in range(1, k):
        spent += travel[route[i - 1], route[i]] + sampling[route[i] - 1]
    for w in range(len(sampling)):
        z = w + 1
        least, place = travel[route[k - 1], z], k
        for i in range(k - 2, -1, -1):
            a, b = route[i], route[i + 1]
            extra = travel[a, z] + travel[z, b] - travel[a, b]
            if extra < least:
                least, place = extra, i + 1
        detour = max(least, 0.0) + sampling[w]  # the triangle inequality may fail
        back = home[z] if place == k else home[route[k - 1]]
        detours[w] = detour if spent + detour + back <= left else np.inf
        places[w] = place
