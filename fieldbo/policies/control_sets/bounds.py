"""Bounds on values and costs of control sets, as in algorithm 1 of Hoang, Hoang and Tran (2025).

*Bayesian optimization for unknown cost-varying variable subsets with no-regret costs*; the line numbers are
the algorithm's.

==============  ==========================================================================================
``i``           a control set, of m
``u``, ``l``    ``mu + kappa s`` and ``mu - kappa s``
``ucb_i``       least of the bounds max_x E[u] of set i so far (lines 11 and 15)
``lcb``         largest of the bounds max_(i,x) E[l] so far (lines 10 and 14)
``S1``          sets that may be good enough: ``ucb_i > (1 - alpha) lcb`` (line 16)
``T``, ``T_i``  plays so far, the present one included; plays of set i
``c_i``         mean cost of set i
``S3``          all sets of S1 whose lower cost bound is least (lines 22 to 25)
==============  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.policies.control_sets.plays import PlayCounts

EXPLORED_SHARE = 0.6
"""Largest fraction of the budget to explore with, if the number of rounds is not given."""


class Bounds(NamedTuple):
    """Intersected bounds `lcb` and `ucb` (m,), the `plausible` sets (S1), and whether both were `reset`."""

    lcb: float
    ucb: Array
    plausible: list[int]
    reset: bool


def updated_bounds(lcb: float, ucb: ArrayLike, lcb_now: float, ucb_now: ArrayLike, alpha: float) -> Bounds:
    """Intersect bounds with the present ones (lines 14 to 20).

    Parameters
    ----------
    lcb : float
        Lower bound on the best expected value over all control sets.
    ucb : (m,) array
        Upper bounds on each set's best expected value.
    lcb_now, ucb_now : float, (m,) array
        The present bounds; they replace the intersected ones if S1 is empty.
    alpha : float
        Fraction of the best value that may be given up.

    Examples
    --------
    >>> updated_bounds(1.0, [1.5, 0.95, 0.85], 1.1, [1.4, 1.2, 1.0], 0.1).plausible
    [0]
    >>> updated_bounds(2.0, [1.5, 1.2, 0.9], 1.0, [1.4, 1.3, 0.8], 0.05)[2:]
    ([0, 1], True)
    """
    now = np.asarray(ucb_now, dtype=float)
    low, high = max(lcb, lcb_now), np.minimum(np.asarray(ucb, dtype=float), now)
    plausible = np.flatnonzero(high > (1.0 - alpha) * low)
    if len(plausible):
        return Bounds(low, high, plausible.tolist(), False)
    return Bounds(lcb_now, now, np.flatnonzero(now > (1.0 - alpha) * lcb_now).tolist(), True)


class CostBounds(NamedTuple):
    """Means, widths and lower bounds (m,) of the costs of control sets."""

    mean: Array
    width: Array
    lower: Array


def cost_bounds(sums: ArrayLike, counts: ArrayLike, steps: int) -> CostBounds:
    """Return ``c_i``, ``sqrt(2 log T / T_i)`` and ``max(c_i - sqrt(2 log T / T_i), 0)`` (lines 22 to 24).

    Parameters
    ----------
    sums : (m,) array
        Total cost of each set's plays.
    counts : (m,) array
        Number of each set's plays, T_i. A set that was never played has the bound 0.
    steps : int
        T, the present play included.

    Examples
    --------
    >>> cost_bounds([0.5, 45.0], [45, 45], 226).lower.round(4)
    array([0.    , 0.5092])
    """
    plays = np.asarray(counts, dtype=float)
    known = plays > 0
    at_least_one = np.where(known, plays, 1.0)
    mean = np.where(known, np.asarray(sums, dtype=float) / at_least_one, np.nan)
    width = np.where(known, np.sqrt(2.0 * np.log(steps) / at_least_one), np.inf)
    lower = np.where(known, np.maximum(mean - np.where(known, width, 0.0), 0.0), 0.0)
    return CostBounds(mean, width, lower)


def cheapest(lower: ArrayLike, plausible: Sequence[int]) -> list[int]:
    """Return S3: all sets of S1 whose lower cost bound (m,) is least (line 25).

    Examples
    --------
    >>> cheapest([0.0, 0.0, 0.0, 0.5], [0, 2, 3])
    [0, 2]
    """
    bounds = np.asarray(lower, dtype=float)
    least = min(bounds[i] for i in plausible)
    return [i for i in plausible if bounds[i] == least]


def most_promising(values: ArrayLike, among: Sequence[int]) -> int:
    """Return the set of the largest max E[u] (m,) among some sets, the first if several (line 26).

    Examples
    --------
    >>> most_promising([1.0, 2.0, 1.7], [0, 2])
    2
    """
    promised = np.asarray(values, dtype=float)
    return max(among, key=lambda i: (promised[i], -i))


def tolerance(evaluations: ArrayLike, dimension: int, alpha: float = 0.1) -> NDArray[np.float64]:
    """Return alpha, halved after every d evaluations of the exploitation.

    Parameters
    ----------
    evaluations : int or (k,) array
        Number of evaluations since the exploration ended.
    dimension : int
        d.
    alpha : float
        Initial value.

    Examples
    --------
    >>> tolerance([0, 11, 12, 60], 12).tolist()
    [0.1, 0.1, 0.05, 0.003125]
    """
    return np.asarray(alpha * 0.5 ** (np.asarray(evaluations) // dimension))


def another_round(rounds: int, spent: float, budget: float, tau: int | None = None) -> bool:
    """Return True if one more whole round of exploration is to be played.

    Parameters
    ----------
    rounds : int
        Number of rounds played.
    spent : float
        Their cost.
    budget : float
        Exploration takes at most six tenths of it; the first round always fits.
    tau : int, optional
        Number of rounds to play, instead.

    Examples
    --------
    >>> another_round(4, 48.0, 100.0), another_round(5, 55.0, 100.0), another_round(5, 55.0, 100.0, tau=6)
    (True, False, True)
    """
    if tau is not None:
        return rounds < tau
    return rounds == 0 or spent + spent / rounds <= EXPLORED_SHARE * budget


def sets_described(
    counts: PlayCounts, promised: Sequence[float | None], plausible: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """Return what is known of each control set, as plain data for a decision's `why`.

    Parameters
    ----------
    counts : PlayCounts
    promised : (m,) sequence
        Upper bounds on each set's best gain; None where not known.
    plausible : sequence of int, optional
        The sets that may be good enough; None while that is not decided yet.
    """
    prices = cost_bounds(counts.costs, counts.plays, counts.total + 1)
    return [
        {
            "set": i,
            "ucb": promised[i],
            "cost": float(prices.mean[i]) if plays else None,
            "cost_low": float(prices.lower[i]),
            "plays": int(plays),
            "plausible": None if plausible is None else i in plausible,
        }
        for i, plays in enumerate(counts.plays)
    ]
