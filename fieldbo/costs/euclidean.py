"""Travel at a rate per unit of distance, along the shortest route."""

from __future__ import annotations

import numpy as np
from pydantic import NonNegativeFloat

from fieldbo._numerics.arrays import Array
from fieldbo.costs.legs import Legs
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.validation import settings


@settings("cost")
class Euclidean(Legs):
    """``rate * distance + sampling``, with the distance measured along the shortest route.

    Examples
    --------
    >>> Euclidean(rate=2.0, sampling=1.0).to([0.0, 0.0], [[3.0, 4.0]])
    array([11.])
    >>> Euclidean(axis_rates=(1.0, 2.0)).to([0.0, 0.0], [[3.0, 0.0], [0.0, 3.0]])
    array([3., 6.])
    """

    rate: NonNegativeFloat = 1.0
    """Cost per unit of distance."""
    sampling: NonNegativeFloat = 0.0
    """Cost of a sample, once there."""
    axis_rates: tuple[NonNegativeFloat, ...] | None = None
    """One factor per axis: the distance is ``sqrt(sum (factor * gap)^2)``. By default, all are 1."""

    def leg_between(self, starts: Array, ends: Array) -> Array:
        from scipy.spatial.distance import cdist

        if self.axis_rates is None:
            return self.rate * cdist(starts, ends)
        factors = np.array(self.axis_rates)
        return self.rate * cdist(starts * factors, ends * factors)

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless there is one factor per axis, or none at all."""
        if self.axis_rates is not None and len(self.axis_rates) != domain.dimension:
            raise InputError(
                f"axis_rates has {counted(len(self.axis_rates), 'number')}",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="cost.axis_rates",
            )

    @property
    def straight_rates(self) -> Array | None:
        """The rate along each axis (d,); None if anything is in the way."""
        if self._domain is None or self._paths is not None:
            return None
        return self.rate * np.array(self.axis_rates or np.ones(self._domain.dimension))
