"""Policies for an optimum that weigh the value of a site against the travel to it, one step ahead.

===========  ==================================================================
``mu, s``    posterior mean and standard deviation, (N,)
``d``        travel to each site, in the cost unit; ``d0`` is the scale of short travel
``c``        the full cost: travel and sampling
``kappa``    multiplier of the standard deviation, ``kappa s``
===========  ==================================================================

These policies maximise a `TravelScore`; a rollout sums it along its paths. For the candidates, on a grid or
in a box, see :mod:`fieldbo.policies.choice`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Stop
from fieldbo.policies.acquisition import (
    Convention,
    dist_ucb,
    ducb,
    in_unit,
    log_expected_improvement,
    log_unit,
)
from fieldbo.policies.choice import (
    best_candidate,
    highest,
    incumbent,
    needs_declared_costs,
    over_candidates,
    reading_noise,
)
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.validation import settings

ScoreName = Literal["dist-ucb", "ucb", "ei", "ei-per-cost"]


@settings("policy")
class TravelScore:
    """A score of sites that depends on where the vehicle is.

    Examples
    --------
    >>> near, far = TravelScore(d0=1.0).scores(np.zeros(2), np.ones(2), np.array([0.0, 3.0]))
    >>> near, far
    (np.float64(2.0), np.float64(0.5))
    """

    name: ScoreName = "dist-ucb"
    """``mu + kappa s / d``; ``mu + kappa s``; expected improvement; or the latter per unit of cost."""
    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation."""
    convention: Convention = "one_plus"
    """What distUCB uses for ``1 / d`` when d is small: see `per_travel`."""
    d0: PositiveFloat | None = None
    """Scale of short travel. Default, once `on` a domain: the travel along its longest side."""
    priced: bool = False
    """Whether EI per cost divides by the full cost; otherwise by ``max(d, d0)``."""

    def on(self, cost: CostModel, domain: Domain) -> TravelScore:
        """Return the score for a world: with its scale of travel, and `priced` if sampling has a cost."""
        d0 = longest_travel(cost, domain) if self.d0 is None else self.d0
        return replace(self, d0=d0, priced=cost.least_sampling_cost(domain.sites) > 0)

    @property
    def improves(self) -> bool:
        """True for an expected improvement, which depends on the best value so far."""
        return self.name in ("ei", "ei-per-cost")

    @property
    def small(self) -> float:
        """The scale of short travel."""
        return 1.0 if self.d0 is None else self.d0

    def scores(
        self,
        mu: Array,
        s: Array,
        d: Array,
        price: Array | None = None,
        best: float = -np.inf,
        unit: float = 0.0,
    ) -> Array:
        """Return the scores (N,) of sites; minus infinity excludes one.

        Parameters
        ----------
        mu, s, d : (N,) arrays
        price : (N,) array, optional
            The full cost of each, for a score that divides by it.
        best : float
            The best value so far, for an expected improvement.
        unit : float
            Logarithm of the unit in which to return an expected improvement.
        """
        if self.name == "dist-ucb":
            return dist_ucb(mu, s, d, self.kappa, self.small, self.convention)
        if self.name == "ucb":
            return np.asarray(mu + self.kappa * s)
        return in_unit(self.logs(mu, s, d, price, best), unit)

    def logs(self, mu: Array, s: Array, d: Array, price: Array | None, best: float) -> Array:
        """Return the logarithms (N,) of an expected improvement, per unit of cost if the score is.

        The parameters are those of `scores`.
        """
        improvement = log_expected_improvement(mu, s, best)
        if self.name == "ei":
            return improvement
        if self.priced and price is not None:
            return improvement - np.log(price)
        return improvement - np.log(np.maximum(d, self.small))


_FREE = 1e-300
"""Travel that costs no more than this is free: its inverse would overflow."""


def longest_travel(cost: CostModel, domain: Domain) -> float:
    """Return the travel along the domain's longest side; 1 if travel is free.

    If an end of a side lies outside the domain, or cannot be reached, the longest travel from the first site.

    Examples
    --------
    >>> from fieldbo.costs.travel import Euclidean
    >>> from fieldbo.domain.axes import Axis
    >>> longest_travel(Euclidean(rate=0.5), Domain.grid([Axis("x", "m", 0, 8), Axis("y", "m", 0, 6)], (3, 3)))
    4.0
    """
    ends = domain.low + np.diag(domain.extent)
    corners = np.vstack([domain.low, ends])
    longest = 0.0
    if domain.contains(corners).all():
        longest = float(cost.travel(domain.low, ends).max())
    if not (np.isfinite(longest) and longest > 0):
        travel = cost.travel(domain.sites[0], domain.sites)
        longest = float(travel[np.isfinite(travel)].max())
    return longest if longest > _FREE else 1.0


@dataclass(frozen=True, eq=False)
class CandidateView:
    """The candidates of a decision, without those that were rejected or are known exactly.

    Attributes
    ----------
    surface : Surface
        The belief over the candidates.
    noise : (N,) array
        Noise variances of readings there.
    able : (N,) bool array
        Candidates that are affordable.
    """

    surface: Surface
    noise: Array
    able: Mask

    def unit(self, best: float) -> float:
        """Return the logarithm of the unit in which to compare expected improvements on `best`; usually 0."""
        logs = log_expected_improvement(self.surface.mean, self.surface.sd, best)
        return log_unit(logs[self.able])


Scores = Callable[[Array], Array]
"""Maps points (m, d) to their scores (m,), minus infinity for a point that can't be chosen."""


