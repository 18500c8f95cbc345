"""Every sample costs the same, wherever it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel, not_negative


@dataclass(frozen=True)
class Unit(CostModel):
    """A price per sample, and free travel: the battery counts samples.

    Examples
    --------
    >>> Unit().to([0.0, 0.0], [[5.0, 5.0], [0.0, 0.0]])
    array([1., 1.])
    """

    sampling: float = 1.0

    def __post_init__(self) -> None:
        not_negative("cost", sampling=self.sampling, seconds_per_unit=self.seconds_per_unit)

    def _travel(self, positions: Array, sites: Array) -> Array:
        return np.zeros((len(positions), len(sites)))

    def _sampling(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)

    @property
    def prices_controls(self) -> bool:
        """Yes: every query costs the same."""
        return True

    @property
    def straight_rates(self) -> Array | None:
        """Zeros (d,)."""
        return None if self._domain is None else np.zeros(self._domain.dimension)
