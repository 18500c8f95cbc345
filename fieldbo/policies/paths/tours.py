"""Rough tours through a region, as starts of a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from fieldbo._numerics.arrays import Array
from fieldbo.policies.paths.chain import Chain

_LLOYD_ROUNDS = 10
_CLOUD = 60  # random points per point to spread
_LEAST_GAIN = 1e-9  # of the tour's length; less is rounding


def tours(chain: Chain, rng: np.random.Generator, count: int, among: Array | None = None) -> list[Array]:
    """Return `count` feasible chains (m, d) that spread their points and follow them in a short order.

    Each visits m evenly spread points from the start to the destination, in the order of farthest insertion
    and 2-opt.

    Parameters
    ----------
    chain : Chain
    rng : numpy.random.Generator
    count : int
    among : (N, d) array, optional
        Sites to spread the points over; by default the box.

    Examples
    --------
    >>> chain = Chain(np.zeros(2), 12, 0.3, np.zeros(2), np.ones(2))
    >>> [tour.shape for tour in tours(chain, np.random.default_rng(0), 2)]
    [(12, 2), (12, 2)]
    """
    return [chain.pulled(_tour(chain, _spread(chain, rng, among))) for _ in range(count)]


def _spread(chain: Chain, rng: np.random.Generator, among: Array | None) -> Array:
    """Return m points (m, d) spread over the box, or over sites, by a few rounds of Lloyd's algorithm."""
    from scipy.spatial import cKDTree

    m, d = chain.count, len(chain.start)
    cloud = among
    if cloud is None:
        cloud = chain.low + rng.random((_CLOUD * m, d)) * (chain.high - chain.low)
    centres = cloud[rng.choice(len(cloud), m, replace=len(cloud) < m)]
    for _ in range(_LLOYD_ROUNDS):
        _, nearest = cKDTree(centres * chain.scale).query(cloud * chain.scale)
        sizes = np.bincount(nearest, minlength=m)[:, None]
        sums = np.stack([np.bincount(nearest, x, m) for x in cloud.T], axis=1)
        centres = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres)
    return centres


def _tour(chain: Chain, points: Array) -> Array:
    """Return the points (m, d) in a short order from the start to the destination."""
    m = len(points)
    ends = [chain.start] if chain.destination is None else [chain.start, chain.destination]
    gaps = cdist(*2 * (np.vstack([points, *ends]) * chain.scale,))
    near = gaps[:m, m:].min(axis=1)
    if chain.destination is None:
        gaps = np.pad(gaps, (0, 1))  # an end that every point is next to
    order = np.array([m, m + 1])
    for _ in range(m):
        far = int(np.argmax(near))
        added = gaps[order[:-1], far] + gaps[far, order[1:]] - gaps[order[:-1], order[1:]]
        order = np.insert(order, int(np.argmin(added)) + 1, far)
        near = np.minimum(near, gaps[:m, far])
        near[far] = -1.0  # done
    return points[_shortened(gaps, order)[1:-1]]


def _shortened(gaps: Array, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the order with stretches reversed as long as that shortens it; both ends stay."""
    for _ in range(20 * len(order)):
        here, there = order[:-1], order[1:]
        legs = gaps[here, there]
        # Legs i < j give way to one between their starts and one between their ends.
        saved = legs[:, None] + legs - gaps[np.ix_(here, here)] - gaps[np.ix_(there, there)]
        i, j = np.unravel_index(int(np.argmax(np.triu(saved, 1))), saved.shape)
        if i >= j or saved[i, j] <= _LEAST_GAIN * legs.sum():
            break
        order[i + 1 : j + 1] = order[i + 1 : j + 1][::-1].copy()
    return order
