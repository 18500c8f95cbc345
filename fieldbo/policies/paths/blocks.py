"""Fewer sites to plan with: blocks of neighbouring sites, each at its mean."""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain


def blocks(domain: Domain, most: int) -> tuple[Array, Array]:
    """Return at most about `most` points (B, d) that stand for the domain's sites, and their weights (B,).

    A block's weight is the length, area or volume of its sites, in mean cells. A mean that is not free moves
    to the nearest site.

    Parameters
    ----------
    domain : Domain
    most : int

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> points, weights = blocks(Domain.grid([Axis("x", "m", 0, 3), Axis("y", "m", 0, 3)], (4, 4)), 4)
    >>> points.tolist(), weights.sum()
    ([[0.5, 0.5], [0.5, 2.5], [2.5, 0.5], [2.5, 2.5]], np.float64(16.0))
    """
    weights: Array = domain.cells / domain.cells.mean()
    if domain.size <= most:
        return domain.sites, weights
    along = max(1, int(most ** (1 / domain.dimension) + 1e-9))
    bins = np.minimum((along * (domain.sites - domain.low) / domain.extent).astype(int), along - 1)
    _, block = np.unique(bins, axis=0, return_inverse=True)
    counts = np.bincount(block)
    means = np.stack([np.bincount(block, x) / counts for x in domain.sites.T], axis=1)
    for n in np.flatnonzero(~domain.contains(means)):
        means[n] = domain.sites[domain.nearest(means[n])]
    return means, np.bincount(block, weights).astype(float)
