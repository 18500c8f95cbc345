"""Every sample costs the same, wherever it is taken."""

from __future__ import annotations

import numpy as np
from pydantic import NonNegativeFloat

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.validation import settings


@settings("cost")
class Unit(CostModel):
    """A fixed cost per sample, and free travel: the battery counts samples.

    Examples
    --------
    >>> Unit().to([0.0, 0.0], [[5.0, 5.0], [0.0, 0.0]])
    array([1., 1.])
    """

    sampling: NonNegativeFloat = 1.0
    """Cost of a sample."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        return np.zeros((len(starts), len(ends)))

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)

    @property
    def prices_controls(self) -> bool:
        """True: every query costs the same."""
        return True

    @property
    def straight_rates(self) -> Array | None:
        """Zeros (d,)."""
        return None if self._domain is None else np.zeros(self._domain.dimension)
