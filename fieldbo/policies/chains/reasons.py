"""What LaMBO reports with each decision: the arm, its regions and probability, and what changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.cells import Modular
from fieldbo.domain.domain import Domain
from fieldbo.policies.candidates import incumbent
from fieldbo.policies.chains.arm_tree import Integers
from fieldbo.policies.chains.bandit_state import BanditState
from fieldbo.policies.chains.box_search import BoxOptima
from fieldbo.policies.choice import leading
from fieldbo.policies.contract import State


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
