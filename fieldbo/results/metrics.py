"""Scores of an answer: against the truth, and as the belief expects them.

===========  =====================================================================
``p``        probability of being in the level set, (N,)
``inside``   sites classified as in the set: posterior mean at least the threshold
regret       true optimum less the true value at the reported point
===========  =====================================================================

In model units a level set always lies above its threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import ModelError

SURE = 1.96
"""A site counts as unclassified if its threshold lies within this many standard deviations of its mean."""

MIDDLE90 = 1.6448536269514722
"""Half width of the central 90% of a normal distribution, in standard deviations."""

_DRAWS, _SITES = 256, 2000


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


def expected_f1(inside: Mask, p: Array) -> float:
    """Return the ratio of expectations ``2 sum_inside p / (|inside| + sum p)``, O(N).

    Parameters
    ----------
    inside : (N,) bool array
    p : (N,) array
    """
    total = float(inside.sum() + p.sum())
    return 1.0 if total == 0 else float(2.0 * p[inside].sum() / total)


@dataclass(frozen=True)
class Interval:
    """A value with its 90% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Confidence:
    """Scores that the belief expects of its own classification, from joint draws.

    Attributes
    ----------
    f1 : Interval
    share : Interval
        Fraction of sites in the level set.
    """

    f1: Interval
    share: Interval

    @property
    def share_above(self) -> Interval:
        """The former name of `share`, from when all sets lay above their threshold."""
        return self.share


def confidence(surface: Surface, threshold: float, rng: np.random.Generator) -> Confidence:
    """Return expected F1 and the fraction of sites in the level set, with 90% intervals.

    From 256 joint draws of the field on at most 2,000 randomly chosen sites.

    Parameters
    ----------
    surface : Surface
    threshold : float
        In model units.
    rng : numpy.random.Generator

    Raises
    ------
    ModelError
        The posterior covariance has no Cholesky factor even with a jitter.
    """
    chosen = _some_sites(surface.size, rng)
    inside = surface.mean[chosen] >= threshold
    truths = _joint_draws(surface.belief, surface.candidates[chosen], surface.mean[chosen], rng) >= threshold
    members = inside.sum() + truths.sum(axis=0)
    scores = np.where(members > 0, 2.0 * (truths & inside[:, None]).sum(axis=0) / np.maximum(members, 1), 1.0)
    shares = truths.mean(axis=0)
    p = surface.exceedance(threshold)
    return Confidence(
        _interval(expected_f1(surface.mean >= threshold, p), scores), _interval(float(p.mean()), shares)
    )


@dataclass(frozen=True)
class OptimumConfidence:
    """Scores that the belief expects of the reported optimum, in the user's unit.

    Attributes
    ----------
    regret : Interval
        From joint draws.
    value : Interval
        Median and central 90% at the reported point.
    optimum : Interval
        The best value anywhere, from joint draws.
    """

    regret: Interval
    value: Interval
    optimum: Interval


def optimum_confidence(
    surface: Surface, reported: Array, scale: ValueScale, rng: np.random.Generator
) -> OptimumConfidence:
    """Return expected regret, reported value and optimum with 90% intervals.

    From 256 joint draws of the field at the reported point and on at most 2,000 randomly chosen sites.

    Parameters
    ----------
    surface : Surface
    reported : (d,) array
        A site or, in a continuous domain, any point.
    scale : ValueScale
        Transforms model units to the user's unit; its scale is negative when minimising.
    rng : numpy.random.Generator

    Raises
    ------
    ModelError
        As for `confidence`.
    """
    sites = surface.candidates[_some_sites(surface.size, rng)]
    sites = sites[(sites != reported).any(axis=1)]  # a repeated point would make the covariance singular
    points = np.concatenate([reported[None], sites])
    means = surface.belief.mean(points)
    draws = _joint_draws(surface.belief, points, means, rng)
    best, there = scale.to_user(draws.max(axis=0)), scale.to_user(draws[0])
    regrets = np.abs(best - there)
    half = MIDDLE90 * float(np.sqrt(surface.belief.variance(reported[None])[0]))
    low, value, high = sorted(scale.to_user(means[0] + np.array([-half, 0.0, half])).tolist())
    return OptimumConfidence(
        regret=_interval(float(regrets.mean()), regrets),
        value=Interval(value, low, high),
        optimum=_interval(float(best.mean()), best),
    )


def _some_sites(n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices, in order, of at most 2,000 of `n` sites."""
    return np.sort(rng.choice(n, _SITES, replace=False)) if n > _SITES else np.arange(n)


def _joint_draws(belief: Belief, points: Array, means: Array, rng: np.random.Generator) -> Array:
    """Return draws (P, 256) of the field at points (P, d) with the posterior means (P,); model units."""
    covariance = belief.covariance(points, points)
    prior = float(belief.kernel.diagonal(points[:1])[0])
    for jitter in (1e-10, 1e-8, 1e-6):
        try:
            factor = cholesky(covariance + jitter * prior * np.eye(len(points)), lower=True)
            break
        except LinAlgError:
            continue
    else:
        raise ModelError(
            "the posterior covariance has no Cholesky factor\n"
            "  fix:      raise the noise variance, or use a Matern kernel"
        )
    return np.asarray(means[:, None] + factor @ rng.standard_normal((len(points), _DRAWS)))


def _interval(value: float, draws: Array) -> Interval:
    """Return a value with the central 90% of draws, widened if the value lies outside."""
    low, high = np.quantile(draws, [0.05, 0.95]).tolist()
    return Interval(value, min(low, value), max(high, value))


def unclassified(surface: Surface, threshold: float) -> float:
    """Return the fraction of sites whose threshold lies within 1.96 standard deviations of their mean."""
    return float(np.mean(np.abs(surface.mean - threshold) <= SURE * surface.sd))


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
