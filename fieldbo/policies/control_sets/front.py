"""Control sets of unknown cost: the budget is shared among those that no cheaper one outdoes. Our own rule.

==============  ==========================================================================================
``F``           ``E[f]``, the expected value of settings: a Gaussian of mean ``m`` and deviation ``s``
``g_i``         what set i promises: ``max_x m + kappa s``, beyond the worst, in the user's unit
``L``           the largest ``m - s`` seen, likewise: what is had already
``c_i``         mean cost of set i so far
``e_i``         ``c_i + budget / 1000``: a play is never quite free
``w_i``         share of the budget that a set of the front is due
==============  ==========================================================================================

What counts in the end is the expected value of settings, not the value of one draw. The belief about it is
Gaussian, too, and sharper than ``E[u]`` and ``E[l]``: what is not known of the free variables' effect
averages out. It takes one quadratic form instead of one a sample.

- At first each set is played once, to learn its cost. Then groups of sets of one size explore, the smallest
  first, at the largest ``E[u]`` of the group: up to 50 plays or a twentieth of the budget, each. The largest
  sets explore nothing: initial readings set all variables.
- After that a set is plausible as long as ``g_i >= (1 - alpha) L``. The *front* are the plausible sets of
  which none that is as cheap (within a quarter) promises more. Its cheapest has ``w = 1``, each dearer one
  ``w = 1/2 min(1, (g_i - g_j) / (alpha g_i))``, where j is the next cheaper: what control it adds has to
  promise something. Each play's e goes to the front's accounts in these shares, and the set of the largest
  account is played, and pays. Alpha falls with the square of the share of the budget that is left: early the
  model is wrong about what matters, late only the best is worth a play.
- Plays of a set take turns: the highest bound, the highest mean, and the bound of a sceptical belief, whose
  length scales are half as long and whose variance is at least 1; later on the plain bound has two turns of
  four. A model that was fitted to readings of one hill only is too sure of the rest.

Bounds are of the present model alone and intersect with no earlier ones, which other hyperparameters gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Stationary
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import OverSets, from_worst_read, needs_plain_values
from fieldbo.policies.control_sets.expectation import Expected, Precision, Rises
from fieldbo.policies.control_sets.rivals import groups_by_size
from fieldbo.policies.control_sets.search import (
    ControlSetSearch,
    PlayCounts,
    Proposal,
    gain,
    kept,
    ranked,
    warm,
)
from fieldbo.policies.control_sets.subsets import sets_told

PLAYS, SHARE = 50, 0.05
"""Plays of a group of sets at the beginning, and the share of the budget, that none goes beyond."""

ALIKE = 1.25
"""Costs within this factor are the same."""

DEAREST = 0.5
"""Due of a dearer set of the front, where the cheapest has 1."""

PLAYS_AT_MOST = 1000
"""So many plays would spend the budget if all were free."""

_SHRUNK, _VARIANCE = 0.5, 1.0
"""Length scales of the sceptical belief, as a share of the fitted ones, and its least variance."""

_TURNS = ("bound", "mean", "sceptical")
"""What plays go by, in turn, while groups explore; and later on."""

_LATER_TURNS = ("bound", "mean", "bound", "sceptical")


def front(promises: Mapping[int, float], costs: Sequence[float]) -> list[int]:
    """Return the sets that no set as cheap outdoes, the cheapest first.

    Parameters
    ----------
    promises : mapping of int to float
        g_i of the plausible sets.
    costs : (m,) sequence
        Of all sets.

    Examples
    --------
    >>> front({0: 1.0, 1: 3.0, 2: 2.0, 3: 4.0}, [0.1, 0.1, 0.5, 1.0])
    [1, 3]
    """
    found = list[int]()
    for i in sorted(promises, key=lambda i: (costs[i], -promises[i], i)):
        if not found or promises[i] > promises[found[-1]]:
            if found and costs[i] <= ALIKE * costs[found[-1]]:
                found.pop()
            found.append(i)
    return found


def dues(sets: Sequence[int], promises: Mapping[int, float], alpha: float) -> list[float]:
    """Return w of the sets of a front, the cheapest first; they add up to 1.

    Examples
    --------
    >>> np.round(dues([1, 3], {1: 3.0, 3: 4.0}, 0.1), 4)
    array([0.6667, 0.3333])
    >>> np.round(dues([1, 3], {1: 3.9, 3: 4.0}, 0.1), 4)
    array([0.8889, 0.1111])
    """
    shares = [1.0]
    for j, i in pairwise(sets):
        more = (promises[i] - promises[j]) / max(alpha * promises[i], 1e-12 * abs(promises[i]) + 1e-300)
        shares.append(DEAREST * float(np.clip(more, 0.0, 1.0)))
    total = sum(shares)
    return [share / total for share in shares]


@dataclass(frozen=True)
class SubsetFront(OverSets):
    """Share the budget among the control sets that no cheaper one outdoes in what they promise.

    Parameters
    ----------
    alpha : float
        A set is given up when it promises less than the share ``1 - alpha`` of what is had already; and what
        a dearer set promises beyond a cheaper one counts in full from the share alpha on. It falls with the
        square of the share of the budget that is left.
    worst : float, optional
        The worst value that the field can take, in the user's unit: the least where the question maximises.
        By default the worst that was read so far.
    """

    costs: ClassVar[tuple[str, ...]] = ("unknown",)

    candidates: int = 128
    alpha: float = 0.1
    worst: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha = {self.alpha}", expected="between 0 and 1", where="policy.alpha")
        if self.worst is not None and not np.isfinite(self.worst):
            raise InputError(f"worst = {self.worst}", expected="a finite number", where="policy.worst")

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set, or a Stop when the chosen one no longer fits."""
        if self.worst is None:
            return from_worst_read(self, state, memory, ("promises",))
        if stop := self.nothing_left(state, memory):
            return stop
        needs_plain_values(state)
        books, cell = PlayCounts.of(state), ControlSetSearch(state, self.samples, self.candidates)
        m = len(cell.masks)
        if memory is None:
            memory = {"begun": books.plain(), "budget": float(state.spendable)}
            memory |= {"accounts": [0.0] * m, "promises": [None] * m, "front": []}
            memory |= {"upper": {}, "bound": {}, "mean": {}, "sceptical": {}}
        if (group := self._exploring(state, books, memory)) is not None:
            return self._explored(state, books, cell, memory, group)
        return self._shared(state, books, cell, memory)

    def _gain(self, state: State, value: float) -> float:
        """Return by how much a value in model units is better than the worst, in the user's unit."""
        assert self.worst is not None
        return gain(state, value, self.worst)

    def _exploring(self, state: State, books: PlayCounts, memory: Memory) -> list[int] | None:
        """Return the sets that explore next; None once that is over."""
        out = [order.controls for order in state.pending if order.controls is not None]
        for i, one in enumerate(state.domain.control_sets):
            if not books.plays[i] and not any(np.array_equal(one.controls, mask) for mask in out):
                return [i]
        own = books.since(memory["begun"])
        for group in groups_by_size(state.domain)[:-1]:
            if own.plays[group].sum() < PLAYS and own.costs[group].sum() < SHARE * memory["budget"]:
                return group
        return None

    def _explored(
        self, state: State, books: PlayCounts, cell: ControlSetSearch, memory: Memory, group: list[int]
    ) -> Decision:
        """Return the next play of a group of sets."""
        turn = _TURNS[int(books.since(memory["begun"]).plays[group].sum()) % len(_TURNS)]
        if turn == "sceptical":
            belief = doubting(state.belief)
            shared = Precision(belief) if belief.size else None
            cell.expected = [Expected(belief, one.samples, one.controls, shared) for one in cell.expected]
        found = cell.upper(0.0 if turn == "mean" else self.kappa, group, warm(memory["upper"]))
        memory = {**memory, "upper": kept(memory["upper"], found)}
        told = [Proposal(i, one.site, self._gain(state, one.value)) for i, one in found.items()]
        why = {"phase": "exploration", "turn": turn, "sets": sets_told(books, memory["promises"])}
        return self.play(state, books, ranked(told), memory, **why)

    def _shared(self, state: State, books: PlayCounts, cell: ControlSetSearch, memory: Memory) -> Decision:
        """Return the next play of the set whose account holds most."""
        m, costs = len(cell.masks), np.nan_to_num(books.mean_costs())
        seen = self._looked_at(books, memory, m)
        found = cell.highest(_bounding(self.kappa), seen, warm(memory["bound"]))
        before: list[float | None] = memory["promises"]
        promises = [self._gain(state, found[i].value) if i in found else before[i] for i in range(m)]
        had = self._gain(state, self._had(cell, found, memory))
        known = {i: one for i, one in enumerate(promises) if one is not None}
        alpha = self.alpha * min(1.0, float(state.spendable) / memory["budget"]) ** 2
        plausible = {i: one for i, one in known.items() if one >= (1.0 - alpha) * had} or known
        paid_for = {i: one for i, one in plausible.items() if i in found and costs[i] <= state.spendable}
        sets = front(paid_for, costs.tolist()) or [max(found, key=lambda i: promises[i] or -np.inf)]
        shares = dues(sets, known, alpha)
        accounts = np.where(np.isin(np.arange(m), sets), memory["accounts"], 0.0)
        chosen = max(sets, key=lambda i: (accounts[i], -costs[i]))
        paid = costs[chosen] + memory["budget"] / PLAYS_AT_MOST
        accounts[sets] += paid * np.array(shares)
        accounts[chosen] -= paid
        turn = _LATER_TURNS[int(books.since(memory["begun"]).plays[chosen]) % len(_LATER_TURNS)]
        best = self._turned(turn, cell, found[chosen], warm(memory[turn]))
        memory = {
            **memory,
            "accounts": accounts.tolist(),
            "promises": promises,
            "front": sets,
            "bound": kept(memory["bound"], found),
        }
        if turn != "bound":
            memory = {**memory, turn: kept(memory[turn], {chosen: best})}
        why = {"phase": "shared", "turn": turn, "front": sets, "shares": shares, "had": had, "alpha": alpha}
        why["sets"] = sets_told(books, promises, list(plausible))
        best = Proposal(chosen, best.site, self._gain(state, best.value))
        return self.play(state, books, [best], memory, **why)

    def _looked_at(self, books: PlayCounts, memory: Memory, m: int) -> list[int]:
        """Return the sets whose promises are looked at again: the front, and of the others one by turns."""
        if any(one is None for one in memory["promises"]):
            return list(range(m))
        others = [i for i in range(m) if i not in memory["front"]]
        return sorted([*memory["front"], *([others[books.total % len(others)]] if others else [])])

    def _had(self, cell: ControlSetSearch, found: Mapping[int, Proposal], memory: Memory) -> float:
        """Return the largest m - s at the settings that are remembered or were just found, in model units."""
        highest = -np.inf
        for i, over in enumerate(cell.expected):
            sites = [found[i].site] if i in found else []
            for one in (memory["bound"], memory["mean"]):
                if str(i) in one:
                    sites.append(np.array([np.nan if x is None else x for x in one[str(i)]], dtype=float))
            if sites:
                of = over.average(np.array(sites))
                highest = max(highest, float(np.max(of.mean - np.sqrt(of.variance))))
        return highest

    def _turned(
        self, turn: str, cell: ControlSetSearch, best: Proposal, before: Mapping[int, Sequence[float | None]]
    ) -> Proposal:
        """Return the settings of a set by the rule whose turn it is."""
        if turn == "bound":
            return best
        i = best.number
        form = _bounding(0.0) if turn == "mean" else _bounding(self.kappa, doubts=True)
        return cell.highest(form, [i], before).get(i, best)


