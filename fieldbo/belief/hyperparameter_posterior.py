"""A weighted set of hyperparameters that stands for their posterior, given the readings.

A fit alone is one point. With few readings many others explain them as well, and intervals that ignore
those are too narrow. This module draws points from a mixture of the prior and a Student t distribution around
the fit (its scale from the curvature there, as in Laplace's method), weights each by posterior over
proposal density (importance sampling with the balance heuristic, Veach and Guibas 1995), and keeps a few of
them, about equally likely each.

=============  ===================================================================================
``theta``      natural logs of the hyperparameters, (p,)
``z``          theta in standard deviations of the prior from its medians, (p,)
=============  ===================================================================================
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import sobol
from fieldbo.belief.marginal_likelihood import Likelihood, LogNormalPrior

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
def weighted_thetas(
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
    return _kept(thetas, z, weights / weights.sum(), kept, rng)


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
        self.directions = _signed(directions)
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


def _signed(directions: Array) -> Array:
    """Return eigenvectors, the columns, with a positive largest entry: else rounding chooses their signs."""
    largest = np.argmax(np.abs(directions), axis=0)
    return np.asarray(directions * np.sign(directions[largest, np.arange(len(largest))]))


def _kept(
    thetas: Array, z: Array, weights: Array, kept: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return at most `kept` of the points, and their weights: a systematic sample along their main spread."""
    centred = z - weights @ z
    _, directions = eigh((weights[:, None] * centred).T @ centred)
    order = np.argsort(centred @ _signed(directions)[:, -1], kind="stable")
    marks = (np.arange(kept) + rng.random()) / kept
    drawn = np.searchsorted(np.cumsum(weights[order]), marks)
    chosen, times = np.unique(order[np.minimum(drawn, len(order) - 1)], return_counts=True)
    return thetas[chosen], times / kept
