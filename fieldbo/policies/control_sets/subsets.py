"""Explore control sets of unknown cost in turn, then play the cheapest of those that may be good enough.

Hoang, Hoang and Tran (2025), *Bayesian optimization for unknown cost-varying variable subsets with no-regret
costs*, algorithm 1, to the letter; the line numbers are the algorithm's.

==============  ==========================================================================================
``i``           a control set, of m
``u``, ``l``    ``mu + kappa s`` and ``mu - kappa s``
``ucb_i``       least of the bounds max_x E[u] of set i so far (lines 11 and 15)
``lcb``         largest of the bounds max_(i,x) E[l] so far (lines 10 and 14)
``S1``          sets that may be good enough: ``ucb_i > (1 - alpha) lcb`` (line 16)
``T``, ``T_i``  plays so far, the present one included; plays of set i
``c_i``         mean cost of set i
``S3``          all sets of S1 whose lower cost bound is least (lines 22 to 25)
==============  ==========================================================================================

Values are counted from the worst that the field can take, in the user's unit: the fraction ``1 - alpha`` of a
value means something only if no value is below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import GainPolicy, PlayCounts, Proposal, by_set, ranked, remember
from fieldbo.policies.control_sets.search import ControlSetSearch
from fieldbo.validation import settings

EXPLORED_SHARE = 0.6
"""Largest fraction of the budget to explore with, if the number of rounds is not given."""


class Bounds(NamedTuple):
    """Intersected bounds `lcb` and `ucb` (m,), the `plausible` sets (S1), and whether both were `reset`."""

    lcb: float
    ucb: Array
    plausible: list[int]
    reset: bool


def update_bounds(lcb: float, ucb: ArrayLike, lcb_now: float, ucb_now: ArrayLike, alpha: float) -> Bounds:
    """Intersect bounds with the present ones (lines 14 to 20).

    Parameters
    ----------
    lcb : float
        Lower bound on the best expected value over all control sets.
    ucb : (m,) array
        Upper bounds on each set's best expected value.
    lcb_now, ucb_now : float, (m,) array
        The present bounds; they replace the intersected ones if S1 is empty.
    alpha : float
        Fraction of the best value that may be given up.

    Examples
    --------
    >>> update_bounds(1.0, [1.5, 0.95, 0.85], 1.1, [1.4, 1.2, 1.0], 0.1).plausible
    [0]
    >>> update_bounds(2.0, [1.5, 1.2, 0.9], 1.0, [1.4, 1.3, 0.8], 0.05)[2:]
    ([0, 1], True)
    """
    now = np.asarray(ucb_now, dtype=float)
    low, high = max(lcb, lcb_now), np.minimum(np.asarray(ucb, dtype=float), now)
    plausible = np.flatnonzero(high > (1.0 - alpha) * low)
    if len(plausible):
        return Bounds(low, high, plausible.tolist(), False)
    return Bounds(lcb_now, now, np.flatnonzero(now > (1.0 - alpha) * lcb_now).tolist(), True)


class CostBounds(NamedTuple):
    """Means, widths and lower bounds (m,) of the costs of control sets."""

    mean: Array
    width: Array
    lower: Array


def cost_bounds(sums: ArrayLike, counts: ArrayLike, steps: int) -> CostBounds:
    """Return ``c_i``, ``sqrt(2 log T / T_i)`` and ``max(c_i - sqrt(2 log T / T_i), 0)`` (lines 22 to 24).

    Parameters
    ----------
    sums : (m,) array
        Total cost of each set's plays.
    counts : (m,) array
        Number of each set's plays, T_i. A set that was never played has the bound 0.
    steps : int
        T, the present play included.

    Examples
    --------
    >>> cost_bounds([0.5, 45.0], [45, 45], 226).lower.round(4)
    array([0.    , 0.5092])
    """
    plays = np.asarray(counts, dtype=float)
    known = plays > 0
    at_least_one = np.where(known, plays, 1.0)
    mean = np.where(known, np.asarray(sums, dtype=float) / at_least_one, np.nan)
    width = np.where(known, np.sqrt(2.0 * np.log(steps) / at_least_one), np.inf)
    lower = np.where(known, np.maximum(mean - np.where(known, width, 0.0), 0.0), 0.0)
    return CostBounds(mean, width, lower)


def cheapest(lower: ArrayLike, plausible: Sequence[int]) -> list[int]:
    """Return S3: all sets of S1 whose lower cost bound (m,) is least (line 25).

    Examples
    --------
    >>> cheapest([0.0, 0.0, 0.0, 0.5], [0, 2, 3])
    [0, 2]
    """
    bounds = np.asarray(lower, dtype=float)
    least = min(bounds[i] for i in plausible)
    return [i for i in plausible if bounds[i] == least]


def most_promising(values: ArrayLike, among: Sequence[int]) -> int:
    """Return the set of the largest max E[u] (m,) among some sets, the first if several (line 26).

    Examples
    --------
    >>> most_promising([1.0, 2.0, 1.7], [0, 2])
    2
    """
    promised = np.asarray(values, dtype=float)
    return max(among, key=lambda i: (promised[i], -i))


def tolerance(evaluations: ArrayLike, dimension: int, alpha: float = 0.1) -> NDArray[np.float64]:
    """Return alpha, halved after every d evaluations of the exploitation.

    Parameters
    ----------
    evaluations : int or (k,) array
        Number of evaluations since the exploration ended.
    dimension : int
        d.
    alpha : float
        Initial value.

    Examples
    --------
    >>> tolerance([0, 11, 12, 60], 12).tolist()
    [0.1, 0.1, 0.05, 0.003125]
    """
    return np.asarray(alpha * 0.5 ** (np.asarray(evaluations) // dimension))


def another_round(rounds: int, spent: float, budget: float, tau: int | None = None) -> bool:
    """Return True if one more whole round of exploration is to be played.

    Parameters
    ----------
    rounds : int
        Number of rounds played.
    spent : float
        Their cost.
    budget : float
        Exploration takes at most six tenths of it; the first round always fits.
    tau : int, optional
        Number of rounds to play, instead.

    Examples
    --------
    >>> another_round(4, 48.0, 100.0), another_round(5, 55.0, 100.0), another_round(5, 55.0, 100.0, tau=6)
    (True, False, True)
    """
    if tau is not None:
        return rounds < tau
    return rounds == 0 or spent + spent / rounds <= EXPLORED_SHARE * budget


def sets_described(
    counts: PlayCounts, promised: Sequence[float | None], plausible: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """Return what is known of each control set, as plain data for a decision's `why`.

    Parameters
    ----------
    counts : PlayCounts
    promised : (m,) sequence
        Upper bounds on each set's best gain; None where not known.
    plausible : sequence of int, optional
        The sets that may be good enough; None while that is not decided yet.
    """
    prices = cost_bounds(counts.costs, counts.plays, counts.total + 1)
    return [
        {
            "set": i,
            "ucb": promised[i],
            "cost": float(prices.mean[i]) if plays else None,
            "cost_low": float(prices.lower[i]),
            "plays": int(plays),
            "plausible": None if plausible is None else i in plausible,
        }
        for i, plays in enumerate(counts.plays)
    ]


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
            return self._explore(state, counts, search, memory, lcb_now, plays % m)
        if memory["explored"] is None:
            memory = {**memory, "explored": chosen.total}
        return self._exploit(state, counts, search, memory, lcb_now)

    def _explore(
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

    def _exploit(
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
        bounds = update_bounds(lcb, ucb, lcb_now, self._gains(state, proposals, ucb), alpha)
        if bounds.reset:
            rest = [i for i in range(m) if i not in proposals]
            proposals |= search.upper(self.kappa, rest, by_set(memory["upper"]))
            now = self._gains(state, proposals, np.full(m, -np.inf))
            bounds = update_bounds(lcb, ucb, lcb_now, now, alpha)
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
