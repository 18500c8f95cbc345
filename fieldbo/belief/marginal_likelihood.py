"""Hyperparameters from data: maximum penalised marginal likelihood, from several starts.

=============  =================================================================================
``theta``      natural logs of the kernel's hyperparameters, and of the noise variance if learned
``alpha``      ``(K + V)^-1 y``
``W``          ``alpha alpha^T - (K + V)^-1``
=============  =================================================================================

``d log p / d theta = 1/2 sum_ij W_ij dK_ij / d theta`` (Rasmussen and Williams 2006, eq. 5.9).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dtfttr

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import sobol
from fieldbo.belief.kernels import Indices, Kernel
from fieldbo.belief.readings import NOISE_FLOOR, pool
from fieldbo.errors import InputError, ModelError

STARTS = 8
_WIDTHS = 8.0  # half width of the search region, in prior standard deviations
_NEAR = 0.3  # a climb this close to a peak (prior standard deviations, and nats) would end there
_SAME = 0.01  # nats between the ends of two climbs to the same peak, where the likelihood may be flat
_MANY = 100  # readings; with fewer the likelihood has more peaks, and costs next to nothing
_AGREED = 3  # climbs that must agree on the highest peak when there are many readings


@dataclass(frozen=True, eq=False)
class LogNormalPrior:
    """Independent log-normal priors on the hyperparameters.

    Parameters
    ----------
    medians, sds : (p,) arrays
        Medians, and standard deviations of the logs, in the order of theta.
    """

    medians: Array
    sds: Array

    @classmethod
    def standard(cls, extent: Array, *, with_noise: bool) -> LogNormalPrior:
        """Return the priors for a stationary kernel on standardised values.

        ======================  =========================  =============
        hyperparameter          median                     sd of the log
        ======================  =========================  =============
        length scales           0.3 of the `extent` (d,)   0.75
        variance                1                          0.75
        noise variance, if any  0.01                       1.5
        ======================  =========================  =============
        """
        noise = ([0.01], [1.5]) if with_noise else ([], [])
        return cls(
            np.concatenate([0.3 * np.asarray(extent, dtype=float), [1.0], noise[0]]),
            np.concatenate([np.full(len(extent) + 1, 0.75), noise[1]]),
        )

    def with_noise(self, declared: Array) -> LogNormalPrior:
        """Return the prior whose median noise variance is the typical one of those declared, (n,), if any."""
        typical = typical_noise(declared)
        return self if typical is None else replace(self, medians=np.append(self.medians[:-1], typical))

    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Return the log density at `theta` (p,), up to a constant, and its gradient (p,)."""
        z = (theta - np.log(self.medians)) / self.sds
        return float(-0.5 * z @ z), -z / self.sds

    def starts(self, n: int, rng: np.random.Generator) -> Array:
        """Return `n` quasi-random points (n, p) from the prior."""
        from scipy.special import ndtri

        unit = sobol(len(self.medians), rng).random(n)
        z = ndtri(np.clip(unit, 1e-3, 1 - 1e-3))
        return np.asarray(np.log(self.medians) + z * self.sds)


def typical_noise(declared: Array) -> float | None:
    """Return the geometric mean of the noise variances above 0 of (n,); None if there are none."""
    known = declared[declared > 0]
    return float(np.exp(np.log(known).mean())) if len(known) else None


