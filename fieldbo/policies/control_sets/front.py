"""Share the budget among the control sets that no cheaper set is expected to beat: fieldbo's own policy.

==============  ==========================================================================================
``F``           ``E[f]``, the expected value of settings: a Gaussian of mean ``m`` and deviation ``s``
``g_i``         promise of set i: ``max_x m + kappa s`` beyond the worst, in the user's unit
``L``           the largest ``m - s`` seen, likewise: what is already reached
``c_i``         mean cost of set i so far
``e_i``         ``c_i + budget / 1000``: a play is never quite free
``w_i``         fraction of the budget that a set of the front is due
==============  ==========================================================================================

What counts in the end is the expected value of settings, not the value of one draw. The belief about it is
Gaussian, too, and sharper than ``E[u]`` and ``E[l]``: the unknown effect of the free variables averages
out. It takes one quadratic form instead of one per sample.

- At first each set is played once, to learn its cost. Then groups of sets of one size explore, the smallest
  first, at the largest ``E[u]`` of the group: up to 50 plays or a twentieth of the budget each. The largest
  sets explore nothing, as initial readings set all variables.
- After that a set is plausible as long as ``g_i >= (1 - alpha) L``. The *front* consists of the plausible
  sets such that no set as cheap (within a quarter) promises more. Its cheapest set has ``w = 1``, each more
  expensive one ``w = 1/2 min(1, (g_i - g_j) / (alpha g_i))``, where j is the next cheaper: the additional
  control has to promise something. Each play's e is credited to the front's accounts in these proportions;
  the set of the largest account is played, and pays. Alpha falls with the square of the fraction of the
  budget that is left: early on the model is wrong about what matters, later only the best set is worth a
  play.
- Plays of a set take turns: the highest bound, the highest mean, and the bound of a sceptical belief, whose
  length scales are half as long and whose variance is at least 1; later on the plain bound has two turns of
  four. A model fitted to readings of a single hill is too sure of the rest.

Bounds come from the present model alone. They are not intersected with earlier ones, which come from other
hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Stationary
from fieldbo.belief.posterior import Belief
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import (
    GainPolicy,
    PlainSettings,
    PlayCounts,
    Proposal,
    by_set,
    ranked,
    remember,
    settings_array,
)
from fieldbo.policies.control_sets.expectation import Expected, Precision, WithGradient
from fieldbo.policies.control_sets.rivals import groups_by_size
from fieldbo.policies.control_sets.search import ControlSetSearch
from fieldbo.policies.control_sets.subsets import sets_described
from fieldbo.validation import settings

PLAYS, SHARE = 50, 0.05
"""Plays of a group of sets, and fraction of the budget, that end its exploration."""

ALIKE = 1.25
"""Factor within which costs count as equal."""

MOST_EXPENSIVE = 0.5
"""Largest due of a more expensive set of the front, where the cheapest has 1."""

PLAYS_AT_MOST = 1000
"""Number of plays that would spend the budget if all were free."""

_SHRUNK, _VARIANCE = 0.5, 1.0
"""Length scales of the sceptical belief relative to the fitted ones, and its least variance."""

_TURNS = ("bound", "mean", "sceptical")
"""Criteria that plays take in turn while groups explore."""

_LATER_TURNS = ("bound", "mean", "bound", "sceptical")
"""Criteria that plays take in turn later on."""


def front(promises: Mapping[int, float], costs: Sequence[float]) -> list[int]:
    """Return the sets that no equally cheap or cheaper set outperforms, cheapest first.

    Parameters
    ----------
    promises : mapping of int to float
        Promises g_i of the plausible sets.
    costs : (m,) sequence
        Mean costs of all sets.

    Examples
    --------
    >>> front({0: 1.0, 1: 3.0, 2: 2.0, 3: 4.0}, [0.1, 0.1, 0.5, 1.0])
    [1, 3]
    """
    undominated = list[int]()
    for i in sorted(promises, key=lambda i: (costs[i], -promises[i], i)):
        if not undominated or promises[i] > promises[undominated[-1]]:
            if undominated and costs[i] <= ALIKE * costs[undominated[-1]]:
                undominated.pop()
            undominated.append(i)
    return undominated


def dues(sets: Sequence[int], promises: Mapping[int, float], alpha: float) -> list[float]:
    """Return w of the sets of a front, cheapest first; they sum to 1.

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
        shares.append(MOST_EXPENSIVE * float(np.clip(more, 0.0, 1.0)))
    total = sum(shares)
    return [share / total for share in shares]


