"""Acquisition functions: the scores that policies maximise, from mean and standard deviation.

===========  =========================================================
``mu``       posterior mean, (N,)
``s``        posterior standard deviation, (N,)
``h``        threshold
``beta``     squared multiplier of the standard deviation, ``sqrt(beta) s``
``kappa``    multiplier of the standard deviation, ``kappa s``
``d``        travel to a site, in the cost unit, (N,); ``d0`` the scale below which it is short
===========  =========================================================
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr

from fieldbo._numerics.arrays import Array

_ROOT_2PI = np.sqrt(2.0 * np.pi)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)

_FAR = -300.0
"""Below it ``1 + z Phi / phi`` is replaced by its series in ``1 / z^2``, as it loses digits."""

_UNDERFLOWS = -600.0
"""Logarithm below which a score, or a score divided by a cost, may underflow."""

Convention = Literal["one_plus", "floor", "exclude", "literal"]
"""What replaces ``1 / d`` for short travel; see `per_travel`."""


class Ambiguity(NamedTuple):
    """Ambiguity (N,) and the confidence bounds (N,) behind it."""

    score: Array
    lower: Array
    upper: Array


def straddle(mu: Array, s: Array, h: float, kappa: float = 1.96) -> Array:
    """Return ``kappa s - |mu - h|`` (N,) (Bryan et al. 2005; Bogunovic et al. 2016, appendix B)."""
    return kappa * s - np.abs(mu - h)


def ambiguity(
    mu: Array,
    s: Array,
    h: float,
    kappa: float = 3.0,
    lower: Array | None = None,
    upper: Array | None = None,
) -> Ambiguity:
    """Return ``min(u - h, h - l)`` (N,) with ``u, l = mu +- kappa s`` (Gotovos et al. 2013).

    Parameters
    ----------
    mu, s : (N,) arrays
    h : float
    kappa : float
        The paper's ``sqrt(beta)``.
    lower, upper : (N,) arrays, optional
        Previous bounds, to intersect the new ones with.

    Examples
    --------
    >>> ambiguity(np.array([0.0, 2.0]), np.array([1.0, 0.5]), h=0.5).score
    array([2.5, 0. ])
    """
    low, high = mu - kappa * s, mu + kappa * s
    if lower is not None:
        low = np.maximum(low, lower)
    if upper is not None:
        high = np.minimum(high, upper)
    return Ambiguity(np.minimum(high - h, h - low), low, high)


def misclassification_drop(t: ArrayLike, q: ArrayLike) -> Array:
    """Return the expected drop of ``p (1 - p)`` once readings explain a share of a site's variance.

    ``p = Phi(-t)`` is the probability that the site is misclassified. The drop is
    ``Phi2(-t, -t; q) - Phi(-t)^2``, with Phi2 the bivariate normal distribution of correlation q. This is
    ``1 / (2 pi)`` times the integral of ``exp(-t^2 / (1 + sin a))`` over a from 0 to ``asin q`` (Plackett
    1954).

    Parameters
    ----------
    t : (...) array
        ``|mu - h| / s``.
    q : (...) array
        The share, from 0 to 1; broadcast with `t`.

    Returns
    -------
    (...) array
        To within 1e-12.

    Examples
    --------
    Half of the variance explained removes a third of the risk at the threshold, all of it the whole risk:

    >>> misclassification_drop([0.0, 0.0, 2.0], [0.5, 1.0, 0.5]).round(4)
    array([0.0833, 0.25  , 0.0035])
    """
    t, q = np.broadcast_arrays(np.asarray(t, dtype=float), np.asarray(q, dtype=float))
    half = 0.5 * np.arcsin(q)
    sines = np.sin(half[..., None] * (1.0 + _NODES))
    return np.asarray(half * (np.exp(-np.square(t)[..., None] / (1.0 + sines)) @ _WEIGHTS) / (2.0 * np.pi))


def log_excess(z: Array) -> Array:
    """Return ``log E max(Z + z, 0) = log(phi(z) + z Phi(z))`` (N,), Z standard normal, accurately at any z.

    Ament et al. (2023), *Unexpected improvements to expected improvement for Bayesian optimization*, eq. 9.

    Examples
    --------
    >>> log_excess(np.array([-1e6, -60.0, 0.0, 1e6])).round(3).tolist()
    [-500000000028.55, -1809.108, -0.919, 13.816]
    """
    # Each form is given only values at which it holds.
    near, low, far = np.maximum(z, -1.0), np.clip(z, _FAR, -1.0), np.minimum(z, _FAR)
    above = np.log(np.exp(-0.5 * near**2) / _ROOT_2PI + near * ndtr(near))
    mills = np.sqrt(np.pi / 2.0) * erfcx(-low / np.sqrt(2.0))  # Phi / phi
    series = np.log1p((15.0 / far**2 - 3.0) / far**2) - 2.0 * np.log(-far)
    log_phi = -0.5 * np.minimum(z, -1.0) ** 2 - np.log(_ROOT_2PI)
    below = log_phi + np.where(z > _FAR, np.log1p(low * mills), series)
    return np.asarray(np.where(z > -1.0, above, below))


def log_expected_improvement(mu: Array, s: Array, best: float) -> Array:
    """Return ``log E max(f - best, 0)`` (N,), finite where the expected improvement itself underflows.

    For ``s = 0`` the logarithm of ``max(mu - best, 0)``, which may be minus infinity (Ament et al. 2023).

    Examples
    --------
    >>> log_expected_improvement(np.array([0.0, -60.0]), np.ones(2), 0.0).round(3).tolist()
    [-0.919, -1809.108]
    """
    gain, known = mu - best, s <= 0
    width = np.where(known, 1.0, s)
    with np.errstate(divide="ignore"):
        certain = np.log(np.maximum(gain, 0.0))
    return np.where(known, certain, np.log(width) + log_excess(gain / width))


def expected_improvement(mu: Array, s: Array, best: float) -> Array:
    """Return ``E max(f - best, 0)`` (N,), which for ``s = 0`` is ``max(mu - best, 0)`` (Mockus 1975)."""
    return np.where(s > 0, np.exp(log_expected_improvement(mu, s, best)), np.maximum(mu - best, 0.0))


def log_unit(logs: Array) -> float:
    """Return the logarithm of the unit in which to compare scores that are given by their logarithms (N,).

    0, unless the largest score is so small that it may underflow: then that score is the unit.

    Examples
    --------
    >>> log_unit(np.array([-2.0, -900.0])), log_unit(np.array([-900.0, -901.0]))
    (0.0, -900.0)
    """
    most = float(logs.max(initial=-np.inf))
    return most if -np.inf < most < _UNDERFLOWS else 0.0


def in_unit(logs: Array, unit: float) -> Array:
    """Return scores (N,) from their logarithms, as multiples of a unit given by its logarithm.

    Examples
    --------
    >>> in_unit(np.array([-900.0, -901.0]), -900.0).round(3)
    array([1.   , 0.368])
    """
    return np.asarray(np.exp(np.minimum(logs - unit, -_UNDERFLOWS)))


def per_travel(d: Array, d0: float, convention: Convention) -> Array:
    """Return the factor (N,) that replaces ``1 / d``.

    Parameters
    ----------
    d : (N,) array
    d0 : float
        Above 0, in the unit of d.
    convention : {"one_plus", "floor", "exclude", "literal"}
        ``1 / (1 + d / d0)``; ``1 / max(d, d0)``; the last two ``1 / d``, infinite for ``d = 0``.

    Examples
    --------
    >>> per_travel(np.array([0.0, 1.0, 4.0]), 1.0, "one_plus")
    array([1. , 0.5, 0.2])
    """
    if convention == "one_plus":
        return np.asarray(d0 / (d0 + d))
    if convention == "floor":
        return 1.0 / np.maximum(d, d0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(1.0 / d)


def dist_ucb(
    mu: Array, s: Array, d: Array, kappa: float = 2.0, d0: float = 1.0, convention: Convention = "one_plus"
) -> Array:
    """Return ``mu + kappa s / d`` (N,), with ``1 / d`` by `convention` (Liu et al. 2023, eq. 10).

    Staying put, ``d = 0``, scores minus infinity with ``exclude``; infinity with ``literal`` unless kappa or
    s is 0.

    Parameters
    ----------
    mu, s, d : (N,) arrays
    kappa : float
    d0 : float
    convention : {"one_plus", "floor", "exclude", "literal"}

    Examples
    --------
    >>> dist_ucb(np.zeros(3), np.ones(3), np.array([0.0, 1.0, 3.0]))
    array([2. , 1. , 0.5])
    """
    if convention == "exclude":
        away = d > 0
        return np.where(away, mu + kappa * s / np.where(away, d, 1.0), -np.inf)
    width = kappa * s
    with np.errstate(invalid="ignore"):  # nothing over nothing
        return np.where(width > 0, mu + width * per_travel(d, d0, convention), mu)


def ducb(mu: Array, s: Array, d: Array, kappa: float, rho: float) -> Array:
    """Return ``mu + kappa s - rho d`` (N,) (Marchant and Ramos 2012; Liu et al. 2023, eq. 1)."""
    return np.asarray(mu + kappa * s - rho * d)


def expected_improvement_per_travel(
    mu: Array, s: Array, best: float, d: Array, d0: float, convention: Convention = "floor"
) -> Array:
    """Return the expected improvement divided by the travel (N,), with ``1 / d`` by `convention`."""
    return expected_improvement(mu, s, best) * per_travel(d, d0, convention)


def dist_ucb_beta(
    n: int, d: float, dimension: int, delta: float, a: float, b: float, r: float, pi_n: float
) -> float:
    """Return the theoretical ``beta`` of distUCB at step n (Liu et al. 2023, theorem 1).

    ``2/d^2 log(4 pi_n / delta) + 2 p/d^2 log(n^2 b r p sqrt(log(4 p a / delta)))``

    Parameters
    ----------
    n : int
        The step, counted from 1.
    d : float
        Travel to the site.
    dimension : int
        p, for the domain ``[0, r]^p``.
    delta : float
        Probability with which the bound may fail.
    a, b, r : float
        Constants of the assumption on the field's derivatives, and the domain's side.
    pi_n : float
        A sequence with ``sum over n of 1 / pi_n = 1``, usually ``pi^2 n^2 / 6``.
    """
    p = dimension
    root = np.sqrt(np.log(4.0 * p * a / delta))
    return float(2.0 / d**2 * (np.log(4.0 * pi_n / delta) + p * np.log(n**2 * b * r * p * root)))


def gp_ucb_beta(n_candidates: int, t: int, delta: float = 0.1) -> float:
    """Return ``2 log(|D| t^2 pi^2 / (6 delta)) / 5`` (Srinivas et al. 2010, with their scaling by 5)."""
    return float(2.0 * np.log(n_candidates * t**2 * np.pi**2 / (6.0 * delta)) / 5.0)


def lookahead_variance(variance: Array, covariance: Array, variance_x: float, noise_x: float) -> Array:
    """Return the variances (N,) after also reading a site x (Bogunovic et al. 2016, eq. 18).

    Parameters
    ----------
    variance : (N,) array
        Before the reading.
    covariance : (N,) array
        Between each site and x.
    variance_x, noise_x : float
        Variances of the function and of the reading's noise at x.
    """
    return np.asarray(variance - covariance**2 / (noise_x + variance_x))


def truncated_variance_reduction(
    covariance: Array,
    variance: Array,
    noise: Array,
    variance_m: Array,
    cost: Array,
    beta: float,
    eta: float,
) -> Array:
    """Return TruVaR's score of each candidate (Bogunovic et al. 2016, eq. 3).

    ``( sum_M max(beta s^2, eta^2) - sum_M max(beta s^2|x, eta^2) ) / c(x)``

    Parameters
    ----------
    covariance : (n, m) array
        Between candidates and the members of M.
    variance, noise, cost : (n,) arrays
        Of the candidates: variance of the function, noise variance of a reading, and cost (above 0).
    variance_m : (m,) array
        Of the members of M.
    beta, eta : float

    Returns
    -------
    (n,) array
    """
    if covariance.shape[1] == 0 or beta <= 0:
        return np.zeros(len(covariance))
    floor = eta**2 / beta
    # Members at the floor can't gain.
    above = variance_m > floor
    if not above.any():
        return np.zeros(len(covariance))
    start = variance_m[above]
    gain = np.empty(len(covariance))
    # A site that is known exactly and read without noise brings no gain.
    root = np.sqrt(noise + variance)
    scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    block = max(1, 2**19 // len(start))
    columns = slice(None) if above.all() else above
    for first in range(0, len(gain), block):  # blocks that stay in the cache
        rows = slice(first, first + block)
        drop = covariance[rows][:, columns] * scale[rows, None]
        np.square(drop, out=drop)
        np.minimum(drop, start - floor, out=drop)
        gain[rows] = drop.sum(axis=1)
    return beta * gain / cost


def max_value_entropy(mu: Array, s: Array, maxima: Array) -> Array:
    """Return the expected information about the field's maximum from a reading at each site, (N,), in nats.

    ``mean over y* of  g phi(g) / (2 Phi(g)) - log Phi(g)``, ``g = (y* - mu) / s``: the entropy of the value
    minus that of the value truncated at y* (Wang and Jegelka 2017). Noise is ignored; a site with ``s = 0``
    scores 0.

    Parameters
    ----------
    mu, s : (N,) arrays
    maxima : (K,) array
        Draws of the maximum, ``y*``.

    Examples
    --------
    >>> max_value_entropy(np.zeros(3), np.array([0.0, 0.5, 1.0]), np.array([1.0, 2.0])).round(3)
    array([0.   , 0.039, 0.197])
    """
    known = s <= 0
    gamma = (maxima[:, None] - mu) / np.where(known, 1.0, s)
    hazard = np.sqrt(2.0 / np.pi) / erfcx(-gamma / np.sqrt(2.0))  # phi / Phi, at any gamma
    information: Array = np.mean(0.5 * gamma * hazard - log_ndtr(gamma), axis=0)
    return np.where(known, 0.0, information)
