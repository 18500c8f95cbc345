"""Base classes of policies that choose a control set and values for its variables.

They need control sets, a distribution of each variable that some set leaves free, and a box, as a free
variable takes any value. The expected cost of a play is the declared cost or, where costs are unknown, the
mean cost of the set's plays so far.

=============  ===========================================================================================
``i``          a control set, of m
``T_i``        number of its plays; rejected and lost queries do not count
``c_i``        mean cost of those plays
=============  ===========================================================================================

Settings are points (d,) whose free coordinates are NaN; in memory and in reasons they are None.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import Correction, EndReason, Event, Observation, Query, Rejected, Stop
from fieldbo.policies.choice import LEADING
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, Policy, State
from fieldbo.validation import settings

PlainSettings = Sequence[float | None]


@dataclass(frozen=True, eq=False)
class PlayCounts:
    """Number and total cost of the plays of each control set.

    Parameters
    ----------
    plays : (m,) int array
        Number of plays, initial readings included.
    costs : (m,) array
        Total cost.
    """

    plays: NDArray[np.int64]
    costs: Array

    @classmethod
    def of(cls, state: State) -> PlayCounts:
        """Count the plays in a state's history."""
        sets = state.domain.control_sets
        numbers = {control_set.controls.tobytes(): i for i, control_set in enumerate(sets)}
        all_variables = np.ones(state.domain.dimension, dtype=bool).tobytes()
        plays, costs = np.zeros(len(sets), dtype=np.int64), np.zeros(len(sets))
        for event in state.history:
            order = state.orders.get(event.order) if isinstance(event, Observation) else None
            if isinstance(order, Query) and isinstance(event, Observation):
                i = numbers.get(all_variables if order.controls is None else order.controls.tobytes())
                if i is not None:
                    plays[i] += event.last
                    costs[i] += event.cost
        return cls(plays, costs)

    def mean_costs(self) -> Array:
        """Return c_i (m,); NaN for a set that was never played."""
        return np.where(self.plays > 0, self.costs / np.maximum(self.plays, 1), np.nan)

    def since(self, before: Mapping[str, Sequence[float]]) -> PlayCounts:
        """Return the plays since the counts that `plain` wrote."""
        return PlayCounts(self.plays - np.array(before["plays"]), self.costs - np.array(before["costs"]))

    def plain(self) -> dict[str, list[float]]:
        """Return the counts as plain data, for a policy's memory."""
        return {"plays": self.plays.tolist(), "costs": self.costs.tolist()}

    @property
    def total(self) -> int:
        """Number of plays of all sets."""
        return int(self.plays.sum())

    @property
    def spent(self) -> float:
        """Cost of the plays of all sets."""
        return float(self.costs.sum())


def declared_cost(state: State, i: int, site: Array | None = None) -> float | None:
    """Return the declared cost of playing set i at `site` (d,), by default where the agent is.

    None if costs are unknown.
    """
    if state.cost is None:
        return None
    controls = state.domain.control_sets[i].controls
    sites = (state.position if site is None else site)[None]
    return float(state.cost.to(state.position, sites, controls=controls, time_s=state.time_s)[0])


@dataclass(frozen=True, eq=False)
class Proposal:
    """The best settings of a control set.

    Parameters
    ----------
    number : int
        Number of the set.
    site : (d,) array
        NaN where a variable is left free.
    value : float
        What the settings promise, in model units.
    """

    number: int
    site: Array
    value: float


def ranked(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return proposals, the most promising first; ties go to the lowest set."""
    return sorted(proposals, key=lambda proposal: (-proposal.value, proposal.number))


def settings_plain(site: Array) -> list[float | None]:
    """Return settings as plain data: None where a variable is left free.

    Examples
    --------
    >>> settings_plain(np.array([0.5, np.nan]))
    [0.5, None]
    """
    return [None if np.isnan(x) else float(x) for x in site]


def settings_array(plain: PlainSettings) -> Array:
    """Return the settings (d,) that `settings_plain` wrote.

    Examples
    --------
    >>> settings_array([0.5, None])
    array([0.5, nan])
    """
    return np.array([np.nan if x is None else x for x in plain], dtype=float)


def by_set(remembered: Mapping[str, PlainSettings]) -> dict[int, PlainSettings]:
    """Return remembered settings by the number of their set; JSON turns numbers into text."""
    return {int(i): site for i, site in remembered.items()}


def remember(remembered: Mapping[str, Any], proposals: Mapping[int, Proposal]) -> dict[str, Any]:
    """Return remembered settings, replaced by those of the proposals, as plain data."""
    return {
        **remembered,
        **{str(i): settings_plain(proposal.site) for i, proposal in proposals.items()},
    }


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
        """Raise an `InputError` unless the domain is a box with control sets."""
        if not domain.control_sets:
            raise InputError(
                f"{THIS_POLICY} needs control sets, but the domain has none",
                expected="control_sets, and distributions of the variables that they leave free",
                where="domain.control_sets",
                fix='add control_sets = [["x1"], ["x1", "x2"]] and free = { kind = "uniform" } to the axes '
                "that some set leaves out, or choose another policy",
            )
        if not domain.continuous:
            raise InputError(
                f"{THIS_POLICY} needs a box, but the domain is a list of sites",
                expected="a box, as a free variable takes any value",
                where="domain.kind",
            )

    # -- decisions ---------------------------------------------------------------------------------------

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set, or a Stop when they no longer fit."""
        return self.nothing_left(state, memory) or self.decide(state, memory)

    @abstractmethod
    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set; some are left."""

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
        best = [self._describe(state, counts, proposal) for proposal in proposals[:LEADING]]
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

    def _describe(self, state: State, counts: PlayCounts, proposal: Proposal) -> dict[str, Any]:
        """Return a proposal with its cost and what it would leave, as plain data."""
        price = self.price(state, counts, proposal.number, proposal.site)
        return {
            "set": proposal.number,
            "site": settings_plain(proposal.site),
            "value": proposal.value,
            "cost": price,
            "left": None if price is None else max(0.0, state.spendable - price),
        }


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

    def _from_worst_read(self, state: State, memory: Memory) -> Decision:
        """Decide with the worst value read so far, and remember it."""
        worst = worst_read(state)
        if memory is not None:
            more = gain(state, state.scale.to_model([memory["worst"]])[0], worst)
            memory = {**memory, **{key: _raise_gains(memory[key], more) for key in self.gains_in_memory}}
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


def _raise_gains(gains: Any, by: float) -> Any:
    """Add to a gain, or to each of a list; None stays None."""
    if isinstance(gains, list):
        return [_raise_gains(each, by) for each in gains]
    return None if gains is None else gains + by
