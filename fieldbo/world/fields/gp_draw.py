"""A draw from a Gaussian process over the domain's sites."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.linalg import cho_solve, cholesky

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import Kernel, kernel
from fieldbo.domain.domain import Domain
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind

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
