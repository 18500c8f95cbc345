"""Kernels with a mean that is estimated along with the field: a linear trend, or an unknown level.

With a trend: ``k(a, b) + s^2 h(a)^T h(b)``, with ``h(x) = (1, u)`` and u the coordinates from the middle of
the domain, in halves of its axes. It is the covariance of a field plus ``h(x)^T c``, where the coefficients c
are normal and independent with standard deviation s. For s far above the values it is universal kriging
(Rasmussen and Williams 2006, section 2.7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Indices, Kernel, OfPairs, Pullback, Slopes, Stationary
from fieldbo.belief.shore_kernel import ShoreMatern52

TREND_SD = 10.0
"""Prior standard deviation of the coefficients, in standardised values."""


@dataclass(frozen=True, eq=False)
class WithTrend(Kernel):
    """A kernel plus a linear trend, which has no hyperparameters of its own.

    Parameters
    ----------
    residual : Stationary or ShoreMatern52
        Covariance about the trend.
    middle, half : (d,) arrays
        Middle of the domain, and half its length along each axis.
    sd : float
        Prior standard deviation of the trend's coefficients, in the unit of the values.
    """

    residual: Stationary | ShoreMatern52
    middle: Array
    half: Array
    sd: float = TREND_SD

    @property
    def name(self) -> str:
        """Name of the kernel about the trend."""
        return self.residual.name

    @property
    def length_scales(self) -> Array:
        """Length scales about the trend."""
        return self.residual.length_scales

    @property
    def variance(self) -> float:
        """Variance about the trend."""
        return self.residual.variance

    @property
    def dimension(self) -> int:
        return len(self.middle)

    def _regressors(self, a: Array) -> Array:
        """Return ``s h(x)`` of points (n, d), (n, d + 1)."""
        return self.sd * np.column_stack([np.ones(len(a)), (a - self.middle) / self.half])

    def __call__(self, a: Array, b: Array) -> Array:
        return np.asarray(self.residual(a, b) + self._regressors(a) @ self._regressors(b).T)

    def between(self, candidates: Array, rows: Indices, columns: Indices) -> Array:
        h = self._regressors(candidates)
        return np.asarray(self.residual.between(candidates, rows, columns) + h[rows] @ h[columns].T)

    def diagonal(self, a: Array) -> Array:
        return np.asarray(self.residual.diagonal(a) + np.square(self._regressors(a)).sum(axis=1))

    def process_variance(self, a: Array) -> Array:
        return self.residual.diagonal(a)

    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        residual, of_residual = self.residual.with_slopes(a, b)
        there = self._regressors(b)

        def slopes(weights: Array) -> Array:
            return np.asarray(of_residual(weights) + self.sd * (weights @ there[:, 1:]) / self.half)

        return residual + self._regressors(a) @ there.T, slopes

    def diagonal_slopes(self, a: Array) -> Array:
        return np.asarray(2.0 * self.sd * self._regressors(a)[:, 1:] / self.half)

    @property
    def theta(self) -> Array:
        return self.residual.theta

    def with_theta(self, theta: Array) -> WithTrend:
        return replace(self, residual=self.residual.with_theta(theta))

    def of_pairs(self, sites: Array, rows: Indices, columns: Indices) -> OfPairs:
        of_residual, h = self.residual.of_pairs(sites, rows, columns), self._regressors(sites)
        trend = np.einsum("mk,mk->m", h[rows], h[columns])

        def of_pairs(theta: Array) -> tuple[Array, Pullback]:
            residual, pullback = of_residual(theta)
            return residual + trend, pullback

        return of_pairs


def in_other_units(
    kernel: Stationary | ShoreMatern52 | WithTrend, variance: float, factor: float = 1.0
) -> Stationary | ShoreMatern52 | WithTrend:
    """Return a kernel with another variance, whose trend, if any, is multiplied by `factor`."""
    if isinstance(kernel, WithTrend):
        residual = replace(kernel.residual, variance=variance)
        return replace(kernel, residual=residual, sd=factor * kernel.sd)
    return replace(kernel, variance=variance)


@dataclass(frozen=True, eq=False)
class WithUnknownLevel(Kernel):
    """``k(a, b) + share * k(a, a)``: the process plus a constant of unknown value.

    The constant's variance is a share of the process's own. Its prior mean is 0.

    Parameters
    ----------
    base : Kernel
        With a single variance, the last entry of its theta.
    share : float

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> WithUnknownLevel(Matern52([1.0], 4.0), 0.5)(np.array([[0.0]]), np.array([[0.0], [99.0]]))
    array([[6., 2.]])
    """

    base: Kernel
    share: float

    @property
    def dimension(self) -> int | None:
        return self.base.dimension

    @cached_property
    def _level(self) -> float:
        return self.share * float(np.exp(self.base.theta[-1]))

    def __call__(self, a: Array, b: Array) -> Array:
        covariance = self.base(a, b)
        covariance += self._level
        return covariance

    def diagonal(self, a: Array) -> Array:
        return self.base.diagonal(a) + self._level

    def process_variance(self, a: Array) -> Array:
        return self.base.process_variance(a)

    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        covariance, slopes = self.base.with_slopes(a, b)
        return covariance + self._level, slopes

    def diagonal_slopes(self, a: Array) -> Array:
        return self.base.diagonal_slopes(a)

    @property
    def theta(self) -> Array:
        return self.base.theta

    def with_theta(self, theta: Array) -> WithUnknownLevel:
        return WithUnknownLevel(self.base.with_theta(theta), self.share)

    def of_pairs(self, sites: Array, rows: Indices, columns: Indices) -> OfPairs:
        of_base = self.base.of_pairs(sites, rows, columns)

        def of(theta: Array) -> tuple[Array, Pullback]:
            covariance, by_base = of_base(theta)
            level = self.share * float(np.exp(theta[-1]))

            def pullback(weights: Array) -> Array:
                gradient = by_base(weights)
                gradient[-1] += level * weights.sum()
                return gradient

            covariance += level
            return covariance, pullback

        return of
