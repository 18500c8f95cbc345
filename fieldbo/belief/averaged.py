"""The belief averaged over hyperparameters: what else, besides the fit, explains the readings, and how well.

A fit alone is one point. With few readings many others explain them as well, and intervals that ignore
those are too narrow. This module draws points from a mixture of the prior and a Student t distribution around
the fit (its scale from the curvature there, as in Laplace's method), weights each by posterior over
proposal density (importance sampling with the balance heuristic, Veach and Guibas 1995), and keeps a few of
them, about equally likely each.

=============  ===================================================================================
``theta``      natural logs of the hyperparameters, (p,)
``z``          theta in standard deviations of the prior from its medians, (p,)
=============  ===================================================================================

The prior, for standardised values:

======================  ==================================================  =============
hyperparameter          median                                              sd of the log
======================  ==================================================  =============
length scales           0.2 of the axis, at least the spacing of its sites  1
variance                2                                                   1.5
noise variance, if any  as declared; 0.01 if the declared noise is 0        1
level                   0, normal with the variance of the process
======================  ==================================================  =============

It is wider than the one that fits maximise: few readings in one corner of a field say little about its spread
elsewhere. Values are standardised by the readings' own spread, and readings near each other differ less than
the whole field does: the median of the variance is above 1. The level is the mean of the process, which
readings in one corner do not tell, either.

Each set of hyperparameters has its Gaussian process:

=============  ===================================================================================
``m_k, s_k``   mean and standard deviation of belief k
``w_k``        its weight; the weights sum to 1
=============  ===================================================================================

mean ``m = sum_k w_k m_k``, variance ``sum_k w_k (s_k^2 + m_k^2) - m^2``. A reading multiplies each weight by
the density that its belief gave to the reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri, softmax

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import sobol
from fieldbo.belief.hyperparameters import Hyperparameters, WithTrend, WithUnknownLevel, kernel_on
from fieldbo.belief.kernels import Kernel
from fieldbo.belief.marginal_likelihood import Likelihood, LogNormalPrior
from fieldbo.belief.model import Model, relative_noise
from fieldbo.belief.posterior import Belief, Moments
from fieldbo.belief.readings import Data
from fieldbo.belief.surface import Surface
from fieldbo.domain.domain import Domain

LEVEL = 1.0
"""Prior variance of the level, as a share of that of the process."""

_LENGTH, _LENGTH_SD = 0.2, 1.0
_VARIANCE, _VARIANCE_SD = 2.0, 1.5
_NOISE_SD = 1.0


@dataclass(frozen=True, eq=False)
class WeightedHyperparameters:
    """Hyperparameters of one scale, with weights.

    Parameters
    ----------
    members : tuple of Hyperparameters
    weights : (K,) array
        They sum to 1.
    level : float
        Prior variance of the process's unknown level, as a share of that of the process.
    """

    members: tuple[Hyperparameters, ...]
    weights: Array
    level: float = LEVEL

    def kernels(self) -> Iterator[Kernel]:
        """Yield the kernel of each member, with the unknown level."""
        return (WithUnknownLevel(h.kernel, self.level) for h in self.members)

    def to_plain(self) -> dict[str, Any]:
        """Return what differs between the members as lists of numbers, for a record."""
        noises = [h.noise_variance for h in self.members]
        return {
            "weights": self.weights.tolist(),
            "level": self.level,
            "length_scales": [h.kernel.length_scales.tolist() for h in self.members],
            "variances": [float(h.kernel.variance) for h in self.members],
            "noise_variances": None if None in noises else noises,
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], fitted: Hyperparameters, domain: Domain
    ) -> WeightedHyperparameters:
        """Return the set that `to_plain` wrote; `fitted` has what its members share."""
        trend = isinstance(fitted.kernel, WithTrend)
        noises = plain["noise_variances"] or [None] * len(plain["weights"])
        members = (
            replace(
                fitted,
                kernel=kernel_on(domain, fitted.kernel.name, *numbers, trend=trend),
                noise_variance=noise,
            )
            for *numbers, noise in zip(plain["length_scales"], plain["variances"], noises, strict=True)
        )
        return cls(tuple(members), np.array(plain["weights"]), plain["level"])


def typical_lengths(model: Model, domain: Domain) -> Array:
    """Return the prior medians of the length scales, in the units of the axes: one for each length scale."""
    reach = model.reach(domain)
    spacing = np.where(np.isfinite(domain.spacing), domain.spacing, 0.0)
    shortest = spacing if len(spacing) == len(reach) else spacing.min()
    return np.asarray(np.maximum(_LENGTH * reach, shortest))


def _prior(model: Model, domain: Domain, declared: Array) -> LogNormalPrior:
    """Return the prior, given the declared noise variances (n,) of the readings in model units."""
    learns = model.noise == "learned"
    narrow = model.prior(domain).with_noise(declared) if learns else model.prior(domain)
    axes = len(narrow.medians) - (2 if learns else 1)
    medians, sds = narrow.medians.copy(), narrow.sds.copy()
    medians[:axes], sds[:axes] = typical_lengths(model, domain), _LENGTH_SD
    medians[axes], sds[axes] = _VARIANCE, _VARIANCE_SD
    if learns:
        sds[-1] = _NOISE_SD
    return LogNormalPrior(medians, sds)


def weighted_around(
    fitted: Hyperparameters,
    model: Model,
    domain: Domain,
    data: Data,
    rng: np.random.Generator,
    *,
    at_peak: bool = True,
) -> WeightedHyperparameters:
    """Return hyperparameters that stand for their posterior, given readings; see `draw_weighted_thetas`.

    Parameters
    ----------
    fitted : Hyperparameters
        The fit to these readings. Its scale holds for all members.
    model : Model
    domain : Domain
    data : Data
    rng : numpy.random.Generator
    at_peak : bool
        Whether `fitted` maximises the posterior; otherwise only its scale and kind of kernel are used.
    """
    y, declared, _, _ = model.linearised(fitted, data)
    learns = model.noise == "learned"
    censored = model.observation_model(data.sensor).censored(data.values)
    level_unknown = WithUnknownLevel(fitted.kernel, LEVEL)
    if learns:
        relative, fixed = relative_noise(declared, censored, fitted.declared)
        likelihood = Likelihood(level_unknown, data.sites, y, relative=relative, fixed=fixed)
    else:
        likelihood = Likelihood(level_unknown, data.sites, y, declared)
    peak = fitted.kernel.theta
    if learns and fitted.noise_variance is not None:
        peak = np.append(peak, np.log(fitted.noise_variance))
    prior = _prior(model, domain, declared[~censored])
    thetas, weights = draw_weighted_thetas(likelihood, prior, peak if at_peak else None, rng)
    split = len(fitted.kernel.theta)
    members = (
        replace(
            fitted,
            kernel=fitted.kernel.with_theta(theta[:split]),
            noise_variance=float(np.exp(theta[-1])) if learns else None,
        )
        for theta in thetas
    )
    return WeightedHyperparameters(tuple(members), weights)


POINTS = 128
"""Points that are weighted; a power of 2, as they are quasi-random."""

KEPT, KEPT_LATER = 10, 5
"""Points that are kept at most, with fewer than `MANY` readings and with more."""

MANY = 30
"""Readings from which on points are much alike."""

_FREEDOM = 4.0  # of the t distribution: its tails are heavier than those of a posterior
_WIDER = 1.3  # and it is wider than the curvature says
_LEAST_CURVATURE = 0.5  # in units of the prior's: where the posterior is flat, the prior has the say
_STEP = 0.05  # of z, for differences of gradients
_WITHIN = 1e-4  # quasi-random numbers stay this far from 0 and 1


@on_one_blas_thread
def draw_weighted_thetas(
    likelihood: Likelihood, prior: LogNormalPrior, peak: Array | None, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return hyperparameters that stand for their posterior, and their weights.

    Parameters
    ----------
    likelihood : Likelihood
    prior : LogNormalPrior
    peak : (p,) array or None
        Where the posterior is highest, as theta. None to draw from the prior alone.
    rng : numpy.random.Generator

    Returns
    -------
    thetas : (k, p) array
        With k of at most `KEPT`.
    weights : (k,) array
        They sum to 1.
    """
    middle, p = np.log(prior.medians), len(prior.medians)
    unit = _uniform(POINTS, p + 1, rng)
    z = ndtri(unit[:, :p])
    log_proposal = [_log_normal(z)]
    if peak is not None:
        around = _Around(likelihood, prior, peak)
        near = np.arange(POINTS) < POINTS // 2  # either half covers the cube; odd points do not
        z[near] = around.points(z[near], unit[near, p])
        log_proposal = [_log_normal(z), around.log_density(z)]
    log_proposed = logsumexp(log_proposal, axis=0) - np.log(len(log_proposal))
    thetas = middle + z * prior.sds
    log_weights = np.array([likelihood.value(theta) for theta in thetas]) + _log_normal(z) - log_proposed
    if not np.isfinite(log_weights).any():
        return (middle if peak is None else peak)[None], np.ones(1)
    weights = np.exp(log_weights - log_weights.max())
    kept = KEPT if len(likelihood.values) < MANY else KEPT_LATER
    return _keep_some(thetas, z, weights / weights.sum(), kept, rng)


