"""Shorten routes through a few sites by local search."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldbo._numerics.compiled import compiled

_ROUNDS = 20
_LEAST_GAIN = 1e-6  # in travel cost; less is rounding


@compiled()
def _length(travel: Any, order: Any) -> Any:
    total = 0.0
    for k in range(len(order) - 1):
        total += travel[order[k], order[k + 1]]
    return total


@compiled()
def shorten(travel: Any, order: Any) -> Any:
    """Reverse stretches of a route and move single sites, as long as that makes it shorter.

    Takes the first improvement (2-opt and relocation). The first site stays where it is.

    Parameters
    ----------
    travel : (n, n) array
        May be asymmetric.
    order : (k,) int array
        Changed in place.

    Returns
    -------
    float
        The length of the route.
    """
    n, tried = len(order), np.empty_like(order)
    length = _length(travel, order)
    for _ in range(_ROUNDS):
        before = length
        for i in range(1, n - 1):
            for j in range(i + 1, n):
                for change in range(3):
                    tried[:] = order
                    if change == 0:
                        for k in range(i, j + 1):
                            tried[k] = order[i + j - k]
                    elif change == 1:  # site i goes behind site j
                        tried[i:j] = order[i + 1 : j + 1]
                        tried[j] = order[i]
                    else:
                        tried[i + 1 : j + 1] = order[i:j]
                        tried[i] = order[j]
                    shorter = _length(travel, tried)
                    if shorter < length - _LEAST_GAIN:
                        order[:], length = tried, shorter
        if length == before:
            break
    return length
