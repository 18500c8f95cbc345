"""How good an answer is: F1 against the truth, and what the belief itself expects of it.

===========  ==============================================================
``p``        probability of exceeding the threshold, (N,)
``above``    sites classified as above: posterior mean at least the threshold
===========  ==============================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky

from fieldbo.domain import Array, Mask
from fieldbo.errors import ModelError
from fieldbo.surface import Surface

SURE = 1.96
"""A site whose threshold lies within so many standard deviations of its mean counts as unclassified."""

_DRAWS, _SITES = 256, 2000


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
    a, b = np.asarray(predicted, dtype=bool), np.asarray(true, dtype=bool)
    members = int(a.sum()) + int(b.sum())
    return 1.0 if members == 0 else 2.0 * int((a & b).sum()) / members


def expected_f1(above: Mask, p: Array) -> float:
    """Return the ratio of expectations ``2 sum_above p / (|above| + sum p)``, O(N).

    Parameters
    ----------
    above : (N,) bool array
    p : (N,) array
    """
    total = float(above.sum() + p.sum())
    return 1.0 if total == 0 else float(2.0 * p[above].sum() / total)


@dataclass(frozen=True)
class Interval:
    """A value with its 90% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Confidence:
    """What the belief expects of its own classification, from joint draws.

    Attributes
    ----------
    f1 : Interval
    share_above : Interval
        Share of sites at or above the threshold.
    """

    f1: Interval
    share_above: Interval


def confidence(surface: Surface, threshold: float, rng: np.random.Generator) -> Confidence:
    """Return expected F1 and share above the threshold with 90% intervals.

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
        The posterior covariance has no factor even with a jitter.
    """
    n = surface.size
    chosen = np.sort(rng.choice(n, _SITES, replace=False)) if n > _SITES else np.arange(n)
    sites = surface.candidates[chosen]
    covariance = surface.belief.covariance(sites, sites)
    prior = float(surface.belief.kernel.diagonal(sites[:1])[0])
    for jitter in (1e-10, 1e-8, 1e-6):
        try:
            factor = cholesky(covariance + jitter * prior * np.eye(len(sites)), lower=True)
            break
        except LinAlgError:
            continue
    else:
        raise ModelError(
            "the posterior covariance has no Cholesky factor\n"
            "  mend:     raise the noise variance, or take a Matern kernel"
        )
    above = surface.mean[chosen] >= threshold
    noise = rng.standard_normal((len(sites), _DRAWS))
    truths = surface.mean[chosen][:, None] + factor @ noise >= threshold
    members = above.sum() + truths.sum(axis=0)
    scores = np.where(members > 0, 2.0 * (truths & above[:, None]).sum(axis=0) / np.maximum(members, 1), 1.0)
    shares = truths.mean(axis=0)
    p = surface.exceedance(threshold)
    return Confidence(
        _interval(expected_f1(surface.mean >= threshold, p), scores), _interval(float(p.mean()), shares)
    )


def _interval(value: float, draws: Array) -> Interval:
    """Return a value with the middle 90% of draws, widened where the value lies outside."""
    low, high = np.quantile(draws, [0.05, 0.95]).tolist()
    return Interval(value, min(low, value), max(high, value))


def unclassified(surface: Surface, threshold: float) -> float:
    """Return the share of sites whose threshold lies within 1.96 standard deviations of their mean."""
    return float(np.mean(np.abs(surface.mean - threshold) <= SURE * surface.sd))


def score_at_costs(costs: ArrayLike, scores: ArrayLike, at: ArrayLike) -> Array:
    """Return the score a run had when it had spent so much: its last one at or below each cost.

    Parameters
    ----------
    costs, scores : (n,) arrays
        Costs do not decrease.
    at : (k,) array

    Returns
    -------
    (k,) array
        NaN where nothing had been read yet.

    Examples
    --------
    >>> score_at_costs([1, 3, 5], [0.1, 0.5, 0.9], [0.5, 3, 9]).tolist()
    [nan, 0.5, 0.9]
    """
    c, s = np.asarray(costs, dtype=float), np.asarray(scores, dtype=float)
    index = np.searchsorted(c, np.asarray(at, dtype=float), side="right") - 1
    return np.where(index >= 0, s[np.maximum(index, 0)], np.nan) if len(c) else np.full(len(index), np.nan)
