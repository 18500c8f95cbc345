"""Prior means: functions of the site, in your values' unit, that a belief adds to its Gaussian process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo.belief.value_scale import ValueScale

if TYPE_CHECKING:
    from scipy.spatial import Delaunay, KDTree

Index = tuple[NDArray[np.intp], ...]

_ROUNDING = 1e-9  # of a table's extent: sites come from text


class MeanFunction(ABC):
    """What is expected at each site before any reading.

    To use one of your own, write `with_gradient`, and pass it to a mission as ``Prior(mean=...)``.
    """

    @abstractmethod
    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the mean (P,) at `points` (P, d), and its gradient (P, d); both finite everywhere."""

    def values(self, points: Array) -> Array:
        """Return the mean (P,) at `points` (P, d)."""
        return self.with_gradient(points)[0]

    def covers(self, points: Array) -> Mask:
        """Return which of `points` (P, d) the mean is known at; elsewhere it is a guess."""
        return np.ones(len(points), dtype=bool)


class Gridded(MeanFunction):
    """A mean that is linear along each axis between the nodes of a grid.

    A node without a value (NaN) takes that of the nearest node that has one, and so does a point beyond the
    grid.

    Parameters
    ----------
    ticks : sequence of d arrays
        Coordinates of the nodes along each axis, increasing.
    nodes : array of shape (len(ticks[0]), ..., len(ticks[d - 1]))
    margin : float
        How far beyond its outer nodes the grid counts as covering, in distances between nodes: half for
        rasters, whose values are those of cells.

    Examples
    --------
    >>> mean = Gridded([[0.0, 1.0], [0.0, 2.0]], [[0.0, 4.0], [1.0, 5.0]])
    >>> mean.values(np.array([[0.5, 1.0], [9.0, 2.0]]))
    array([2.5, 5. ])
    >>> mean.covers(np.array([[0.5, 1.0], [9.0, 2.0]]))
    array([ True, False])
    """

    def __init__(self, ticks: Sequence[ArrayLike], nodes: ArrayLike, margin: float = 0.0) -> None:
        self.ticks = [np.asarray(t, dtype=float) for t in ticks]
        values = np.asarray(nodes, dtype=float)
        self.known: Mask = np.isfinite(values)
        self.nodes = frozen_array(values if self.known.all() else self._filled(values))
        gaps = [float(np.diff(t).max()) if len(t) > 1 else 0.0 for t in self.ticks]
        self._slack = [
            margin * gap + _ROUNDING * max(float(np.ptp(t)), abs(float(t[-1])), 1.0)
            for gap, t in zip(gaps, self.ticks, strict=True)
        ]

    def _filled(self, values: Array) -> Array:
        """Return the nodes with the value of the nearest known node where there is none."""
        from scipy.ndimage import distance_transform_edt

        if not self.known.any():
            return np.zeros_like(values)
        nearest = distance_transform_edt(~self.known, return_distances=False, return_indices=True)
        return np.asarray(values[tuple(nearest)])

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        mean, gradient = np.zeros(len(points)), np.zeros(points.shape)
        for index, weights, slopes in self._corners(points):
            mean += weights.prod(axis=0) * self.nodes[index]
            for j in range(len(self.ticks)):
                gradient[:, j] += np.delete(weights, j, axis=0).prod(axis=0) * slopes[j] * self.nodes[index]
        return mean, gradient

    def values(self, points: Array) -> Array:
        mean = np.zeros(len(points))
        for index, weights, _ in self._corners(points):
            mean += weights.prod(axis=0) * self.nodes[index]
        return mean

    def covers(self, points: Array) -> Mask:
        ends = zip(self.ticks, self._slack, points.T, strict=True)
        inside = [(x >= ticks[0] - slack) & (x <= ticks[-1] + slack) for ticks, slack, x in ends]
        # One known corner is enough, because masks end between nodes.
        known = [self.known[index] & (weights > 0).all(axis=0) for index, weights, _ in self._corners(points)]
        return np.asarray(np.all(inside, axis=0) & np.any(known, axis=0))

    def _corners(self, points: Array) -> Iterator[tuple[Index, Array, Array]]:
        """Yield each corner of the points' cells: its nodes' index, and weights and slopes (d, P) by axis."""
        low: list[NDArray[np.intp]] = []
        up, slope = np.empty(points.T.shape), np.empty(points.T.shape)
        for j, ticks in enumerate(self.ticks):
            x = np.clip(points[:, j], ticks[0], ticks[-1])
            low.append(np.clip(np.searchsorted(ticks, x, side="right") - 1, 0, max(len(ticks) - 2, 0)))
            high = np.minimum(low[j] + 1, len(ticks) - 1)
            length = np.where(high > low[j], ticks[high] - ticks[low[j]], 1.0)
            up[j] = (x - ticks[low[j]]) / length
            slope[j] = (x == points[:, j]) / length
        for corner in product((0, 1), repeat=len(self.ticks)):
            index = tuple(
                np.minimum(k + step, len(t) - 1) for k, step, t in zip(low, corner, self.ticks, strict=True)
            )
            upper = np.array(corner, dtype=bool)[:, None]
            yield index, np.where(upper, up, 1.0 - up), np.where(upper, slope, -slope)


