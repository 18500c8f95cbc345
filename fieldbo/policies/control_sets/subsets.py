"""Control sets of unknown cost: explore all, then play the cheapest of those that may be good enough.

Hoang, Hoang and Tran 2025, "Bayesian optimization for unknown cost-varying variable subsets with no-regret
costs", algorithm 1, to the letter; the lines are its own.

==============  ==========================================================================================
``i``           a control set, of m
``u``, ``l``    ``mu + kappa s`` and ``mu - kappa s``
``ucb_i``       least of the bounds max_x E[u] of set i so far (lines 11 and 15)
``lcb``         largest of the bounds max_(i,x) E[l] so far (lines 10 and 14)
``S1``          sets that may be good enough: ``ucb_i > (1 - alpha) lcb`` (line 16)
``T``, ``T_i``  plays so far, the present one included; plays of set i
``c_i``         mean cost of set i
``S3``          all of S1 whose lower cost bound is least (lines 22 to 25)
==============  ==========================================================================================

Values are counted from the worst that the field can take, in the user's unit: the share ``1 - alpha`` of a
value means something only if none is below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import OverSets, from_worst_read, needs_plain_values
from fieldbo.policies.control_sets.search import (
    ControlSetSearch,
    PlayCounts,
    Proposal,
    gain,
    kept,
    ranked,
    warm,
)

EXPLORED_SHARE = 0.6
"""Share of the budget that exploration takes at most, where its rounds are not counted."""


class Bounds(NamedTuple):
    """Intersected bounds `lcb` and `ucb` (m,), the `plausible` sets (S1), and whether both were `reset`."""

    lcb: float
    ucb: Array
    plausible: list[int]
    reset: bool


def updated_bounds(lcb: float, ucb: ArrayLike, lcb_now: float, ucb_now: ArrayLike, alpha: float) -> Bounds:
    """Intersect bounds with the present ones (lines 14 to 20).

    Parameters
    ----------
    lcb : float
        Lower bound on the best expected value over all control sets.
    ucb : (m,) array
        Upper bounds on each set's best expected value.
    lcb_now, ucb_now : float, (m,) array
        The present ones; where no set is left in S1 they replace the intersected ones.
    alpha : float
        Share of the best value that may be given up.

    Examples
    --------
    >>> updated_bounds(1.0, [1.5, 0.95, 0.85], 1.1, [1.4, 1.2, 1.0], 0.1).plausible
    [0]
    >>> updated_bounds(2.0, [1.5, 1.2, 0.9], 1.0, [1.4, 1.3, 0.8], 0.05)[2:]
    ([0, 1], True)
    """
    now = np.asarray(ucb_now, dtype=float)
    low, high = max(lcb, lcb_now), np.minimum(np.asarray(ucb, dtype=float), now)
    plausible = np.flatnonzero(high > (1.0 - alpha) * low)
    if len(plausible):
        return Bounds(low, high, plausible.tolist(), False)
    return Bounds(lcb_now, now, np.flatnonzero(now > (1.0 - alpha) * lcb_now).tolist(), True)


class CostBounds(NamedTuple):
    """Mean costs, widths and lower bounds (m,) of the costs of control sets."""

    mean: Array
    width: Array
    lower: Array


def cost_bounds(sums: ArrayLike, counts: ArrayLike, steps: int) -> CostBounds:
    """Return ``c_i``, ``sqrt(2 log T / T_i)`` and ``max(c_i - sqrt(2 log T / T_i), 0)`` (lines 22 to 24).

    Parameters
    ----------
    sums : (m,) array
        What each set's plays have cost.
    counts : (m,) array
        How often each was played, T_i. A set that never was has the bound 0.
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
    """Return which of some sets has the largest max E[u] (m,), the first of equal ones (line 26).

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
        Made since the exploration ended.
    dimension : int
        d.
    alpha : float
        At its beginning.

    Examples
    --------
    >>> tolerance([0, 11, 12, 60], 12).tolist()
    [0.1, 0.1, 0.05, 0.003125]
    """
    return np.asarray(alpha * 0.5 ** (np.asarray(evaluations) // dimension))


def another_round(rounds: int, spent: float, budget: float, tau: int | None = None) -> bool:
    """Return whether one more whole round of exploration is played.

    Parameters
    ----------
    rounds : int
        That were played.
    spent : float
        What they cost.
    budget : float
        Of which exploration may take six tenths; the first round always fits.
    tau : int, optional
        So many rounds instead.

    Examples
    --------
    >>> another_round(4, 48.0, 100.0), another_round(5, 55.0, 100.0), another_round(5, 55.0, 100.0, tau=6)
    (True, False, True)
    """
    if tau is not None:
        return rounds < tau
    return rounds == 0 or spent + spent / rounds <= EXPLORED_SHARE * budget


@dataclass(frozen=True)
class Subsets(OverSets):
    """Explore control sets by turns, then play the cheapest that may be good enough (Hoang et al. 2025).

    Exploration sets the variables of each control set in turn where E[u] is largest. Exploitation keeps to
    the sets whose upper bound exceeds the share ``1 - alpha`` of the lower bound on the best; of these to the
    ones of least lower cost bound, and there to the largest E[u]. It ends when the chosen set no longer fits
    in what is left, at its mean cost so far.

    Parameters
    ----------
    alpha : float
        Share of the best value that may be given up when exploitation begins; it is halved after as many
        evaluations as there are variables.
    tau : int, optional
        Rounds of exploration; by default as many as fit in six tenths of the budget.
    worst : float, optional
        The worst value that the field can take, in the user's unit: the least where the question maximises.
        By default the worst that was read so far.
    """

    costs: ClassVar[tuple[str, ...]] = ("unknown",)
    bounds_are: ClassVar[str] = "the tightest so far, which an earlier model may have given"

    alpha: float = 0.1
    tau: int | None = None
    worst: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha < 1:
            raise InputError(f"alpha = {self.alpha}", expected="at least 0 and below 1", where="policy.alpha")
        if self.tau is not None and self.tau < 1:
            raise InputError(f"tau = {self.tau}", expected="at least 1", where="policy.tau")
        if self.worst is not None and not np.isfinite(self.worst):
            raise InputError(f"worst = {self.worst}", expected="a finite number", where="policy.worst")

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set, or a Stop when the chosen one no longer fits."""
        if self.worst is None:
            return from_worst_read(self, state, memory, ("lcb", "ucb"))
        if stop := self.nothing_left(state, memory):
            return stop
        needs_plain_values(state)
        m = len(state.domain.control_sets)
        books, cell = PlayCounts.of(state), ControlSetSearch(state, self.samples, self.candidates)
        if memory is None:
            memory = {"begun": books.plain(), "budget": float(state.spendable), "explored": None, "lcb": None}
            memory |= {"ucb": [None] * m, "upper": {}, "lower": {}}
        own = books.since(memory["begun"])
        at, out = own.total + len(state.pending), sum(q.expected_cost or 0.0 for q in state.pending)
        exploring = memory["explored"] is None and (
            at % m != 0 or another_round(at // m, own.spent + out, memory["budget"], self.tau)
        )
        highest, seen = cell.lower(self.kappa, warm(memory["lower"]))
        lcb_now = self._gain(state, highest.value)
        memory = {**memory, "lower": kept(memory["lower"], seen)}
        if exploring:
            return self._explored(state, books, cell, memory, lcb_now, at % m)
        if memory["explored"] is None:
            memory = {**memory, "explored": own.total}
        return self._exploited(state, books, cell, memory, lcb_now)

    def _explored(
        self, state: State, books: PlayCounts, cell: ControlSetSearch, memory: Memory, lcb_now: float, i: int
    ) -> Decision:
        """Return the next play of the round (lines 3 to 11)."""
        found = cell.upper(self.kappa, [i], warm(memory["upper"]))
        ucb, lcb = list(memory["ucb"]), memory["lcb"]
        if i in found:
            now = self._gain(state, found[i].value)
            ucb[i] = now if ucb[i] is None else min(ucb[i], now)
        lcb = lcb_now if lcb is None else max(lcb, lcb_now)
        memory = {**memory, "lcb": lcb, "ucb": ucb, "upper": kept(memory["upper"], found)}
        why = {"phase": "exploration", "alpha": self.alpha, "lcb": lcb}
        why["sets"] = sets_told(books, ucb)
        return self.play(state, books, self._users(state, list(found.values())), memory, **why)

    def _exploited(
        self, state: State, books: PlayCounts, cell: ControlSetSearch, memory: Memory, lcb_now: float
    ) -> Decision:
        """Return the next play of the cheapest sets that may be good enough (lines 13 to 26)."""
        d, m = state.domain.dimension, len(state.domain.control_sets)
        alpha = float(tolerance(books.since(memory["begun"]).total - memory["explored"], d, self.alpha))
        lcb = lcb_now if memory["lcb"] is None else memory["lcb"]
        ucb = np.array([np.inf if one is None else one for one in memory["ucb"]])
        # A set that the bounds have ruled out stays out, whatever its bound now is, unless all are.
        open_sets = np.flatnonzero(ucb > (1.0 - alpha) * max(lcb, lcb_now)).tolist()
        found = cell.upper(self.kappa, open_sets, warm(memory["upper"]))
        bounds = updated_bounds(lcb, ucb, lcb_now, self._gains(state, found, ucb), alpha)
        if bounds.reset:
            rest = [i for i in range(m) if i not in found]
            found |= cell.upper(self.kappa, rest, warm(memory["upper"]))
            now = self._gains(state, found, np.full(m, -np.inf))
            bounds = updated_bounds(lcb, ucb, lcb_now, now, alpha)
            if not bounds.plausible:  # values are worse than the worst: the highest bound is left
                bounds = bounds._replace(plausible=[int(np.argmax(bounds.ucb))])
        prices = cost_bounds(books.costs, books.plays, books.total + 1)
        good = [i for i in bounds.plausible if i in found]
        chosen = [found[i] for i in cheapest(prices.lower, good)] if good else []
        memory = {
            **memory,
            "lcb": bounds.lcb,
            "ucb": [float(one) if np.isfinite(one) else None for one in bounds.ucb],
            "upper": kept(memory["upper"], found),
        }
        why = {"phase": "exploitation", "alpha": alpha, "lcb": bounds.lcb, "reset": bounds.reset}
        why["sets"] = sets_told(books, memory["ucb"], bounds.plausible)
        return self.play(state, books, self._users(state, ranked(chosen)), memory, **why)

    def _gain(self, state: State, value: float) -> float:
        assert self.worst is not None
        return gain(state, value, self.worst)

    def _gains(self, state: State, found: dict[int, Proposal], otherwise: Array) -> Array:
        return np.array(
            [self._gain(state, found[i].value) if i in found else one for i, one in enumerate(otherwise)]
        )

    def _users(self, state: State, found: Sequence[Proposal]) -> list[Proposal]:
        """Return settings with what they promise beyond the worst, in the user's unit."""
        return [Proposal(one.number, one.site, self._gain(state, one.value)) for one in found]


def sets_told(
    books: PlayCounts, promised: Sequence[float | None], plausible: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """Return what is known of each control set, as reasons tell it.

    Parameters
    ----------
    books : PlayCounts
    promised : (m,) sequence
        Upper bounds on what each can reach, beyond the worst; None where not known.
    plausible : sequence of int, optional
        The sets that may be good enough; by default that is not asked yet, and none is told of.
    """
    prices = cost_bounds(books.costs, books.plays, books.total + 1)
    return [
        {
            "set": i,
            "ucb": promised[i],
            "cost": float(prices.mean[i]) if plays else None,
            "cost_low": float(prices.lower[i]),
            "plays": int(plays),
            "plausible": None if plausible is None else i in plausible,
        }
        for i, plays in enumerate(books.plays)
    ]
