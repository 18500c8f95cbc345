"""Explore control sets of unknown cost in turn, then play the cheapest of those that may be good enough.

Hoang, Hoang and Tran (2025), *Bayesian optimization for unknown cost-varying variable subsets with no-regret
costs*, algorithm 1, to the letter; `bounds` explains the notation.

Values are counted from the worst that the field can take, in the user's unit: the fraction ``1 - alpha`` of a
value means something only if no value is below 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import GainPolicy
from fieldbo.policies.control_sets.bounds import (
    another_round,
    cheapest,
    cost_bounds,
    sets_described,
    tolerance,
    updated_bounds,
)
from fieldbo.policies.control_sets.plays import PlayCounts, Proposal, by_set, ranked, remember
from fieldbo.policies.control_sets.search import ControlSetSearch
from fieldbo.validation import settings


@settings("policy")
class Subsets(GainPolicy):
    """Explore control sets in turn, then play the cheapest that may be good enough (Hoang et al. 2025).

    Exploration plays each control set in turn where E[u], the upper confidence bound averaged over the free
    variables, is largest. Exploitation considers the sets whose upper bound exceeds the fraction
    ``1 - alpha`` of the lower bound on the best; of these it keeps those with the smallest lower cost bound,
    and plays the largest E[u] among them. It ends when the chosen set no longer
    fits in what is left, at its mean cost so far.
    """

    costs: ClassVar[tuple[str, ...]] = ("unknown",)
    bounds_are: ClassVar[str] = "the tightest so far, possibly from an earlier model"
    gains_in_memory: ClassVar[tuple[str, ...]] = ("lcb", "ucb")

    alpha: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Fraction of the best value that may be given up when exploitation begins; it is halved after as many
    evaluations as there are variables."""
    tau: PositiveInt | None = None
    """Rounds of exploration. By default as many as fit in six tenths of the budget."""
    worst: float | None = None
    """Worst value that the field can take, in the user's unit: the least if the question maximises. By
    default the worst value read so far."""

    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set, or a Stop when the chosen set no longer fits."""
        m = len(state.domain.control_sets)
        counts, search = PlayCounts.of(state), ControlSetSearch(state, self.samples, self.candidates)
        if memory is None:
            memory = {"begun": counts.plain(), "budget": float(state.spendable), "explored": None}
            memory |= {"lcb": None, "ucb": [None] * m, "upper": {}, "lower": {}}
        chosen = counts.since(memory["begun"])
        plays = chosen.total + len(state.pending)
        outstanding = sum(query.expected_cost or 0.0 for query in state.pending)
        exploring = memory["explored"] is None and (
            plays % m != 0
            or another_round(plays // m, chosen.spent + outstanding, memory["budget"], self.tau)
        )
        highest, seen = search.lower(self.kappa, by_set(memory["lower"]))
        lcb_now = self.gain(state, highest.value)
        memory = {**memory, "lower": remember(memory["lower"], seen)}
        if exploring:
            return self._explored(state, counts, search, memory, lcb_now, plays % m)
        if memory["explored"] is None:
            memory = {**memory, "explored": chosen.total}
        return self._exploited(state, counts, search, memory, lcb_now)

    def _explored(
        self,
        state: State,
        counts: PlayCounts,
        search: ControlSetSearch,
        memory: Memory,
        lcb_now: float,
        i: int,
    ) -> Decision:
        """Return the next play of the round (lines 3 to 11)."""
        proposals = search.upper(self.kappa, [i], by_set(memory["upper"]))
        ucb, lcb = list(memory["ucb"]), memory["lcb"]
        if i in proposals:
            now = self.gain(state, proposals[i].value)
            ucb[i] = now if ucb[i] is None else min(ucb[i], now)
        lcb = lcb_now if lcb is None else max(lcb, lcb_now)
        memory = {**memory, "lcb": lcb, "ucb": ucb, "upper": remember(memory["upper"], proposals)}
        why = {"phase": "exploration", "alpha": self.alpha, "lcb": lcb, "sets": sets_described(counts, ucb)}
        return self.play(state, counts, self.in_gains(state, proposals.values()), memory, **why)

    def _exploited(
        self, state: State, counts: PlayCounts, search: ControlSetSearch, memory: Memory, lcb_now: float
    ) -> Decision:
        """Return the next play of the cheapest sets that may be good enough (lines 13 to 26)."""
        d, m = state.domain.dimension, len(state.domain.control_sets)
        alpha = float(tolerance(counts.since(memory["begun"]).total - memory["explored"], d, self.alpha))
        lcb = lcb_now if memory["lcb"] is None else memory["lcb"]
        ucb = np.array([np.inf if bound is None else bound for bound in memory["ucb"]])
        # A set that the bounds have ruled out stays out, whatever its present bound, unless all are out.
        open_sets = np.flatnonzero(ucb > (1.0 - alpha) * max(lcb, lcb_now)).tolist()
        proposals = search.upper(self.kappa, open_sets, by_set(memory["upper"]))
        bounds = updated_bounds(lcb, ucb, lcb_now, self._gains(state, proposals, ucb), alpha)
        if bounds.reset:
            rest = [i for i in range(m) if i not in proposals]
            proposals |= search.upper(self.kappa, rest, by_set(memory["upper"]))
            now = self._gains(state, proposals, np.full(m, -np.inf))
            bounds = updated_bounds(lcb, ucb, lcb_now, now, alpha)
            if not bounds.plausible:  # values fall below `worst`: keep the set of the highest bound
                bounds = bounds._replace(plausible=[int(np.argmax(bounds.ucb))])
        prices = cost_bounds(counts.costs, counts.plays, counts.total + 1)
        good = [i for i in bounds.plausible if i in proposals]
        chosen = [proposals[i] for i in cheapest(prices.lower, good)] if good else []
        memory = {
            **memory,
            "lcb": bounds.lcb,
            "ucb": [float(bound) if np.isfinite(bound) else None for bound in bounds.ucb],
            "upper": remember(memory["upper"], proposals),
        }
        why = {"phase": "exploitation", "alpha": alpha, "lcb": bounds.lcb, "reset": bounds.reset}
        why["sets"] = sets_described(counts, memory["ucb"], bounds.plausible)
        return self.play(state, counts, self.in_gains(state, ranked(chosen)), memory, **why)

    def _gains(self, state: State, proposals: Mapping[int, Proposal], otherwise: Array) -> Array:
        """Return the gains (m,) that proposals promise; `otherwise` for sets without one."""
        return np.array(
            [
                self.gain(state, proposals[i].value) if i in proposals else bound
                for i, bound in enumerate(otherwise)
            ]
        )