class Scattered(MeanFunction):
    """A mean that is linear between scattered points (over the triangles of Delaunay).

    Beyond their convex hull, it is the value of the nearest point.

    Parameters
    ----------
    sites : (n, d) array
        At least two axes, not all on a line.
    at_sites : (n,) array

    Examples
    --------
    >>> mean = Scattered([[0, 0], [4, 0], [0, 4], [4, 4]], [0, 4, 4, 8])
    >>> mean.with_gradient(np.array([[1.0, 2.0]]))
    (array([3.]), array([[1., 1.]]))
    """

    def __init__(self, sites: ArrayLike, at_sites: ArrayLike) -> None:
        from scipy.spatial import Delaunay, KDTree

        self.sites, self.at_sites = frozen_array(sites), frozen_array(at_sites)
        self._low, self._extent = self.sites.min(axis=0), np.ptp(self.sites, axis=0)
        scaled = (self.sites - self._low) / self._extent  # else triangles are slivers along a long axis
        self._triangles: Delaunay = Delaunay(scaled)
        self._tree: KDTree = KDTree(scaled)

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        u = (points - self._low) / self._extent
        d = u.shape[1]
        found = np.asarray(self._triangles.find_simplex(u, tol=_ROUNDING))
        affine = self._triangles.transform[found]
        corners = self.at_sites[self._triangles.simplices[found]]
        with np.errstate(invalid="ignore"):
            first = np.einsum("pij,pj->pi", affine[:, :d], u - affine[:, d])
            shares = np.column_stack([first, 1.0 - first.sum(axis=1)])
            mean = np.einsum("pi,pi->p", shares, corners)
            gradient = np.einsum("pi,pij->pj", corners[:, :d] - corners[:, d:], affine[:, :d]) / self._extent
        outside = (found < 0) | ~np.isfinite(mean)
        if outside.any():
            nearest = np.asarray(self._tree.query(u[outside])[1])
            mean[outside], gradient[outside] = self.at_sites[nearest], 0.0
        return mean, gradient

    def covers(self, points: Array) -> Mask:
        u = (np.atleast_2d(points) - self._low) / self._extent
        return np.asarray(self._triangles.find_simplex(u, tol=_ROUNDING) >= 0)


@dataclass(frozen=True, eq=False)
class PriorMean:
    """A mean function in model units, ``transform(m(x)) / scale``.

    The shift of the scale is left out: the values less this mean are what the process describes, and the
    shift is their mean.

    Parameters
    ----------
    function : MeanFunction
        In the user's unit.
    scale : ValueScale
    """

    function: MeanFunction
    scale: ValueScale

    def __call__(self, points: Array) -> Array:
        """Return the prior mean (P,) at `points` (P, d)."""
        return self.scale.unshifted(self.function.values(points))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the prior mean (P,) at `points` (P, d), and its gradient (P, d)."""
        mean, gradient = self.function.with_gradient(points)
        slope = 1.0 / mean if self.scale.transform == "log" else np.ones(len(mean))
        return self.scale.unshifted(mean), gradient * (slope / self.scale.scale)[:, None]
