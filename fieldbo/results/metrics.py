"""Scores of an answer against the truth, and of curves at given costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError

SURE = 1.96
"""Standard deviations from the threshold, or the like in probability, from which on a site is classified."""

_FAR = 8.0  # standard deviations; beyond, probabilities are 0 or 1 to rounding


@dataclass(frozen=True)
class Match:
    """Agreement of a classification with the truth, each score between 0 and 1."""

    f1: float
    precision: float
    recall: float


def match(predicted: ArrayLike, true: ArrayLike) -> Match:
    """Return F1, precision and recall of a classification.

    Precision is 1 if no site is predicted, recall is 1 if no site is true. F1 is the harmonic mean of the
    two, and 1 if both sets are empty.

    Parameters
    ----------
    predicted, true : (N,) bool arrays

    Examples
    --------
    >>> match([1, 1, 1, 0, 0], [1, 0, 0, 1, 0])
    Match(f1=0.4, precision=0.3333333333333333, recall=0.5)
    >>> match([0, 0], [1, 0])
    Match(f1=0.0, precision=1.0, recall=0.0)
    """
    a, b = np.asarray(predicted, dtype=bool), np.asarray(true, dtype=bool)
    hits, claimed, members = (int(np.count_nonzero(s)) for s in (a & b, a, b))
    return Match(
        f1=2.0 * hits / (claimed + members) if claimed + members else 1.0,
        precision=hits / claimed if claimed else 1.0,
        recall=hits / members if members else 1.0,
    )


def f1_score(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return F1, the harmonic mean of precision and recall; 1 if both sets are empty.

    Parameters
    ----------
    predicted, true : (N,) bool arrays

    Examples
    --------
    >>> f1_score([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """
    return match(predicted, true).f1


def coverage(truth: Array, one_end: Array, other_end: Array) -> float:
    """Return the fraction of true values within their intervals, ends included.

    For the 90% intervals of a well calibrated belief it is about 0.9.

    Parameters
    ----------
    truth, one_end, other_end : (N,) arrays
        In the same unit; either end may be the lower one.

    Examples
    --------
    >>> coverage(np.array([1.0, 2.0, 9.0, 4.0]), np.zeros(4), np.full(4, 5.0))
    0.75
    """
    return float(np.count_nonzero((truth - one_end) * (truth - other_end) <= 0)) / len(truth)


def probit(p: Array) -> Array:
    """Return the standard normal quantiles of probabilities, at most 8 from 0."""
    return np.clip(ndtri(p), -_FAR, _FAR)


def doubtful(p: Array) -> Mask:
    """Return which sites (N,) are in the level set with a probability between 2.5% and 97.5%, as bool."""
    return np.asarray(np.abs(p - 0.5) <= float(ndtr(SURE)) - 0.5)


def score_at_costs(costs: ArrayLike, scores: ArrayLike, at: ArrayLike) -> Array:
    """Return the score of a run at given costs: its last score at or below each cost.

    Parameters
    ----------
    costs, scores : (n,) arrays
        Costs do not decrease.
    at : (k,) array

    Returns
    -------
    (k,) array
        NaN before the first reading.

    Examples
    --------
    >>> score_at_costs([1, 3, 5], [0.1, 0.5, 0.9], [0.5, 3, 9]).tolist()
    [nan, 0.5, 0.9]
    """
    c, s = np.asarray(costs, dtype=float), np.asarray(scores, dtype=float)
    index = np.searchsorted(c, np.asarray(at, dtype=float), side="right") - 1
    return np.where(index >= 0, s[np.maximum(index, 0)], np.nan) if len(c) else np.full(len(index), np.nan)


def cost_to_target(costs: ArrayLike, scores: ArrayLike, target: float) -> float:
    """Return the cost at which a curve first reaches a target; NaN if it never does.

    Parameters
    ----------
    costs, scores : (n,) arrays
        Costs do not decrease; a larger score is better.
    target : float

    Examples
    --------
    >>> cost_to_target([10, 20, 30], [0.5, 0.92, 0.88], 0.9)
    20.0
    >>> cost_to_target([10, 20, 30], [0.5, 0.92, 0.88], 0.95)
    nan
    """
    reached = np.flatnonzero(np.asarray(scores, dtype=float) >= target)
    return float(np.asarray(costs, dtype=float)[reached[0]]) if len(reached) else float("nan")


@dataclass(frozen=True)
class Score:
    """A score by which runs are compared.

    Attributes
    ----------
    name : str
    column : str
        Attribute of a `Step`.
    better : {"larger", "smaller"}
    """

    name: str
    column: str
    better: Literal["larger", "smaller"]

    def cost_to(self, costs: ArrayLike, scores: ArrayLike, target: float) -> float:
        """Return the cost at which a curve first reaches a target; NaN if it never does.

        Examples
        --------
        >>> REGRET.cost_to([10, 20, 30], [0.5, 0.1, 0.01], 0.1)
        20.0
        """
        sign = 1.0 if self.better == "larger" else -1.0
        return cost_to_target(costs, sign * np.asarray(scores, dtype=float), sign * target)


F1 = Score("F1", "f1", "larger")
REGRET = Score("regret", "regret", "smaller")
BEST_REGRET = Score("regret of the best sample", "best_regret", "smaller")
SIMPLE_REGRET = Score("simple regret", "simple_regret", "smaller")


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
