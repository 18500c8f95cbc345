"""Costs of straight legs that route around whatever is in the way."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.domain.shortest_paths import ShortestPaths
from fieldbo.domain.visibility import visibility_in
from fieldbo.validation import settings


@settings("cost")
class Legs(CostModel):
    """Travel along straight legs; within a domain, by the cheapest route around obstacles and headlands.

    A subclass defines `leg_between` and `sample_at`. A leg must never cost more than a detour between the
    same two points.
    """

    _paths: ClassVar[ShortestPaths | None] = None  # None where every straight leg is free

    @abstractmethod
    def leg_between(self, starts: Array, ends: Array) -> Array:
        """Return the cost (P, N) of a straight leg from each of `starts` (P, d) to each of `ends` (N, d)."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        if self._paths is None:
            return self.leg_between(starts, ends)
        return self._paths.travel(starts, ends)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the route from `a` (d,) to `b` (d,) as (k, d) points, both ends included.

        Raises
        ------
        InputError
            There is no route.
        """
        if self._paths is None:
            return super().path(a, b, time_s)
        return self._paths.path(np.asarray(a, dtype=float), np.asarray(b, dtype=float))

    def along(self, points: ArrayLike, time_s: float = 0.0) -> tuple[float, float]:
        return CostModel.along(self._with(_paths=None), points, time_s)

    def within(self, domain: Domain) -> Self:
        """Return this cost bound to a domain, which its routes never leave."""
        if self._domain is domain:
            return self
        bound = self._with(_domain=domain, _paths=None)
        visibility = visibility_in(domain)
        if visibility is not None:
            object.__setattr__(bound, "_paths", ShortestPaths(visibility, bound.leg_between))
        return bound
