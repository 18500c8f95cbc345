"""A smooth random function, known everywhere: the posterior mean of a process drawn at some points.

The test functions of Bogunovic et al. (2016, section 4), after Hennig and Schuler (2012): draw points
uniformly at random, draw their values from a Gaussian process, and take the mean given those values.

=======  =====================================================================
``p_j``  the points, (m, d)
``w``    weights, ``(K + jitter)^-1 y`` for the values ``y`` drawn at the points
``f``    the function, ``f(x) = mean + sum_j k(x, p_j) w_j``
=======  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field as Bounds
from scipy.linalg import cholesky, solve_triangular

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import Kernel, kernel
from fieldbo.domain.domain import MOST_PAIRS, Domain
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind

_JITTER = 1e-8  # times the variance: enough to factor the covariance of thousands of close points


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
        The value far from all points, in the unit of the value.
    """

    kernel: Kernel = field(repr=False)
    points: Array = field(repr=False)
    weights: Array = field(repr=False)
    mean: float

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at any `sites` (N, d)."""
        # Sum row by row: large weights of both signs cancel, and a matrix product would round differently
        # for one site than for many.
        return np.asarray(self.mean + np.sum(self.kernel(sites, self.points) * self.weights, axis=1))


@settings("field")
class GPMean(FieldKind):
    """A smooth random function over the whole box that the axes span.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> square = Domain.grid([Axis("x", "", 0, 1), Axis("y", "", 0, 1)], (3, 3))
    >>> function = GPMean((0.1, 0.1)).make(square, draw=0)
    >>> function.values(np.array([[0.123, 0.456]])).shape
    (1,)
    """

    length_scales: tuple[float, ...]
    """One length scale per axis, in its unit."""
    points: Annotated[int, Bounds(ge=1, le=MOST_PAIRS)] = 200
    """Number of drawn values. Where they are sparse, the function stays near its mean."""
    kernel: Literal["se", "matern32", "matern52"] = "se"
    """Name of the kernel."""
    variance: float = 1.0
    """Prior variance, in squared units of the value."""
    mean: float = 0.0
    """Prior mean, in the unit of the value."""

    def make(self, domain: Domain, draw: int, folder: Path | None = None) -> KernelSum:
        """Return realisation number `draw`; it does not depend on the domain's sites."""
        domain.check_length_scales(self.length_scales, "field.length_scales")
        rng = stream(draw, "field")
        points = rng.uniform(domain.low, domain.high, (self.points, domain.dimension))
        k = kernel(self.kernel, self.length_scales, self.variance)
        K = k(points, points)
        K[np.diag_indices_from(K)] += _JITTER * self.variance
        L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        # With y = L z, the weights (L L^T)^-1 y are L^-T z.
        weights = solve_triangular(L, rng.standard_normal(self.points), lower=True, trans="T")
        return KernelSum(k, frozen_array(points), frozen_array(weights), self.mean)
