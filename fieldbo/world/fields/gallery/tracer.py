"""A tracer that spreads from a few sources through a lake, around its spits and islands.

The concentration ``u`` is the steady state of diffusion and first-order decay, without flux through shores:

    ``-lap u + u / r^2 = s``,  ``r = sqrt(D / decay)``

with diffusivity D and sources s. r is how far the tracer spreads before most of it has decayed. A source is
where water enters: a point, mixed with its surroundings up to a radius m by ``-lap s + s / m^2 = point``, so
that it does not reach through a spit, either. Both equations are solved by finite differences, at least three
nodes per distance between sites, over the nodes in the water. Every draw places other sources, of strengths
that differ by a factor of about three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting
from pydantic import PositiveFloat
from scipy.sparse import coo_array, csc_array, diags_array
from scipy.spatial import KDTree

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.domain.domain import Domain
from fieldbo.domain.routes import visibility_in
from fieldbo.errors import InputError
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind

_REFINED = 3  # nodes per distance between sites
_MIXED = 0.25  # radius of a source, as a fraction of the reach
_SPREAD = 0.5  # sd of the log of strengths


@dataclass(frozen=True, eq=False)
class Concentration(Field):
    """The concentration at the nodes of a fine grid; bilinear between them.

    Attributes
    ----------
    low, spacing : (2,) arrays
    nodes : (n, m) array
        On land, the value of the nearest water.
    sources : (k, 2) array
        Where the tracer enters.
    """

    low: Array
    spacing: Array
    nodes: Array
    sources: Array

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the concentration (N,) at `sites` (N, 2)."""
        steps = np.clip((sites - self.low) / self.spacing, 0.0, np.array(self.nodes.shape) - 1.0)
        first = np.minimum(np.floor(steps).astype(int), np.array(self.nodes.shape) - 2)
        (i, j), (a, b) = first.T, (steps - first).T
        near = (1 - b) * self.nodes[i, j] + b * self.nodes[i, j + 1]
        far = (1 - b) * self.nodes[i + 1, j] + b * self.nodes[i + 1, j + 1]
        return np.asarray((1 - a) * near + a * far)


@settings("field")
class Tracer(FieldKind):
    """A tracer in a lake: diffusion from a few sources, with decay, around spits and islands.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.obstacles import Obstacle
    >>> axes = [Axis("east", "m", 0, 90), Axis("north", "m", 0, 60)]
    >>> lake = Domain.grid(axes, (10, 7), obstacles=[Obstacle("spit", (43, 0), (47, 60))])
    >>> u = lake.on_grid(Tracer(reach=30.0, sources=1).make(lake, draw=0).values(lake.sites))
    >>> u[:5].max().round(2), u[5:].max().round(2)
    (np.float64(1.0), np.float64(0.0))
    """

    reach: PositiveFloat
    """How far the tracer spreads, in the axes' unit: the root of diffusivity over decay rate."""
    sources: Annotated[int, Setting(ge=1, le=100)] = 3
    """Number of sources; each draw places them anew."""
    peak: PositiveFloat = 1.0
    """The highest concentration at a site."""

    def make(self, domain: Domain, draw: int, folder: Path | None = None) -> Concentration:
        """Return the concentration for draw number `draw`.

        Raises
        ------
        InputError
            The domain is not a grid over two axes of one unit, with two nodes or more along each.
        """
        units = {axis.unit for axis in domain.axes}
        if domain.shape is None or domain.dimension != 2 or min(domain.shape) < 2 or len(units) > 1:
            raise InputError(
                "a tracer needs a lake seen from above, but the domain is another",
                expected="a grid over two axes of one unit, with two nodes or more along each",
                where="domain",
            )
        rng = stream(draw, "field")
        shape = _REFINED * (np.array(domain.shape) - 1) + 1
        ticks = [np.linspace(a.low, a.high, n) for a, n in zip(domain.axes, shape, strict=True)]
        nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 2)
        wet = np.flatnonzero(domain.contains(nodes))
        entries = rng.choice(len(wet), self.sources, replace=False)
        entering = np.zeros(len(wet))
        entering[entries] = np.exp(_SPREAD * rng.standard_normal(self.sources))
        L = _laplacian(domain, nodes, wet, shape)
        concentration = _spread(L, _spread(L, entering, _MIXED * self.reach), self.reach)
        _, nearest = KDTree(nodes[wet]).query(nodes)
        field = Concentration(
            domain.low,
            frozen_array(domain.spacing / _REFINED),
            frozen_array(concentration[nearest].reshape(shape)),
            frozen_array(nodes[wet[entries]]),
        )
        highest = float(field.values(domain.sites).max())
        return replace(field, nodes=frozen_array(self.peak / highest * field.nodes))


def _spread(laplacian: csc_array, source: Array, reach: float) -> Array:
    """Solve ``-lap u + u / reach^2 = source`` over the wet nodes, (n,)."""
    from scipy.sparse.linalg import spsolve

    return np.asarray(spsolve(laplacian + diags_array(np.full(len(source), reach**-2.0)).tocsc(), source))


def _laplacian(domain: Domain, nodes: Array, wet: NDArray[np.intp], shape: NDArray[np.int64]) -> csc_array:
    """Return minus the Laplacian (n, n) over the wet nodes of a grid, without flux through shores."""
    number = np.full(len(nodes), -1)
    number[wet] = np.arange(len(wet))
    grid, visibility = number.reshape(shape), visibility_in(domain)
    rows, columns, weights = [], [], []
    for axis in range(2):
        pairs = _pairs(grid, axis)
        if visibility is not None:
            pairs = pairs[visibility.free_legs(*(nodes[wet[end]] for end in pairs.T))]
        rows.append(pairs[:, 0])
        columns.append(pairs[:, 1])
        weights.append(np.full(len(pairs), (_REFINED / domain.spacing[axis]) ** 2))
    i, j, w = (np.concatenate(parts) for parts in (rows, columns, weights))
    links = coo_array((np.tile(w, 2), (np.append(i, j), np.append(j, i))), shape=(len(wet),) * 2).tocsc()
    return diags_array(np.asarray(links.sum(axis=1)).ravel()).tocsc() - links


def _pairs(grid: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    """Return the pairs (k, 2) of wet nodes that follow each other along an axis."""
    along = np.moveaxis(grid, axis, 0)
    pairs = np.stack([along[:-1].ravel(), along[1:].ravel()], axis=1)
    return pairs[(pairs >= 0).all(axis=1)]