@settings("policy")
class SubsetFront(GainPolicy):
    """Share the budget among the control sets that no cheaper set is expected to beat."""

    costs: ClassVar[tuple[str, ...]] = ("unknown",)
    gains_in_memory: ClassVar[tuple[str, ...]] = ("promises",)

    candidates: PositiveInt = 128
    """Number of candidates, drawn again for each decision, from which climbs start."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """A set is given up when it promises less than the fraction ``1 - alpha`` of what is already reached.
    What a more expensive set promises beyond a cheaper one counts in full from the fraction alpha on. Alpha
    falls with the square of the fraction of the budget that is left."""
    worst: float | None = None
    """Worst value that the field can take, in the user's unit: the least if the question maximises. By
    default the worst value read so far."""

    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the next settings of a control set, or a Stop when the chosen set no longer fits."""
        counts, search = PlayCounts.of(state), ControlSetSearch(state, self.samples, self.candidates)
        m = len(search.masks)
        if memory is None:
            memory = {"begun": counts.plain(), "budget": float(state.spendable)}
            memory |= {"accounts": [0.0] * m, "promises": [None] * m, "front": []}
            memory |= {"upper": {}, "bound": {}, "mean": {}, "sceptical": {}}
        if (group := self._sets_to_explore(state, counts, memory)) is not None:
            return self._explore(state, counts, search, memory, group)
        return self._share(state, counts, search, memory)

    def _sets_to_explore(self, state: State, counts: PlayCounts, memory: Memory) -> list[int] | None:
        """Return the sets that explore next; None once exploration is over."""
        outstanding = [order.controls for order in state.pending if order.controls is not None]
        for i, control_set in enumerate(state.domain.control_sets):
            if not counts.plays[i] and not any(
                np.array_equal(control_set.controls, mask) for mask in outstanding
            ):
                return [i]
        chosen = counts.since(memory["begun"])
        for group in groups_by_size(state.domain)[:-1]:
            if chosen.plays[group].sum() < PLAYS and chosen.costs[group].sum() < SHARE * memory["budget"]:
                return group
        return None

    def _explore(
        self, state: State, counts: PlayCounts, search: ControlSetSearch, memory: Memory, group: list[int]
    ) -> Decision:
        """Return the next play of a group of sets."""
        turn = _TURNS[int(counts.since(memory["begun"]).plays[group].sum()) % len(_TURNS)]
        if turn == "sceptical":
            belief = make_sceptical(state.belief)
            precision = Precision(belief) if belief.size else None
            search.expected = [
                Expected(belief, over.samples, over.controls, precision) for over in search.expected
            ]
        kappa = 0.0 if turn == "mean" else self.kappa
        proposals = search.upper(kappa, group, by_set(memory["upper"]))
        memory = {**memory, "upper": remember(memory["upper"], proposals)}
        why = {"phase": "exploration", "turn": turn, "sets": sets_described(counts, memory["promises"])}
        return self.play(state, counts, ranked(self.in_gains(state, proposals.values())), memory, **why)

    def _share(self, state: State, counts: PlayCounts, search: ControlSetSearch, memory: Memory) -> Decision:
        """Return the next play of the set whose account holds most."""
        m, costs = len(search.masks), np.nan_to_num(counts.mean_costs())
        searched = self._sets_to_search(counts, memory, m)
        proposals = search.highest(_bounding(self.kappa), searched, by_set(memory["bound"]), to_play=True)
        before: list[float | None] = memory["promises"]
        promises = [self.gain(state, proposals[i].value) if i in proposals else before[i] for i in range(m)]
        reached = self.gain(state, self._best_lower_bound(search, proposals, memory))
        known = {i: promise for i, promise in enumerate(promises) if promise is not None}
        alpha = self.alpha * min(1.0, float(state.spendable) / memory["budget"]) ** 2
        plausible = {
            i: promise for i, promise in known.items() if promise >= (1.0 - alpha) * reached
        } or known
        affordable = {
            i: promise for i, promise in plausible.items() if i in proposals and costs[i] <= state.spendable
        }
        sets = front(affordable, costs.tolist()) or [max(proposals, key=lambda i: promises[i] or -np.inf)]
        shares = dues(sets, known, alpha)
        accounts = np.where(np.isin(np.arange(m), sets), memory["accounts"], 0.0)
        chosen = max(sets, key=lambda i: (accounts[i], -costs[i]))
        paid = costs[chosen] + memory["budget"] / PLAYS_AT_MOST
        accounts[sets] += paid * np.array(shares)
        accounts[chosen] -= paid
        turn = _LATER_TURNS[int(counts.since(memory["begun"]).plays[chosen]) % len(_LATER_TURNS)]
        best = self._by_turn(turn, search, proposals[chosen], by_set(memory[turn]))
        memory = {
            **memory,
            "accounts": accounts.tolist(),
            "promises": promises,
            "front": sets,
            "bound": remember(memory["bound"], proposals),
        }
        if turn != "bound":
            memory = {**memory, turn: remember(memory[turn], {chosen: best})}
        why: dict[str, Any] = {"phase": "shared", "turn": turn, "front": sets, "shares": shares}
        why |= {"had": reached, "alpha": alpha}
        why["sets"] = sets_described(counts, promises, list(plausible))
        best = Proposal(chosen, best.site, self.gain(state, best.value))
        return self.play(state, counts, [best], memory, **why)

    def _sets_to_search(self, counts: PlayCounts, memory: Memory, m: int) -> list[int]:
        """Return the sets to search again: the front, and one of the others in turn."""
        if any(promise is None for promise in memory["promises"]):
            return list(range(m))
        others = [i for i in range(m) if i not in memory["front"]]
        return sorted([*memory["front"], *([others[counts.total % len(others)]] if others else [])])

    def _best_lower_bound(
        self, search: ControlSetSearch, proposals: Mapping[int, Proposal], memory: Memory
    ) -> float:
        """Return the largest m - s at remembered settings and at proposals, in model units."""
        highest = -np.inf
        for i, over in enumerate(search.expected):
            sites = [proposals[i].site] if i in proposals else []
            remembered = [memory[turn][str(i)] for turn in ("bound", "mean") if str(i) in memory[turn]]
            sites += [settings_array(plain) for plain in remembered]
            if sites:
                average = over.average(np.array(sites))
                highest = max(highest, float(np.max(average.mean - np.sqrt(average.variance))))
        return highest

    def _by_turn(
        self, turn: str, search: ControlSetSearch, best: Proposal, warm: Mapping[int, PlainSettings]
    ) -> Proposal:
        """Return the settings of a set by the criterion whose turn it is."""
        if turn == "bound":
            return best
        i = best.number
        form = _bounding(0.0) if turn == "mean" else _bounding(self.kappa, doubts=True)
        return search.highest(form, [i], warm, to_play=True).get(i, best)


