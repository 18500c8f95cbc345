"""LaMBO: early modules of a chain are changed rarely, later ones freely (Lin, Miano and Dyer 2021).

===========  ===========================================================================================
``N``        number of modules; all but the last are cut into cells, whose products are the K arms
``d_m``      depth of module m in the tree of arms, H its height: see `tree`
``p``        probabilities of the arms, kept as their logarithms
``h``        up to this height the next arm may differ from the last one
``beta``     stands under the root: ``alpha = mu - sqrt(beta_t) s`` of the value to be minimised
``t``        number of the step, from 1
``eta``      learning rate
===========  ===========================================================================================

The model holds the value turned over, so that larger is better: there an arm's loss ``min alpha`` is minus
the highest of its upper bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.base import CostModel
from fieldbo.costs.chain import Modular
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Event, Lost, Observation, Query, Rejected, Stop
from fieldbo.policies.candidates import incumbent, needs_candidates
from fieldbo.policies.chains.arm_tree import (
    Integers,
    arms_of,
    depth_recipe,
    drawn,
    families,
    first_down,
    heights,
    log_conditional,
    smoothed,
    steps_below,
    surviving,
    updated,
)
from fieldbo.policies.chains.bandit_state import BanditState
from fieldbo.policies.chains.box_search import (
    BoxOptima,
    best_of_boxes,
    lazy_boxes,
    needs_modules,
    upper_bound,
)
from fieldbo.policies.chains.partition import boxes_of, first_changed, sliced
from fieldbo.policies.choice import leading
from fieldbo.policies.contract import Decision, Memory, Policy, State

_RISING = 5
"""So many changes of the first module in a period are let pass before its depth grows."""


def lcb_beta(dimension: int, t: int) -> float:
    """Return ``0.2 D log(2 t)``, which stands under the root (Lin et al. 2021, eq. 3, which lacks the root).

    Examples
    --------
    >>> round(lcb_beta(6, 10), 4)
    3.5949
    """
    return float(0.2 * dimension * np.log(2.0 * t))


def lower_confidence_bound(mu: ArrayLike, s: ArrayLike, beta: float) -> Array:
    """Return ``mu - sqrt(beta) s`` (P,), the acquisition of a minimisation.

    Examples
    --------
    >>> lower_confidence_bound([0.2, -0.1], [0.3, 0.05], lcb_beta(6, 10)).round(4)
    array([-0.3688, -0.1948])
    """
    return np.asarray(np.asarray(mu, dtype=float) - np.sqrt(beta) * np.asarray(s, dtype=float))


@dataclass(frozen=True, eq=False)
class _Step:
    """What one step chooses from: where it comes from, and what each arm would do."""

    before: int | None
    changed: Integers
    found: BoxOptima
    able: Mask
    beta: float


@dataclass(frozen=True)
class LaMBO(Policy):
    """Change early modules rarely and late ones freely: a slow bandit over regions (Lin et al. 2021).

    The variables of each module but the last are cut into cells; an arm is a cell of each. An arm is drawn
    near the last one, in a tree whose highest branches are those of the first module, and the best point in
    it by the confidence bound is sampled. Modules before the first one whose cell changed keep their values.
    All arms learn at each step from what the model promises in them.

    Parameters
    ----------
    eta : float
        Learning rate of the arms' probabilities.
    depths : list of int, or {"eq17", "eq20"}
        Of each module but the last: the deeper, the more rarely it changes. Empty: 1 each. By the paper's
        recipes they follow from `lam`, the modules' costs and `horizon`.
    lam : float
        What a unit of cost weighs against a unit of value, for those recipes.
    horizon : int
        How many steps they are made for.
    cells : int
        Into so many cells each module is cut at first, across one of its axes, drawn at random.
    restart : int
        After so many steps all arms are alike again.
    drop : float
        Arms whose probability was below this share of 1 / K for `drop_after` steps in a row are dropped, and
        the cells of the others bisected.
    drop_after : int
    refinements : int
        At most so often.
    deepen : int
        Every so many steps d_1 grows by 1, if the first module changed more than five times in them; 0:
        never.
    value_scale : float, optional
        What a loss of 1 stands for, in the unit of the values: the largest absolute value that is to be
        expected. By default the range of the first readings.
    level : int
        The sensor's setting to read with.
    candidates : int
        Among how many points of all arms together, drawn anew for each decision, it chooses where to climb
        from; at least 32 an arm.
    climbs : int
        From so many of them in each arm.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    costs: ClassVar[tuple[str, ...]] = ("declared",)

    eta: float = 1.0
    depths: tuple[int, ...] | Literal["eq17", "eq20"] = ()
    lam: float = 0.1
    horizon: int = 200
    cells: int = 2
    restart: int = 25
    drop: float = 0.1
    drop_after: int = 10
    refinements: int = 2
    deepen: int = 20
    value_scale: float | None = None
    level: int = 0
    candidates: int = 1000
    climbs: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.depths, str):
            object.__setattr__(self, "depths", tuple(self.depths))
        needs_candidates(self.candidates)
        least = {"horizon": 1, "cells": 1, "restart": 1, "drop_after": 1, "refinements": 0, "deepen": 0}
        for name, low in {**least, "climbs": 1}.items():
            if getattr(self, name) < low:
                raise InputError(
                    f"{name} = {getattr(self, name)}", expected=f"at least {low}", where=f"policy.{name}"
                )
        scale = 1.0 if self.value_scale is None else self.value_scale
        for name, value in {"eta": self.eta, "lam": self.lam, "value_scale": scale}.items():
            if not (np.isfinite(value) and value > 0):
                raise InputError(
                    f"{name} = {value}", expected="a finite number above 0", where=f"policy.{name}"
                )
        if not 0 <= self.drop < 1:
            raise InputError(f"drop = {self.drop}", expected="at least 0, below 1", where="policy.drop")
        if not isinstance(self.depths, str) and any(d < 1 for d in self.depths):
            raise InputError(
                f"depths = {list(self.depths)}", expected="whole numbers of at least 1", where="policy.depths"
            )

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` unless costs are those of at least two modules, over a box."""
        self._depths(needs_modules("LaMBO", cost, domain))

    def _depths(self, cost: Modular) -> tuple[int, ...]:
        """Return the depths to begin with."""
        early = len(cost.modules) - 1
        if isinstance(self.depths, str):
            prices = [module.cost for module in cost.modules[:-1]]
            return depth_recipe(prices, self.lam, self.horizon, self.cells**early, self.depths).depths
        if self.depths and len(self.depths) != early:
            raise InputError(
                f"{len(self.depths)} depths",
                expected=f"{early}, one for each module but the last",
                where="policy.depths",
            )
        return self.depths or (1,) * early

    # -- what it remembers -----------------------------------------------------------------------------

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Return the memory after an event: a query that was not carried out changed no module."""
        if memory is not None and isinstance(event, Rejected | Lost) and memory["step"] == 1:
            return None  # the first step moves all modules, and is still to be taken
        if memory is not None and isinstance(event, Rejected | Lost) and memory["moved"]:
            return {**memory, "moved": False, "moves": max(0, memory["moves"] - 1)}
        return memory

    def _begun(self, state: State) -> BanditState:
        """Return the memory before the first step."""
        cost, domain = _modular(state), state.domain
        cells = []
        for own in cost.columns[:-1]:
            axes, across = list(own), int(state.rng.integers(len(own)))
            cells.append(sliced(domain.low[axes], domain.high[axes], across, self.cells))
        arms = arms_of([len(own) for own in cells])
        return BanditState.over(cells, arms, self._depths(cost), self._unit_of_losses(state))

    def _unit_of_losses(self, state: State) -> float:
        """Return what a loss of 1 stands for, in the values' unit; under a log, in that of their logs."""
        if self.value_scale is not None:
            return float(self.value_scale)
        read = [e.values for e in state.history if isinstance(e, Observation) and len(e.values)]
        values = np.concatenate(read) if read else np.empty(0)
        values = ValueScale(state.scale.transform).to_model(values[state.scale.usable(values)])
        spread = float(np.ptp(values)) if len(values) else 0.0
        prior = float(np.sqrt(state.belief.kernel.diagonal(state.position[None])[0])) * abs(state.scale.scale)
        return spread if spread > 0 else prior

    def _turned(self, state: State, told: BanditState) -> BanditState:
        """Return the memory at the start of a step: refined, restarted or deepened where it is time."""
        keep = np.flatnonzero(surviving(told.below, self.drop_after))
        if len(keep) < len(told.arms) and told.refinements < self.refinements:
            told = told.refined(keep, state.domain, _modular(state).columns, state.position)
        elif told.step and told.step % self.restart == 0:
            told = told.evened()
        if self.deepen and told.step and told.step % self.deepen == 0:
            told = told.deepened(_RISING)
        return told

    # -- one step --------------------------------------------------------------------------------------

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the best point of an arm drawn near the last one."""
        told = self._begun(state) if memory is None else self._turned(state, BanditState.from_plain(memory))
        step = self._looked(state, told)
        if not step.able.any():
            return self._where_it_stands(state, told, memory)
        arm, near = self._drawn(state, told, step)
        losses = self._losses(state, told, step.found)
        coins = np.where(state.rng.random(int(heights(told.depths)[0])) < 0.5, -1, 1)
        total = smoothed(told.log_p, losses, coins, told.arms, told.depths, self.eta).total
        log_p = updated(told.log_p, total, self.eta)
        moved = bool(step.changed[arm] == 0)
        after = replace(
            told,
            log_p=log_p,
            below=steps_below(told.below, log_p, self.drop),
            arm=arm,
            h=first_down(coins),
            step=told.step + 1,
            moves=told.moves + moved,
            moved=moved,
        )
        why = self._why(state, told, step, arm, near, losses)
        return Decision(Query(step.found.points[arm], level=self.level), after.to_plain(), why)

    def _where_it_stands(self, state: State, told: BanditState, memory: Memory) -> Decision:
        """Return the best point that keeps early modules, whatever the arms: none of those can be had."""
        cost = _modular(state)
        boxes = lazy_boxes(state.domain, cost.columns, state.position)
        beta = lcb_beta(state.domain.dimension, told.step + 1)
        found = best_of_boxes(state, upper_bound(float(np.sqrt(beta))), boxes, self.candidates, self.climbs)
        seen = np.isfinite(found.scores)
        able = seen & state.affordable(found.points, level=self.level)
        best = leading(state, found.scores, able, (self.level,), found.points)[:1]
        if not best:
            return Decision(
                Stop(EndReason.BATTERY_SPENT if seen.any() else EndReason.STOPPED_BY_POLICY), memory
            )
        site = np.array(best[0]["site"])
        changed = int(cost.first_changed(state.position, site[None])[0])
        why = {"score": best[0]["value"], "best": best, "changes": _names(cost, changed), "beta": beta}
        moved = changed == 0
        after = replace(told, arm=None, step=told.step + 1, moves=told.moves + moved, moved=moved)
        return Decision(Query(site, level=self.level), after.to_plain(), why)

    def _looked(self, state: State, told: BanditState) -> _Step:
        """Return the best point of each arm, and which can be had."""
        domain, columns = state.domain, _modular(state).columns
        before = told.standing(columns, state.position)
        changed = first_changed(told.arms, None if before is None else told.arms[before])
        boxes = boxes_of(told.arms, told.cells, columns, changed, state.position, domain.low, domain.high)
        beta = lcb_beta(domain.dimension, told.step + 1)
        found = best_of_boxes(state, upper_bound(float(np.sqrt(beta))), boxes, self.candidates, self.climbs)
        able = np.isfinite(found.scores) & state.affordable(found.points, level=self.level)
        return _Step(before, changed, found, able, beta)

    def _drawn(self, state: State, told: BanditState, step: _Step) -> tuple[int, float]:
        """Return an arm, and its probability among those that it was drawn from."""
        log_q = told.log_p
        if step.before is not None:
            log_q = log_conditional(log_q, families(told.arms, told.depths, told.h), step.before)
        if not (step.able & np.isfinite(log_q)).any():
            log_q = told.log_p  # none of those near can be had
        log_q = np.where(step.able, log_q, -np.inf)
        arm = drawn(log_q, state.rng.random())
        return arm, float(np.exp(log_q[arm] - log_q.max()) / np.exp(log_q - log_q.max()).sum())

    @staticmethod
    def _losses(state: State, told: BanditState, found: BoxOptima) -> Array:
        """Return the losses (K,) in units of the value scale; an arm without a point has the largest."""
        seen = np.isfinite(found.scores)
        scores = np.where(seen, found.scores, found.scores[seen].min())
        return np.asarray(-scores * (abs(state.scale.scale) / told.value_scale))

    # -- in words --------------------------------------------------------------------------------------

    def _why(
        self, state: State, told: BanditState, step: _Step, arm: int, near: float, losses: Array
    ) -> dict[str, Any]:
        cost, found = _modular(state), step.found
        point, changed = found.points[[arm]], int(step.changed[arm])
        leaders = np.argsort(losses, kind="stable")[:3]
        return {
            "score": float(found.scores[arm]),
            "best": _best(state, step, arm, self.level),
            "incumbent": incumbent(state.surface),
            "step": told.step + 1,
            "arm": arm,
            "cells": _in_words(state.domain, cost, told, arm),
            "probability": float(np.exp(told.log_p[arm])),
            "probability_near": near,
            "h": told.h,
            "changes": _names(cost, changed),
            "moving": float(cost.travel(state.position, point, state.time_s)[0]),
            "arms": len(told.arms),
            "depths": ", ".join(map(str, told.depths)),
            "losses": ", ".join(f"{losses[k]:.4g} (arm {k})" for k in leaders),
            "beta": step.beta,
        }


def _modular(state: State) -> Modular:
    cost = state.cost
    assert isinstance(cost, Modular)  # `check` saw to it
    return cost


def _names(cost: Modular, changed: int) -> str:
    """Return the names of the modules that run anew."""
    return ", ".join(module.name for module in cost.modules[changed:])


def _best(state: State, step: _Step, arm: int, level: int) -> list[dict[str, Any]]:
    """Return the chosen point, then the best of the arms that promise no more."""
    points, scores = step.found
    chosen = leading(state, scores[[arm]], np.ones(1, dtype=bool), (level,), points[[arm]])
    others = step.able & (scores <= scores[arm])
    others[arm] = False
    seen = {tuple(points[arm])}
    for k in np.argsort(-scores, kind="stable"):
        others[k] &= tuple(points[k]) not in seen
        seen.add(tuple(points[k]))
    return chosen + leading(state, scores, others, (level,), points)[:2]


def _in_words(domain: Domain, cost: Modular, told: BanditState, arm: int) -> str:
    """Return the cells of an arm: the axes that they cut, and from where to where."""
    parts = []
    for m, own in enumerate(cost.columns[:-1]):
        low, high = told.cells[m][told.arms[arm, m]]
        cut = [
            f"{domain.axes[axis].name} {low[k]:.4g} to {high[k]:.4g} {domain.axes[axis].unit}".rstrip()
            for k, axis in enumerate(own)
            if (low[k], high[k]) != (domain.low[axis], domain.high[axis])
        ]
        parts.append(f"{cost.modules[m].name}: {', '.join(cut) or 'anywhere'}")
    return "; ".join(parts)
