"""Travel at a rate per unit of distance, by the shortest way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import not_negative
from fieldbo.costs.legs import Legs
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError


@dataclass(frozen=True)
class Euclidean(Legs):
    """``rate * distance + sampling``; round obstacles, the length of the shortest way.

    Parameters
    ----------
    rate : float
        Cost per unit of distance.
    sampling : float
        Cost of a sample, once there.
    axis_rates : tuple of d float, optional
        A factor for each axis: the distance is ``sqrt(sum (factor * gap)^2)``.

    Examples
    --------
    >>> Euclidean(rate=2.0, sampling=1.0).to([0.0, 0.0], [[3.0, 4.0]])
    array([11.])
    >>> Euclidean(axis_rates=(1.0, 2.0)).to([0.0, 0.0], [[3.0, 0.0], [0.0, 3.0]])
    array([3., 6.])
    """

    rate: float = 1.0
    sampling: float = 0.0
    axis_rates: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        not_negative("cost", rate=self.rate, sampling=self.sampling, seconds_per_unit=self.seconds_per_unit)
        if self.axis_rates is not None:
            object.__setattr__(self, "axis_rates", tuple(self.axis_rates))
            for k, rate in enumerate(self.axis_rates):
                not_negative("cost", **{f"axis_rates[{k}]": rate})

    def _leg(self, starts: Array, ends: Array) -> Array:
        if self.axis_rates is None:
            return self.rate * cdist(starts, ends)
        factors = np.array(self.axis_rates)
        return self.rate * cdist(starts * factors, ends * factors)

    def _sampling(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless there is a factor for each axis, or none at all."""
        if self.axis_rates is not None and len(self.axis_rates) != domain.dimension:
            raise InputError(
                f"{len(self.axis_rates)} axis rates",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="cost.axis_rates",
            )

    @property
    def straight_rates(self) -> Array | None:
        """The rate along each axis (d,), where nothing is in the way."""
        if self._domain is None or self._ways is not None:
            return None
        return self.rate * np.array(self.axis_rates or np.ones(self._domain.dimension))