def make_sceptical(belief: Belief) -> Belief:
    """Return a sceptical belief from the same readings, less sure of what lies between them.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> belief = Belief(Matern52([0.4, 0.4], 0.5)).condition_on([[0.1, 0.5]], [1.0], 0.01)
    >>> make_sceptical(belief).kernel
    Matern52(length_scales=array([0.2, 0.2]), variance=1.0)
    """
    kernel = belief.kernel
    if not isinstance(kernel, Stationary) or not belief.size:
        return belief
    sceptical = type(kernel)(_SHRUNK * kernel.length_scales, max(_VARIANCE, kernel.variance))
    return Belief(sceptical).condition_on(belief.sites, belief.values, belief.noise_variances)


def _bounding(kappa: float, doubts: bool = False) -> Callable[[Expected], Callable[[Array], WithGradient]]:
    """Return a form of expectations: ``m + kappa s`` of E[f], with its gradient."""

    def form(over: Expected) -> Callable[[Array], WithGradient]:
        if doubts:
            over = Expected(make_sceptical(over.belief), over.samples, over.controls)

        def bound(x: Array) -> WithGradient:
            if kappa == 0.0:
                return over.bound_with_gradient(x, 0.0)
            average = over.average(x)
            s = np.sqrt(np.maximum(average.variance, 1e-12))
            by_variance = (kappa / (2.0 * s))[:, None]
            return average.mean + kappa * s, average.mean_gradient + by_variance * average.variance_gradient

        return bound

    return form
