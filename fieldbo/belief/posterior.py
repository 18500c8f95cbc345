"""The exact posterior of a Gaussian process, in model units.

=============  ====================================================================================
``X``          observed sites, (n, d); repeated readings of one site are pooled into one
``y``, ``v``   values and noise variances, (n,), per observation
``m``          prior mean; 0 unless one is given
``L``          lower Cholesky factor of ``k(X, X) + diag(v)``
``w``          ``L^-1 (y - m(X))``
=============  ====================================================================================

mean ``m(x) + k(x, X) L^-T w``, covariance ``k(a, b) - k(a, X) L^-T L^-1 k(X, b)``
(Bogunovic et al. 2016, eqs. 1, 2 and 20; Rasmussen and Williams 2006, algorithm 2.1).

:class:`~fieldbo.belief.mean_functions.ValueScale` converts between your values and model units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri, dtrtri

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Kernel
from fieldbo.belief.kernels import kernel as kernel_named
from fieldbo.belief.mean_functions import PriorMean
from fieldbo.belief.readings import NOISE_FLOOR, pool
from fieldbo.errors import InputError, ModelError


class Moments(NamedTuple):
    """Posterior `mean` and `variance` (P,) at points, and their gradients (P, d)."""

    mean: Array
    variance: Array
    mean_gradient: Array
    variance_gradient: Array


_FEW = 256
"""LAPACK solves for up to this many rows: it copies them, which takes far less time than loading numba."""


class _Triangle:
    """A lower triangle that grows row by row in place.

    Rows are written once and never changed, so all beliefs of one history share them.
    """

    def __init__(self, factor: Array, least: int = 32) -> None:
        self.used = len(factor)
        size = max(32, least, self.used + self.used // 2)
        self.rows: Array = np.zeros((size, size))  # the upper half is never touched
        self.rows[: self.used, : self.used] = factor

    def solved(self, b: Array) -> Array:
        """Return ``L^-1 b`` (n,), where L is the triangle of the first n rows."""
        n = len(b)
        if n <= _FEW:
            row: Array = solve_triangular(self.rows[:n, :n], b, lower=True, check_finite=False)
        else:
            from fieldbo.belief._triangle_loop import solved

            row = solved(self.rows, b)
        return row

    def followed_by(self, n: int, rows: Array, pivots: Array | float) -> _Triangle:
        """Return a triangle of the first n rows and k more: itself, unless another belief extended it.

        Parameters
        ----------
        n : int
        rows : (k, n) or (n,) array
        pivots : (k, k) array or float
            The triangle on the diagonal.
        """
        end = n + np.atleast_2d(rows).shape[0]
        whole = self
        if self.used != n or end > len(self.rows):
            whole = _Triangle(self.rows[:n, :n], end)
        whole.rows[n:end, :n], whole.rows[n:end, n:end] = rows, pivots
        whole.used = end
        return whole


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior of a Gaussian process.

    Start from a kernel, add readings with `condition_on`, and ask for `mean`, `variance`, `covariance` or
    joint draws (`sample`) at any points; or let `fit` find the hyperparameters. A belief never changes:
    conditioning returns a new one.

    Values are in *model units*, where the prior mean is 0 unless you give another. Convert yours with a
    :class:`~fieldbo.belief.mean_functions.ValueScale`.

    Parameters
    ----------
    kernel : Kernel
        Prior covariance, in model units.
    prior_mean : PriorMean, optional
        Prior mean, in model units. Leave the other fields to `condition_on`.

    Attributes
    ----------
    sites : (n, d) array
        Sites that were read.
    values, noise_variances : (n,) arrays
        Readings there, in model units.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> prior = Belief(Matern52([1.0]))
    >>> posterior = prior.condition_on([[0.0]], [2.0], [0.01])
    >>> posterior.mean([[0.0], [9.0]]).round(3)
    array([1.98, 0.  ])
    >>> posterior.variance([[0.0], [9.0]]).round(3)
    array([0.01, 1.  ])
    >>> posterior.sample([[0.0], [0.1], [9.0]], 2, np.random.default_rng(0)).shape
    (2, 3)
    """

    kernel: Kernel
    sites: Array = field(default_factory=lambda: np.empty((0, 0)))
    values: Array = field(default_factory=lambda: np.empty(0))
    noise_variances: Array = field(default_factory=lambda: np.empty(0))
    scatter: float = 0.0
    factor: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    weights: Array = field(default_factory=lambda: np.empty(0), repr=False)
    _triangle: _Triangle | None = field(default=None, repr=False)
    prior_mean: PriorMean | None = None

    @classmethod
    def fit(
        cls,
        sites: ArrayLike,
        values: ArrayLike,
        noise_variances: ArrayLike | None = None,
        *,
        kernel: str = "matern52",
        extent: ArrayLike | None = None,
        rng: np.random.Generator | None = None,
    ) -> Belief:
        """Return the belief after readings, with hyperparameters fitted to them.

        Maximises the marginal likelihood, penalised by log-normal priors: length scales have a median of
        0.3 of `extent`, the variance of 1, a learned noise variance of 0.01. Standardise the values first.

        Parameters
        ----------
        sites : (n, d) array
        values : (n,) array
            Model units: about zero mean and unit variance.
        noise_variances : float or (n,) array, optional
            Model units. By default one noise variance is learned.
        kernel : {"se", "matern32", "matern52"}
        extent : (d,) array, optional
            Length of the domain along each axis; by default the range of the sites.
        rng : numpy.random.Generator, optional
            Scrambles the starts of the search; by default always in the same way.

        Raises
        ------
        InputError
            Fewer than two readings, an axis without extent, or an unknown kernel.
        ModelError
            No start leads to a positive definite covariance matrix.

        Examples
        --------
        >>> from fieldbo.belief.value_scale import ValueScale
        >>> x = np.linspace(0, 10, 30)[:, None]
        >>> y = 20 + 3 * np.sin(x[:, 0])
        >>> scale = ValueScale(shift=y.mean(), scale=y.std())
        >>> belief = Belief.fit(x, scale.to_model(y), kernel="se")
        >>> scale.to_user(belief.mean([[2.25]])).round(1)
        array([22.3])
        """
        from fieldbo.belief.marginal_likelihood import LogNormalPrior, fit_kernel

        x = np.atleast_2d(np.asarray(sites, dtype=float))
        y = np.atleast_1d(np.asarray(values, dtype=float))
        v = None
        if noise_variances is not None:
            v = np.broadcast_to(np.asarray(noise_variances, dtype=float), y.shape)
        lengths = np.ptp(x, axis=0) if extent is None else np.asarray(extent, dtype=float)
        if lengths.shape != (x.shape[1],):
            raise InputError(
                f"{lengths.size} lengths in extent, and sites with {x.shape[1]} coordinates",
                expected="one length per coordinate",
            )
        if not np.all(lengths > 0):
            raise InputError(f"extent {lengths.tolist()}", expected="a length above 0 along each axis")
        prior = LogNormalPrior.standard(lengths, with_noise=v is None)
        start = kernel_named(kernel, prior.medians[: len(lengths)])
        fitted = fit_kernel(start, x, y, v, prior, np.random.default_rng(0) if rng is None else rng)
        if fitted.noise_variance is not None:
            v = np.full(len(y), fitted.noise_variance)
        assert v is not None
        return cls(fitted.kernel).condition_on(x, y, v)

    @property
    def size(self) -> int:
        """Number of rows n of the factor."""
        return len(self.values)

    def condition_on(self, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike) -> Belief:
        """Return the belief after more readings, pooled with the earlier ones; O((n + k)^3).

        Parameters
        ----------
        sites : (k, d) array
        values : (k,) array
            Model units.
        noise_variances : float or (k,) array
            Model units, at least 0; raised to 1e-10 of the prior's variance.

        Raises
        ------
        InputError
            A number is not finite, a noise variance is negative, the lengths differ, or the kernel is one of
            another number of coordinates.
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
        w = solve_triangular(factor, self._residuals(x, y), lower=True, check_finite=False)
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
        x = points_of(sites, self.kernel, "site")
        y = np.atleast_1d(np.asarray(values, dtype=float))
        v = np.asarray(noise_variances, dtype=float)
        v = v if v.shape == y.shape else np.broadcast_to(v, y.shape)
        if len(x) != len(y):
            raise InputError(f"{len(x)} sites and {len(y)} values", expected="one value per site")
        if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(v).all() and (v >= 0).all()):
            raise InputError(
                "a site, value or noise variance is NaN, infinite or (noise) negative",
                expected="finite readings with noise variances of at least 0",
            )
        return x, y, np.maximum(v, NOISE_FLOOR * self.kernel.diagonal(x))

    def _residuals(self, sites: Array, values: Array) -> Array:
        """Return values (n,) at `sites` (n, d) less their prior mean."""
        return values if self.prior_mean is None else values - self.prior_mean(sites)

    def extended(self, site: Array, value: float, noise_variance: float) -> tuple[Belief, Array, float]:
        """Return the belief after one more reading, the new row of the factor, and its diagonal; O(n^2).

        The factor is not copied: the new row is written behind the existing ones. A repeated site gets its
        own row; the posterior is the same as with pooling.

        Returns
        -------
        belief : Belief
        row : (n,) array
            ``L^-1 k(X, site)``.
        pivot : float
            Posterior standard deviation of the reading, noise included.
        """
        x, y, v = self._checked(site, value, noise_variance)
        n = self.size
        triangle = self._triangle or _Triangle(self.factor)
        row = triangle.solved(self.kernel(self.sites, x)[:, 0]) if n else np.empty(0)
        pivot2 = self.kernel.diagonal(x).item() + v.item() - float(row @ row)
        if not pivot2 > 0:
            raise _not_positive_definite(n + 1)
        pivot = float(np.sqrt(pivot2))
        weight = (self._residuals(x, y) - row @ self.weights) / pivot
        return self._with_more(x, y, v, triangle.followed_by(n, row, pivot), weight), row, pivot

    def extended_by(self, sites: Array, values: Array, noise_variances: Array) -> tuple[Belief, Array, Array]:
        """Return the belief after k more readings at once, and the new rows of the factor; O(k n^2).

        The same as `extended` one by one, up to rounding, at a fraction of the time.

        Returns
        -------
        belief : Belief
        rows : (k, n) array
            ``(L^-1 k(X, sites))^T``.
        pivots : (k, k) array
            The lower Cholesky factor of the posterior covariance of the readings, noise included.
        """
        x, y, v = self._checked(sites, values, noise_variances)
        n = self.size
        K = self.kernel(x, x)
        K[np.diag_indices_from(K)] += v
        across = self._solve(x) if n else np.empty((0, len(x)))
        try:
            pivots = cholesky(K - across.T @ across, lower=True, check_finite=False)
        except LinAlgError as error:
            raise _not_positive_definite(n + len(x)) from error
        rows = across.T
        triangle = (self._triangle or _Triangle(self.factor, n + len(x))).followed_by(n, rows, pivots)
        residuals = self._residuals(x, y) - rows @ self.weights
        weights = solve_triangular(pivots, residuals, lower=True)
        return self._with_more(x, y, v, triangle, weights), rows, pivots

    def _with_more(self, x: Array, y: Array, v: Array, triangle: _Triangle, weights: Array) -> Belief:
        """Return the belief with k more readings, whose rows of the factor `triangle` has already."""
        return Belief(
            self.kernel,
            np.concatenate([self.sites.reshape(self.size, x.shape[1]), x]),
            np.concatenate([self.values, y]),
            np.concatenate([self.noise_variances, v]),
            self.scatter,
            triangle.rows[: triangle.used, : triangle.used],
            np.concatenate([self.weights, weights]),
            triangle,
            self.prior_mean,
        )

    def _solve(self, points: Array) -> Array:
        """Return ``L^-1 k(X, points)``, (n, P)."""
        return solve_triangular(self.factor, self.kernel(self.sites, points), lower=True, check_finite=False)

    def mean(self, points: ArrayLike) -> Array:
        """Return the posterior mean (P,) at `points` (P, d)."""
        x = points_of(points, self.kernel)
        learnt = self._solve(x).T @ self.weights if self.size else np.zeros(len(x))
        return learnt if self.prior_mean is None else learnt + self.prior_mean(x)

    def variance(self, points: ArrayLike) -> Array:
        """Return the posterior variance (P,) of the function, without noise, at `points` (P, d)."""
        x = points_of(points, self.kernel)
        prior = self.kernel.diagonal(x)
        if not self.size:
            return prior
        solved = self._solve(x)
        explained: Array = np.einsum("np,np->p", solved, solved)
        return np.maximum(prior - explained, 0.0)

    def mean_and_variance(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return `mean` and `variance` (P,) at points (P, d), in the time of one of them."""
        x = points_of(points, self.kernel)
        prior = self.kernel.diagonal(x)
        mean, variance = np.zeros(len(x)), prior
        if self.size:
            solved = self._solve(x)
            mean = solved.T @ self.weights
            variance = np.maximum(prior - np.einsum("np,np->p", solved, solved), 0.0)
        return mean if self.prior_mean is None else mean + self.prior_mean(x), variance

    def covariance(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the posterior covariances (n, m) between points `a` (n, d) and `b` (m, d)."""
        xa, xb = (points_of(p, self.kernel) for p in (a, b))
        prior = self.kernel(xa, xb)
        return prior - self._solve(xa).T @ self._solve(xb) if self.size else prior

    def sample(self, points: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Return `n` joint draws (n, P) of the function, without noise, at `points` (P, d); O(P^3).

        Examples
        --------
        >>> from fieldbo.belief.kernels import Matern52
        >>> belief = Belief(Matern52([1.0])).condition_on([[0.0]], [2.0], 0.01)
        >>> draws = belief.sample([[0.0], [9.0]], 10_000, np.random.default_rng(0))
        >>> draws.std(axis=0).round(1)
        array([0.1, 1. ])
        """
        # An eigendecomposition, unlike a Cholesky factor, exists for points close together.
        eigenvalues, vectors = np.linalg.eigh(self.covariance(points, points))
        scaled = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        return np.asarray(self.mean(points) + rng.standard_normal((n, len(scaled))) @ scaled.T)

    def mean_at_sites(self) -> Array:
        """Return the posterior mean (n,) at the sites that were read; O(n^2)."""
        # (K + V) alpha = y - m, and the mean there is m + K alpha = y - V alpha.
        return self.values - self.noise_variances * self._alpha() if self.size else np.empty(0)

    def _alpha(self) -> Array:
        """Return ``L^-T w``, (n,)."""
        return solve_triangular(self.factor, self.weights, lower=True, trans="T", check_finite=False)

    def with_gradients(self, points: ArrayLike) -> Moments:
        """Return mean and variance at `points` (P, d), and their gradients; O(P n^2)."""
        x = points_of(points, self.kernel)
        moments = self._learnt_with_gradients(x)
        if self.prior_mean is None:
            return moments
        mean, gradient = self.prior_mean.with_gradient(x)
        return moments._replace(mean=moments.mean + mean, mean_gradient=moments.mean_gradient + gradient)

    def _learnt_with_gradients(self, x: Array) -> Moments:
        """Return the moments at points (P, d), without the prior mean."""
        if not self.size:
            prior_slopes = self.kernel.diagonal_slopes(x)
            return Moments(np.zeros(len(x)), self.kernel.diagonal(x), np.zeros_like(x), prior_slopes)
        prior, slopes = self.kernel.with_slopes(x, self.sites)
        alpha = self._alpha()
        half = solve_triangular(self.factor, prior.T, lower=True, check_finite=False)
        whole = solve_triangular(self.factor, half, lower=True, trans="T", check_finite=False)
        explained: Array = np.einsum("np,np->p", half, half)
        return Moments(
            prior @ alpha,
            np.maximum(self.kernel.diagonal(x) - explained, 0.0),
            slopes(np.broadcast_to(alpha, prior.shape)),
            self.kernel.diagonal_slopes(x) - 2.0 * slopes(whole.T),
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
        """Return the mutual information between readings and function, in nats.

        ``1/2 log det(I + diag(v)^-1 K)`` (Bogunovic et al. 2016, eq. 16).
        """
        return float(np.sum(np.log(np.diag(self.factor))) - 0.5 * np.sum(np.log(self.noise_variances)))

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return mean and variance (n,) of each reading, predicted from all the others.

        The variance includes the reading's own noise (Rasmussen and Williams 2006, eqs. 5.10 to 5.12).
        """
        inverse, _ = dtrtri(self.factor, lower=True)
        variance = 1.0 / np.einsum("ij,ij->j", inverse, inverse)
        return self.values - self._alpha() * variance, variance

    def precision(self) -> Array:
        """Return the inverse (n, n) of the covariance matrix of the readings, noise included."""
        lower, _ = dpotri(self.factor, lower=True)
        lower = np.tril(lower)
        return np.asarray(lower + np.tril(lower, -1).T)


def points_of(given: ArrayLike, kernel: Kernel, what: str = "point") -> Array:
    """Return points (P, d) as an array, given those or a single one (d,).

    Raises
    ------
    InputError
        They have more or fewer coordinates than the kernel's points.
    """
    points = np.atleast_2d(np.asarray(given, dtype=float))
    d = kernel.dimension
    if d is not None and points.shape[1:] != (d,) and len(points):
        column = d == 1 and np.ndim(given) == 1
        raise InputError(
            f"{what}s with {points.shape[-1]} coordinates each, for a kernel over {d}",
            expected=f"an array of shape (n, {d}) with one row per {what}, not {np.shape(given)}",
            fix="pass them as a column, for example x[:, None]" if column else None,
        )
    return points


def _not_positive_definite(n: int) -> ModelError:
    return ModelError(
        f"the covariance matrix of {n} readings is not positive definite\n"
        "  fix:      raise the noise variance (1e-6 of the values' variance is enough), shorten the length\n"
        "            scales, or use a Matern kernel instead of the squared exponential"
    )
