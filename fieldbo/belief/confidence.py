"""What a belief expects of its own answer: F1 and area of a level set, or regret and value of an optimum.

===========  =====================================================================
``p``        probability of being in the level set, (N,)
``inside``   sites classified as in the set, (N,): ``p`` is at least 0.5
regret       true optimum less the true value at the reported point
===========  =====================================================================

In model units a level set always lies above its threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.question import ThresholdIf
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import around

MIDDLE90 = 1.6448536269514722
"""Half width of the central 90% of a normal distribution, in standard deviations."""

DRAWS = 256
"""Joint draws of the field from which intervals come."""

_SITES = 1000  # that may hold the optimum
_LOOKED_AT = 250  # sites at which to look for a set that may be empty
_NEGLIGIBLE = 0.01  # expected number of misclassified sites among those not drawn, per 100 in the set
_GOOD = 8  # best readings of a box, around which to look for better points
_RIVALS = 1500  # points of a box to compare with the reported one
_HOPE = 4.0  # standard deviations by which a site may exceed its mean
_TOGETHER = 1e-12  # share of the variance drawn independently: regrets are differences of neighbours
_DEEP = 40.0  # standard deviations within which any quantile lies
_MIDDLE = (1.0 / 3.0, 2.0 / 3.0)  # of the weights: fewer would leave kinks in maps, more is less robust

_MISFIT = 1.25  # times as wide an interval of F1 in log-odds, measured in fields that no kernel describes

AnySurface = Surface | AveragedSurface
"""A belief from which results are stated."""

_UNKNOWN = 0.9  # share of the process's variance from which on a reading says next to nothing about a site


def unknown(surface: AnySurface) -> Mask:
    """Return the sites (N,) about which the readings say hardly more than the prior, as bool."""
    return np.asarray(surface.variance >= _UNKNOWN * surface.process_variance)


def moments(surface: AnySurface, scale: ValueScale) -> tuple[Array, Array]:
    """Return mean and standard deviation (N,) of the belief in the user's unit.

    Under a log, the mean over hyperparameters need not exist: their variance is unbounded, and the mean of a
    log-normal grows with its exponential. The mean of the middle third of them is returned instead.
    """
    if isinstance(surface, Surface) or scale.transform == "none":
        return scale.moments(surface.mean, surface.variance)
    means, sds = np.transpose([scale.moments(s.mean, s.variance) for s in surface.surfaces], (1, 0, 2))
    mean = _middle_mean(means, surface.weights)
    return mean, _middle_mean(np.hypot(sds, means - mean), surface.weights)


def _middle_mean(values: Array, weights: Array) -> Array:
    """Return the mean (N,) of values (K, N) with weights (K,), without the least and the greatest third."""
    order = np.argsort(values, axis=0, kind="stable")
    ranked, shares = np.take_along_axis(values, order, axis=0), weights[order] / weights.sum()
    ends = np.cumsum(shares, axis=0)
    within = np.clip(ends, *_MIDDLE) - np.clip(ends - shares, *_MIDDLE)
    return np.asarray(np.sum(within * np.where(within > 0, ranked, 0.0), axis=0) / within.sum(axis=0))


def expected_f1(inside: Mask, p: Array) -> float:
    """Return the ratio of expectations ``2 sum_inside p / (|inside| + sum p)``, O(N).

    If no site is classified as inside, F1 is 1 or 0, and `chance_of_none` is what to expect.

    Parameters
    ----------
    inside : (N,) bool array
        Not all False.
    p : (N,) array
    """
    return float(2.0 * p[inside].sum() / (inside.sum() + p.sum()))


def _doubtful(p: Array) -> Array:
    """Return the indices of the sites to draw, given the probabilities (N,) of being in the set.

    The side of all others is so certain that together they hardly affect F1. A limit per site would not do:
    among thousands of unlikely sites, one may well be in a set that seems empty.
    """
    doubt = np.minimum(p, 1.0 - p)
    order = np.argsort(doubt, kind="stable")
    allowed = _NEGLIGIBLE * max(1.0, float(p.sum()) / 100.0)
    return np.asarray(np.sort(order[np.cumsum(doubt[order]) > allowed]))


def chance_of_none(surface: AnySurface, threshold: float, rng: np.random.Generator) -> float:
    """Return the probability that no site is in the level set, from joint draws at some of the sites.

    At 250 sites at most, chosen at random in proportion to their own probabilities. Sites between them may
    still be in the set, so the result is an upper bound: tight if neighbouring sites are alike, and too large
    where the field varies within the spacing of its sites. Parameters are those of `drawn_scores`.
    """
    p = surface.exceedance(threshold)
    sites = _doubtful(np.minimum(p, 0.5))  # certain members count
    if not len(sites):
        return 1.0
    if len(sites) > _LOOKED_AT:
        weights = p[sites] / p[sites].sum()
        sites = np.sort(rng.choice(sites, _LOOKED_AT, replace=False, p=weights))
    return float(np.mean((surface.draws(DRAWS, rng, sites) < threshold).all(axis=0)))


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
        Fraction of the domain in the level set.
    """

    f1: Interval
    share: Interval

    @property
    def share_above(self) -> Interval:
        """The former name of `share`, from when all sets lay above their threshold."""
        return self.share


