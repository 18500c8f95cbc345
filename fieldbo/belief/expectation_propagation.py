"""Readings that are not normal given the field, each replaced by a normal one: expectation propagation.

=============  ====================================================================================
``m``, ``K``   prior mean (n,) and covariance (n, n) of the field where it was read
``y``, ``v``   the normal readings that stand for the real ones: values and variances, (n,)
``P``          ``(K + diag(v))^-1``
cavity         what the other readings predict of one: mean and variance, (n,)
tilted         the distribution of the cavity times the reading's real likelihood
=============  ====================================================================================

A normal reading has the value and variance that turn its cavity into a normal distribution with the mean and
variance of the tilted one (Minka 2001; Rasmussen and Williams 2006, section 3.6). All are revised at once, by
a part of the way, until the posterior mean stays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erfcx

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread

Moments = tuple[Array, Array]
"""Means and variances (n,)."""

Revise = Callable[[Moments, Array], Moments]
"""From cavities and the posterior mean (n,) to normal readings: values and variances (n,)."""

_SWEEPS = 60
_STEP = 0.8
_SETTLED = 1e-5  # of the prior's standard deviation
_LEAST_PRECISION = 1e-3  # of a reading, relative to its cavity's: one that tells next to nothing
_LEAST_CAVITY = 1e-6  # variance, relative to the prior's
_LEAST_TILTED = 1e-12  # variance, relative to the cavity's
_LEAST_VARIANCE = 1e-8  # of a normal reading, relative to the prior's: two at one place remain compatible
_NODES = np.linspace(-1.0, 1.0, 81)
_FAR = 1e4  # standard deviations above a limit; farther ones count as this far
_REACH = 8.0  # standard deviations that an integral covers on either side
_HALVINGS = 40


@on_one_blas_thread
def propagated(prior: Moments, start: Moments, revise: Revise) -> tuple[Array, Array, Array, Array]:
    """Find the normal readings that stand for the real ones; O(n^3) per sweep.

    Parameters
    ----------
    prior : (n,) array and (n, n) array
        Mean and covariance of the field where it was read.
    start : (n,) arrays
        First values and variances; variances above 0.
    revise : callable
        ``revise((cavity means, cavity variances), posterior means) -> (values, variances)``. Returns those
        of a reading that is normal unchanged.

    Returns
    -------
    values, variances : (n,) arrays
        Of the normal readings.
    mean, variance : (n,) arrays
        Of the field where it was read, given them.

    Examples
    --------
    >>> likelihood = lambda cavity, posterior: (np.array([2.0]), np.array([1.0]))
    >>> propagated((np.zeros(1), np.eye(1)), (np.ones(1), np.ones(1)), likelihood)[0].round(4)
    array([2.])
    """
    (means, K), (y, v) = prior, start
    scale = np.sqrt(np.diag(K))
    before = np.full(len(y), np.inf)
    for _ in range(_SWEEPS):
        C = K.copy()
        C[np.diag_indices_from(C)] += v
        P = cho_solve(cho_factor(C, lower=True, overwrite_a=True), np.eye(len(y)))
        pulls, precisions = P @ (y - means), np.diag(P)
        now = y - v * pulls
        if np.all(np.abs(now - before) <= _SETTLED * scale):
            break
        before = now
        # Leaving one out: Rasmussen and Williams 2006, eq. 5.12.
        cavity = y - pulls / precisions, np.maximum(1.0 / precisions - v, _LEAST_CAVITY * scale**2)
        new_y, new_v = revise(cavity, now)
        same = (new_y == y) & (new_v == v)
        weight = 1.0 / v + _STEP * (1.0 / new_v - 1.0 / v)
        shift = y / v + _STEP * (new_y / new_v - y / v)
        moved, settled = shift / weight, np.maximum(1.0 / weight, _LEAST_VARIANCE * scale**2)
        y, v = np.where(same, y, moved), np.where(same, v, settled)
    return y, v, now, np.maximum(v - np.square(v) * precisions, 0.0)


def normal_between(cavity: Moments, tilted: Moments) -> Moments:
    """Return the normal readings that turn cavities into distributions with the tilted moments."""
    (m, s2), (mean, variance) = cavity, (tilted[0], np.maximum(tilted[1], _LEAST_TILTED * cavity[1]))
    # A tilted variance above the cavity's would need a negative precision; the mean counts in any case.
    precision = np.maximum(1.0 / variance - 1.0 / s2, _LEAST_PRECISION / s2)
    return mean + (mean - m) / (s2 * precision), 1.0 / precision


def tilted_by_limit(cavity: Moments, limits: Array, variances: Array) -> Moments:
    """Return the moments given that noisy readings were at or below their limits.

    Rasmussen and Williams 2006, eqs. 3.82 to 3.86.

    Parameters
    ----------
    cavity : (n,) arrays
    limits, variances : (n,) arrays
        The limits, and the variances of the readings' noise.

    Examples
    --------
    >>> mean, variance = tilted_by_limit((np.zeros(1), np.ones(1)), np.zeros(1), np.zeros(1))
    >>> mean.round(4), variance.round(4)  # of a half-normal distribution
    (array([-0.7979]), array([0.3634]))
    """
    m, s2 = cavity
    sd = np.sqrt(s2 + variances)
    m = np.minimum(m, limits + _FAR * sd)
    z = (limits - m) / sd
    slope = np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))
    return m - s2 * slope / sd, s2 - s2**2 * slope * (z + slope) / (s2 + variances)


def tilted_by_exponential(cavity: Moments, values: Array, variances: Array) -> Moments:
    """Return the moments of ``g`` given values of ``exp(g)`` with normal noise; values may be negative.

    The integrals are sums over nodes that lie densest at the mode, which lies between that of the cavity and
    that of the likelihood.

    Parameters
    ----------
    cavity : (n,) arrays
    values, variances : (n,) arrays

    Examples
    --------
    >>> mean, _ = tilted_by_exponential((np.zeros(1), np.ones(1)), np.array([2.0]), np.array([1e-6]))
    >>> np.exp(mean).round(3)
    array([2.])
    """
    m, s2 = cavity
    positive = values > 0
    logs = np.log(np.where(positive, values, 1.0))
    # Below `balance` a value of 0 or less pulls the mode down by less than 1.
    size, c = np.abs(values), variances / s2
    balance = np.log(2.0 * c / (size + np.sqrt(values**2 + 4.0 * c)))
    low = np.where(positive, np.minimum(m, logs), np.minimum(m, balance) - 1.0)
    high = np.where(positive, np.maximum(m, logs), m)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        e = _exp(middle)
        rises = (m - middle) / s2 + e * (values - e) / variances > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    mode = 0.5 * (low + high)
    e = _exp(mode)
    width = 1.0 / np.sqrt(1.0 / s2 + np.maximum(e * (2.0 * e - values) / variances, 0.0))
    ends = np.arcsinh((_REACH * np.sqrt(s2) + np.abs(mode - m)) / width)
    t = ends[:, None] * _NODES
    g = mode[:, None] + width[:, None] * np.sinh(t)
    error = values[:, None] - _exp(g)
    log_density = -0.5 * ((g - m[:, None]) ** 2 / s2[:, None] + error**2 / variances[:, None])
    weights = np.exp(log_density - log_density.max(axis=1, keepdims=True)) * np.cosh(t)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.sum(weights * g, axis=1)
    return mean, np.sum(weights * (g - mean[:, None]) ** 2, axis=1)


def _exp(g: Array) -> Array:
    """Return the exponentials of numbers, capped so that their squares are finite."""
    return np.asarray(np.exp(np.minimum(g, 300.0)))
