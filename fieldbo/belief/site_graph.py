"""The graph of a domain's sites: neighbours that see each other, and the eigenpairs of its Laplacian.

Points between the sites are interpolated from those that they see, never across a shore.

===========  ==================================================================================
``L``        Laplacian, ``(L u)_i = sum_j w_ij (u_i - u_j)`` over the neighbours j of site i
``h_j``      spacing of a grid along axis j; neighbours along it have ``w = 1 / h_j^2``
part         sites that the graph connects, directly or not
===========  ==================================================================================

On a regular lattice, L is the standard finite-difference approximation of minus the Laplace operator. The
shore lies half a spacing beyond a site that lacks a neighbour there. There are two such operators: L itself,
whose shores reflect (the missing neighbour would have the value of the site), and ``L + 2 diag(m)``, whose
shores absorb (it would have minus that value), with the weight ``m_i`` of the neighbours that site i lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, LruBytes, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.domain.domain import Domain
from fieldbo.domain.routes import Visibility, visibility_in
from fieldbo.errors import InputError, counted

MOST_SITES = 10_000
"""Largest number of sites of a graph; beyond it, eigenpairs take minutes and covariances gigabytes."""

MOST_AXES = 3

DENSE = 3000
"""Number of sites of a part up to which all its eigenpairs are computed."""

TRUNCATED = 600
"""Number of eigenpairs of each Laplacian, those of the smallest eigenvalues, computed of a larger part.

