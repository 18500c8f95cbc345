"""A covariance that respects shores: Matern-5/2 over the graph of a domain's sites.

==============  ===============================================================================
``phi_k``       eigenvectors of the graph's two Laplacians, with eigenvalues ``lambda_k``
``f(lambda)``   ``(2 nu / l^2 + lambda)^-(nu + d / 2)`` with ``nu = 5/2``, in d dimensions
``s(x, y)``     ``sum_k f(lambda_k) phi_k(x) phi_k(y)``
``k(x, y)``     ``v s(x, y) / sqrt(s(x, x) s(y, y))``
==============  ===============================================================================

f is the spectral density of a Matern kernel, so that k is Matern-5/2 in open water (Whittle 1954; Lindgren,
Rue and Lindstrom 2011; Borovitskiy et al. 2021, "Matern Gaussian processes on graphs"). Reflecting shores
alone would make the field flat across every shore. In the sum with absorbing shores the two mirror images
cancel: along a straight shore, k is what it is offshore. Between sites, eigenvectors are interpolated.

Covariances between P and Q points cost O(P Q m), with m eigenvectors. The matrix over all sites is computed,
and kept, only for decisions, which may need most of it (`ShoreMatern52.between`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.kernels import (
    Indices,
    Kernel,
    OfPairs,
    Pullback,
    Slopes,
    check_hyperparameters,
)
from fieldbo.belief.site_graph import Part, Placement, SiteGraph, placements, site_graph
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError

_NU = 2.5
_ROWS = 64  # of eigenvectors, weighted at once


@dataclass(frozen=True, eq=False)
class ShoreMatern52(Kernel):
    """Matern-5/2 over the graph of a domain's sites: near means near along the water.

    The variance is the same everywhere. Sites in parts of the domain that no water connects are independent.

    Parameters
    ----------
    domain : Domain
        A grid, or scattered sites over two axes, with one unit.
    length_scales : (1,) array
        One number in the axes' unit; above 0.
    variance : float
        k(x, x), in the squared unit of the values; above 0.

    Raises
    ------
    InputError
        There is not one length scale, a number is not above 0, or the domain is not supported.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.obstacles import Obstacle
    >>> axes = [Axis("x", "m", 0, 20), Axis("y", "m", 0, 20)]
    >>> lake = Domain.grid(axes, (21, 21), obstacles=[Obstacle("spit", (9.5, 0), (10.5, 16))])
    >>> k = ShoreMatern52(lake, [5.0])
    >>> west, there, across = [[7.0, 4.0]], [[3.0, 4.0]], [[11.0, 4.0]]
    >>> k(west, there).round(2), k(west, across).round(2)
    (array([[0.67]]), array([[0.]]))
    """

    domain: Domain = field(repr=False)
    length_scales: Array
    variance: float = 1.0
    name: ClassVar[str] = "shore-matern52"

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scales", frozen_array(np.atleast_1d(self.length_scales)))
        if len(self.length_scales) != 1:
            raise InputError(f"{len(self.length_scales)} length scales", expected="one, for all axes")
        check_hyperparameters(self.length_scales, self.variance)
        self.graph  # noqa: B018  (checks the domain)

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    @property
    def graph(self) -> SiteGraph:
        """The graph of the domain's sites."""
        return site_graph(self.domain)

    @on_one_blas_thread
    def __call__(self, a: Array, b: Array) -> Array:
        if len(a) > len(b):
            return self(b, a).T  # the fewer points are copied
        graph, length = self.graph, float(self.length_scales[0])
        places = placements(self.domain)
        at_a, at_b = (places.placed(np.asarray(x, dtype=float)) for x in (a, b))
        part_a, part_b = (graph.label[at.nodes[:, 0]] for at in (at_a, at_b))
        k = np.zeros((len(a), len(b)))
        for number in np.unique(part_a):
            part, rows = graph.parts[number], np.flatnonzero(part_a == number)
            columns = np.flatnonzero(part_b == number)
            f = _density(part.eigenvalues, length, _power(graph))
            weighted, sd = _weigh(_interpolate(graph, part, at_a, rows), f)
            whole = at_b is places.everywhere
            vectors = part.vectors if whole else _interpolate(graph, part, at_b, columns)
            at_sites = at_b.nodes.shape[1] == 1
            sd_b = _roots(graph, length)[at_b.nodes[columns, 0]] if at_sites else _weigh(vectors, f)[1]
            k[np.ix_(rows, columns)] = weighted @ vectors.T / sd[:, None] / sd_b
        k *= self.variance
        return k

    def between(self, candidates: Array, rows: Indices, columns: Indices) -> Array:
        places = placements(self.domain)
        if places.placed(candidates) is not places.everywhere:
            return super().between(candidates, rows, columns)
        k = _between_sites(self.graph, float(self.length_scales[0])).take(rows, 0)
        if not np.array_equal(columns, np.arange(len(candidates))):
            k = k.take(columns, 1)
        k *= self.variance
        return k

    def diagonal(self, a: Array) -> Array:
        return np.full(len(a), self.variance)

    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        """Raise an `InputError`: between sites this kernel is interpolated, and has no gradients."""
        raise InputError(
            f"the kernel {self.name} has no gradients",
            expected="a kernel that has, such as matern52",
            where="model.kernel",
        )

    @property
    def theta(self) -> Array:
        return np.asarray(np.log(np.append(self.length_scales, self.variance)))

    def with_theta(self, theta: Array) -> ShoreMatern52:
        return ShoreMatern52(self.domain, np.exp(theta[:1]), float(np.exp(theta[1])))

    def of_pairs(self, sites: Array, rows: Indices, columns: Indices) -> OfPairs:
        graph = self.graph
        at, power = placements(self.domain).placed(sites), _power(graph)
        label = graph.label[at.nodes[:, 0]]
        groups = [
            (here := np.flatnonzero(label == k), part.eigenvalues, _interpolate(graph, part, at, here))
            for k, part in enumerate(graph.parts)
            if (label == k).any()
        ]

        def of_pairs(theta: Array) -> tuple[Array, Pullback]:
            length, variance = np.exp(theta)
            correlation, slope = np.zeros((2, len(sites), len(sites)))
            for here, eigenvalues, vectors in groups:
                block = np.ix_(here, here)
                correlation[block], slope[block] = _with_slope(eigenvalues, vectors, float(length), power)
            packed, by_length = correlation[rows, columns], slope[rows, columns]

            def pullback(weights: Array) -> Array:
                return np.asarray(variance * np.array([weights @ by_length, weights @ packed]))

            return variance * packed, pullback

        return of_pairs