@settings("policy")
class TravelPolicy(Policy):
    """A policy for an optimum that takes the travel to a site into account."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    level: NonNegativeInt = 0
    """The sensor's level to read with."""
    stop: Literal["best_affordable", "first_unaffordable"] = "best_affordable"
    """Whether to choose among affordable sites and stop when none is left, or to choose among all sites and
    stop when the choice is not affordable (Liu et al. 2023)."""
    candidates: PositiveInt = 1000
    """In a box: number of points drawn for each decision, from the best of which it climbs."""

    @abstractmethod
    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the candidates' scores (N,), a function that scores other points, and the reasons."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared."""
        needs_declared_costs(cost)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the site of the highest score; in a box, a better point that a climb from it reaches."""
        surface = over_candidates(state, self.candidates)
        if isinstance(surface, EndReason):
            return Decision(Stop(surface), memory)
        able = state.affordable(surface.candidates, level=self.level)
        view = CandidateView(surface, reading_noise(state, self.level, surface), able)
        scores, elsewhere, why = self.scores(state, view)
        if self.stop == "first_unaffordable":
            assert state.cost is not None
            travel = state.cost.travel(state.position, view.surface.candidates)
            scores = np.where(np.isfinite(travel), scores, -np.inf)  # never choose what cannot be reached
            first = highest(scores)
            if first is not None and not view.able[first]:
                return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return best_candidate(state, view.surface, scores, view.able, elsewhere, memory, self.level, **why)


Score = Callable[[Array, Array, Array, Array], Array]
"""Maps means, standard deviations, travel and full costs (m,) of points to their scores (m,)."""


@settings("policy")
class OneStep(TravelPolicy):
    """A policy whose score depends on the belief at a site and on the travel to it only."""

    @abstractmethod
    def score(self, state: State, view: CandidateView) -> tuple[Score, dict[str, Any]]:
        """Return a function that scores points, and the reasons."""

    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the candidates' scores (N,), a function that scores other points, and the reasons."""
        cost = state.cost
        assert cost is not None
        score, why = self.score(state, view)

        def at(points: Array, mean: Array, sd: Array) -> Array:
            travel = cost.travel(state.position, points, state.time_s)
            return score(mean, sd, travel, travel + cost.sampling_cost(points, self.level))

        def elsewhere(points: Array) -> Array:
            there = Surface(state.belief, points)
            return at(points, there.mean, there.sd)

        surface = view.surface
        return at(surface.candidates, surface.mean, surface.sd), elsewhere, why


@settings("policy")
class ByTravelScore(OneStep):
    """Go to the site of the highest `TravelScore`."""

    @property
    @abstractmethod
    def travel_score(self) -> TravelScore:
        """The score."""

    def score(self, state: State, view: CandidateView) -> tuple[Score, dict[str, Any]]:
        """Return a function that scores points, and the reasons."""
        assert state.cost is not None
        travel_score = self.travel_score.on(state.cost, state.domain)
        best, unit, why = -np.inf, 0.0, dict[str, Any]()
        if travel_score.improves:
            best = incumbent(state.surface)
            unit = view.unit(best)
            why = {"incumbent": best} | ({"log_unit": unit} if unit else {})

        def score(mean: Array, sd: Array, travel: Array, price: Array) -> Array:
            return travel_score.scores(mean, sd, travel, price, best, unit)

        return score, why


@settings("policy")
class DistUCB(ByTravelScore):
    """Go where ``mu + kappa s / d`` is largest (Liu et al. 2023, eq. 10)."""

    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation: weight of exploration."""
    convention: Convention = "one_plus"
    """What replaces ``1 / d`` for short travel: ``1 / (1 + d / d0)``, never above plain UCB;
    ``1 / max(d, d0)``; or ``1 / d`` as printed, with staying excluded or infinitely good."""
    d0: PositiveFloat | None = None
    """Scale of short travel, in the cost unit. Default: the travel along the domain's longest side."""

    @property
    def travel_score(self) -> TravelScore:
        """The score."""
        return TravelScore("dist-ucb", self.kappa, self.convention, self.d0)


@settings("policy")
class UCB(ByTravelScore):
    """Go where ``mu + kappa s`` is largest, regardless of travel cost."""

    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation: weight of exploration."""

    @property
    def travel_score(self) -> TravelScore:
        """The score."""
        return TravelScore("ucb", self.kappa)


@settings("policy")
class EIPerCost(ByTravelScore):
    """Go where the expected improvement per unit of cost is largest (Lee et al. 2021).

    Divides by the full cost if sampling has one, otherwise by ``max(d, d0)``.
    """

    d0: PositiveFloat | None = None
    """Scale of short travel, in the cost unit. Default: the travel along the domain's longest side."""

    @property
    def travel_score(self) -> TravelScore:
        """The score."""
        return TravelScore("ei-per-cost", d0=self.d0)


@settings("policy")
class DUCB(OneStep):
    """Go where ``mu + kappa s - rho d`` is largest (Marchant and Ramos 2012)."""

    rho: NonNegativeFloat = field(kw_only=True)
    """Value of a unit of travel, in the unit of the values (of their logs, for a log transform)."""
    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation: weight of exploration."""

    def score(self, state: State, view: CandidateView) -> tuple[Score, dict[str, Any]]:
        """Return a function that scores points, and the reasons."""
        rho = self.rho / abs(state.scale.scale)  # the scale is negative when minimising

        def score(mean: Array, sd: Array, travel: Array, price: Array) -> Array:
            there = np.isfinite(travel)
            return np.where(there, ducb(mean, sd, np.where(there, travel, 0.0), self.kappa, rho), -np.inf)

        return score, {}
