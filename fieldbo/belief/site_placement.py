"""Points between the sites of a graph: which sites they are interpolated from, never across a shore."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, LruBytes
from fieldbo.belief.site_graph import SiteGraph, Whole, site_graph
from fieldbo.domain.domain import Domain

_SAME = 1e-9  # of the longest extent: a point this close to a site is that site
_NEAREST = 16  # sites that a point between shores tries to see
_CACHED = 2**24  # bytes of placements


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
        self._cache = LruBytes[Placement](_CACHED, lambda p: p.nodes.nbytes + p.weights.nbytes)

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
        return self._cache.get(("points", x.tobytes()), lambda: self._placed(x))

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.graph.domain.sites)

    def _placed(self, x: Array) -> Placement:
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
