"""Rules for an optimum that weigh what a site promises by the way to it, one step ahead.

===========  ==================================================================
``mu, s``    posterior mean and standard deviation, (N,)
``d``        travel to each site, in the cost unit
``kappa``    a plain multiplier, ``kappa s``
===========  ==================================================================

What they choose among, in a box too, is told in `candidates`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Stop
from fieldbo.policies.acquisition import Convention, ducb
from fieldbo.policies.choice import highest
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.policies.candidates import best_candidate, needs_candidates, over_candidates
from fieldbo.policies.optimum.myopic import incumbent, reading_noise
from fieldbo.policies.travel.scores import TravelScore


@dataclass(frozen=True, eq=False)
class CandidateView:
    """Sites as a rule sees them from where the vehicle stands; those that were rejected it does not see.

    Attributes
    ----------
    surface : Surface
        The belief over what can be chosen.
    noise : (N,) array
        Noise variances of readings there.
    able : (N,) bool array
        Which of them can be paid for.
    """

    surface: Surface
    noise: Array
    able: Mask


Scores = Callable[[Array], Array]
"""Of points (m, d): their scores (m,), minus infinity where one can't be had."""


@dataclass(frozen=True)
class TravelPolicy(Policy):
    """A rule for an optimum that goes by the way to a site.

    Parameters
    ----------
    level : int
        The sensor's setting to read with.
    stop : {"best_affordable", "first_unaffordable"}
        Whether to choose among what can be paid for, and stop when nothing can; or among everything, and stop
        when the choice can't be paid for (Liu et al. 2023).
    candidates : int
        In a box: among how many points, drawn anew for each decision, it chooses where to climb from.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    level: int = 0
    stop: Literal["best_affordable", "first_unaffordable"] = "best_affordable"
    candidates: int = 1000

    def __post_init__(self) -> None:
        needs_candidates(self.candidates)

    @abstractmethod
    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return scores (N,) of the sites in view, how other points are scored, and what explains them."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared."""
        if cost is None:
            raise InputError(
                f"{type(self).__name__} without declared costs", expected="costs that the agent is told"
            )

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the best site by the rule; in a box, the best point that can be climbed to from it."""
        view = self._view(state)
        if view is None:
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory)
        scores, elsewhere, why = self.scores(state, view)
        if self.stop == "first_unaffordable":
            assert state.cost is not None
            ways = state.cost.travel(state.position, view.surface.candidates)
            scores = np.where(np.isfinite(ways), scores, -np.inf)  # where no way leads nothing is chosen
            first = highest(scores)
            if first is not None and not view.able[first]:
                return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return best_candidate(state, view.surface, scores, view.able, elsewhere, memory, self.level, **why)

    def _view(self, state: State) -> CandidateView | None:
        """Return what can be chosen; None if all of it was rejected."""
        surface = over_candidates(state, self.candidates)
        if surface is None:
            return None
        able = state.affordable(surface.candidates, level=self.level)
        return CandidateView(surface, reading_noise(state, self.level, surface), able)


Score = Callable[[Array, Array, Array, Array], Array]
"""Of the means, standard deviations, travel and full prices (m,) of points: their scores (m,)."""


@dataclass(frozen=True)
class OneStep(TravelPolicy):
    """The best site by what is known of it and of the way to it."""

    @abstractmethod
    def score(self, state: State) -> tuple[Score, dict[str, Any]]:
        """Return how points are scored, and what explains it."""

    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the scores of the sites in view."""
        cost = state.cost
        assert cost is not None
        score, why = self.score(state)

        def at(points: Array, mean: Array, sd: Array) -> Array:
            travel = cost.travel(state.position, points, state.time_s)
            return score(mean, sd, travel, travel + cost.sampling_cost(points, self.level))

        def elsewhere(points: Array) -> Array:
            there = Surface(state.belief, points)
            return at(points, there.mean, there.sd)

        surface = view.surface
        return at(surface.candidates, surface.mean, surface.sd), elsewhere, why


@dataclass(frozen=True)
class ByBase(OneStep):
    """The best site by a base rule, from where the vehicle stands."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.base

    @property
    @abstractmethod
    def base(self) -> TravelScore:
        """The rule."""

    def score(self, state: State) -> tuple[Score, dict[str, Any]]:
        """Return the base rule's scores."""
        assert state.cost is not None
        base = self.base.on(state.cost, state.domain)
        best = incumbent(state.surface) if base.improves else -np.inf

        def score(mean: Array, sd: Array, travel: Array, price: Array) -> Array:
            return base.scores(mean, sd, travel, price, best)

        return score, {"incumbent": best} if base.improves else {}


@dataclass(frozen=True)
class DistUCB(ByBase):
    """Go where ``mu + kappa s / d`` is largest (Liu et al. 2023, eq. 10).

    Parameters
    ----------
    kappa : float
        How much what is not known counts.
    convention : {"one_plus", "floor", "exclude", "literal"}
        What stands for ``1 / d`` where travel is small: ``1 / (1 + d / d0)``, never above the plain UCB;
        ``1 / max(d, d0)``; or as printed, where staying is left out, or infinitely good.
    d0 : float, optional
        Small travel, in the cost unit; by default the travel along the domain's longest side.
    """

    kappa: float = 2.0
    convention: Convention = "one_plus"
    d0: float | None = None

    @property
    def base(self) -> TravelScore:
        """The rule."""
        return TravelScore("dist-ucb", self.kappa, self.convention, self.d0)


@dataclass(frozen=True)
class UCB(ByBase):
    """Go where ``mu + kappa s`` is largest, whatever the way.

    Parameters
    ----------
    kappa : float
        How much what is not known counts.
    """

    kappa: float = 2.0

    @property
    def base(self) -> TravelScore:
        """The rule."""
        return TravelScore("ucb", self.kappa)


@dataclass(frozen=True)
class EIPerCost(ByBase):
    """Go where the expected improvement per unit of cost is largest (Lee et al. 2021).

    Per full price where sampling has one; otherwise per ``max(d, d0)`` of travel.

    Parameters
    ----------
    d0 : float, optional
        Small travel, in the cost unit; by default the travel along the domain's longest side.
    """

    d0: float | None = None

    @property
    def base(self) -> TravelScore:
        """The rule."""
        return TravelScore("ei-per-cost", d0=self.d0)


@dataclass(frozen=True)
class DUCB(OneStep):
    """Go where ``mu + kappa s - rho d`` is largest (Marchant and Ramos 2012).

    Parameters
    ----------
    rho : float
        What a unit of travel is worth, in the unit of the values (of their logarithms, under a log). There is
        no default.
    kappa : float
        How much what is not known counts.
    """

    rho: float = field(kw_only=True)
    kappa: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("rho", self.rho), ("kappa", self.kappa)):
            if not (np.isfinite(value) and value >= 0):
                raise InputError(
                    f"{name} = {value}", expected="a finite number of at least 0", where=f"policy.{name}"
                )

    def score(self, state: State) -> tuple[Score, dict[str, Any]]:
        """Return the bounds, less what the way is worth."""
        rho = self.rho / abs(state.scale.scale)  # which is below 0 where the least is sought

        def score(mean: Array, sd: Array, travel: Array, price: Array) -> Array:
            there = np.isfinite(travel)
            return np.where(there, ducb(mean, sd, np.where(there, travel, 0.0), self.kappa, rho), -np.inf)

        return score, {}
