"""LaMBO: change early modules of a chain rarely and later ones freely (Lin, Miano and Dyer 2021).

===========  ===========================================================================================
``N``        number of modules; all but the last are cut into regions, whose products are the K arms
``d_m``      depth of module m in the tree of arms, H its height: see `bandit`
``p``        probabilities of the arms, kept as logarithms
``h``        height of the tree up to which the next arm may differ from the last
``beta``     stands under the root: ``alpha = mu - sqrt(beta_t) s`` of the value to minimise
``t``        number of the step, from 1
``eta``      learning rate
===========  ===========================================================================================

The model holds the negated value, so that larger is better: an arm's loss ``min alpha`` is minus the highest
of its upper bounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.base import CostModel
from fieldbo.costs.cells import Modular
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.messages import Correction, EndReason, Event, Lost, Observation, Query, Rejected, Stop
from fieldbo.policies.chains.bandit import (
    BanditState,
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
from fieldbo.policies.chains.boxes import (
    BoxOptima,
    Integers,
    best_of_boxes,
    boxes_of,
    first_changed,
    lazy_boxes,
    needs_modules,
    slice_box,
    upper_bound,
)
from fieldbo.policies.choice import incumbent, leading
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.validation import settings


class ArmOptions(NamedTuple):
    """What each arm offers in one step.

    Attributes
    ----------
    current : int or None
        The arm that holds the present position.
    changed : (K,) int array
        The first module that each arm changes.
    optima : BoxOptima
        The best point of each arm.
    able : (K,) bool array
        Which of these points can be had.
    beta : float
    """

    current: int | None
    changed: Integers
    optima: BoxOptima
    able: Mask
    beta: float


def reasons(
    state: State,
    bandit: BanditState,
    options: ArmOptions,
    arm: int,
    near: float,
    losses: Array,
    level: int,
) -> dict[str, Any]:
    """Return LaMBO's reasons for an arm, as plain data.

    Parameters
    ----------
    state : State
    bandit : BanditState
        As it was when the arm was drawn.
    options : ArmOptions
    arm : int
    near : float
        Probability of the arm among those it was drawn from.
    losses : (K,) array
    level : int
        Sensor level.
    """
    cost, optima = modular_costs(state), options.optima
    leaders = np.argsort(losses, kind="stable")[:3]
    return {
        "score": float(optima.scores[arm]),
        "best": _best(state, options, arm, level),
        "incumbent": incumbent(state.surface),
        "step": bandit.step + 1,
        "arm": arm,
        "cells": _regions(state.domain, cost, bandit, arm),
        "probability": float(np.exp(bandit.log_p[arm])),
        "probability_near": near,
        "h": bandit.h,
        "changes": changed_modules(cost, int(options.changed[arm])),
        "moving": float(cost.travel(state.position, optima.points[[arm]], state.time_s)[0]),
        "arms": len(bandit.arms),
        "depths": ", ".join(map(str, bandit.depths)),
        "losses": ", ".join(f"{losses[k]:.4g} (arm {k})" for k in leaders),
        "beta": options.beta,
    }


def modular_costs(state: State) -> Modular:
    """Return the costs of a state whose policy has checked that they are modular."""
    cost = state.cost
    assert isinstance(cost, Modular)
    return cost


def changed_modules(cost: Modular, changed: int) -> str:
    """Return the names of the modules that run again if module number `changed` is the first to change."""
    return ", ".join(module.name for module in cost.modules[changed:])


def _best(state: State, options: ArmOptions, arm: int, level: int) -> list[dict[str, Any]]:
    """Return the chosen point, then the best points of the arms that promise no more."""
    points, scores = options.optima
    chosen = leading(state, scores[[arm]], np.ones(1, dtype=bool), (level,), points[[arm]])
    others = options.able & (scores <= scores[arm])
    others[arm] = False
    seen = {tuple(points[arm])}
    for k in np.argsort(-scores, kind="stable"):
        others[k] &= tuple(points[k]) not in seen
        seen.add(tuple(points[k]))
    return chosen + leading(state, scores, others, (level,), points)[:2]


def _regions(domain: Domain, cost: Modular, bandit: BanditState, arm: int) -> str:
    """Return an arm's regions in words: the axes that they cut, and their ends."""
    parts = []
    for m, columns in enumerate(cost.columns[:-1]):
        low, high = bandit.regions[m][bandit.arms[arm, m]]
        cut = [
            f"{domain.axes[axis].name} {low[k]:.4g} to {high[k]:.4g} {domain.axes[axis].unit}".rstrip()
            for k, axis in enumerate(columns)
            if (low[k], high[k]) != (domain.low[axis], domain.high[axis])
        ]
        parts.append(f"{cost.modules[m].name}: {', '.join(cut) or 'anywhere'}")
    return "; ".join(parts)


_CHANGES = 5
"""Number of changes of the first module in a period above which its depth grows."""


