"""Base classes of policies that choose a control set and values for its variables.

They need control sets, a distribution of each variable that some set leaves free, and a box, as a free
variable takes any value. The expected cost of a play is the declared cost or, where costs are unknown, the
mean cost of the set's plays so far.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import Correction, EndReason, Event, Observation, Query, Rejected, Stop
from fieldbo.policies.choice import LEADING
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, Policy, State
from fieldbo.policies.control_sets.plays import PlayCounts, Proposal, declared_cost, settings_plain
from fieldbo.validation import settings

MOST_REJECTIONS = 20
"""Number of consecutive rejections after which a policy stops."""


@settings("policy")
class ControlSetPolicy(Policy):
    """A policy that chooses a control set and values for its variables."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    leaves_free: ClassVar[bool] = True
    bounds_are: ClassVar[str] = "from the model as it was when the policy last searched the set"
    """Where the bounds of control sets in a decision's `why` come from, for explanations."""

    kappa: PositiveFloat = 2.0
    """Multiplier of the standard deviation in confidence bounds."""
    samples: PositiveInt = 128
    """Number of fixed quasi-random samples of the variables left to chance."""
    candidates: PositiveInt = 64
    """Number of candidates, drawn again for each decision, from which climbs start."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` unless the domain is a box with control sets and distributions."""
        if not domain.control_sets:
            raise InputError(
                f"{THIS_POLICY} needs control sets, but the domain has none",
                expected="control_sets, and distributions of the variables that they leave free",
                where="domain.control_sets",
                fix='add control_sets = [["x1"], ["x1", "x2"]] and free = { kind = "uniform" } to the axes '
                "that some set leaves out, or choose another policy",
            )
        for axis, law, free in zip(domain.axes, domain.distributions, _ever_free(domain), strict=True):
            if free and law is None:
                raise InputError(
                    f"{axis.name} is left free by a control set, but has no distribution",
                    expected="a distribution of every variable that a set leaves free",
                    where="domain.axes",
                    fix=f'add free = {{ kind = "uniform" }} to the axis {axis.name}',
                )
        if not domain.continuous:
            raise InputError(
                f"{THIS_POLICY} needs a box, but the domain is a list of sites",
                expected="a box, as a free variable takes any value",
                where="domain.kind",
            )

    # -- decisions ---------------------------------------------------------------------------------------

    def nothing_left(self, state: State, memory: Memory) -> Decision | None:
        """Return a Stop if every site, or each of the latest queries, was rejected."""
        in_a_row = 0
        for event in reversed(state.history):
            if isinstance(event, Observation):
                break
            in_a_row += isinstance(event, Rejected)
        if in_a_row >= MOST_REJECTIONS or (len(state.rejected) and state.rejected.all()):
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory)
        return None

    def price(self, state: State, counts: PlayCounts, i: int, site: Array) -> float | None:
        """Return the expected cost of playing set i: declared, or its mean so far; None if not known yet."""
        declared = declared_cost(state, i, site)
        if declared is not None:
            return declared
        return float(counts.mean_costs()[i]) if counts.plays[i] else None

    def play(
        self,
        state: State,
        counts: PlayCounts,
        proposals: Sequence[Proposal],
        memory: Memory,
        **why: Any,
    ) -> Decision:
        """Return the decision for the first proposal, or a Stop if it does not fit in what is left.

        Parameters
        ----------
        state : State
        counts : PlayCounts
        proposals : sequence of Proposal
            The best first.
        memory : plain data
        **why
            Added to the decision's `why`.
        """
        if not proposals:
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory, why)
        best = [self._described(state, counts, proposal) for proposal in proposals[:LEADING]]
        first, price = proposals[0], best[0]["cost"]
        controls = state.domain.control_sets[first.number].controls
        why = {"set": first.number, "score": first.value, "best": best, **why}
        if (worst := getattr(self, "worst", None)) is not None:
            why["worst"] = worst  # values of settings and sets are given as gains on it
        fits = bool(state.affordable(np.nan_to_num(first.site)[None], controls)[0])
        if state.cost is None:  # `affordable` then says only whether anything is left
            fits = fits and (price is None or price <= state.spendable)
        if not fits:
            return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return Decision(Query(first.site, controls=controls, expected_cost=price), memory, why)

    def _described(self, state: State, counts: PlayCounts, proposal: Proposal) -> dict[str, Any]:
        """Return a proposal with its cost and what it would leave, as plain data."""
        price = self.price(state, counts, proposal.number, proposal.site)
        return {
            "set": proposal.number,
            "site": settings_plain(proposal.site),
            "value": proposal.value,
            "cost": price,
            "left": None if price is None else max(0.0, state.spendable - price),
        }


