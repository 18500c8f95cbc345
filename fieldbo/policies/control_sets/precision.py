"""Products with the inverse of the noisy covariance of a belief's readings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import Belief

_SAFE = 1e9
"""Condition number up to which a product with the inverse keeps six digits of a variance."""


@dataclass(frozen=True, eq=False)
class Precision:
    """Products with the inverse of the noisy covariance of a belief's readings.

    Uses the inverse itself, a single matrix product, where the noise makes that safe; otherwise the factor.

    Parameters
    ----------
    belief : Belief
        A belief with at least one reading.
    """

    belief: Belief

    @cached_property
    def alpha(self) -> Array:
        """``A y``, (n,)."""
        w = self.belief.weights
        return solve_triangular(self.belief.factor, w, lower=True, trans="T", check_finite=False)

    @cached_property
    def inverse(self) -> Array | None:
        """``A``, (n, n); None if it would lose too many digits."""
        belief = self.belief
        most = belief.size * float(belief.kernel.diagonal(belief.sites).max())
        if most > _SAFE * float(belief.noise_variances.min()):
            return None
        upper, failed = dpotri(belief.factor.T, lower=0)  # transposed: LAPACK expects Fortran order
        if failed:
            return None
        inverse: Array = np.triu(upper)
        inverse += np.triu(upper, 1).T
        return inverse

    def times(self, rows: Array) -> Array:
        """Return ``rows A`` for `rows` (m, n)."""
        if self.inverse is not None:
            return np.asarray(rows @ self.inverse)
        factor = self.belief.factor
        half = solve_triangular(factor, rows.T, lower=True, check_finite=False)
        return solve_triangular(factor, half, lower=True, trans="T", check_finite=False).T

    def weighted(self, moment: Array) -> Array | None:
        """Return ``A * moment`` elementwise, (n, n); None if there is no inverse."""
        return None if self.inverse is None else self.inverse * moment