class Likelihood:
    """The log marginal likelihood of readings as a function of theta, with its gradient.

    Parameters
    ----------
    kernel : Kernel
        The kind of kernel; theta replaces its hyperparameters.
    sites : (n, d) array
    values : (n,) array
        Model units.
    noise_variances : (n,) array, optional
        By default one noise variance is learned, the last entry of theta.
    relative : (n,) array, optional
        Noise variance of each reading relative to the learned one; by default 1.
    fixed : (n,) array, optional
        Variances that are added to the learned noise; by default 0. Repeated readings are then not pooled.

    Notes
    -----
    Symmetric matrices are stored as their n (n + 1) / 2 pairs of sites, in LAPACK's rectangular full packed
    format: half the memory and half the exponentials, factored as fast as full matrices.
    """

    def __init__(
        self,
        kernel: Kernel,
        sites: Array,
        values: Array,
        noise_variances: Array | None = None,
        relative: Array | None = None,
        fixed: Array | None = None,
    ) -> None:
        self.learns_noise = noise_variances is None
        self._fixed: Array | float = 0.0
        if fixed is not None:
            pooled, self.values, self._fixed = sites, values, fixed
            self.relative = np.ones(len(values)) if relative is None else relative
            self._extra, self.scatter = (0, 0.0, 0.0), 0.0
        elif noise_variances is None:
            times = np.ones(len(values)) if relative is None else relative
            pooled, self.values, self.relative, _ = pool(sites, values, times)
            extra = len(values) - len(self.values)
            squares = float(np.sum(values**2 / times) - np.sum(self.values**2 / self.relative))
            logs = float(np.sum(np.log(self.relative)) - np.sum(np.log(times)))
            self._extra = (extra, max(squares, 0.0), logs)
            self.scatter = 0.0
        else:
            floored = np.maximum(noise_variances, NOISE_FLOOR)
            pooled, self.values, self.noise_variances, self.scatter = pool(sites, values, floored)
        self._rows, self._columns, self._diagonal = _packed(len(pooled))
        self._of_pairs = kernel.of_pairs(pooled, self._rows, self._columns)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log marginal likelihood at `theta` (p,), and its gradient (p,).

        Where the covariance matrix is not positive definite: minus infinity, and zeros.
        """
        split, n = len(theta) - self.learns_noise, len(self.values)
        v, scatter = self._noise(theta)
        K, pullback = self._of_pairs(theta[:split])
        value, factor, alpha = self._factored(K, v, scatter)
        if factor is None:
            return value, np.zeros(len(theta))
        inverse, _ = dpftri(n, factor, uplo="L", overwrite_a=True)
        # An off-diagonal pair stands for two entries of W, each counted half; a diagonal entry for one.
        W = alpha[self._rows] * alpha[self._columns] - inverse
        W[self._diagonal] *= 0.5
        gradient = pullback(W)
        if self.learns_noise:
            extra, squares, _ = self._extra
            pooled = 0.5 * (extra - squares / float(np.exp(theta[-1])))
            by_noise = W[self._diagonal] @ (v - self._fixed) - pooled
            gradient = np.append(gradient, by_noise)
        return value, gradient

    def value(self, theta: Array) -> float:
        """Return the log marginal likelihood at `theta` (p,), at a third of the time with its gradient."""
        v, scatter = self._noise(theta)
        K, _ = self._of_pairs(theta[: len(theta) - self.learns_noise])
        return self._factored(K, v, scatter)[0]

    def _noise(self, theta: Array) -> tuple[Array, float]:
        """Return the noise variances (n,), and the contribution of the scatter within sites."""
        if not self.learns_noise:
            return self.noise_variances, self.scatter
        noise = float(np.exp(theta[-1]))
        extra, squares, logs = self._extra
        pooled = -0.5 * (extra * np.log(2 * np.pi * noise) - logs + squares / noise)
        return noise * self.relative + self._fixed, pooled

    def _factored(self, K: Array, v: Array, scatter: float) -> tuple[float, Array | None, Array]:
        """Return the log marginal likelihood, the factor of ``K + diag(v)`` (packed), and alpha (n,).

        Overwrites K. Without a factor, the likelihood is minus infinity.
        """
        n = len(self.values)
        K[self._diagonal] += v
        factor, failed = dpftrf(n, K, uplo="L", overwrite_a=True)
        if failed:
            return -np.inf, None, np.zeros(n)
        alpha, _ = dpftrs(n, factor, self.values, uplo="L")
        value = (
            -0.5 * self.values @ alpha
            - np.sum(np.log(factor[self._diagonal]))
            - 0.5 * n * np.log(2 * np.pi)
            + scatter
        )
        return float(value), factor, alpha


def _packed(n: int) -> tuple[Indices, Indices, Indices]:
    """Return row and column of each entry of a packed matrix (n, n), and the positions of its diagonal."""
    where, _ = dtfttr(n, np.arange(n * (n + 1) // 2, dtype=float), uplo="L")  # LAPACK's own order
    lower = np.tril_indices(n)
    order = np.empty(len(lower[0]), dtype=np.intp)
    order[where[lower].astype(np.intp)] = np.arange(len(order))
    return lower[0][order], lower[1][order], np.diag(where).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit.

    Attributes
    ----------
    kernel : Kernel
        With the fitted hyperparameters.
    noise_variance : float or None
        In model units; None if it was not learned.
    log_likelihood : float
        Log marginal likelihood, without the prior.
    """

    kernel: Kernel
    noise_variance: float | None
    log_likelihood: float