Over two axes with an area A the 600th eigenvalue is about ``4 pi 600 / A`` (Weyl). The share of a site's
variance that the others have is ``(1 + lambda l^2 / 5)^(-5/2)``: 0.1% for a length scale l of a tenth of the
root of A, and less for longer ones. A shorter one acts like a longer one.
"""

_FAR = 1.6  # median distances to the nearest site: longer edges of a triangulation skip a gap
_CACHED_PARTS = 2**29  # bytes of eigenpairs

Whole = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Part:
    """A connected part of the graph.

    Attributes
    ----------
    nodes : (k,) int array
        Its sites.
    eigenvalues : (m,) array
        Of its Laplacian with reflecting shores, then of that with absorbing ones; corrected for the spacing.
    vectors : (k, m) array
        The eigenvectors, as columns.
    """

    nodes: Whole
    eigenvalues: Array
    vectors: Array


class SiteGraph:
    """The graph of a domain's sites; edges and eigenpairs are computed when first needed.

    On a grid, sites that follow each other along an axis are neighbours. Where that leaves parts that sites
    on a diagonal would connect, as in a strait one site wide, those become neighbours, too. Over two axes,
    other sites are neighbours if their Delaunay triangulation has an edge of at most 1.6 times the median
    distance to the nearest site. No edge leaves the free space of the domain.

    Parameters
    ----------
    domain : Domain

    Raises
    ------
    InputError
        The domain is a box, its axes differ in their units, or it has too many axes or sites.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.obstacles import Obstacle
    >>> axes = [Axis("x", "m", 0, 4), Axis("y", "m", 0, 1)]
    >>> graph = SiteGraph(Domain.grid(axes, (5, 2), obstacles=[Obstacle("dam", (1.4, 0), (1.6, 1))]))
    >>> [part.nodes.tolist() for part in graph.parts]
    [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]
    """

    def __init__(self, domain: Domain) -> None:
        _check(domain)
        self.domain = domain
        used = [n > 1 for n in domain.shape] if domain.shape is not None else [True] * domain.dimension
        self.axes: Whole = np.flatnonzero(used)
        self.gridded = domain.shape is not None

    def __reduce__(self) -> tuple[Any, ...]:
        return site_graph, (self.domain,)  # what was computed is computed again

    @property
    def size(self) -> int:
        """Number of sites, N."""
        return self.domain.size

    @property
    def dimension(self) -> int:
        """Number of axes with more than one node, at least 1."""
        return max(1, len(self.axes))

    # -- edges and eigenpairs --------------------------------------------------------------------------

    @cached_property
    def visibility(self) -> Visibility | None:
        """What stands between sites; None if nothing does."""
        return visibility_in(self.domain)

    def free(self, starts: Array, ends: Array) -> Mask:
        """Return which straight legs from `starts` (n, d) to `ends` (n, d) stay in the free space, (n,)."""
        if self.visibility is None:
            return np.ones(len(starts), dtype=bool)
        return self.visibility.free_legs(np.ascontiguousarray(starts), np.ascontiguousarray(ends))

    @cached_property
    def edges(self) -> tuple[Whole, Array]:
        """Pairs (E, 2) of neighbours, and their weights (E,), in inverse squared units of the axes."""
        return self._grid_edges() if self.gridded else self._triangle_edges()

    def _visible(self, pairs: Whole) -> Whole:
        sites = self.domain.sites
        return pairs[self.free(sites[pairs[:, 0]], sites[pairs[:, 1]])]

    def _grid_edges(self) -> tuple[Whole, Array]:
        pairs = [self._visible(self._shifted(np.eye(self.domain.dimension, dtype=int)[j])) for j in self.axes]
        label = _labels(self.size, np.concatenate([np.empty((0, 2), dtype=np.intp), *pairs]))
        if label.max() > 0:
            for step in self._diagonals():
                across = self._visible(self._shifted(step))
                pairs.append(across[label[across[:, 0]] != label[across[:, 1]]])
        both = np.concatenate([np.empty((0, 2), dtype=np.intp), *pairs])
        gaps = self.domain.sites[both[:, 0]] - self.domain.sites[both[:, 1]]
        return both, 1.0 / np.sum(gaps**2, axis=1)

    def _diagonals(self) -> Iterator[Whole]:
        """Yield one of each two opposite steps to the nodes at the corners of a node's cells."""
        for signs in product((-1, 0, 1), repeat=len(self.axes)):
            if np.count_nonzero(signs) > 1 and next(s for s in signs if s) > 0:
                step = np.zeros(self.domain.dimension, dtype=int)
                step[self.axes] = signs
                yield step

    def _shifted(self, step: Whole) -> Whole:
        """Return the pairs (k, 2) of sites that are a step (d,) on the grid apart."""
        here = self.node_of
        first, second = [], []
        for size, move in zip(here.shape, step, strict=True):
            first.append(slice(max(0, -move), size - max(0, move)))
            second.append(slice(max(0, move), size + min(0, move)))
        pairs = np.stack([here[tuple(first)].ravel(), here[tuple(second)].ravel()], axis=1)
        return pairs[(pairs >= 0).all(axis=1)]

    @cached_property
    def node_of(self) -> Whole:
        """The site at each node of the grid, -1 where there is none."""
        return self.domain.on_grid(np.arange(self.size))

    @cached_property
    def triangulation(self) -> Any:
        """The Delaunay triangulation of sites that are no grid."""
        from scipy.spatial import Delaunay, QhullError

        try:
            return Delaunay(self.domain.sites)
        except (QhullError, ValueError):
            raise InputError(
                f"the {counted(self.size, 'site')} lie on a line, so they have no triangulation",
                expected="three sites or more that span a plane, or a grid",
                where="model.kernel",
            ) from None

    def _triangle_edges(self) -> tuple[Whole, Array]:
        from scipy.spatial import KDTree

        corners, sites = self.triangulation.simplices, self.domain.sites
        pairs = np.unique(np.sort(corners[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2), axis=1), axis=0)
        nearest = np.median(np.asarray(KDTree(sites).query(sites, k=2)[0])[:, 1])
        squares = np.sum((sites[pairs[:, 0]] - sites[pairs[:, 1]]) ** 2, axis=1)
        pairs = self._visible(pairs[squares <= (_FAR * nearest) ** 2].astype(np.intp))
        # Weights for which sum_j w_ij (x_j - x_i)^2 = 2 along each axis, as finite differences have it.
        neighbours = np.median(np.bincount(pairs.ravel(), minlength=1))
        squares = np.sum((sites[pairs[:, 0]] - sites[pairs[:, 1]]) ** 2, axis=1)
        return pairs, 4.0 / (max(1.0, float(neighbours)) * squares)

    @cached_property
    def _missing(self) -> Array:
        """Weights (N,) of the neighbours that each site lacks on a shore, next to a full set of them."""
        pairs, weights = self.edges
        ends = pairs.ravel()
        if self.gridded:
            full = 2.0 * np.sum(self.domain.spacing[self.axes] ** -2.0)
            present = np.bincount(ends, np.repeat(weights, 2), minlength=self.size)
        else:
            present = np.bincount(ends, minlength=self.size) * np.mean(weights)
            full = np.median(present)
        return np.maximum(full - present, 0.0)

    @cached_property
    def label(self) -> Whole:
        """The part (N,) that each site belongs to."""
        return _labels(self.size, self.edges[0])

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The connected parts, with their eigenpairs."""
        (pairs, weights), missing = self.edges, self._missing
        key = (self.dimension, pairs.tobytes(), weights.tobytes(), missing.tobytes())
        return _SPECTRA.get(key, self._computed_parts)

    @on_one_blas_thread
    def _computed_parts(self) -> tuple[Part, ...]:
        from scipy.sparse import coo_array, diags_array

        (i, j), weights = self.edges[0].T, self.edges[1]
        ends, others = np.append(i, j), np.append(j, i)
        links = coo_array((np.tile(weights, 2), (ends, others)), shape=(self.size,) * 2).tocsr()
        reflecting = diags_array(np.asarray(links.sum(axis=1)).ravel()).tocsr() - links
        absorbing = reflecting + diags_array(2.0 * self._missing).tocsr()
        # A wave of wavenumber k has lambda = k^2 - h^2 k^4 / 4(d + 2) on a lattice, averaged over directions.
        coarse = self._squared_spacing / (4.0 * (self.dimension + 2))
        order = np.argsort(self.label, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(self.label))[:-1])
        return tuple(_part(nodes, (reflecting, absorbing), coarse) for nodes in groups)

    @property
    def _squared_spacing(self) -> float:
        """The mean squared distance between neighbours: over the axes of a grid, or over the edges."""
        if self.gridded:
            return float(np.mean(self.domain.spacing[self.axes] ** 2)) if len(self.axes) else 0.0
        ends = self.domain.sites[self.edges[0]]
        return float(np.mean(np.sum((ends[:, 0] - ends[:, 1]) ** 2, axis=1))) if len(ends) else 0.0


@lru_cache(maxsize=4)
def site_graph(domain: Domain) -> SiteGraph:
    """Return the graph of a domain's sites; the same one at each call."""
    return SiteGraph(domain)


