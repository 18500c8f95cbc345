"""Rivals of LaMBO on chains of modules: they weigh what a point promises against the cost of moving there.

===========  ==================================================================================
``mu, s``    posterior mean and standard deviation, in model units
``c``        full price of a move: the modules that run again, and sampling
``N``        number of modules, ``m`` one of them, from 0
``EI``       expected improvement on the best mean so far
===========  ==================================================================================

They consider up to N points, each at a different cost: for each module m, the best point that keeps the
modules before m unchanged.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from pydantic import PositiveInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.acquisition import in_unit, log_unit
from fieldbo.policies.chains.boxes import (
    Boxes,
    BoxOptima,
    best_of_boxes,
    lazy_boxes,
    log_improvement,
    needs_modules,
    upper_bound,
)
from fieldbo.policies.chains.lambo import changed_modules, lcb_beta, modular_costs
from fieldbo.policies.choice import incumbent, leading, needs_positive_costs
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.validation import settings


@settings("policy")
class ByModule(Policy):
    """A policy that chooses among one point per module."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    costs: ClassVar[tuple[str, ...]] = ("declared",)

    lazy: bool = True
    """Whether to consider points that keep early modules unchanged; otherwise only the best point overall."""
    level: int = 0
    """Sensor level to read with."""
    candidates: PositiveInt = 1000
    """Number of candidates, drawn again for each decision, from which climbs start."""
    climbs: PositiveInt = 4
    """Number of candidates to climb from for each module."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` unless costs are above 0 and those of at least two modules, over a box."""
        needs_modules(cost, domain)
        needs_positive_costs(cost, domain)

    def boxes(self, state: State) -> Boxes:
        """Return the boxes to search: one per module, or a single one."""
        boxes = lazy_boxes(state.domain, modular_costs(state).columns, state.position)
        return boxes if self.lazy else Boxes(boxes.low[:1], boxes.high[:1])

    @abstractmethod
    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the best of the points by this policy's score."""

    def chosen(
        self, state: State, memory: Memory, points: Array, scores: Array, able: Mask, **why: Any
    ) -> Decision:
        """Return the decision for the affordable point, of points (N, d), of the highest score (N,)."""
        cost = modular_costs(state)
        _, first = np.unique(points, axis=0, return_index=True)
        distinct = np.zeros(len(points), dtype=bool)
        distinct[first] = True
        best = leading(state, scores, able & distinct, (self.level,), points)
        if not best:
            seen = np.isfinite(scores).any()
            reason = EndReason.BATTERY_SPENT if seen else EndReason.STOPPED_BY_POLICY
            return Decision(Stop(reason), memory, why)
        site = np.array(best[0]["site"])
        changes = changed_modules(cost, int(cost.first_changed(state.position, site[None])[0]))
        why = {"score": best[0]["value"], "best": best, "changes": changes, **why}
        return Decision(Query(site, level=self.level), memory, why)

    def able(self, state: State, optima: BoxOptima) -> Mask:
        """Return which points are affordable and were not rejected."""
        return np.isfinite(optima.scores) & state.affordable(optima.points, level=self.level)


@settings("policy")
class LazyEIPerCost(ByModule):
    """Maximise the expected improvement per unit of cost, keeping early modules where that is better.

    For each module, find the best point that keeps the modules before it unchanged; of these, take the one of
    the largest expected improvement divided by the cost of moving there (Snoek et al. 2012). With
    ``lazy = false``, consider only the best point overall.
    """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the point of the largest expected improvement per unit of cost."""
        return self.by_power(state, memory, 1.0)

    def by_power(self, state: State, memory: Memory, exponent: float, **why: Any) -> Decision:
        """Return the point where EI divided by a power of the cost is largest."""
        best = incumbent(state.surface)
        optima = best_of_boxes(state, log_improvement(best), self.boxes(state), self.candidates, self.climbs)
        logs = optima.scores - exponent * np.log(state.costs(self.level, optima.points))
        able = self.able(state, optima)
        unit = log_unit(logs[able])
        scores = np.where(np.isfinite(logs), in_unit(logs, unit), -np.inf)
        why |= {"log_unit": unit} if unit else {}
        return self.chosen(state, memory, optima.points, scores, able, incumbent=best, **why)


@settings("policy")
class CArBO(LazyEIPerCost):
    """Divide expected improvement by cost, less strongly as the battery runs down (Lee et al. 2020).

    ``EI / c^a`` with ``a = (budget - spent) / (budget - initial)``: 1 when the policy takes over, 0 when all
    is spent. This is the cost cooling of Lee, Perrone, Archambeau and Seeger (2020), without their
    cost-effective initial design and batches. Considering points that keep early modules is an addition:
    their costs depend on the place alone.
    """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the point of the largest expected improvement over the cooled cost."""
        memory = {"spendable": state.spendable} if memory is None else memory
        fraction = state.spendable / memory["spendable"] if memory["spendable"] > 0 else 0.0
        return self.by_power(state, memory, min(1.0, fraction), power=min(1.0, fraction))


def chebyshev(value: Array, thrift: Array, weight: float) -> Array:
    """Return how close each point (N,) comes to the best of both objectives; 0 is best in both.

    ``-max( w (1 - value), (1 - w) (1 - thrift) )``, both in [0, 1].

    Examples
    --------
    >>> chebyshev(np.array([1.0, 0.4]), np.array([0.0, 1.0]), weight=0.5).tolist()
    [-0.5, -0.3]
    """
    return -np.maximum(weight * (1.0 - value), (1.0 - weight) * (1.0 - thrift))


@settings("policy")
class CAMOBO(ByModule):
    """Trade value against cost by a Chebyshev scalarisation with random weights (Abdolshah et al. 2019).

    As in Abdolshah, Shilton, Rana, Gupta and Venkatesh (2019), value and cost are two objectives, the upper
    confidence bound stands for the unknown one, and each step scalarises them with random weights. Different
    here: the second objective is the known cost of moving; both objectives are scaled to [0, 1] over the
    points considered, one per module; the weight is uniform; the bound's multiplier is LaMBO's,
    ``sqrt(0.2 D log 2t)``. Their ordering of variables by cost is left out, as moving costs imply it.
    """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the point that comes closest to the best in both objectives."""
        weight = float(state.rng.random())
        beta = lcb_beta(state.domain.dimension, state.steps + 1)
        bound = upper_bound(float(np.sqrt(beta)))
        optima = best_of_boxes(state, bound, self.boxes(state), self.candidates, self.climbs)
        able = self.able(state, optima)
        scores = np.where(np.isfinite(optima.scores), 0.0, -np.inf)
        if able.any():
            prices = state.costs(self.level, optima.points)
            value, thrift = _scale(optima.scores, able), _scale(-prices, able)
            scores = np.where(able, chebyshev(value, thrift, weight), scores)
        return self.chosen(state, memory, optima.points, scores, able, weight=weight, beta=beta)


def _scale(objective: Array, able: Mask) -> Array:
    """Scale an objective (N,) to [0, 1] over the points that can be had; 1 where all are equal."""
    low, high = objective[able].min(), objective[able].max()
    if not high > low:
        return np.ones(len(objective))
    return np.where(able, (objective - low) / (high - low), 0.0)
