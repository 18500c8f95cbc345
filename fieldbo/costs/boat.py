"""A boat that travels at the surface, around shores and obstacles, and lowers a probe at each site."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.costs.euclidean import Euclidean
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings


@settings("cost")
class Boat(CostModel):
    """Seconds to raise the probe, travel by the shortest route at the surface, and lower the probe again.

    The depth is the last axis, if there is one. Between two depths at one place, the probe moves directly.

    Examples
    --------
    >>> boat = Boat(speed=2.0, stop_s=30.0, winch_speed=0.5)
    >>> boat.to([0.0, 0.0], [[60.0, 80.0]])
    array([80.])
    >>> boat.to([0.0, 0.0, 4.0], [[60.0, 80.0, 1.0], [0.0, 0.0, 5.0]])
    array([90., 32.])
    >>> boat.path([0.0, 0.0, 4.0], [60.0, 80.0, 1.0])[:, 2]
    array([4., 0., 0., 1.])
    """

    # Not a setting here: costs are in seconds.
    seconds_per_unit: ClassVar[float] = 1.0  # type: ignore[misc]
    prices_depth: ClassVar[bool] = True
    to_price_samples: ClassVar[str] = "set stop_s in the world's [cost], for example stop_s = 30"
    speed: PositiveFloat = 1.5
    """Speed of the boat, in m/s."""
    stop_s: NonNegativeFloat = 0.0
    """Seconds that a sample takes, once the probe is there."""
    winch_speed: PositiveFloat = 0.5
    """Speed at which the probe is lowered and raised, in m/s."""

    _plane: ClassVar[Euclidean | None] = None  # set by `within`: seconds at the surface

    @property
    def _surface(self) -> Euclidean:
        """What travel at the surface takes, in seconds."""
        return self._plane or Euclidean(rate=1.0 / self.speed)

    def _flat(self, dimension: int) -> int:
        """Return the number of horizontal axes; the first two, before the cost is bound to a domain."""
        return min(2, dimension) if self._domain is None else self._domain.flat.dimension

    def travel_between(self, starts: Array, ends: Array) -> Array:
        k = self._flat(starts.shape[1])
        seconds = self._surface.travel_between(starts[:, :k], ends[:, :k])
        if k == starts.shape[1]:
            return seconds
        down, up = starts[:, k:] / self.winch_speed, ends[:, k:].T / self.winch_speed
        return np.where(seconds == 0.0, np.abs(down - up), down + seconds + up)

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.stop_s)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the route of the probe from `a` (d,) to `b` (d,) as (k, d) points, both ends included.

        Raises
        ------
        InputError
            There is no route.
        """
        start, end = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        k = self._flat(len(start))
        if np.array_equal(start[:k], end[:k]):
            return super().path(start, end, time_s)
        at_surface = self._surface.path(start[:k], end[:k], time_s)
        if k == len(start):
            return at_surface
        route = np.column_stack([at_surface, np.zeros(len(at_surface))])
        before = [start] if start[k] != 0.0 else []
        after = [end] if end[k] != 0.0 else []
        return np.stack([*before, *route, *after])

    def along(self, points: ArrayLike, time_s: float = 0.0) -> tuple[float, float]:
        return CostModel.along(self._with(_plane=None), points, time_s)

    @property
    def straight_rates(self) -> Array | None:
        """The rate along each axis (d,); None if anything is in the way, or there is a depth."""
        if self._domain is None or self._domain.has_depth:
            return None
        return self._surface.straight_rates

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the axes are horizontal and in metres, with at most a last depth."""
        names = ", ".join(axis.label for axis in domain.axes)
        if any(axis.unit != "m" for axis in domain.axes) or domain.flat.dimension > 2:
            raise InputError(
                f"a boat cost does not fit the axes {names}",
                expected="one or two horizontal axes in m and, if there is a depth, depth in m as the last",
                where="cost.kind",
            )
        if domain.has_depth and domain.low[-1] < 0:
            raise InputError(
                f"the depth begins at {domain.low[-1]:g} m, above the surface",
                expected="a depth of at least 0",
                where="cost.kind",
            )

    def within(self, domain: Domain) -> Self:
        """Return this cost bound to a domain, whose outline and obstacles its routes never cross.

        Raises
        ------
        InputError
            Obstacles are boxes over the depth, too.
        """
        if domain.has_depth and any(o.dimension > 2 or domain.dimension == 2 for o in domain.obstacles):
            return super().within(domain)  # which rejects obstacles
        surface = Euclidean(rate=1.0 / self.speed).within(domain.flat)
        return self._with(_domain=domain, _plane=surface)
