"""Scores of an answer: against the truth, and as the belief expects them.

===========  =====================================================================
``p``        probability of being in the level set, (N,)
``inside``   sites classified as in the set: posterior mean at least the threshold
regret       true optimum less the true value at the reported point
===========  =====================================================================

In model units a level set always lies above its threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale

SURE = 1.96
"""A site counts as unclassified if its threshold lies within this many standard deviations of its mean."""

MIDDLE90 = 1.6448536269514722
"""Half width of the central 90% of a normal distribution, in standard deviations."""

_DRAWS = 256
_SITES = 600  # that may hold the optimum
_SURELY = 1e-4  # a site this likely to be on one side of the threshold counts as there
_HOPE = 4.0  # standard deviations by which a site may exceed its mean
_TOGETHER = 1e-12  # share of the variance drawn independently: regrets are differences of neighbours
_DEEP = 40.0  # standard deviations within which any quantile lies

Stated = Surface | AveragedSurface
"""A belief from which results are stated."""

ThresholdIf = Callable[[float], float]
"""From the maximum of a field to its threshold, both in model units."""


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


def confidence(
    surface: Stated, threshold: float, rng: np.random.Generator, threshold_if: ThresholdIf | None = None
) -> Confidence:
    """Return expected F1 and the fraction of sites in the level set, with 90% intervals.

    From 256 joint draws of the field at the sites whose side is in doubt.

    Parameters
    ----------
    surface : Surface or AveragedSurface
    threshold : float
        In model units.
    rng : numpy.random.Generator
    threshold_if : Callable, optional
        ``threshold_if(maximum) -> float``, the threshold of a field with that maximum, if it depends on it.
    """
    inside, p = surface.mean >= threshold, surface.exceedance(threshold)
    if threshold_if is None:
        truths = _sets_drawn(surface, p, threshold, rng)
    else:
        draws = surface.draws(_DRAWS, rng)
        truths = draws >= np.array([threshold_if(float(maximum)) for maximum in draws.max(axis=0)])
    members = inside.sum() + truths.sum(axis=0)
    hits = 2.0 * np.count_nonzero(truths[inside], axis=0)
    scores = np.where(members > 0, hits / np.maximum(members, 1), 1.0)
    if threshold_if is None:
        f1, share = expected_f1(inside, p), float(p.mean())
    else:
        f1, share = float(scores.mean()), float(truths.mean())
    return Confidence(_interval(f1, scores), _interval(share, truths.mean(axis=0)))


def _sets_drawn(surface: Stated, p: Array, threshold: float, rng: np.random.Generator) -> Mask:
    """Return draws (N, 256) of the level set, given each site's probability (N,) to be in it."""
    doubtful = (p > _SURELY) & (p < 1.0 - _SURELY)
    drawn = np.repeat((p >= 0.5)[:, None], _DRAWS, axis=1)
    if doubtful.any():
        drawn[doubtful] = surface.over(surface.candidates[doubtful]).draws(_DRAWS, rng) >= threshold
    return drawn


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
    surface: Stated, reported: Array, scale: ValueScale, rng: np.random.Generator
) -> OptimumConfidence:
    """Return expected regret, reported value and optimum with 90% intervals.

    From 256 joint draws of the field at the reported point and at the 600 sites that may exceed it most.

    Parameters
    ----------
    surface : Surface or AveragedSurface
    reported : (d,) array
        A site or, in a continuous domain, any point.
    scale : ValueScale
        Transforms model units to the user's unit; its scale is negative when minimising.
    rng : numpy.random.Generator
    """
    promising = np.argsort(-(surface.mean + _HOPE * surface.sd), kind="stable")[:_SITES]
    sites = surface.candidates[np.sort(promising)]
    sites = sites[(sites != reported).any(axis=1)]
    draws = surface.over(np.concatenate([reported[None], sites])).draws(_DRAWS, rng, apart=_TOGETHER)
    best, there = scale.to_user(draws.max(axis=0)), scale.to_user(draws[0])
    regrets = np.abs(best - there)
    return OptimumConfidence(
        regret=_interval(float(regrets.mean()), regrets),
        value=_value(surface.over(reported[None]), scale),
        optimum=_interval(float(best.mean()), best),
    )


def _value(there: Stated, scale: ValueScale) -> Interval:
    """Return median and central 90% of the value at a single point, in the user's unit."""
    mean, reach = float(there.mean[0]), _DEEP * float(there.sd[0])

    def quantile(p: float) -> float:
        def excess(value: float) -> float:
            return float(there.exceedance(value)[0]) - (1.0 - p)

        return float(brentq(excess, mean - reach, mean + reach)) if reach else mean

    low, value, high = sorted(scale.to_user([quantile(p) for p in (0.05, 0.5, 0.95)]).tolist())
    return Interval(value, low, high)


def _interval(value: float, draws: Array) -> Interval:
    """Return a value with the central 90% of draws, widened if the value lies outside."""
    low, high = np.quantile(draws, [0.05, 0.95]).tolist()
    return Interval(value, min(low, value), max(high, value))


def unclassified(surface: Stated, threshold: float) -> float:
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
