"""Costs of straight legs, which go round whatever is in the way."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.domain.shortest_paths import ShortestPaths
from fieldbo.domain.visibility import sight_in


@dataclass(frozen=True)
class Legs(CostModel):
    """Travel along straight legs; within a domain, by the cheapest way round obstacles and headlands.

    A new kind says what a straight leg costs. It must not make a detour cheaper than the leg.
    """

    _ways: ClassVar[ShortestPaths | None] = None  # none where every leg is free

    @abstractmethod
    def _leg(self, starts: Array, ends: Array) -> Array:
        """Return what straight legs cost, (P, N), from `starts` (P, d) to `ends` (N, d)."""

    def _travel(self, positions: Array, sites: Array) -> Array:
        if self._ways is None:
            return self._leg(positions, sites)
        return self._ways.travel(positions, sites)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the way really taken from `a` (d,) to `b` (d,), as (k, d) points, both ends included.

        Raises
        ------
        InputError
            There is no way.
        """
        if self._ways is None:
            return super().path(a, b, time_s)
        return self._ways.path(np.asarray(a, dtype=float), np.asarray(b, dtype=float))

    def within(self, domain: Domain) -> Self:
        """Return the same costs by ways that stay in that domain."""
        if self._domain is domain:
            return self
        bound = self._with(_domain=domain, _ways=None)
        sight = sight_in(domain)
        if sight is not None:
            object.__setattr__(bound, "_ways", ShortestPaths(sight, bound._leg))
        return bound
