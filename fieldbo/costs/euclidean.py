"""Straight-line travel at a rate per unit of distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from fieldbo.costs.base import CostModel, not_negative
from fieldbo.domain import Array


@dataclass(frozen=True)
class Euclidean(CostModel):
    """``rate * distance + sampling``.

    Parameters
    ----------
    rate : float
        Cost per unit of distance.
    sampling : float
        Cost of a sample, once there.

    Examples
    --------
    >>> Euclidean(rate=2.0, sampling=1.0).to([0.0, 0.0], [[3.0, 4.0]])
    array([11.])
    """

    rate: float = 1.0
    sampling: float = 0.0

    def __post_init__(self) -> None:
        not_negative("cost", rate=self.rate, sampling=self.sampling, seconds_per_unit=self.seconds_per_unit)

    def _travel(self, positions: Array, sites: Array) -> Array:
        return self.rate * cdist(positions, sites)

    def _sampling(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)