Objective = Callable[[Array], tuple[float, Array]]
"""Maps theta (p,) to minus the log density and its gradient (p,)."""


@dataclass
class _Peak:
    """Where climbs ended, the objective there, and their number."""

    theta: Array
    value: float
    climbs: int = 1

    def draws(self, theta: Array, value: float, sds: Array) -> bool:
        """Return True if a climb that has reached `theta` would end here."""
        return 0.0 <= value - self.value < _NEAR and bool(np.all(np.abs(theta - self.theta) < _NEAR * sds))


def _highest(objective: Objective, starts: Array, prior: LogNormalPrior, enough: float) -> Array:
    """Return theta (p,) of the highest peak that L-BFGS finds from `starts` (k, p), the best start first.

    A climb stops early if it would end at a known peak; the search ends once `enough` climbs have led to the
    highest peak.
    """
    from scipy.optimize import Bounds, OptimizeResult, minimize

    middle, reach = np.log(prior.medians), _WIDTHS * prior.sds
    bounds = Bounds(middle - reach, middle + reach)
    peaks: list[_Peak] = []

    def break_off(intermediate_result: OptimizeResult) -> None:
        if any(p.draws(intermediate_result.x, intermediate_result.fun, prior.sds) for p in peaks):
            raise StopIteration

    for start in sorted(np.clip(starts, bounds.lb, bounds.ub), key=lambda s: objective(s)[0]):
        end = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=break_off)
        theta, value = end.x, float(end.fun)
        peak = next(
            (p for p in peaks if abs(value - p.value) < _SAME or p.draws(theta, value, prior.sds)), None
        )
        if peak is None:
            peaks.append(_Peak(theta, value))
            continue
        peak.climbs += 1
        if value < peak.value:
            peak.theta, peak.value = theta, value
        if min(peaks, key=lambda p: p.value).climbs >= enough:
            break
    return min(peaks, key=lambda p: p.value).theta


@on_one_blas_thread
def fit_kernel(
    kernel: Kernel,
    sites: Array,
    values: Array,
    noise_variances: Array | None,
    prior: LogNormalPrior,
    rng: np.random.Generator,
    *,
    penalised: bool = True,
    present: Array | None = None,
    relative: Array | None = None,
    fixed: Array | None = None,
) -> Fit:
    """Find the hyperparameters of highest (penalised) marginal likelihood.

    Climbs with L-BFGS and the analytic gradient from `present` and eight quasi-random starts from the prior.
    With 100 readings or more the search ends as soon as three climbs agree on the highest peak.
    :meth:`fieldbo.belief.posterior.Belief.fit` is the short form.

    Parameters
    ----------
    kernel : Kernel
        The kind of kernel; its hyperparameters are not used.
    sites : (n, d) array
    values : (n,) array
        Standardised.
    noise_variances : (n,) array or None
        In model units; None to learn one noise variance.
    prior : LogNormalPrior
    rng : numpy.random.Generator
        Scrambles the starts.
    penalised : bool
        Whether to add the prior's log density; the prior draws the starts and bounds the search in any case.
    present : (p,) array, optional
        A further start, as theta; by default the prior's medians.
    relative : (n,) array, optional
        Noise variance of each reading relative to the learned one; by default 1.
    fixed : (n,) array, optional
        Variances that are added to the learned noise; by default 0.

    Raises
    ------
    InputError
        Fewer than two readings.
    ModelError
        No start leads to a positive definite covariance matrix.
    """
    if len(values) < 2:
        raise InputError(f"a fit to {len(values)} readings", expected="at least two readings")
    likelihood = Likelihood(kernel, sites, values, noise_variances, relative, fixed)

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood(theta)
        if not np.isfinite(value):
            return 1e25, np.zeros_like(theta)
        if penalised:
            density, slope = prior.log_density(theta)
            value, gradient = value + density, gradient + slope
        return -value, -gradient

    first = np.log(prior.medians) if present is None else present
    starts = np.concatenate([first[None], prior.starts(STARTS, rng)])
    best = _highest(objective, starts, prior, _AGREED if len(values) >= _MANY else np.inf)
    value, _ = likelihood(best)
    if not np.isfinite(value):
        raise ModelError("no start of the fit gave a positive definite covariance matrix")
    split = len(best) - likelihood.learns_noise
    noise = float(np.exp(best[-1])) if likelihood.learns_noise else None
    return Fit(kernel.with_theta(best[:split]), noise, value)