def doubting(belief: Belief) -> Belief:
    """Return what the same readings say to somebody less sure of what lies between them.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> belief = Belief(Matern52([0.4, 0.4], 0.5)).condition_on([[0.1, 0.5]], [1.0], 0.01)
    >>> doubting(belief).kernel
    Matern52(length_scales=array([0.2, 0.2]), variance=1.0)
    """
    kernel = belief.kernel
    if not isinstance(kernel, Stationary) or not belief.size:
        return belief
    unsure = type(kernel)(_SHRUNK * kernel.length_scales, max(_VARIANCE, kernel.variance))
    return Belief(unsure).condition_on(belief.sites, belief.values, belief.noise_variances)


def _bounding(kappa: float, doubts: bool = False) -> Callable[[Expected], Callable[[Array], Rises]]:
    """Return what makes ``m + kappa s`` of E[f], with its gradient, from expectations."""

    def form(over: Expected) -> Callable[[Array], Rises]:
        if doubts:
            over = Expected(doubting(over.belief), over.samples, over.controls)

        def rising(x: Array) -> Rises:
            if kappa == 0.0:
                return over.bound_rises(x, 0.0)
            of = over.average(x)
            s = np.sqrt(np.maximum(of.variance, 1e-12))
            return of.mean + kappa * s, of.mean_gradient + (kappa / (2.0 * s))[:, None] * of.variance_gradient

        return rising

    return form
