"""The truth of a world and the true answer to a question, computed once for all runs in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo._numerics.streams import sobol, stream
from fieldbo.belief.question import Question
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import climb_together, climbed, differenced
from fieldbo.policies.control_sets.search import at_quantiles
from fieldbo.results.metrics import good_enough
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


ALPHA = 0.1
"""A set is good enough if it loses at most this fraction of the best expected value."""

_SAMPLES = 4096
_FEW, _SOME = 16, 256  # samples for a first ranking of the sites, and for a second one and climbs
_SHORTLIST, _CLIMBS = 64, 12  # sites to rank a second time; starts of climbs among them
_LAST_ROUNDS = 8  # of the best climb, with all samples
_STEP = 1e-4  # of a central difference, as a fraction of an axis


@dataclass(frozen=True, eq=False)
class ExpectedTruth:
    """True expected values of the control sets of a world, in the unit of its values.

    Parameters
    ----------
    truth : Truth
        For an optimum in a world with control sets.
    """

    truth: Truth

    @property
    def sets(self) -> tuple[Mask, ...]:
        """The variables that each set controls, m masks (d,)."""
        return tuple(s.controls for s in self.truth.world.domain.control_sets)

    @cached_property
    def worst(self) -> float:
        """The origin of gains: the least ``sign * value`` at the sites, and at most 0."""
        return min(0.0, float((self.truth.question.sign * self.truth.values).min()))

    def gains(self, points: Array, controls: Mask, samples: int = _SAMPLES) -> Array:
        """Return the expected gains (P,) of setting the variables `controls` (d,) to `points` (P, d)."""
        drawn = truth_samples(self.truth.world.domain)[: 1 if controls.all() else samples]
        whole = np.where(controls, points[:, None], drawn)
        values = self.truth.world.truth(whole.reshape(-1, points.shape[1]))
        mean = values.reshape(len(points), -1).mean(axis=1)
        return np.asarray(self.truth.question.sign * mean - self.worst)

    def value(self, gain: float) -> float:
        """Return the expected value of an expected gain."""
        return float(self.truth.question.sign * (gain + self.worst))

    @cached_property
    def best_of_sets(self) -> Array:
        """The largest expected gain of each set, (m,)."""
        return frozen_array([self._best(controls) for controls in self.sets])

    @cached_property
    def best(self) -> float:
        """The largest expected gain of all sets."""
        return float(self.best_of_sets.max())

    @cached_property
    def costs(self) -> Array:
        """The mean cost (m,) of each set, in the cost unit; NaN if unknown."""
        world = self.truth.world
        at = np.asarray(world.start)
        if not world.cost.known:
            return np.full(len(self.sets), np.nan)
        return np.array([float(world.cost.to(at, at[None], controls)[0]) for controls in self.sets])

    @cached_property
    def good_enough(self) -> tuple[list[int], int]:
        """The sets that reach the fraction 1 - `ALPHA` of `best`, and the cheapest of them."""
        return good_enough(self.best_of_sets, self.costs, ALPHA)

    def _best(self, controls: Mask) -> float:
        """Return the largest expected gain of a set, climbing from the best of the domain's sites."""
        sign, domain = self.truth.question.sign, self.truth.world.domain
        if controls.all():
            return sign * self.truth.optimum.value - self.worst
        sites = domain.sites
        for samples, count in ((_FEW, _SHORTLIST), (_SOME, _CLIMBS)):
            sites = sites[np.argsort(-self.gains(sites, controls, samples), kind="stable")[:count]]
        if not domain.continuous:
            return float(self.gains(sites, controls).max())
        spread = float(np.ptp(self.truth.values)) or 1.0
        axes = np.flatnonzero(controls)

        def rising(points: Array, samples: int) -> tuple[Array, Array]:
            step = _STEP * domain.extent
            up, down = (np.repeat(points[:, None], len(axes), axis=1) for _ in range(2))
            for k, axis in enumerate(axes):
                up[:, k, axis] = np.minimum(points[:, axis] + step[axis], domain.high[axis])
                down[:, k, axis] = np.maximum(points[:, axis] - step[axis], domain.low[axis])
            every = np.concatenate(
                [points, up.reshape(-1, points.shape[1]), down.reshape(-1, points.shape[1])]
            )
            values, above, below = np.split(
                self.gains(every, controls, samples) / spread, [len(points), len(points) * (1 + len(axes))]
            )
            slopes = np.zeros_like(points)
            widths = np.stack([up[:, k, axis] - down[:, k, axis] for k, axis in enumerate(axes)], axis=1)
            slopes[:, axes] = (above - below).reshape(len(points), -1) / widths
            return values, slopes

        ends, _ = climb_together(lambda x, _: rising(x, _SOME), sites, domain.low, domain.high)
        top = ends[[np.argmax(self.gains(ends, controls))]]
        _, values = climb_together(
            lambda x, _: rising(x, _SAMPLES), top, domain.low, domain.high, _LAST_ROUNDS
        )
        return spread * float(values[0])


@lru_cache(maxsize=4)
def truth_samples(domain: Domain) -> Array:
    """Return the fixed samples (4096, d) of all variables that expected values are averages over.

    Distributed as where the variables are left free; any first 2^k of them are evenly spread, too.
    """
    points = sobol(domain.dimension, stream(0, "truth")).random(_SAMPLES)
    return at_quantiles(domain, points)


@lru_cache(maxsize=4)  # a comparison runs many missions in one world
def expected_truth_of(world: World, question: Question) -> ExpectedTruth | None:
    """Return the truth of a world's control sets; None if the world is live."""
    truth = truth_of(world, question)
    return None if truth is None else ExpectedTruth(truth)
