"""What every rule is that chooses a control set, and values for its variables.

It needs control sets, a distribution of each variable that some set leaves free, and a box: what is left free
takes any value. What a play is reckoned to cost is what is declared or, where costs are unknown, the mean of
what that set has cost so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import EndReason, Observation, Query, Rejected, Stop
from fieldbo.policies.choice import LEADING
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.policies.control_sets.search import PlayCounts, Proposal, gain, settings_plain, worst_read

TURNED_DOWN = 20
"""After so many queries in a row that were turned down nothing more is asked for."""


@dataclass(frozen=True)
class OverSets(Policy):
    """A rule that chooses a control set, and values for its variables.

    Parameters
    ----------
    kappa : float
        Multiplier of the confidence bounds, above 0.
    samples : int
        Fixed quasi-random points that stand for what is left to chance.
    candidates : int
        Among how many points, drawn anew for each decision, climbs begin.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    leaves_free: ClassVar[bool] = True
    bounds_are: ClassVar[str] = "by the model as it was when the rule last looked at the set"
    """Which bounds of control sets a decision's `why` tells, for whoever reads them."""

    kappa: float = 2.0
    samples: int = 128
    candidates: int = 64

    def __post_init__(self) -> None:
        if not (np.isfinite(self.kappa) and self.kappa > 0):
            raise InputError(f"kappa = {self.kappa}", expected="a number above 0", where="policy.kappa")
        for name in ("samples", "candidates"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"{name} = {getattr(self, name)}", expected="at least 1", where=f"policy.{name}"
                )

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` unless the domain has control sets, and any point of it can be sampled."""
        name = type(self).__name__
        if not domain.control_sets:
            raise InputError(
                f"{name} in a domain without control sets",
                expected="control_sets, and distributions of the variables that they leave free",
                where="domain.control_sets",
                fix='add control_sets = [["x1"], ["x1", "x2"]] and free = { kind = "uniform" } to the axes '
                "that some set leaves out, or take another policy",
            )
        for axis, law, ever in zip(domain.axes, domain.distributions, _ever_free(domain), strict=True):
            if ever and law is None:
                raise InputError(
                    f"{axis.name} is left free by a control set, and has no distribution",
                    expected="a distribution of every variable that a set leaves free",
                    where="domain.axes",
                    fix=f'add free = {{ kind = "uniform" }} to the axis {axis.name}',
                )
        if not domain.continuous:
            raise InputError(
                f"{name} in a domain of given sites",
                expected="a box: what is left free takes any value",
                where="domain.kind",
            )

    # -- what they share ---------------------------------------------------------------------------------

    def nothing_left(self, state: State, memory: Memory) -> Decision | None:
        """Return a Stop where every site was turned down, or all that was asked for of late."""
        in_a_row = 0
        for event in reversed(state.history):
            if isinstance(event, Observation):
                break
            in_a_row += isinstance(event, Rejected)
        if in_a_row >= TURNED_DOWN or (len(state.rejected) and state.rejected.all()):
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory)
        return None

    def price(self, state: State, books: PlayCounts, i: int, site: Array) -> float | None:
        """Return what playing set `i` is reckoned to cost: as declared, or its mean; None: not known yet."""
        if state.cost is not None:
            controls = state.domain.control_sets[i].controls
            priced = state.cost.to(
                state.position, site[None], controls=controls, level=0, time_s=state.time_s
            )
            return float(priced[0])
        return float(books.mean_costs()[i]) if books.plays[i] else None

    def play(
        self,
        state: State,
        books: PlayCounts,
        ranked: Sequence[Proposal],
        memory: Memory,
        **why: Any,
    ) -> Decision:
        """Return the decision for the first of the best settings, or a Stop where that no longer fits.

        Parameters
        ----------
        state : State
        books : PlayCounts
        ranked : sequence of Proposal
            The best first.
        memory : plain data
        **why
            Added to the decision's `why`.
        """
        if not ranked:
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory, why)
        best = [self._told(state, books, one) for one in ranked[:LEADING]]
        first, price = ranked[0], best[0]["cost"]
        controls = state.domain.control_sets[first.number].controls
        why = {"set": first.number, "score": first.value, "best": best, **why}
        if (worst := getattr(self, "worst", None)) is not None:
            why["worst"] = worst  # values of settings and of sets are told as gains on it
        fits = bool(state.affordable(np.nan_to_num(first.site)[None], controls)[0])
        if state.cost is None:  # then it says only whether anything is left
            fits = fits and (price is None or price <= state.spendable)
        if not fits:
            return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return Decision(Query(first.site, controls=controls, expected_cost=price), memory, why)

    def _told(self, state: State, books: PlayCounts, one: Proposal) -> dict[str, Any]:
        price = self.price(state, books, one.number, one.site)
        return {
            "set": one.number,
            "site": settings_plain(one.site),
            "value": one.value,
            "cost": price,
            "left": None if price is None else max(0.0, state.spendable - price),
        }


def _ever_free(domain: Domain) -> Mask:
    """Return which variables (d,) some control set leaves free."""
    return np.asarray(~np.all([one.controls for one in domain.control_sets], axis=0))


def needs_plain_values(state: State) -> None:
    """Raise a `PolicyError` where the model is of the values' log: expectations are of the values."""
    if state.scale.transform != "none":
        raise PolicyError(
            "expectations over free variables are taken of the values themselves, and the model is of their "
            'log: set transform = "none" in [model]'
        )


def from_worst_read(policy: Any, state: State, memory: Memory, gains: Sequence[str]) -> Decision:
    """Return what a rule decides that counts values from the worst that was read so far.

    Parameters
    ----------
    policy : OverSets
        With a setting ``worst``.
    state : State
    memory : plain data
    gains : sequence of str
        What in its memory is counted from there: moved along when something worse is read.
    """
    worst = worst_read(state)
    if memory is not None:
        more = gain(state, state.scale.to_model([memory["worst"]])[0], worst)
        memory = {**memory, **{key: _raised(memory[key], more) for key in gains}}
    decision: Decision = replace(policy, worst=worst).suggest(state, memory)
    kept = None if decision.memory is None else {**decision.memory, "worst": worst}
    return replace(decision, memory=kept)


def _raised(told: Any, by: float) -> Any:
    if isinstance(told, list):
        return [_raised(one, by) for one in told]
    return None if told is None else told + by