_SPECTRA = LruBytes[tuple[Part, ...]](_CACHED_PARTS, lambda parts: sum(part.vectors.nbytes for part in parts))


def _check(domain: Domain) -> None:
    kernel, fix = 'kernel = "shore-matern52"', 'choose kernel = "matern52"'
    if domain.continuous:
        raise InputError(
            f"{kernel} needs a list of sites, but the domain is a box",
            expected='a domain of kind "grid"',
            where="model.kernel",
            fix=fix,
        )
    units = {axis.unit for axis in domain.axes}
    if len(units) > 1:
        raise InputError(
            f"{kernel} needs one unit, but the axes are in {' and '.join(sorted(units))}",
            expected="the same unit on all axes, so that distances are defined",
            where="model.kernel",
            fix=fix,
        )
    most = MOST_AXES if domain.shape is not None else 2
    if domain.dimension > most or (domain.shape is None and domain.dimension < 2):
        raise InputError(
            f"{kernel} on {counted(domain.dimension, 'axis', 'axes')}",
            expected=f"a grid with up to {MOST_AXES} axes, or scattered sites over two",
            where="model.kernel",
            fix=fix,
        )
    if domain.size > MOST_SITES:
        raise InputError(
            f"{kernel} on {domain.size} sites",
            expected=f"at most {MOST_SITES} sites",
            where="model.kernel",
            fix=f"lower the counts of the axes, or {fix}",
        )


