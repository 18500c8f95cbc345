"""The truth of a world and the true answer to a question, computed once for all runs in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo.belief.question import Question
from fieldbo.domain.search import climbed, differenced
from fieldbo.world.world import World

_STARTS = 32
"""Number of best sites from which to climb to the optimum of a box."""


@dataclass(frozen=True, eq=False)
class Place:
    """A point of a domain and the value there.

    Attributes
    ----------
    point : (d,) array
    value : float
    site : int or None
        Its index among the domain's sites; None if it lies between them.
    """

    point: Array
    value: float
    site: int | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """The true values, in the user's unit, and the true answer to a question.

    Attributes
    ----------
    world : World
    question : Question
    values : (N,) array
        At the domain's sites.
    """

    world: World
    question: Question
    values: Array

    @cached_property
    def threshold(self) -> float:
        """The threshold; NaN for an optimum."""
        return self.question.level(float(self.values.max()))

    @cached_property
    def inside(self) -> Mask:
        """The sites of the level set, (N,) bool: at or above the threshold, or at or below it."""
        return np.asarray(self.question.sign * self.values >= self.question.sign * self.threshold)

    @property
    def above(self) -> Mask:
        """The sites above the threshold, (N,) bool; those at the threshold belong to the level set."""
        return self.inside if self.question.sign > 0 else ~self.inside

    @cached_property
    def optimum(self) -> Place:
        """The best site; in a continuous domain, the known optimum or the best point after climbing."""
        sign, domain = self.question.sign, self.world.domain
        order = np.argsort(-sign * self.values, kind="stable")
        first = int(order[0])
        best = Place(domain.sites[first], float(self.values[first]), first)
        if not domain.continuous:
            return best
        field = self.world.field
        known = None if field is None else field.optimum("maximise" if sign > 0 else "minimise")
        if known is not None:
            return Place(known, self.at(known))
        spread = float(np.ptp(self.values)) or 1.0

        def scores(points: Array) -> Array:
            return sign * self.world.truth(points) / spread

        top = climbed(differenced(scores, domain), domain.sites[order[:_STARTS]], domain)
        value = self.at(top)
        return Place(top, value) if sign * value > sign * best.value else best

    def at(self, point: Array) -> float:
        """Return the true value at a point (d,)."""
        return float(self.world.truth(point[None])[0])


@lru_cache(maxsize=4)  # a comparison runs many missions in one world
def truth_of(world: World, question: Question) -> Truth | None:
    """Return the truth of a world; None if it is live."""
    if world.live:
        return None
    return Truth(world, question, frozen_array(world.truth(world.domain.sites)))
