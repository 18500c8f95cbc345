"""Regrets of playing control sets, quality, cost and simple regret, and of moving in a chain of modules.

==============  ==========================================================================================
``v*``          best expected value over all control sets and settings
``v_t``         expected value of the settings of play t
``c_t``         mean cost of the control set of play t
``alpha``       tolerated loss, as a fraction of the best value
``C*``          sets with a best expected value of at least ``(1 - alpha) v*``; ``i*`` is the cheapest
==============  ==========================================================================================

Hoang, Hoang and Tran 2025. Values are measured from the worst value of the field, so that none is negative.
All of them use the truth only: neither readings nor their noise enter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError


def quality_regret(best: float, values: ArrayLike, alpha: float = 0.0) -> float:
    """Return ``sum_t (1 - alpha) v* - v_t``; negative if the plays exceeded the tolerance.

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
        c_t: mean costs, not the real costs of the plays.
    good : float
        c*, the mean cost of the cheapest good enough set.

    Examples
    --------
    >>> round(cost_regret([0.1, 0.2, 1.0, 0.2], 0.2), 6)
    0.8
    """
    return float(np.maximum(np.asarray(played, dtype=float) - good, 0.0).sum())


def simple_regret(best: float, values: ArrayLike, costs: ArrayLike, spent: ArrayLike) -> Array:
    """Return v* less the best v_t of the plays affordable at each total cost.

    Parameters
    ----------
    best : float
        v*.
    values : (T,) array
        v_t.
    costs : (T,) array
        Real costs of the plays, in order.
    spent : (C,) array
        Total costs.

    Returns
    -------
    (C,) array
        NaN where not even the first play is affordable.

    Raises
    ------
    InputError
        The numbers of costs and values differ.

    Examples
    --------
    >>> simple_regret(3.0, [1.0, 2.5, 2.0], [0.1, 0.2, 1.0], [0.05, 0.2, 9.0])
    array([nan, 2. , 0.5])
    """
    reached, paid = np.asarray(values, dtype=float), np.cumsum(np.asarray(costs, dtype=float))
    if reached.shape != paid.shape:
        raise InputError(f"{len(reached)} values and {len(paid)} costs", expected="one cost per play")
    best_so_far = np.append(np.nan, np.maximum.accumulate(reached))
    return np.asarray(best - best_so_far[np.searchsorted(paid, np.asarray(spent, dtype=float), side="right")])


def good_enough(best_by_set: ArrayLike, costs: ArrayLike, alpha: float) -> tuple[list[int], int]:
    """Return C* and i*, the first of its cheapest sets.

    Parameters
    ----------
    best_by_set : (m,) array
        Best expected value of each control set.
    costs : (m,) array
        Mean cost of each control set.
    alpha : float

    Examples
    --------
    >>> good_enough([1.0, 2.8, 3.0, 2.6], [0.1, 0.2, 1.0, 0.2], 0.1)
    ([1, 2], 1)
    """
    values, prices = np.asarray(best_by_set, dtype=float), np.asarray(costs, dtype=float)
    sets = np.flatnonzero(values >= (1.0 - alpha) * values.max()).tolist()
    return sets, min(sets, key=lambda i: (prices[i], i))


def movement_regret(values: ArrayLike, best: float, movement: ArrayLike, lam: float) -> float:
    """Return ``sum over t of f(x_t) - f* + lam Gamma_t`` of a minimisation (Lin et al. 2021, eq. 7).

    Parameters
    ----------
    values : (T,) array
        Function values at the sampled points.
    best : float
        Minimum of the function, ``f*``.
    movement : (T,) array
        Cost of each move, ``Gamma_t``.
    lam : float
        Weight of a unit of cost relative to a unit of value.

    Examples
    --------
    >>> round(movement_regret([0.5, 0.4, 0.2], 0.1, [50, 10, 0], lam=0.1), 9)
    6.8
    """
    regrets = np.asarray(values, dtype=float) - best
    return float(np.sum(regrets + lam * np.asarray(movement, dtype=float)))
