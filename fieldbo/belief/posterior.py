"""The exact posterior of a zero-mean Gaussian process, in model units.

=============  ====================================================================================
``X``          observed sites, (n, d); repeated readings of one site are pooled into one
``y``, ``v``   values and noise variances, (n,), per observation
``L``          lower Cholesky factor of ``k(X, X) + diag(v)``
``w``          ``L^-1 y``
=============  ====================================================================================

mean ``k(x, X) L^-T w``, covariance ``k(a, b) - k(a, X) L^-T L^-1 k(X, b)``
(Bogunovic et al. 2016, eqs. 1, 2 and 20; Rasmussen and Williams 2006, algorithm 2.1).

:class:`ValueScale` is the way from a user's values to model units and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Kernel
from fieldbo.errors import InputError, ModelError

NOISE_FLOOR = 1e-10
"""Least noise variance, as a share of the prior's: a perfect sensor still leaves a factor that exists."""


def pool(sites: Array, values: Array, noise_variances: Array) -> tuple[Array, Array, Array, float]:
    """Pool repeated readings of a site into one of equal information.

    Parameters
    ----------
    sites : (n, d) array
    values, noise_variances : (n,) arrays

    Returns
    -------
    sites, values, noise_variances : (m, d), (m,), (m,) arrays
        One row a site, in order of first reading: ``ybar = sum(y / v) / sum(1 / v)``, ``1 / sum(1 / v)``.
    scatter : float
        What the scatter within sites adds to the log marginal likelihood,
        ``-1/2 [sum log 2 pi v - log 2 pi vbar + sum (y - ybar)^2 / v]`` summed over sites.
    """
    unique, first, which = np.unique(sites, axis=0, return_index=True, return_inverse=True)
    if len(unique) == len(sites):
        return sites, values, noise_variances, 0.0
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    which = rank[which.reshape(-1)]
    precision = np.bincount(which, 1.0 / noise_variances)
    pooled = np.bincount(which, values / noise_variances) / precision
    scatter = -0.5 * float(
        np.sum(np.log(2 * np.pi * noise_variances))
        + np.sum(np.log(precision / (2 * np.pi)))
        + np.sum((values - pooled[which]) ** 2 / noise_variances)
    )
    return unique[order], pooled, 1.0 / precision, scatter


class Moments(NamedTuple):
    """What a belief says of points: `mean`, `variance` (P,), and their gradients (P, d)."""

    mean: Array
    variance: Array
    mean_gradient: Array
    variance_gradient: Array