def _uniform(n: int, dimension: int, rng: np.random.Generator) -> Array:
    """Return n quasi-random points (n, dimension) within the unit cube."""
    return np.clip(sobol(dimension, rng).random(n), _WITHIN, 1.0 - _WITHIN)


def _log_normal(z: Array) -> Array:
    """Return the standard normal log density (n,) of points z (n, p)."""
    return np.asarray(-0.5 * np.sum(z**2, axis=1) - 0.5 * z.shape[1] * np.log(2 * np.pi))


class _Around:
    """A t distribution around the peak of a posterior, in units of the prior.

    Parameters
    ----------
    likelihood : Likelihood
    prior : LogNormalPrior
    peak : (p,) array
        As theta.
    """

    def __init__(self, likelihood: Likelihood, prior: LogNormalPrior, peak: Array) -> None:
        self.peak = (peak - np.log(prior.medians)) / prior.sds
        p = len(peak)
        curvature = np.eye(p)  # the prior's own
        for j, step in enumerate(np.diag(_STEP * prior.sds)):
            _, ahead = likelihood(peak + step)
            _, behind = likelihood(peak - step)
            curvature[j] -= (ahead - behind) * prior.sds / (2 * _STEP)
        values, directions = eigh(0.5 * (curvature + curvature.T))
        self.directions = _orient(directions)
        self.scales = _WIDER / np.sqrt(np.maximum(values, _LEAST_CURVATURE))

    def points(self, normal: Array, uniform: Array) -> Array:
        """Return points z (n, p), given standard normal (n, p) and uniform numbers (n,)."""
        stretch = np.sqrt(0.5 * _FREEDOM / gammaincinv(0.5 * _FREEDOM, uniform))
        return np.asarray(self.peak + (normal * stretch[:, None] * self.scales) @ self.directions.T)

    def log_density(self, z: Array) -> Array:
        """Return the log density (n,) at points z (n, p)."""
        p, v = len(self.peak), _FREEDOM
        squares = np.sum(((z - self.peak) @ self.directions / self.scales) ** 2, axis=1)
        constant = gammaln(0.5 * (v + p)) - gammaln(0.5 * v) - 0.5 * p * np.log(v * np.pi)
        return np.asarray(constant - np.log(self.scales).sum() - 0.5 * (v + p) * np.log1p(squares / v))