def _labels(size: int, pairs: Whole) -> Whole:
    """Return the connected part (N,) of each site."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs)), pairs.T), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


def _part(nodes: Whole, laplacians: Iterable[Any], coarse: float) -> Part:
    pairs = [_eigenpairs(laplacian[nodes][:, nodes]) for laplacian in laplacians]
    eigenvalues = np.maximum(np.concatenate([values for values, _ in pairs]), 0.0)
    vectors = np.hstack([vectors for _, vectors in pairs])
    return Part(nodes, eigenvalues * (1.0 + coarse * eigenvalues), vectors)


def _eigenpairs(laplacian: Any) -> tuple[Array, Array]:
    if laplacian.shape[0] <= DENSE:
        eigenvalues, vectors = np.linalg.eigh(laplacian.toarray())
        return eigenvalues, vectors
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(laplacian.shape[0])  # so that the digits repeat
    shift = -1e-6 * float(laplacian.diagonal().max())  # the Laplacian of a closed lake is singular
    eigenvalues, vectors = eigsh(laplacian.tocsc(), k=TRUNCATED, sigma=shift, v0=start)
    return eigenvalues, vectors


_SAME = 1e-9  # of the longest extent: a point this close to a site is that site
_NEAREST = 16  # sites that a point between shores tries to see
_CACHED_PLACEMENTS = 2**24  # bytes


class Placement(NamedTuple):
    """Sites (P, C) that points are interpolated from, and their weights (P, C)."""

    nodes: Whole
    weights: Array


class Placements:
    """Place points among the sites of a graph.

    Parameters
    ----------
    graph : SiteGraph
    """

    def __init__(self, graph: SiteGraph) -> None:
        self.graph = graph
        self._cache = LruBytes[Placement](_CACHED_PLACEMENTS, lambda p: p.nodes.nbytes + p.weights.nbytes)

    @cached_property
    def everywhere(self) -> Placement:
        """The placement of the sites themselves."""
        return Placement(np.arange(self.graph.size)[:, None], np.ones((self.graph.size, 1)))

    def placed(self, points: Array) -> Placement:
        """Return the sites, and their weights, that points (P, d) are interpolated from.

        A point is interpolated from the corners of its cell (multilinear weights), or of its triangle
        (barycentric weights), that it sees and that belong to the part of the closest of them. If it sees
        none, it counts as the nearest site that it sees; a point on land first moves to the nearest shore.
        """
        x = np.ascontiguousarray(points, dtype=float)
        sites = self.graph.domain.sites
        if x.shape == sites.shape and np.array_equal(x, sites):
            return self.everywhere
        return self._cache.get(("points", x.tobytes()), lambda: self._place(x))

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.graph.domain.sites)

    def _place(self, x: Array) -> Placement:
        graph, domain = self.graph, self.graph.domain
        gap, nearest = self._tree.query(x)
        off = np.flatnonzero(gap > _SAME * domain.extent.max())
        if not len(off):
            return Placement(np.asarray(nearest, dtype=np.intp)[:, None], np.ones((len(x), 1)))
        at = domain.clipped(x[off])
        if graph.visibility is not None:
            outside = ~graph.visibility.inside(at)
            at[outside] = graph.visibility.nearest(at[outside])
        corners, weights = self._cell(at) if graph.gridded else self._triangle(at)
        P, C = corners.shape
        seen = graph.free(np.repeat(at, C, axis=0), domain.sites[corners.ravel()]).reshape(P, C)
        weights = np.where(seen & (corners >= 0), weights, 0.0)
        leading = graph.label[corners[np.arange(P), np.argmax(weights, axis=1)]]
        weights[graph.label[corners] != leading[:, None]] = 0.0
        alone = np.flatnonzero(~(weights > 0).any(axis=1))
        if len(alone):
            corners[alone], weights[alone] = self._nearest_seen(at[alone])[:, None], np.eye(1, C)
        nodes, shares = np.repeat(nearest[:, None], C, axis=1).astype(np.intp), np.zeros((len(x), C))
        shares[:, 0] = 1.0
        first = corners[np.arange(P), np.argmax(weights, axis=1)]
        nodes[off] = np.where(weights > 0, corners, first[:, None])  # a weight of 0 needs a site, too
        shares[off] = weights / weights.sum(axis=1, keepdims=True)
        return Placement(nodes, shares)

    def _cell(self, x: Array) -> tuple[Whole, Array]:
        """Return the sites (P, 2^d) at the corners of the grid's cells, -1 for none, and their weights."""
        axes, domain, node_of = self.graph.axes, self.graph.domain, self.graph.node_of
        last = np.array(node_of.shape)[axes] - 2
        steps = (x[:, axes] - domain.low[axes]) / domain.spacing[axes]
        first = np.clip(np.floor(steps).astype(np.intp), 0, last)
        share = np.clip(steps - first, 0.0, 1.0)
        nodes, weights = [], []
        for corner in product((0, 1), repeat=len(axes)):
            index = np.zeros((len(x), node_of.ndim), dtype=np.intp)
            index[:, axes] = first + corner
            nodes.append(node_of[tuple(index.T)])
            weights.append(np.prod(np.where(corner, share, 1.0 - share), axis=1))
        return np.stack(nodes, axis=1), np.stack(weights, axis=1)

    def _triangle(self, x: Array) -> tuple[Whole, Array]:
        """Return the sites (P, 3) at the corners of the triangles, -1 for none, and their weights."""
        mesh = self.graph.triangulation
        found = mesh.find_simplex(x)
        transform = mesh.transform[found]
        two = np.einsum("pij,pj->pi", transform[:, :2], x - transform[:, 2])
        weights = np.maximum(np.column_stack([two, 1.0 - two.sum(axis=1)]), 0.0)
        nodes = mesh.simplices[found].astype(np.intp)
        nodes[(found < 0) | ~np.isfinite(weights).all(axis=1)] = -1
        return nodes, np.nan_to_num(weights)

    def _nearest_seen(self, x: Array) -> Whole:
        """Return the nearest site (P,) that each point sees; if it sees none, the nearest."""
        graph, k = self.graph, min(_NEAREST, self.graph.size)
        near = np.asarray(self._tree.query(x, k=k)[1], dtype=np.intp).reshape(len(x), k)
        seen = graph.free(np.repeat(x, k, axis=0), graph.domain.sites[near.ravel()]).reshape(len(x), k)
        return np.asarray(near[np.arange(len(x)), np.argmax(seen, axis=1)])


@lru_cache(maxsize=4)
def placements(domain: Domain) -> Placements:
    """Return the placements among a domain's sites; the same ones at each call."""
    return Placements(site_graph(domain))
