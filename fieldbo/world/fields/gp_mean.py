"""A smooth random function that is known everywhere: the posterior mean of a process drawn at some points.

The test functions of Bogunovic et al. (2016, section 4), after Hennig and Schuler (2012): points uniformly
at random, values there from a Gaussian process, and the mean given those values everywhere else.

=======  =====================================================================
``p_j``  the points, (m, d)
``w``    weights, ``(K + jitter)^-1 y`` for the values ``y`` drawn at the points
``f``    the function, ``f(x) = mean + sum_j k(x, p_j) w_j``
=======  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import Kernel, kernel
from fieldbo.domain.domain import MOST_PAIRS, Domain
from fieldbo.errors import InputError
from fieldbo.world.fields.base import Field, FieldKind

_JITTER = 1e-8  # of the variance: enough for a factor of some thousand close points


@dataclass(frozen=True, eq=False)
class KernelSum(Field):
    """A weighted sum of kernels at fixed points.

    Attributes
    ----------
    kernel : Kernel
    points : (m, d) array
        In the axes' units.
    weights : (m,) array
    mean : float
        What the function comes back to far from all points, in the unit of the value.
    """

    kernel: Kernel = field(repr=False)
    points: Array = field(repr=False)
    weights: Array = field(repr=False)
    mean: float

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at any `sites` (N, d)."""
        # Summed row by row: large weights of both signs cancel, and a matrix product would round
        # differently for one site than for many.
        return np.asarray(self.mean + np.sum(self.kernel(sites, self.points) * self.weights, axis=1))


@dataclass(frozen=True)
class GPMean(FieldKind):
    """A smooth random function over the whole box that the axes span.

    Parameters
    ----------
    length_scales : sequence of float
        One an axis, in its unit.
    points : int
        How many values are drawn; where they lie thinner than the length scales, the function stays near
        its mean.
    kernel : {"se", "matern32", "matern52"}
    variance, mean : float
        In the (squared) unit of the value.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> square = Domain.grid([Axis("x", "", 0, 1), Axis("y", "", 0, 1)], (3, 3))
    >>> function = GPMean((0.1, 0.1)).realise(square, draw=0)
    >>> function.values(np.array([[0.123, 0.456]])).shape
    (1,)
    """

    length_scales: tuple[float, ...]
    points: int = 200
    kernel: Literal["se", "matern32", "matern52"] = "se"
    variance: float = 1.0
    mean: float = 0.0

    def realise(self, domain: Domain, draw: int, folder: Path | None = None) -> KernelSum:
        """Return the function that draw number `draw` gives; the domain's sites do not change it."""
        if len(self.length_scales) != domain.dimension:
            raise InputError(
                f"{len(self.length_scales)} length scales",
                expected=f"{domain.dimension}, one an axis",
                where="field.length_scales",
            )
        if not 1 <= self.points <= MOST_PAIRS:
            raise InputError(
                f"{self.points} points", expected=f"between 1 and {MOST_PAIRS}", where="field.points"
            )
        rng = stream(draw, "field")
        points = rng.uniform(domain.low, domain.high, (self.points, domain.dimension))
        k = kernel(self.kernel, self.length_scales, self.variance)
        K = k(points, points)
        K[np.diag_indices_from(K)] += _JITTER * self.variance
        L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        # with y = L z, the weights (L L^T)^-1 y are L^-T z
        weights = solve_triangular(L, rng.standard_normal(self.points), lower=True, trans="T")
        return KernelSum(k, frozen_array(points), frozen_array(weights), self.mean)