def _orient(directions: Array) -> Array:
    """Return eigenvectors, the columns, with a positive largest entry: else rounding chooses their signs."""
    largest = np.argmax(np.abs(directions), axis=0)
    return np.asarray(directions * np.sign(directions[largest, np.arange(len(largest))]))


def _keep_some(
    thetas: Array, z: Array, weights: Array, kept: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return at most `kept` of the points, and their weights: a systematic sample along their main spread."""
    centred = z - weights @ z
    _, directions = eigh((weights[:, None] * centred).T @ centred)
    order = np.argsort(centred @ _orient(directions)[:, -1], kind="stable")
    marks = (np.arange(kept) + rng.random()) / kept
    drawn = np.searchsorted(np.cumsum(weights[order]), marks)
    chosen, times = np.unique(order[np.minimum(drawn, len(order) - 1)], return_counts=True)
    return thetas[chosen], times / kept


class AveragedBelief:
    """Beliefs that share their readings and differ in their hyperparameters.

    Parameters
    ----------
    beliefs : sequence of Belief
        In the same model units.
    weights : (K,) array
        They sum to 1.
    """

    def __init__(self, beliefs: Sequence[Belief], weights: Array) -> None:
        self.beliefs, self.weights = tuple(beliefs), weights

    @property
    def sites(self) -> Array:
        """Sites that were read, (n, d)."""
        return self.beliefs[0].sites

    @property
    def values(self) -> Array:
        """Readings (n,) at the sites, in model units."""
        return self.beliefs[0].values

    @property
    def size(self) -> int:
        """Number of those sites, n."""
        return self.beliefs[0].size

    def mean(self, points: ArrayLike) -> Array:
        """Return the mean (P,) at `points` (P, d)."""
        return np.asarray(self.weights @ np.array([belief.mean(points) for belief in self.beliefs]))

    def variance(self, points: ArrayLike) -> Array:
        """Return the variance (P,) of the function, without noise, at `points` (P, d)."""
        means = np.array([belief.mean(points) for belief in self.beliefs])
        within = np.array([belief.variance(points) for belief in self.beliefs])
        return np.asarray(self.weights @ (within + (means - self.weights @ means) ** 2))

    def mean_at_sites(self) -> Array:
        """Return the mean (n,) at the sites that were read."""
        return np.asarray(self.weights @ np.array([belief.mean_at_sites() for belief in self.beliefs]))

    def with_gradients(self, points: ArrayLike) -> Moments:
        """Return mean and variance at `points` (P, d), and their gradients."""
        moments = [belief.with_gradients(points) for belief in self.beliefs]
        means, variances, slopes, by_variance = (np.array(numbers) for numbers in zip(*moments, strict=True))
        w = self.weights
        mean, slope = w @ means, np.tensordot(w, slopes, 1)
        variance = w @ variances + w @ (means - mean) ** 2
        of_means = np.tensordot(w, (means - mean)[:, :, None] * slopes, 1)
        return Moments(mean, variance, slope, np.tensordot(w, by_variance, 1) + 2.0 * of_means)


class AveragedSurface:
    """The averaged belief over fixed candidates, in model units; read it like a `Surface`.

    Parameters
    ----------
    surfaces : sequence of Surface
        Over the same candidates, in the same model units; they change with `append`.
    weights : (K,) array
        They sum to 1.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> sites = [[0.0], [1.0], [9.0]]
    >>> both = [Surface(Belief(Matern52([length])), sites) for length in (0.5, 5.0)]
    >>> averaged = AveragedSurface(both, np.array([0.5, 0.5]))
    >>> averaged.append([[0.0]], [1.0], [[0.01], [0.01]])
    >>> averaged.append([[1.0]], [1.1], [[0.01], [0.01]])
    >>> averaged.weights.round(2)  # similar values speak for the larger length scale
    array([0.17, 0.83])
    """

    def __init__(self, surfaces: Sequence[Surface], weights: ArrayLike) -> None:
        self.surfaces = tuple(surfaces)
        with np.errstate(divide="ignore"):
            self._before = np.log(np.asarray(weights, dtype=float)) - self._log_likelihoods()
        self._weights: Array | None = None
        self._moments: tuple[Array, Array] | None = None

    def _log_likelihoods(self) -> Array:
        return np.array([surface.belief.log_marginal_likelihood() for surface in self.surfaces])

    @property
    def weights(self) -> Array:
        """Weight of each surface, (K,)."""
        if self._weights is None:
            self._weights = np.asarray(softmax(self._before + self._log_likelihoods()))
        return self._weights

    @property
    def belief(self) -> AveragedBelief:
        """The averaged belief at any point."""
        return AveragedBelief([surface.belief for surface in self.surfaces], self.weights)

    @property
    def candidates(self) -> Array:
        """The candidates, (N, d)."""
        return self.surfaces[0].candidates

    @property
    def size(self) -> int:
        """Number of candidates, N."""
        return self.surfaces[0].size

    def _both(self) -> tuple[Array, Array]:
        """Return mean and variance (N,) of the mixture."""
        if self._moments is None:
            w, means = self.weights, np.array([surface.mean for surface in self.surfaces])
            mean = w @ means
            within = w @ np.array([surface.variance for surface in self.surfaces])
            self._moments = mean, within + w @ (means - mean) ** 2
        return self._moments

    @property
    def mean(self) -> Array:
        """Mean of the mixture (N,)."""
        return self._both()[0]

    @property
    def variance(self) -> Array:
        """Variance of the mixture (N,): that of the function, without noise."""
        return self._both()[1]

    @property
    def sd(self) -> Array:
        """Standard deviation of the mixture (N,)."""
        return np.sqrt(self.variance)

    @property
    def process_variance(self) -> Array:
        """Mean variance (N,) of the functions about their levels, without readings."""
        return np.asarray(self.weights @ np.array([surface.process_variance for surface in self.surfaces]))

    def exceedance(self, threshold: float) -> Array:
        """Return the probability (N,) that the function is at or above `threshold` (model units)."""
        p: Array = self.weights @ np.array([s.exceedance(threshold) for s in self.surfaces])
        return np.minimum(p, 1.0)  # weights may sum to more than 1 by rounding

    def append(self, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike) -> None:
        """Add readings, in place; the weights change with them.

        Parameters
        ----------
        sites : (k, d) array
        values : (k,) array
            Model units.
        noise_variances : (K, k) array
            Of each reading, as each surface takes it.
        """
        for surface, noises in zip(self.surfaces, np.asarray(noise_variances), strict=True):
            surface.append(sites, values, noises)
        self._weights = self._moments = None

    def over(self, candidates: ArrayLike) -> AveragedSurface:
        """Return the same belief over other candidates (M, d)."""
        return AveragedSurface([surface.over(candidates) for surface in self.surfaces], self.weights)

    def draws(self, n: int, rng: np.random.Generator, among: Any = slice(None), apart: float = 0.01) -> Array:
        """Return joint draws (M, n) of the function at some candidates, as many of each surface as it weighs.

        Parameters are those of `Surface.draws`.
        """
        marks = (np.arange(n) + rng.random()) / n
        numbers = np.minimum(np.searchsorted(np.cumsum(self.weights), marks), len(self.surfaces) - 1)
        times = np.bincount(numbers, minlength=len(self.surfaces))
        drawn = [
            s.draws(k, rng, among, apart) for s, k in zip(self.surfaces, times.tolist(), strict=True) if k
        ]
        return np.concatenate(drawn, axis=1)
