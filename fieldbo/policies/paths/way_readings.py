"""The loss that a chain leaves if the vehicle also reads on the way from each of its points to the next.

The many readings on a link are represented by a few, at equal distances, which together weigh as much. They
lie on straight lines between the points, so the gradient by the points follows.
"""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.readings import LEAST_NOISE
from fieldbo.policies.paths.chain import Chain
from fieldbo.policies.paths.remaining import RemainingLoss

_MOST = 12
"""Most readings that represent those on one link."""

_MOST_IN_ALL = 100
"""Most of them on a chain: an evaluation takes time with their square."""


class WayLoss:
    """The loss after all that is read on a chain, as a function of its points.

    Parameters
    ----------
    loss : RemainingLoss
    chain : Chain
    noise_variance : float
        Of one reading, in model units.
    spacing : float
        How far apart readings on the way are, as the chain measures lengths.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern32
    >>> from fieldbo.belief.posterior import Belief
    >>> from fieldbo.policies.paths.importance import Everywhere
    >>> line = np.linspace(0, 1, 11)[:, None]
    >>> loss = RemainingLoss(Belief(Matern32([0.3])), line, Everywhere(), 0.01)
    >>> chain = Chain(np.zeros(1), 1, 1.0, np.zeros(1), np.ones(1))
    >>> way = WayLoss(loss, chain, noise_variance=0.01, spacing=0.05)
    >>> bool(way(np.ones((1, 1)))[0] < loss(np.array([[0.5]]))[0])  # the end reads all of the line
    True
    """

    def __init__(self, loss: RemainingLoss, chain: Chain, noise_variance: float, spacing: float) -> None:
        self._loss, self._chain, self._noise, self._spacing = loss, chain, noise_variance, spacing
        ends = [chain.spacing] * chain.count + ([] if chain.destination is None else [chain.end])
        most = min(_MOST, max(1, _MOST_IN_ALL // len(ends)))
        self._counts = [min(most, int(length / spacing)) for length in ends]
        self._noises = np.concatenate(
            [self._link_noises(k, length) for k, length in zip(self._counts, ends, strict=True)]
            + [np.full(chain.count, noise_variance)]
        )
        self._weights = self._interpolation()

    def _link_noises(self, count: int, length: float) -> Array:
        """Return the noise variances of the readings that represent those on a link."""
        if not count:
            return np.empty(0)
        share = count * self._spacing / length
        return np.full(count, self._noise * min(1.0, max(LEAST_NOISE, share)))

    def _interpolation(self) -> Array:
        """Return the weights (r, m + 2) that give all readings from the start, the points and the end."""
        m, rows = self._chain.count, list[Array]()
        for link, count in enumerate(self._counts):
            for share in (np.arange(count) + 0.5) / max(1, count):
                row = np.zeros(m + 2)
                row[link], row[link + 1] = 1.0 - share, share
                rows.append(row)
        return np.vstack([*rows, np.eye(m + 2)[1 : m + 1]])

    def __call__(self, points: Array) -> tuple[float, Array]:
        """Return the loss after reading on the way through `points` (m, d), and its gradient (m, d)."""
        chain = self._chain
        end = chain.start if chain.destination is None else chain.destination
        readings = self._weights @ np.vstack([chain.start, points, end])
        value, gradient = self._loss(readings, self._noises)
        return value, (self._weights.T @ gradient)[1:-1]
