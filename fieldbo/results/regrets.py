"""Regrets of playing control sets: of quality, of cost, and the simple one.

==============  ==========================================================================================
``v*``          best expected value over all control sets and settings
``v_t``         expected value of the settings of play t
``c_t``         mean cost of the control set of play t
``alpha``       share of the best value that may be given up
``C*``          sets whose best expected value is at least ``(1 - alpha) v*``; ``i*`` the cheapest of them
==============  ==========================================================================================

Hoang, Hoang and Tran 2025. Values are counted from the worst that the field can take, so that none is below
0. All are of the truth: nothing of what was read, and none of its noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError


def quality_regret(best: float, values: ArrayLike, alpha: float = 0.0) -> float:
    """Return ``sum_t (1 - alpha) v* - v_t``; below 0 where plays were better than had to be.

    Parameters
    ----------
    best : float
        v*.
    values : (T,) array
        v_t.
    alpha : float

    Examples
    --------
    >>> round(quality_regret(3.0, [1.0, 2.5, 2.0, 2.9], alpha=0.1), 6)
    2.4
    """
    return float(np.sum((1.0 - alpha) * best - np.asarray(values, dtype=float)))


def cost_regret(played: ArrayLike, good: float) -> float:
    """Return ``sum_t max(c_t - c*, 0)``.

    Parameters
    ----------
    played : (T,) array
        c_t: mean costs, whatever the plays really cost.
    good : float
        c*, the mean cost of the cheapest set that is good enough.

    Examples
    --------
    >>> round(cost_regret([0.1, 0.2, 1.0, 0.2], 0.2), 6)
    0.8
    """
    return float(np.maximum(np.asarray(played, dtype=float) - good, 0.0).sum())


def simple_regret(best: float, values: ArrayLike, costs: ArrayLike, spent: ArrayLike) -> Array:
    """Return v* less the best v_t among the plays that some spending pays for, one after the other.

    Parameters
    ----------
    best : float
        v*.
    values : (T,) array
        v_t.
    costs : (T,) array
        What the plays really cost.
    spent : (C,) array

    Returns
    -------
    (C,) array
        NaN where not even the first play is paid for.

    Raises
    ------
    InputError
        There are not as many costs as values.

    Examples
    --------
    >>> simple_regret(3.0, [1.0, 2.5, 2.0], [0.1, 0.2, 1.0], [0.05, 0.2, 9.0])
    array([nan, 2. , 0.5])
    """
    reached, paid = np.asarray(values, dtype=float), np.cumsum(np.asarray(costs, dtype=float))
    if reached.shape != paid.shape:
        raise InputError(f"{len(reached)} values and {len(paid)} costs", expected="a cost of each play")
    highest = np.append(np.nan, np.maximum.accumulate(reached))
    return np.asarray(best - highest[np.searchsorted(paid, np.asarray(spent, dtype=float), side="right")])


def good_enough(best_by_set: ArrayLike, costs: ArrayLike, alpha: float) -> tuple[list[int], int]:
    """Return C*, and i*, the first of its cheapest.

    Parameters
    ----------
    best_by_set : (m,) array
        Best expected value of each control set.
    costs : (m,) array
        Mean cost of each.
    alpha : float

    Examples
    --------
    >>> good_enough([1.0, 2.8, 3.0, 2.6], [0.1, 0.2, 1.0, 0.2], 0.1)
    ([1, 2], 1)
    """
    values, prices = np.asarray(best_by_set, dtype=float), np.asarray(costs, dtype=float)
    sets = np.flatnonzero(values >= (1.0 - alpha) * values.max()).tolist()
    return sets, min(sets, key=lambda i: (prices[i], i))