def _ever_free(domain: Domain) -> Mask:
    """Return which variables (d,) some control set leaves free."""
    return np.asarray(~np.all([control_set.controls for control_set in domain.control_sets], axis=0))


class GainPolicy(ControlSetPolicy):
    """A policy that counts values from the worst that the field can take, in the user's unit.

    Where its setting `worst` is None, it uses the worst value read so far.
    """

    worst: float | None
    gains_in_memory: ClassVar[tuple[str, ...]] = ()
    """Memory keys that hold gains; they move along when a worse value is read."""

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Forget all gains after a correction: the tightest bound may rest on the wrong reading."""
        if memory is None or not isinstance(event, Correction):
            return memory
        gains = {key: memory[key] for key in self.gains_in_memory}
        return {**memory, **{k: [None] * len(v) if isinstance(v, list) else None for k, v in gains.items()}}

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set, or a Stop when they no longer fit."""
        if self.worst is None:
            return self._from_worst_read(state, memory)
        if stop := self.nothing_left(state, memory):
            return stop
        if state.scale.transform != "none":
            raise PolicyError(
                "this policy averages values over free variables, but the model is of the values' log: "
                'set transform = "none" in [model]'
            )
        return self.decide(state, memory)

    @abstractmethod
    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set; `worst` is known."""

    def _from_worst_read(self, state: State, memory: Memory) -> Decision:
        """Decide with the worst value read so far, and remember it."""
        worst = worst_read(state)
        if memory is not None:
            more = gain(state, state.scale.to_model([memory["worst"]])[0], worst)
            memory = {**memory, **{key: _raised(memory[key], more) for key in self.gains_in_memory}}
        decision: Decision = replace(self, worst=worst).suggest(state, memory)  # type: ignore[call-arg]
        kept = None if decision.memory is None else {**decision.memory, "worst": worst}
        return replace(decision, memory=kept)

    def gain(self, state: State, value: float) -> float:
        """Return how much better than the worst a value in model units is, in the user's unit."""
        assert self.worst is not None
        return gain(state, value, self.worst)

    def in_gains(self, state: State, proposals: Iterable[Proposal]) -> list[Proposal]:
        """Return proposals with their values as gains, in the user's unit."""
        return [Proposal(p.number, p.site, self.gain(state, p.value)) for p in proposals]


def worst_read(state: State) -> float:
    """Return the worst value read so far, in the user's unit; 0 before any."""
    read = [e.values[np.isfinite(e.values)] for e in state.history if isinstance(e, Observation)]
    values = np.concatenate([np.empty(0), *read])
    sign = 1.0 if state.scale.scale > 0 else -1.0
    return float(sign * np.min(sign * values)) if len(values) else 0.0


def gain(state: State, value: float, worst: float) -> float:
    """Return how much better than `worst` a value in model units is, in the user's unit."""
    sign = 1.0 if state.scale.scale > 0 else -1.0
    return float(sign * (state.scale.to_user([value])[0] - worst))


def _raised(gains: Any, by: float) -> Any:
    """Add to a gain, or to each of a list; None stays None."""
    if isinstance(gains, list):
        return [_raised(each, by) for each in gains]
    return None if gains is None else gains + by
