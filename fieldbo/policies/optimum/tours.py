"""What policies for an optimum share that plan tours: candidates for a stop, and the decisions of a tour.

===========  ===========================================
``W``        candidates for a stop, (site, level) pairs
===========  ===========================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.choice import leading, needs_declared_costs
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.policies.tour_plan import Planned, TourCosts


class Stops(NamedTuple):
    """Candidates for a stop: their sites (W, d), levels (W,), noise variances (W,), and prices (W,) there."""

    sites: Array
    levels: Whole
    noise: Array
    sampling: Array

    def costs(self, state: State) -> TourCosts:
        """Return what tours of these stops cost."""
        assert state.cost is not None
        places = np.concatenate([state.position[None], self.sites])
        travel = state.cost.travel(places, places, state.time_s)
        return TourCosts(travel, state.return_cost(places), self.sampling, state.spendable)

    def decisions(
        self, state: State, memory: Memory, tour: Planned, k: int, why: Mapping[str, Any]
    ) -> list[Decision]:
        """Return the decisions for the first `k` stops of a tour, each with the reasons for all of it."""
        rate, made = tour.gain / tour.cost, list[Decision]()
        stops = [{"stop": self.sites[w].tolist()} for w in tour.stops]
        for w in tour.stops[:k]:
            level = int(self.levels[w])
            best = leading(state, np.array([rate]), np.array([True]), (level,), self.sites[[w]])
            site = {} if state.domain.continuous else {"site": state.domain.nearest(self.sites[w])}
            reasons = {"score": rate, **site, "best": best, "gain": tour.gain, **why, "tour": stops}
            made.append(Decision(Query(self.sites[w], level=level), memory, reasons))
        return made


class PlansTours(Policy):
    """A policy for an optimum that plans a tour and begins it; batches are its first stops."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared."""
        needs_declared_costs(cost)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the first stop of the tour."""
        chosen = self._tour(state, memory, 1)
        return Decision(Stop(chosen), memory) if isinstance(chosen, EndReason) else chosen[0]

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return the first `k` stops of the tour."""
        chosen = self._tour(state, memory, k)
        return None if isinstance(chosen, EndReason) else chosen

    @abstractmethod
    def _tour(self, state: State, memory: Memory, k: int) -> list[Decision] | EndReason:
        """Return the decisions for the first `k` stops of the tour, at least one; or the reason to stop."""


def step_price(state: State) -> float:
    """Return the price of a step beyond its cost: its part of the battery, if steps are limited."""
    return (state.spendable or 1.0) / max(1.0, state.steps_left)