@dataclass(frozen=True, eq=False)
class DrawnScores:
    """Scores of a classification if each of some draws of the field were true.

    Attributes
    ----------
    f1, share : (n,) arrays
        F1, and fraction of the domain in the level set.
    """

    f1: Array
    share: Array


def drawn_scores(
    surface: AnySurface,
    threshold: float,
    rng: np.random.Generator,
    threshold_if: ThresholdIf | None = None,
    cells: Array | None = None,
) -> DrawnScores:
    """Return scores of the sites as classified, the likelier way each, from 256 joint draws of the field.

    Parameters
    ----------
    surface : Surface or AveragedSurface
    threshold : float
        In model units.
    rng : numpy.random.Generator
    threshold_if : Callable, optional
        How the threshold follows from the field's maximum, if it does: `question.threshold_if`.
    cells : (N,) array, optional
        What each site represents, for the fraction of the domain: `Domain.cells`. Default: all the same.
    """
    inside = surface.exceedance(threshold) >= 0.5
    return _scores(inside, _draw_sets(surface, threshold, rng, threshold_if), cells)


def _scores(inside: Mask, truths: Mask, cells: Array | None) -> DrawnScores:
    """Return scores of the sites classified as inside if each of the sets (N, n) were true."""
    members = inside.sum() + truths.sum(axis=0)
    hits = 2.0 * np.count_nonzero(truths[inside], axis=0)
    share = np.average(truths, axis=0, weights=cells)
    return DrawnScores(np.where(members > 0, hits / np.maximum(members, 1), 1.0), share)


def _draw_sets(
    surface: AnySurface, threshold: float, rng: np.random.Generator, threshold_if: ThresholdIf | None
) -> Mask:
    """Return draws (N, 256) of the level set; those of a fixed threshold differ only where in doubt."""
    if threshold_if is not None:
        draws = surface.draws(DRAWS, rng)
        return np.asarray(draws >= np.array([threshold_if(float(top)) for top in draws.max(axis=0)]))
    p = surface.exceedance(threshold)
    doubtful = _doubtful(p)
    drawn = np.repeat((p >= 0.5)[:, None], DRAWS, axis=1)
    if len(doubtful):
        drawn[doubtful] = surface.draws(DRAWS, rng, doubtful) >= threshold
    return drawn


def confidence(
    surface: AnySurface,
    threshold: float,
    rng: np.random.Generator,
    threshold_if: ThresholdIf | None = None,
    cells: Array | None = None,
    either: Mask | None = None,
    unnoticed: Mask | None = None,
) -> Confidence:
    """Return expected F1 and the fraction of the domain in the level set, with 90% intervals.

    Parameters are those of `drawn_scores`, from whose draws the intervals come, and:

    Parameters
    ----------
    either : (N,) or (k, N) bool array, optional
        Sites for which the belief can't speak. The intervals also hold if all of them are in the set, and if
        none is, whatever the draws say of them. Of several rows, each is tried by itself.
    unnoticed : (N, 256) bool array, optional
        Patches that the readings may have missed, if the model can't vouch for their absence. The intervals
        also hold if those of each draw lie on the other side of the threshold, and that of F1 allows for a
        kernel that does not quite fit.
    """
    p = surface.exceedance(threshold)
    inside, truths = p >= 0.5, _draw_sets(surface, threshold, rng, threshold_if)
    drawn = _scores(inside, truths, cells)
    f1, share = float(drawn.f1.mean()), float(drawn.share.mean())
    if threshold_if is None:
        share = float(np.average(p, weights=cells))
        if inside.any():
            f1 = expected_f1(inside, p)
    stated = Confidence(_interval(f1, drawn.f1), _interval(share, drawn.share))
    if unnoticed is not None:
        stated = _widen(stated, _scores(inside, np.where(unnoticed, ~inside[:, None], truths), cells))
        stated = replace(stated, f1=_stretch(stated.f1))
    for sites in () if either is None else np.atleast_2d(either):
        for all_or_none in (True, False) if sites.any() else ():
            stated = _widen(stated, _scores(inside, np.where(sites[:, None], all_or_none, truths), cells))
    return stated


def _widen(stated: Confidence, drawn: DrawnScores) -> Confidence:
    """Return the stated values, with intervals that also hold the central 90% of other draws."""
    f1, share = (
        _join(each, _interval(each.value, draws))
        for each, draws in ((stated.f1, drawn.f1), (stated.share, drawn.share))
    )
    return Confidence(f1, share)


def _join(a: Interval, b: Interval) -> Interval:
    """Return the value of the first interval, with the ends of both."""
    return Interval(a.value, min(a.low, b.low), max(a.high, b.high))


def _stretch(score: Interval) -> Interval:
    """Return an interval of a score between 0 and 1, wider in log-odds; ends at 0 or 1 stay."""
    if not 0.0 < score.value < 1.0:
        return score
    middle = logit(score.value)
    low, high = (float(expit(middle + _MISFIT * (logit(end) - middle))) for end in (score.low, score.high))
    return Interval(score.value, low, high)


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


