"""Joint draws from a belief at the domain's sites: fields that could be, given what is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky

from fieldbo._numerics.arrays import Array
from fieldbo.belief.model import ModelKernel
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.world.fields.gp_draw import FieldAtSites

_WHOLE = 5_000  # sites whose covariance matrix is factored as a whole
_NEAR = 64  # of more sites: those from which a value between them is computed
_APART = 1e-4  # share of the variance that is drawn independently at each of more sites
_JITTER = 1e-9  # times the largest variance


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
        return float(self.kernel(point[None], near)[0] @ self._solved(near, self._residuals[rows]))

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.domain.sites / self.domain.extent)

    @cached_property
    def _residuals(self) -> Array:
        y = self.scale.to_model(self.at_sites)
        return y if self.mean is None else y - self.mean(self.domain.sites)

    @cached_property
    def _weights(self) -> Array:
        return self._solved(self.domain.sites, self._residuals)

    def _solved(self, sites: Array, y: Array) -> Array:
        """Return the inverse covariance of some sites times `y`."""
        K = self.kernel(sites, sites)
        K[np.diag_indices_from(K)] += _JITTER * self.kernel.variance
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, y, check_finite=False))


def joint(surface: Surface, generators: Sequence[np.random.Generator]) -> list[Array]:
    """Return one joint draw (N,) of the function at a surface's candidates with each generator."""
    if surface.size > _WHOLE:
        return [surface.draws(1, rng, apart=_APART)[:, 0] for rng in generators]
    covariance = surface.covariance()
    covariance[np.diag_indices_from(covariance)] += _JITTER * float(np.max(surface.variance, initial=0.0))
    factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
    return [surface.mean + factor @ rng.standard_normal(surface.size) for rng in generators]