class _Triangle:
    """A lower triangle that grows row by row in place.

    Rows are written once and never changed, so that all beliefs of one history share them.
    """

    def __init__(self, factor: Array) -> None:
        self.used = len(factor)
        size = max(32, self.used + self.used // 2)
        self.rows: Array = np.zeros((size, size))  # of which the upper half is never touched
        self.rows[: self.used, : self.used] = factor

    def followed_by(self, n: int, row: Array, pivot: float) -> _Triangle:
        """Return a triangle of the first n rows and one more: itself, unless somebody else went on."""
        whole = self if self.used == n < len(self.rows) else _Triangle(self.rows[:n, :n])
        whole.rows[n, :n], whole.rows[n, n] = row, pivot
        whole.used = n + 1
        return whole


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior over a function, given readings; frozen: conditioning returns a new belief.

    Parameters
    ----------
    kernel : Kernel
        Prior covariance, in model units.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> prior = Belief(Matern52([1.0]))
    >>> posterior = prior.given([[0.0]], [2.0], [0.01])
    >>> posterior.mean([[0.0], [9.0]]).round(3)
    array([1.98, 0.  ])
    >>> posterior.variance([[0.0], [9.0]]).round(3)
    array([0.01, 1.  ])
    """

    kernel: Kernel
    sites: Array = field(default_factory=lambda: np.empty((0, 0)))
    values: Array = field(default_factory=lambda: np.empty(0))
    noise_variances: Array = field(default_factory=lambda: np.empty(0))
    scatter: float = 0.0
    factor: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    weights: Array = field(default_factory=lambda: np.empty(0), repr=False)
    _triangle: _Triangle | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of rows n of the factor."""
        return len(self.values)

    def given(self, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike) -> Belief:
        """Return the belief after more readings, pooled with those before; O((n + k)^3).

        Parameters
        ----------
        sites : (k, d) array
        values : (k,) array
            Model units.
        noise_variances : float or (k,) array
            At least 0; raised to 1e-10 of the prior's variance.

        Raises
        ------
        InputError
            Not finite, or a negative noise variance.
        ModelError
            The covariance matrix is not positive definite.
        """
        x, y, v = self._checked(sites, values, noise_variances)
        if self.size:
            x = np.concatenate([self.sites, x])
            y = np.concatenate([self.values, y])
            v = np.concatenate([self.noise_variances, v])
        x, y, v, scatter = pool(x, y, v)
        K = self.kernel(x, x)
        K[np.diag_indices_from(K)] += v
        try:
            factor = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise _not_positive_definite(len(x)) from error
        w = solve_triangular(factor, y, lower=True, check_finite=False)
        return replace(
            self,
            sites=x,
            values=y,
            noise_variances=v,
            scatter=self.scatter + scatter,
            factor=factor,
            weights=w,
            _triangle=None,
        )

    def _checked(
        self, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike
    ) -> tuple[Array, Array, Array]:
        x = np.atleast_2d(np.asarray(sites, dtype=float))
        y = np.atleast_1d(np.asarray(values, dtype=float))
        v = np.broadcast_to(np.asarray(noise_variances, dtype=float), y.shape)
        if len(x) != len(y):
            raise InputError(f"{len(x)} sites and {len(y)} values", expected="a value for each site")
        if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(v).all() and (v >= 0).all()):
            raise InputError(
                "a site, value or noise variance is NaN, infinite or (noise) negative",
                expected="finite readings with noise variances of at least 0",
            )
        return x, y, np.maximum(v, NOISE_FLOOR * self.kernel.diagonal(x))

    def extended(self, site: Array, value: float, noise_variance: float) -> tuple[Belief, Array, float]:
        """Return the belief after one more reading, the new row of the factor, and its diagonal; O(n^2).

        The factor is not copied: the new row is written behind those that this belief already has. A
        repeated site becomes a row of its own: the posterior is the same as if it were pooled.

        Returns
        -------
        belief : Belief
        row : (n,) array
            ``L^-1 k(X, site)``.
        pivot : float
            Root of the posterior variance of the reading.
        """
        from fieldbo.belief._triangle_loop import solved

        x, y, v = self._checked(site, value, noise_variance)
        n = self.size
        triangle = self._triangle or _Triangle(self.factor)
        row = solved(triangle.rows, self.kernel(self.sites, x)[:, 0]) if n else np.empty(0)
        pivot2 = float(self.kernel.diagonal(x)[0] + v[0] - row @ row)
        if not pivot2 > 0:
            raise _not_positive_definite(n + 1)
        pivot = float(np.sqrt(pivot2))
        triangle = triangle.followed_by(n, row, pivot)
        belief = Belief(
            self.kernel,
            np.concatenate([self.sites.reshape(n, x.shape[1]), x]),
            np.append(self.values, y),
            np.append(self.noise_variances, v),
            self.scatter,
            triangle.rows[: n + 1, : n + 1],
            np.append(self.weights, (y[0] - row @ self.weights) / pivot),
            triangle,
        )
        return belief, row, pivot

    def _solve(self, points: Array) -> Array:
        """Return ``L^-1 k(X, points)``, (n, P)."""
        return solve_triangular(self.factor, self.kernel(self.sites, points), lower=True, check_finite=False)

    def mean(self, points: ArrayLike) -> Array:
        """Return the posterior mean (P,) at `points` (P, d)."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        return self._solve(x).T @ self.weights if self.size else np.zeros(len(x))

    def variance(self, points: ArrayLike) -> Array:
        """Return the posterior variance (P,) of the function (without noise) at `points` (P, d)."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        prior = self.kernel.diagonal(x)
        if not self.size:
            return prior
        solved = self._solve(x)
        explained: Array = np.einsum("np,np->p", solved, solved)
        return np.maximum(prior - explained, 0.0)

    def covariance(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the posterior covariances (n, m) between points `a` (n, d) and `b` (m, d)."""
        xa, xb = (np.atleast_2d(np.asarray(p, dtype=float)) for p in (a, b))
        prior = self.kernel(xa, xb)
        return prior - self._solve(xa).T @ self._solve(xb) if self.size else prior

    def mean_at_sites(self) -> Array:
        """Return the posterior mean (n,) at the sites that were read, in model units; O(n^2)."""
        # (K + V) alpha = y, and the mean there is K alpha = y - V alpha.
        return self.values - self.noise_variances * self._alpha() if self.size else np.empty(0)

    def _alpha(self) -> Array:
        """Return ``L^-T w``, (n,)."""
        return solve_triangular(self.factor, self.weights, lower=True, trans="T", check_finite=False)

    def with_gradients(self, points: ArrayLike) -> Moments:
        """Return mean and variance at `points` (P, d), and their gradients; O(P n^2)."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        if not self.size:
            return Moments(np.zeros(len(x)), self.kernel.diagonal(x), np.zeros_like(x), np.zeros_like(x))
        prior, slopes = self.kernel.with_slopes(x, self.sites)
        alpha = self._alpha()
        half = solve_triangular(self.factor, prior.T, lower=True, check_finite=False)
        whole = solve_triangular(self.factor, half, lower=True, trans="T", check_finite=False)
        explained: Array = np.einsum("np,np->p", half, half)
        return Moments(
            prior @ alpha,
            np.maximum(self.kernel.diagonal(x) - explained, 0.0),
            slopes(np.broadcast_to(alpha, prior.shape)),
            -2.0 * slopes(whole.T),
        )

    def log_marginal_likelihood(self) -> float:
        """Return the log marginal likelihood of all readings, repeated ones included."""
        return float(
            -0.5 * self.weights @ self.weights
            - np.sum(np.log(np.diag(self.factor)))
            - 0.5 * self.size * np.log(2 * np.pi)
            + self.scatter
        )

    def information_gain(self) -> float:
        """Return the mutual information of readings and function, ``1/2 log det(I + diag(v)^-1 K)``, in nats.

        Bogunovic et al. 2016, eq. 16.
        """
        return float(np.sum(np.log(np.diag(self.factor))) - 0.5 * np.sum(np.log(self.noise_variances)))

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return mean and variance (n,) of each reading, predicted from all others.

        The variance includes the reading's own noise (Rasmussen and Williams 2006, eqs. 5.10 to 5.12).
        """
        inverse = cho_solve((self.factor, True), np.eye(self.size), check_finite=False)
        variance = 1.0 / np.diag(inverse)
        return self.values - (inverse @ self.values) * variance, variance


def _not_positive_definite(n: int) -> ModelError:
    return ModelError(
        f"the covariance matrix of {n} readings is not positive definite\n"
        "  fix:      raise the noise variance (1e-6 of the values' variance is enough), shorten the length\n"
        "            scales, or take a Matern kernel instead of the squared exponential"
    )