def best_by_mean(surface: AnySurface, domain: Domain) -> tuple[Array, float, int | None]:
    """Return the point of the highest mean: a site or, in a continuous domain, a site or a reading.

    Returns
    -------
    point : (d,) array
    mean : float
        In model units.
    site : int or None
        Index of the site; None for a reading.
    """
    best, belief = int(np.argmax(surface.mean)), surface.belief
    site = domain.sites[best], float(surface.mean[best]), best
    if not (domain.continuous and belief.size):
        return site
    at_readings = np.where(domain.contains(belief.sites), belief.mean_at_sites(), -np.inf)
    first = int(np.argmax(at_readings))
    if at_readings[first] <= site[1]:
        return site
    return domain.clipped(belief.sites[first]), float(at_readings[first]), None


@dataclass(frozen=True, eq=False)
class DrawnRegrets:
    """Regrets of a reported optimum if each of some draws of the field were true, in the user's unit.

    Attributes
    ----------
    regret, optimum : (n,) arrays
    """

    regret: Array
    optimum: Array


def drawn_regrets(
    surface: AnySurface, reported: Array, scale: ValueScale, rng: np.random.Generator
) -> DrawnRegrets:
    """Return regrets from 256 joint draws at the reported point and all sites that may exceed it.

    If these are more than 1,000, half of the draws' sites are those that may exceed it most, and half are
    random others: the most promising ones alone may lie close together, far from the optimum.

    Parameters
    ----------
    surface : Surface or AveragedSurface
    reported : (d,) array
        A site or, in a continuous domain, any point.
    scale : ValueScale
        Converts model units to the user's; its scale is negative when minimising.
    rng : numpy.random.Generator
    """
    sites = surface.candidates[_promising(surface, rng)]
    sites = sites[(sites != reported).any(axis=1)]
    draws = surface.over(np.concatenate([reported[None], sites])).draws(DRAWS, rng, apart=_TOGETHER)
    best = scale.to_user(draws.max(axis=0))
    return DrawnRegrets(np.abs(best - scale.to_user(draws[0])), best)


def _promising(surface: AnySurface, rng: np.random.Generator) -> Array:
    """Return the indices of sites that may hold the optimum, in ascending order."""
    hope = surface.mean + _HOPE * surface.sd
    order = np.argsort(-hope, kind="stable")
    order = order[hope[order] >= surface.mean.max()]
    if len(order) > _SITES:
        half = _SITES // 2
        order = np.concatenate([order[:half], rng.choice(order[half:], _SITES - half, replace=False)])
    return np.asarray(np.sort(order))


def rivals_of(surface: AnySurface, domain: Domain, reported: Array, rng: np.random.Generator) -> AnySurface:
    """Return the belief over points that may be better than the reported one.

    In a continuous domain these are the sites and points near the reported one and near other good readings,
    where in many dimensions there is no site.
    """
    belief = surface.belief
    if not domain.continuous or not belief.size:
        return surface
    good = belief.sites[np.argsort(-belief.mean_at_sites(), kind="stable")[:_GOOD]]
    places = np.unique(np.concatenate([reported[None], good]), axis=0)
    return surface.over(np.concatenate([domain.sites, around(domain, rng, _RIVALS, places)]))


def optimum_confidence(
    surface: AnySurface, reported: Array, scale: ValueScale, rng: np.random.Generator
) -> OptimumConfidence:
    """Return expected regret, reported value and optimum with 90% intervals.

    Parameters are those of `drawn_regrets`, from which the intervals of regret and optimum come.
    """
    drawn = drawn_regrets(surface, reported, scale, rng)
    return OptimumConfidence(
        regret=_interval(float(drawn.regret.mean()), drawn.regret),
        value=value_at(surface.over(reported[None]), scale),
        optimum=_interval(float(drawn.optimum.mean()), drawn.optimum),
    )


def value_at(there: AnySurface, scale: ValueScale) -> Interval:
    """Return median and central 90% of the value at a single point, in the user's unit.

    Parameters
    ----------
    there : Surface or AveragedSurface
        Over that point alone.
    scale : ValueScale
    """
    from scipy.optimize import brentq

    mean, reach = float(there.mean[0]), _DEEP * float(there.sd[0])

    def quantile(p: float) -> float:
        def excess(value: float) -> float:
            return float(there.exceedance(value)[0]) - (1.0 - p)

        if not mean - reach < mean < mean + reach:  # the deviation is lost in rounding
            return mean
        return float(brentq(excess, mean - reach, mean + reach))

    low, value, high = sorted(scale.to_user([quantile(p) for p in (0.05, 0.5, 0.95)]).tolist())
    return Interval(value, low, high)


def _interval(value: float, draws: Array) -> Interval:
    """Return a value with the central 90% of draws, widened if the value lies outside."""
    low, high = np.quantile(draws, [0.05, 0.95]).tolist()
    return Interval(value, min(low, value), max(high, value))
