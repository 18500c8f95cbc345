"""The policy of a mission that names none, by its question and its costs.

The documentation says under *Policies* which of these choices rest on measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fieldbo.belief.covering import MOST_AXES
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.costs.base import CostModel
from fieldbo.costs.cells import Modular
from fieldbo.errors import InputError
from fieldbo.world.world import World

AUTO = "auto"
"""Kind of policy that stands for the default one."""


@dataclass(frozen=True)
class DefaultPolicy:
    """What a mission uses if it names no policy.

    Attributes
    ----------
    settings : mapping
        The table ``[policy]``.
    why : str
        What speaks for it.
    """

    settings: Mapping[str, Any]
    why: str


class _Case(NamedTuple):
    """A kind of question, whether it applies to a world and its costs, and the policy."""

    question: type[Question]
    applies: Callable[[World, CostModel | None], bool]
    default: DefaultPolicy


def default_policy(question: Question, world: World, costs: Literal["declared", "unknown"]) -> DefaultPolicy:
    """Return the default policy for a question about a world.

    Parameters
    ----------
    question : Question
    world : World
    costs : {"declared", "unknown"}

    Raises
    ------
    InputError
        No policy is known to suit it: name one.

    Examples
    --------
    >>> from fieldbo import load_mission
    >>> mission = load_mission("gp-lake")
    >>> default_policy(mission.question, mission.world, mission.costs).settings
    {'kind': 'tour'}
    """
    declared = world.cost if costs == "declared" else None
    for case in _CASES:
        if isinstance(question, case.question) and case.applies(world, declared):
            return case.default
    raise InputError(
        "no default policy suits this question and these costs",
        expected="a policy named in the mission",
        where="policy",
        fix="choose one: fieldbo policies",
    )


def _priced(world: World, cost: CostModel | None) -> bool:
    """Whether each reading is known to cost something."""
    return cost is not None and cost.least_sampling_cost(world.domain.sites) > 0


def _travels(world: World, cost: CostModel | None) -> bool:
    """Whether the cost depends on where the vehicle is."""
    if cost is None or world.start is None:
        return False
    return bool(np.any(cost.travel(world.start, world.domain.sites) > 0))


def _inspects(world: World, cost: CostModel | None) -> bool:
    """Whether a vehicle travels between sites, along so few axes that readings can come near all of them."""
    near = world.domain.dimension <= MOST_AXES and not world.domain.continuous
    return near and not isinstance(cost, Modular) and _travels(world, cost)


def _chain(world: World, cost: CostModel | None) -> bool:
    """Whether policies for chains can use the costs: several modules that cost something, over a box."""
    if not isinstance(cost, Modular):
        return False
    from fieldbo.policies.chains.boxes import needs_modules

    try:
        needs_modules(cost, world.domain)
    except InputError:
        return False
    return True


def _control_sets(world: World, cost: CostModel | None) -> bool:
    return cost is None and bool(world.domain.control_sets)


def _any(world: World, cost: CostModel | None) -> bool:
    return True


_WITHOUT_COSTS = DefaultPolicy({"kind": "straddle"}, "it needs no costs; here they are zero or unknown.")

_CASES: Sequence[_Case] = (
    _Case(
        LevelSet,
        _priced,
        DefaultPolicy({"kind": "tour"}, "it weighs what a whole tour of readings tells against its travel."),
    ),
    _Case(LevelSet, _any, _WITHOUT_COSTS),
    _Case(
        ShareOfMaximum,
        _priced,
        DefaultPolicy(
            {"kind": "straddle", "per_cost": True},
            "it divides what a reading promises by its cost, and follows a threshold that moves.",
        ),
    ),
    _Case(ShareOfMaximum, _any, _WITHOUT_COSTS),
    _Case(
        Optimum,
        _control_sets,
        DefaultPolicy({"kind": "subset-front"}, "it learns what each control set costs, and which ones pay."),
    ),
    _Case(
        Optimum,
        _chain,
        DefaultPolicy(
            {"kind": "lambo"}, "it changes early modules, which rerun all later ones, only rarely."
        ),
    ),
    _Case(
        Optimum,
        _inspects,
        DefaultPolicy({"kind": "scout"}, "it inspects the whole domain before it settles on the best place."),
    ),
    _Case(
        Optimum,
        _travels,
        DefaultPolicy({"kind": "dist-ucb"}, "it subtracts the travel from what a site promises."),
    ),
    _Case(
        Optimum,
        _any,
        DefaultPolicy(
            {"kind": "ei"}, "it needs no costs, which here are unknown, or the same from everywhere."
        ),
    ),
)

DEFAULTS = frozenset(case.default.settings["kind"] for case in _CASES)
"""Kinds of policy that are the default of some missions."""