def lcb_beta(dimension: int, t: int) -> float:
    """Return ``0.2 D log(2 t)``, to stand under the root (Lin et al. 2021, eq. 3, printed without the root).

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


@settings("policy")
class LaMBO(Policy):
    """Change early modules rarely and late ones freely: a slowly moving bandit (Lin et al. 2021).

    The variables of each module but the last are cut into regions; an arm is one region of each. Every step
    draws an arm near the last one, in a tree whose highest branches are those of the first module, and
    samples the arm's best point by the confidence bound. Modules before the first one whose region changed
    keep their values. All arms are updated at each step from the model's predictions.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    costs: ClassVar[tuple[str, ...]] = ("declared",)

    eta: PositiveFloat = 1.0
    """Learning rate of the arms' probabilities."""
    depths: tuple[PositiveInt, ...] | Literal["eq17", "eq20"] = ()
    """Depth of each module but the last: the deeper a module, the more rarely it changes. Empty: 1 each. The
    paper's recipes "eq17" and "eq20" derive the depths from `lam`, `horizon` and the modules' costs."""
    lam: PositiveFloat = 0.1
    """Weight of a unit of cost relative to a unit of value, for the depth recipes."""
    horizon: PositiveInt = 200
    """Number of steps that the depth recipes plan for."""
    cells: PositiveInt = 2
    """Number of regions that each module is cut into at first, across one of its axes drawn at random."""
    restart: PositiveInt = 25
    """Number of steps after which all arms become equally probable again."""
    drop: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Fraction of 1 / K, where K is the number of arms: arms that stay below it are dropped, and the regions
    of the others bisected."""
    drop_after: PositiveInt = 10
    """Number of consecutive steps below `drop` after which an arm is dropped."""
    refinements: NonNegativeInt = 2
    """Largest number of times that regions are bisected."""
    deepen: NonNegativeInt = 20
    """Length of a period in steps: d_1, the depth of the first module, grows by 1 if that module changed more
    than five times in it. 0 turns this off."""
    value_scale: PositiveFloat | None = None
    """Value that a loss of 1 corresponds to, in the unit of the values: the largest absolute value to expect.
    By default the range of the first readings."""
    level: int = 0
    """Sensor level to read with."""
    candidates: PositiveInt = 1000
    """Number of candidates in all arms together, drawn again for each decision; each arm gets at least 32."""
    climbs: PositiveInt = 2
    """Number of candidates in each arm to climb from."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` unless the costs are those of at least two modules, over a box."""
        self._depths(needs_modules(cost, domain))

    def _depths(self, cost: Modular) -> tuple[int, ...]:
        early = len(cost.modules) - 1
        if isinstance(self.depths, str):
            prices = [module.cost for module in cost.modules[:-1]]
            return depth_recipe(prices, self.lam, self.horizon, self.cells**early, self.depths).depths
        if self.depths and len(self.depths) != early:
            raise InputError(
                f"depths has {counted(len(self.depths), 'number')}",
                expected=f"{early}, one for each module but the last",
                where="policy.depths",
            )
        return self.depths or (1,) * early

    # -- memory ----------------------------------------------------------------------------------------

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Return the memory after an event: a query that was not carried out changed no module.

        After a correction all arms are equally probable again, and the unit of losses is that of the right
        readings.
        """
        if memory is not None and isinstance(event, Correction):
            bandit = BanditState.from_plain(memory)
            scale = self._unit_of_losses(state, orders=len(state.orders) - bandit.step)
            return replace(bandit.restarted(), value_scale=scale).to_plain()
        if memory is not None and isinstance(event, Rejected | Lost) and memory["step"] == 1:
            return None  # the first step moves all modules, and still has to be taken
        if memory is not None and isinstance(event, Rejected | Lost) and memory["moved"]:
            return {**memory, "moved": False, "moves": max(0, memory["moves"] - 1)}
        return memory

    def _initial(self, state: State) -> BanditState:
        cost, domain = modular_costs(state), state.domain
        regions = []
        for columns in cost.columns[:-1]:
            axes, across = list(columns), int(state.rng.integers(len(columns)))
            regions.append(slice_box(domain.low[axes], domain.high[axes], across, self.cells))
        arms = arms_of([len(boxes) for boxes in regions])
        return BanditState.over(regions, arms, self._depths(cost), self._unit_of_losses(state))

    def _unit_of_losses(self, state: State, orders: int | None = None) -> float:
        """Return the value that a loss of 1 corresponds to; under a log transform, in units of the log.

        By default the range of all readings so far, or of those of the first `orders`.
        """
        if self.value_scale is not None:
            return float(self.value_scale)
        first = None if orders is None else set(list(state.orders)[:orders])
        read = [
            e.values
            for e in state.history
            if isinstance(e, Observation) and len(e.values) and (first is None or e.order in first)
        ]
        values = np.concatenate(read) if read else np.empty(0)
        values = ValueScale(state.scale.transform).to_model(values[state.scale.usable(values)])
        spread = float(np.ptp(values)) if len(values) else 0.0
        prior = float(np.sqrt(state.belief.kernel.diagonal(state.position[None])[0])) * abs(state.scale.scale)
        return spread if spread > 0 else prior

    def _maintain(self, state: State, bandit: BanditState) -> BanditState:
        """Refine, restart or deepen the bandit where it is time to, before a step."""
        keep = np.flatnonzero(surviving(bandit.below, self.drop_after))
        if len(keep) < len(bandit.arms) and bandit.refinements < self.refinements:
            bandit = bandit.refined(keep, state.domain, modular_costs(state).columns, state.position)
        elif bandit.step and bandit.step % self.restart == 0:
            bandit = bandit.restarted()
        if self.deepen and bandit.step and bandit.step % self.deepen == 0:
            bandit = bandit.deepened(_CHANGES)
        return bandit

    # -- one step --------------------------------------------------------------------------------------

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the best point of an arm drawn near the last one."""
        if memory is None:
            bandit = self._initial(state)
        else:
            bandit = self._maintain(state, BanditState.from_plain(memory))
        options = self._options(state, bandit)
        if not options.able.any():
            return self._without_arms(state, bandit, memory)
        arm, near = self._draw_arm(state, bandit, options)
        losses = self._losses(state, bandit, options.optima)
        coins = np.where(state.rng.random(int(heights(bandit.depths)[0])) < 0.5, -1, 1)
        total = smoothed(bandit.log_p, losses, coins, bandit.arms, bandit.depths, self.eta).total
        log_p = updated(bandit.log_p, total, self.eta)
        moved = bool(options.changed[arm] == 0)
        after = replace(
            bandit,
            log_p=log_p,
            below=steps_below(bandit.below, log_p, self.drop),
            arm=arm,
            h=first_down(coins),
            step=bandit.step + 1,
            moves=bandit.moves + moved,
            moved=moved,
        )
        why = reasons(state, bandit, options, arm, near, losses, self.level)
        return Decision(Query(options.optima.points[arm], level=self.level), after.to_plain(), why)

    def _without_arms(self, state: State, bandit: BanditState, memory: Memory) -> Decision:
        """Return the best point that keeps early modules, regardless of arms: no arm can be had."""
        cost = modular_costs(state)
        boxes = lazy_boxes(state.domain, cost.columns, state.position)
        beta = lcb_beta(state.domain.dimension, bandit.step + 1)
        optima = best_of_boxes(state, upper_bound(float(np.sqrt(beta))), boxes, self.candidates, self.climbs)
        seen = np.isfinite(optima.scores)
        able = seen & state.affordable(optima.points, level=self.level)
        best = leading(state, optima.scores, able, (self.level,), optima.points)[:1]
        if not best:
            return Decision(
                Stop(EndReason.BATTERY_SPENT if seen.any() else EndReason.STOPPED_BY_POLICY), memory
            )
        site = np.array(best[0]["site"])
        changed = int(cost.first_changed(state.position, site[None])[0])
        changes = changed_modules(cost, changed)
        why = {"score": best[0]["value"], "best": best, "changes": changes, "beta": beta}
        moved = changed == 0
        after = replace(bandit, arm=None, step=bandit.step + 1, moves=bandit.moves + moved, moved=moved)
        return Decision(Query(site, level=self.level), after.to_plain(), why)

    def _options(self, state: State, bandit: BanditState) -> ArmOptions:
        """Return the best point of each arm, and which of them can be had."""
        domain, columns = state.domain, modular_costs(state).columns
        current = bandit.current_arm(columns, state.position)
        changed = first_changed(bandit.arms, None if current is None else bandit.arms[current])
        boxes = boxes_of(
            bandit.arms, bandit.regions, columns, changed, state.position, domain.low, domain.high
        )
        beta = lcb_beta(domain.dimension, bandit.step + 1)
        optima = best_of_boxes(state, upper_bound(float(np.sqrt(beta))), boxes, self.candidates, self.climbs)
        able = np.isfinite(optima.scores) & state.affordable(optima.points, level=self.level)
        return ArmOptions(current, changed, optima, able, beta)

    def _draw_arm(self, state: State, bandit: BanditState, options: ArmOptions) -> tuple[int, float]:
        """Draw an arm; return it with its probability among the arms it was drawn from."""
        log_q = bandit.log_p
        if options.current is not None:
            log_q = log_conditional(log_q, families(bandit.arms, bandit.depths, bandit.h), options.current)
        if not (options.able & np.isfinite(log_q)).any():
            log_q = bandit.log_p  # none of the near arms can be had
        log_q = np.where(options.able, log_q, -np.inf)
        arm = drawn(log_q, state.rng.random())
        return arm, float(np.exp(log_q[arm] - log_q.max()) / np.exp(log_q - log_q.max()).sum())

    @staticmethod
    def _losses(state: State, bandit: BanditState, optima: BoxOptima) -> Array:
        """Return the losses (K,) in units of the value scale; an arm without a point gets the largest."""
        seen = np.isfinite(optima.scores)
        scores = np.where(seen, optima.scores, optima.scores[seen].min())
        return np.asarray(-scores * (abs(state.scale.scale) / bandit.value_scale))