def _power(graph: SiteGraph) -> float:
    return _NU + 0.5 * graph.dimension


def _density(eigenvalues: Array, length_scale: float, power: float) -> Array:
    """Return f at the eigenvalues (m,), relative to f(0)."""
    return np.asarray((1.0 + eigenvalues * length_scale**2 / (2.0 * _NU)) ** -power)


def _interpolate(graph: SiteGraph, part: Part, at: Placement, here: Indices) -> Array:
    """Return the eigenvectors (len(here), m) of a part at the placed points `here`, which lie in it."""
    row_of = np.empty(graph.size, dtype=np.intp)
    row_of[part.nodes] = np.arange(len(part.nodes))
    if at.nodes.shape[1] == 1:
        return np.asarray(part.vectors[row_of[at.nodes[here, 0]]])
    vectors = np.zeros((len(here), len(part.eigenvalues)))
    for nodes, weights in zip(at.nodes[here].T, at.weights[here].T, strict=True):
        vectors += weights[:, None] * part.vectors[row_of[nodes]]
    return vectors


def _with_slope(eigenvalues: Array, vectors: Array, length: float, power: float) -> tuple[Array, Array]:
    """Return correlations (n, n), and their derivatives by the log of the length scale.

    With ``C = s(x, y) / sqrt(s(x, x) s(y, y))`` and ``s' = -t`` by log l:
    ``C' = -t(x, y) / sqrt(s(x, x) s(y, y)) + C (t(x, x) / s(x, x) + t(y, y) / s(y, y)) / 2``.
    """
    f = _density(eigenvalues, length, power)
    ratio = eigenvalues * length**2 / (2.0 * _NU)
    steep = 2.0 * power * ratio / (1.0 + ratio)
    scaled = vectors * np.sqrt(f)
    scaled /= np.sqrt(np.einsum("nm,nm->n", scaled, scaled))[:, None]
    correlation: Array = scaled @ scaled.T
    scaled *= np.sqrt(steep)
    t: Array = scaled @ scaled.T
    half = 0.5 * np.diag(t)
    return correlation, correlation * (half[:, None] + half) - t


def _weigh(vectors: Array, f: Array) -> tuple[Array, Array]:
    """Return eigenvectors (n, m) at points times f (m,), and the roots (n,) of ``s(x, x)``."""
    weighted = vectors * f
    return weighted, np.sqrt(np.einsum("nm,nm->n", weighted, vectors))


@lru_cache(maxsize=64)
def _roots(graph: SiteGraph, length_scale: float) -> Array:
    """Return the roots (N,) of ``s(x, x)`` at all sites."""
    roots = np.empty(graph.size)
    for part in graph.parts:
        f = _density(part.eigenvalues, length_scale, _power(graph))
        for start in range(0, len(part.nodes), _ROWS):
            some = slice(start, start + _ROWS)
            roots[part.nodes[some]] = _weigh(part.vectors[some], f)[1]
    roots.setflags(write=False)
    return roots


@lru_cache(maxsize=1)
@on_one_blas_thread
def _between_sites(graph: SiteGraph, length_scale: float) -> Array:
    """Return the correlations (N, N) between all sites; the latest are kept, as they fill the most memory."""
    correlations = np.zeros((graph.size, graph.size))
    for part in graph.parts:
        scaled = part.vectors * np.sqrt(_density(part.eigenvalues, length_scale, _power(graph)))
        scaled /= np.sqrt(np.einsum("nm,nm->n", scaled, scaled))[:, None]
        correlations[np.ix_(part.nodes, part.nodes)] = scaled @ scaled.T
    np.fill_diagonal(correlations, 1.0)
    correlations.setflags(write=False)
    return correlations
