"""The final maps as a raster: a grid as it is, other domains evaluated at nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.domain.domain import Domain
from fieldbo.results.maps import Layers
from fieldbo.results.maps import layers as map_layers
from fieldbo.results.outcome import Outcome

_ACROSS = 160  # pixels along the longest axis of a box


@dataclass(frozen=True, eq=False)
class MapRaster:
    """The maps at the nodes of a grid over two axes.

    Attributes
    ----------
    low : (2,) array
        The first node.
    step : (2,) array
        Distances between nodes along each axis.
    shape : (int, int)
        Number of nodes along each axis.
    index : (k,) int array
        Flat indices of the nodes inside the domain.
    layers : dict
        Values (k,) and attributes of each map.
    """

    low: Array
    step: Array
    shape: tuple[int, int]
    index: NDArray[np.int64]
    layers: Layers

    @classmethod
    def of(cls, outcome: Outcome) -> MapRaster:
        """Return the maps of an outcome whose domain has two axes.

        The nodes are the sites of a grid, with their values. Elsewhere the belief is evaluated: at the
        spacing of a lattice, and in a box at about as many nodes as a picture has.
        """
        domain = outcome.mission.world.domain
        if domain.shape is not None:
            assert domain.grid_index is not None
            shape = (domain.shape[0], domain.shape[1])
            values = map_layers(outcome, outcome.surface)
            return cls(domain.low, steps(domain), shape, domain.grid_index, values)
        step = np.full(2, domain.pitch) if domain.pitch is not None else steps(domain)
        counts = np.floor(domain.extent / step + 1e-9).astype(int) + 1
        ticks = [low + np.arange(n) * d for low, n, d in zip(domain.low, counts, step, strict=True)]
        nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 2)
        index = np.flatnonzero(domain.contains(nodes))
        with one_blas_thread():
            values = map_layers(outcome, outcome.surface.over(nodes[index].reshape(-1, 2)))
        return cls(domain.low, step, (int(counts[0]), int(counts[1])), index, values)

    def on_grid(self, values: NDArray[np.generic], nodata: float) -> NDArray[np.generic]:
        """Return values (k,) of the nodes inside the domain as an array of `shape`."""
        grid = np.full(math.prod(self.shape), nodata, dtype=values.dtype)
        grid[self.index] = values
        return grid.reshape(self.shape)


def steps(domain: Domain) -> Array:
    """Return the distances (2,) along each axis between nodes that include all sites of a grid or lattice.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> steps(Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3)))
    array([1., 1.])
    """
    if domain.shape is not None:
        # An axis with one node has no spacing: its pixels are as long as those of the other axis.
        finite = domain.spacing[np.isfinite(domain.spacing)]
        return np.where(np.isfinite(domain.spacing), domain.spacing, finite.min() if len(finite) else 1.0)
    if domain.pitch is not None:  # hexagonal: every other row is shifted by half
        return domain.pitch * np.array([0.5, math.sqrt(0.75)])
    about = float(domain.extent.max()) / _ACROSS
    return np.asarray(domain.extent / np.maximum(np.round(domain.extent / about), 1.0))
