"""A kernel with its hyperparameters, the scale of the values, and the noise; and kernels with a free mean.

A free mean is estimated along with the field: a linear trend, or an unknown level.

With a trend: ``k(a, b) + s^2 h(a)^T h(b)``, with ``h(x) = (1, u)`` and u the coordinates from the middle of
the domain, in halves of its axes. It is the covariance of a field plus ``h(x)^T c``, where the coefficients c
are normal and independent with standard deviation s. For s far above the values it is universal kriging
(Rasmussen and Williams 2006, section 2.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Indices, Kernel, OfPairs, Pullback, Slopes, Stationary, kernel
from fieldbo.belief.shore_kernel import ShoreMatern52
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.domain import Domain

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


ModelKernel = Stationary | ShoreMatern52 | WithTrend


def kernel_on(
    domain: Domain, name: str, length_scales: ArrayLike, variance: float = 1.0, *, trend: bool = False
) -> ModelKernel:
    """Return the kernel called `name` for a domain.

    Parameters
    ----------
    domain : Domain
    name : {"se", "matern32", "matern52", "shore-matern52"}
    length_scales : (d,) array
        One per axis; a single one for ``"shore-matern52"``.
    variance : float
    trend : bool
        Whether to add a linear trend.

    Raises
    ------
    InputError
        There is no such kernel, or the domain does not support it.
    """
    if trend:
        about = kernel_on(domain, name, length_scales, variance)
        assert not isinstance(about, WithTrend)
        return WithTrend(about, domain.low + 0.5 * domain.extent, 0.5 * domain.extent)
    if name == ShoreMatern52.name:
        return ShoreMatern52(domain, np.asarray(length_scales, dtype=float), variance)
    return kernel(name, length_scales, variance)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A kernel in model units, the scale that leads to those units, and the noise if it is learned.

    Parameters
    ----------
    kernel : Stationary, ShoreMatern52 or WithTrend
    scale : ValueScale
    noise_variance : float, optional
        Learned noise variance, in model units; None to use what the sensor declares.
    declared : float, optional
        The declared noise variance, in model units, to which the learned one corresponds; readings with
        another declared variance are scaled in proportion. None: all readings have the learned variance.
    """

    kernel: ModelKernel
    scale: ValueScale
    noise_variance: float | None = None
    declared: float | None = None

    @property
    def noise_factor(self) -> float | None:
        """Learned noise variance relative to the declared one; None if one variance holds in model units."""
        if self.noise_variance is None:
            return 1.0
        return None if self.declared is None else self.noise_variance / self.declared

    def noise_to_model(self, noise_variances: Array, values: Array) -> Array:
        """Return the noise variances (n,) of readings in model units: as declared, or as learned."""
        declared = self.scale.noise_to_model(noise_variances, values)
        if self.noise_variance is None:
            return declared
        if self.declared is None:
            return np.full(len(values), self.noise_variance)
        return declared * (self.noise_variance / self.declared)

    def to_plain(self) -> dict[str, Any]:
        """Return a dict of strings, numbers and lists."""
        return {
            "kernel": self.kernel.name,
            "length_scales": self.kernel.length_scales.tolist(),
            "variance": float(self.kernel.variance),
            "transform": self.scale.transform,
            "shift": self.scale.shift,
            "scale": self.scale.scale,
            "noise_variance": self.noise_variance,
            "declared": self.declared,
            **({"trend": True} if isinstance(self.kernel, WithTrend) else {}),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], domain: Domain) -> Hyperparameters:
        """Return the hyperparameters that `to_plain` wrote, for a mission's domain."""
        return cls(
            kernel_on(
                domain,
                plain["kernel"],
                plain["length_scales"],
                plain["variance"],
                trend=plain.get("trend", False),
            ),
            ValueScale(plain["transform"], plain["shift"], plain["scale"]),
            plain["noise_variance"],
            plain["declared"],
        )
