"""Rivals of LaMBO on chains of modules: they weigh what a point promises by what moving to it costs.

===========  ==================================================================================
``mu, s``    posterior mean and standard deviation, in model units
``c``        the full price of a move: modules that run anew, and sampling
``N``        number of modules, ``m`` one of them, from 0
``EI``       expected improvement on the best mean so far
===========  ==================================================================================

They look at up to N points: for each module m the best one that keeps the modules before m where they are.
Each of them costs something else.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import CostModel
from fieldbo.costs.chain import Modular
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.acquisition import expected_improvement
from fieldbo.policies.candidates import incumbent, needs_candidates
from fieldbo.policies.chains.box_search import (
    BoxOptima,
    best_of_boxes,
    lazy_boxes,
    log_expected_improvement,
    needs_modules,
    upper_bound,
)
from fieldbo.policies.chains.lambo import lcb_beta
from fieldbo.policies.chains.partition import Boxes
from fieldbo.policies.choice import leading, needs_positive_costs
from fieldbo.policies.contract import Decision, Memory, Policy, State


@dataclass(frozen=True)
class ByModule(Policy):
    """A rule that chooses among one point a module.

    Parameters
    ----------
    lazy : bool
        Whether points that keep early modules where they are are looked at; else only the best of all.
    level : int
        The sensor's setting to read with.
    candidates : int
        Among how many points, drawn anew for each decision, it chooses where to climb from.
    climbs : int
        From so many of them for each module.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    costs: ClassVar[tuple[str, ...]] = ("declared",)

    lazy: bool = True
    level: int = 0
    candidates: int = 1000
    climbs: int = 4

    def __post_init__(self) -> None:
        needs_candidates(self.candidates)
        if self.climbs < 1:
            raise InputError(f"climbs = {self.climbs}", expected="at least 1", where="policy.climbs")

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` unless costs are those of at least two modules, over a box, and above 0."""
        needs_modules(type(self).__name__, cost, domain)
        needs_positive_costs(type(self).__name__, cost, domain)

    def boxes(self, state: State) -> Boxes:
        """Return where points are sought: one box a module, or one in all."""
        cost = state.cost
        assert isinstance(cost, Modular)
        boxes = lazy_boxes(state.domain, cost.columns, state.position)
        return boxes if self.lazy else Boxes(boxes.low[:1], boxes.high[:1])

    @abstractmethod
    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the best of the points by the rule."""

    def chosen(
        self, state: State, memory: Memory, points: Array, scores: Array, able: Mask, **why: Any
    ) -> Decision:
        """Return the decision for the point (of N, d) with the highest score (N,) that can be had."""
        cost = state.cost
        assert isinstance(cost, Modular)
        _, first = np.unique(points, axis=0, return_index=True)
        alone = np.zeros(len(points), dtype=bool)
        alone[first] = True
        best = leading(state, scores, able & alone, (self.level,), points)
        if not best:
            seen = np.isfinite(scores).any()
            reason = EndReason.BATTERY_SPENT if seen else EndReason.STOPPED_BY_POLICY
            return Decision(Stop(reason), memory, why)
        site = np.array(best[0]["site"])
        changed = int(cost.first_changed(state.position, site[None])[0])
        changes = ", ".join(module.name for module in cost.modules[changed:])
        told = {"score": best[0]["value"], "best": best, "changes": changes, **why}
        return Decision(Query(site, level=self.level), memory, told)

    def able(self, state: State, found: BoxOptima) -> Mask:
        """Return which points can be paid for and were not rejected."""
        return np.isfinite(found.scores) & state.affordable(found.points, level=self.level)


@dataclass(frozen=True)
class LazyEIPerCost(ByModule):
    """Go where the expected improvement per unit of cost is largest, keeping early modules if that is better.

    For each module the best point that keeps those before it where they are, its expected improvement
    divided by what moving there costs (Snoek et al. 2012, per cost); the best of these. With ``lazy = false``
    only the best point of all is looked at.
    """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the point of the largest expected improvement per unit of cost."""
        return self.by_power(state, memory, 1.0)

    def by_power(self, state: State, memory: Memory, exponent: float, **why: Any) -> Decision:
        """Return the point where EI over a power of the cost is largest."""
        best = incumbent(state.surface)
        scoring = log_expected_improvement(best)
        found = best_of_boxes(state, scoring, self.boxes(state), self.candidates, self.climbs)
        belief = state.belief
        improvement = expected_improvement(
            belief.mean(found.points), np.sqrt(belief.variance(found.points)), best
        )
        prices = state.costs(self.level, found.points)
        scores = np.where(np.isfinite(found.scores), improvement / prices**exponent, -np.inf)
        able = self.able(state, found)
        return self.chosen(state, memory, found.points, scores, able, incumbent=best, **why)


@dataclass(frozen=True)
class CArBO(LazyEIPerCost):
    """Weigh expected improvement by cost less and less as the battery runs down (Lee et al. 2020).

    ``EI / c^a`` with ``a = (budget - spent) / (budget - initial)``: 1 when the rule takes over, 0 when all
    is spent. This is the cost cooling of Lee, Perrone, Archambeau and Seeger (2020); their cost-effective
    initial design and batches are not part of it. That points which keep early modules are looked at is
    ours: their costs go by the place alone.
    """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the point of the largest expected improvement over the cooled cost."""
        memory = {"spendable": state.spendable} if memory is None else memory
        share = state.spendable / memory["spendable"] if memory["spendable"] > 0 else 0.0
        return self.by_power(state, memory, min(1.0, share), power=min(1.0, share))


def chebyshev(value: Array, thrift: Array, weight: float) -> Array:
    """Return how near the best of both objectives each point comes, (N,): 0 would be best in both.

    ``-max( w (1 - value), (1 - w) (1 - thrift) )``, both in [0, 1].

    Examples
    --------
    >>> chebyshev(np.array([1.0, 0.4]), np.array([0.0, 1.0]), weight=0.5).tolist()
    [-0.5, -0.3]
    """
    return -np.maximum(weight * (1.0 - value), (1.0 - weight) * (1.0 - thrift))


@dataclass(frozen=True)
class CAMOBO(ByModule):
    """Trade value against cost by a Chebyshev scalarisation of random weights (Abdolshah et al. 2019).

    As in Abdolshah, Shilton, Rana, Gupta and Venkatesh (2019), value and cost are two objectives, the upper
    confidence bound stands for the unknown one, and each step scalarises them with weights drawn at random.
    Ours: the other objective is what moving costs, which is known; both are scaled to [0, 1] on the points
    that are looked at, one a module; the weight is uniform; and the bound's multiplier is that of LaMBO,
    ``sqrt(0.2 D log 2t)``. Their ordering of variables by cost is left out: moving costs say it already.
    """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the point nearest to the best in both."""
        weight = float(state.rng.random())
        beta = lcb_beta(state.domain.dimension, state.steps + 1)
        bound = upper_bound(float(np.sqrt(beta)))
        found = best_of_boxes(state, bound, self.boxes(state), self.candidates, self.climbs)
        able = self.able(state, found)
        scores = np.where(np.isfinite(found.scores), 0.0, -np.inf)
        if able.any():
            prices = state.costs(self.level, found.points)
            value, thrift = _scaled(found.scores, able), _scaled(-prices, able)
            scores = np.where(able, chebyshev(value, thrift, weight), scores)
        return self.chosen(state, memory, found.points, scores, able, weight=weight, beta=beta)


def _scaled(objective: Array, able: Mask) -> Array:
    """Return an objective (N,) scaled to [0, 1] on the points that can be had; 1 where all are alike."""
    low, high = objective[able].min(), objective[able].max()
    if not high > low:
        return np.ones(len(objective))
    return np.where(able, (objective - low) / (high - low), 0.0)
