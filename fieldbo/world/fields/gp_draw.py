"""Random fields: draws from a Gaussian process over the domain's sites, from a belief, and smooth functions.

A smooth function is the posterior mean of a process drawn at some points, and known everywhere. The test
functions of Bogunovic et al. (2016, section 4), after Hennig and Schuler (2012): draw points uniformly at
random, draw their values from a Gaussian process, and take the mean given those values.

=======  =====================================================================
``p_j``  the points, (m, d)
``w``    weights, ``(K + jitter)^-1 y`` for the values ``y`` drawn at the points
``f``    the function, ``f(x) = mean + sum_j k(x, p_j) w_j``
=======  =====================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field as Bounds
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.belief.hyperparameters import ModelKernel
from fieldbo.belief.kernels import Kernel, kernel
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.domain import MOST_PAIRS, Domain
from fieldbo.errors import ModelError
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind

if TYPE_CHECKING:
    from scipy.spatial import cKDTree


_JITTER = 1e-8  # times the variance: enough to factor the covariance of thousands of close sites


@dataclass(frozen=True, eq=False)
class FieldAtSites(Field):
    """A function that is drawn at the domain's sites.

    Parameters
    ----------
    domain : Domain
    at_sites : (N,) array
        In the unit of the values.
    """

    domain: Domain
    at_sites: Array

    @abstractmethod
    def between(self, points: Array) -> Array:
        """Return the values (P,) at points (P, d) that are no sites."""

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        if np.array_equal(sites, self.domain.sites):
            return self.at_sites.copy()
        index = np.array([self.domain.nearest(s) for s in sites], dtype=int)
        out = self.at_sites[index].copy()
        apart = np.any(np.abs(self.domain.sites[index] - sites) > 1e-9 * self.domain.extent, axis=1)
        if apart.any():
            out[apart] = self.between(sites[apart])
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class DrawnField(FieldAtSites):
    """A function drawn at the domain's sites; between them, its conditional mean."""

    kernel: Kernel = field(repr=False)
    mean: float
    factor: Array = field(repr=False)

    def between(self, points: Array) -> Array:
        """Return the conditional mean (P,) at points (P, d)."""
        weights = cho_solve((self.factor, True), self.at_sites - self.mean, check_finite=False)
        return np.asarray(self.mean + self.kernel(points, self.domain.sites) @ weights)


@settings("field")
class GPDraw(FieldKind):
    """A random function with a known covariance, drawn at the domain's sites."""

    length_scales: tuple[float, ...]
    """One length scale per axis, in its unit."""
    kernel: Literal["se", "matern32", "matern52"] = "matern52"
    """Name of the kernel."""
    variance: float = 1.0
    """Prior variance, in squared units of the value."""
    mean: float = 0.0
    """Prior mean, in the unit of the value."""

    def make(self, domain: Domain, draw: int, folder: Path | None = None) -> DrawnField:
        """Return realisation number `draw` over the domain's sites."""
        domain.check_length_scales(self.length_scales, "field.length_scales")
        domain.check_pairs("a draw from a Gaussian process")
        k = kernel(self.kernel, self.length_scales, self.variance)
        K = k(domain.sites, domain.sites)
        K[np.diag_indices_from(K)] += _JITTER * self.variance
        factor = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        at_sites = self.mean + factor @ stream(draw, "field").standard_normal(domain.size)
        return DrawnField(domain, frozen_array(at_sites), k, self.mean, factor)


_JITTER_OF_POINTS = 1e-8  # times the variance: enough to factor the covariance of thousands of close points


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
        K[np.diag_indices_from(K)] += _JITTER_OF_POINTS * self.variance
        L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        # With y = L z, the weights (L L^T)^-1 y are L^-T z.
        weights = solve_triangular(L, rng.standard_normal(self.points), lower=True, trans="T")
        return KernelSum(k, frozen_array(points), frozen_array(weights), self.mean)


_WHOLE = 5_000  # sites whose covariance matrix is factored as a whole
_NEAR = 64  # of more sites: those from which a value between them is computed
_APART = 1e-4  # share of the variance that is drawn independently at each of more sites
_JITTER_OF_BELIEF = 1e-9  # times the largest variance


@dataclass(frozen=True, eq=False)
class DrawnFromBelief(FieldAtSites):
    """A function drawn at the domain's sites; between them, what the belief expects given the draw.

    With more than 5,000 sites, given the draw at the 64 nearest ones.

    Parameters
    ----------
    domain : Domain
    at_sites : (N,) array
        In the unit of the values.
    kernel : Stationary, ShoreMatern52 or WithTrend
        With which it was drawn, in model units.
    scale : ValueScale
    mean : callable, optional
        Returns the mean (P,) at points (P, d), in model units, around which the draw varies.
    """

    kernel: ModelKernel = field(repr=False)
    scale: ValueScale = field(repr=False)
    mean: Callable[[Array], Array] | None = field(default=None, repr=False)

    def between(self, points: Array) -> Array:
        """Return the values (P,) at points (P, d) between the sites."""
        sites = self.domain.sites
        # Row by row, as a matrix product would round differently for one point than for many.
        if len(sites) <= _WHOLE:
            y = np.sum(self.kernel(points, sites) * self._weights, axis=1)
        else:
            near = np.asarray(self._tree.query(points / self.domain.extent, _NEAR)[1])
            y = np.array([self._from(rows, point) for rows, point in zip(near, points, strict=True)])
        return self.scale.to_user(y if self.mean is None else y + self.mean(points))

    def _from(self, rows: Array, point: Array) -> float:
        """Return the residual at a point (d,), given those at the sites `rows` near it."""
        near = self.domain.sites[rows]
        return float(self.kernel(point[None], near)[0] @ self._solve(near, self._residuals[rows]))

    @cached_property
    def _tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(self.domain.sites / self.domain.extent)

    @cached_property
    def _residuals(self) -> Array:
        y = self.scale.to_model(self.at_sites)
        return y if self.mean is None else y - self.mean(self.domain.sites)

    @cached_property
    def _weights(self) -> Array:
        return self._solve(self.domain.sites, self._residuals)

    def _solve(self, sites: Array, y: Array) -> Array:
        """Return the inverse covariance of some sites times `y`."""
        K = self.kernel(sites, sites)
        K[np.diag_indices_from(K)] += _JITTER_OF_BELIEF * self.kernel.variance
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, y, check_finite=False))


def joint(surface: Surface, generators: Sequence[np.random.Generator]) -> list[Array]:
    """Return one joint draw (N,) of the function at a surface's candidates with each generator."""
    if surface.size > _WHOLE:
        return [surface.draws(1, rng, apart=_APART)[:, 0] for rng in generators]
    jitter = _JITTER_OF_BELIEF * float(np.max(surface.variance, initial=0.0))
    prior = float(np.max(surface.belief.kernel.diagonal(surface.candidates), initial=0.0))
    # Readings almost without noise leave variances below the rounding errors of those of the prior.
    for least in (0.0, 1e-12, 1e-10, 1e-8, 1e-6):
        covariance = surface.covariance()
        covariance[np.diag_indices_from(covariance)] += max(jitter, least * prior)
        try:
            factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
            break
        except LinAlgError:
            continue
    else:
        raise ModelError("no joint draw: the covariance of the sites is not positive definite")
    return [surface.mean + factor @ rng.standard_normal(surface.size) for rng in generators]
