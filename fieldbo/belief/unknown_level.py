"""A covariance whose process has an unknown level: a constant with a prior of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Indices, Kernel, OfPairs, Pullback, Slopes


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
