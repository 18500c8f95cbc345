"""Pick the best affordable query from a table of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import NonNegativeInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, Policy, State
from fieldbo.validation import settings

TIE = 1e-9
"""Scores that differ by less than this fraction of the best are equal: rounding does not choose a site."""


LEADING = 3
"""Number of leading candidates reported with a decision."""


LEFT = {"battery": "left", "time": "left_s"}
"""Key of each limit in ``why["best"]``."""


@settings("policy")
class PerCost(Policy):
    """A policy whose score can be divided by the cost of the move."""

    per_cost: bool = False
    """Whether to divide the score by the cost of the move."""
    level: NonNegativeInt = 0
    """The sensor's level to read with."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if `per_cost` is set and a cost is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs(cost, domain)

    def best(self, state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
        """Return the decision for the affordable site of the highest score (per unit of cost)."""
        if self.per_cost and self.divides(scores[state.choosable(self.level)]):
            scores = self.divided(state, scores)
        return best_affordable(state, scores, memory, self.level, **why)

    def divides(self, scores: Array) -> bool:
        """Return True if scores are to be divided by the cost, given those of the choosable sites.

        If none of them is positive the plain scores decide.
        """
        return self.per_cost and bool((scores > 0).any())

    def divided(self, state: State, scores: Array, sites: Array | None = None) -> Array:
        """Return positive scores (N,) divided by the cost, and minus infinity for the others.

        Dividing a negative score would favour expensive sites. By default the scores belong to the domain's
        sites.
        """
        return np.where(scores <= 0, -np.inf, scores / state.costs(self.level, sites))  # NaN stays NaN


def best_affordable(state: State, scores: Array, memory: Memory, level: int = 0, **why: Any) -> Decision:
    """Return the decision for the affordable site of the highest score, ties to the lowest index.

    Parameters
    ----------
    state : State
    scores : (N,) array
        One per site of the domain; minus infinity excludes a site.
    memory : plain data
        Passed on with the decision.
    level : int
        The sensor's level to read with.
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop if no site remains: "battery spent" if one with a score, not rejected, is too expensive;
        otherwise "stopped by policy".
    """
    able = state.choosable(level)[:, None]
    return best_pair(state, scores[:, None], able, memory, levels=(level,), **why)


def best_pair(
    state: State,
    scores: Array,
    able: Mask,
    memory: Memory,
    levels: Sequence[int] | None = None,
    **why: Any,
) -> Decision:
    """Return the decision for the (site, level) pair of the highest score.

    Ties go to the lowest site, then to the lowest level.

    Parameters
    ----------
    state : State
    scores : (N, K) array
        One column per level; minus infinity excludes a pair.
    able : (N, K) bool array
        Pairs that are affordable and were not rejected, as from ``state.at_levels(state.choosable)``.
    memory : plain data
        Passed on with the decision.
    levels : sequence of K int, optional
        The sensor's levels that the columns stand for; by default all of them.
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop as for `best_affordable`.
    """
    pairs = _highest_pairs(scores, able)
    if not pairs:
        wanted = (scores > -np.inf).any(axis=1)
        if len(state.rejected):
            wanted &= ~state.rejected
        reason = EndReason.BATTERY_SPENT if wanted.any() else EndReason.STOPPED_BY_POLICY
        return Decision(Stop(reason), memory, why)
    index, column = pairs[0]
    level = (state.levels if levels is None else levels)[column]
    reasons: dict[str, Any] = {"score": _plain(scores[index, column]), "site": index}
    if len(state.levels) > 1:
        reasons["level"] = level
    reasons["best"] = _describe(state, scores, pairs, levels)
    return Decision(Query(state.domain.sites[index], level=level), memory, {**reasons, **why})


def leading(
    state: State,
    scores: Array,
    able: Mask,
    levels: Sequence[int] | None = None,
    sites: Array | None = None,
) -> list[dict[str, Any]]:
    """Return up to three of the best (site, level) pairs, in the form of ``why["best"]``.

    Parameters
    ----------
    state : State
    scores : (N,) or (N, K) array
        One column per level; minus infinity excludes a pair.
    able : (N,) or (N, K) bool array
        Pairs that are affordable and were not rejected.
    levels : sequence of K int, optional
        The sensor's levels that the columns stand for; by default the first K.
    sites : (N, d) array, optional
        By default the domain's sites.

    Returns
    -------
    list of dict
        The best first, ties to the lowest site; plain data:

        - ``site``: its coordinates,
        - ``value``: its score,
        - ``cost``: the full declared cost of going there and sampling; None if costs are unknown,
        - ``left``: how much of `State.spendable` could still be spent on queries after it, with the trip home
          from there set aside; 0 means that only the trip home remains. None if costs are unknown,
        - ``left_s``: the same for a time limit, in seconds, if there is one,
        - ``level``: the sensor's level, if it has several.
    """
    scores, able = scores.reshape(len(scores), -1), able.reshape(len(scores), -1)
    return _describe(state, scores, _highest_pairs(scores, able), levels, sites)


def _highest_pairs(scores: Array, able: Mask) -> list[tuple[int, int]]:
    """Return (site, column) of up to three of the best choosable scores (N, K), the best first."""
    rest, pairs = np.where(able, scores, -np.inf).ravel(), list[tuple[int, int]]()
    while len(pairs) < LEADING and (flat := highest(rest)) is not None:
        pairs.append(divmod(flat, scores.shape[1]))
        rest[flat] = -np.inf
    return pairs


def _describe(
    state: State,
    scores: Array,
    pairs: list[tuple[int, int]],
    levels: Sequence[int] | None,
    sites: Array | None = None,
) -> list[dict[str, Any]]:
    """Return the description of (site, column) pairs; see `leading`."""
    if not pairs:
        return []
    numbers = state.levels if levels is None else levels
    at = [numbers[column] for _, column in pairs]
    sites = (state.domain.sites if sites is None else sites)[[index for index, _ in pairs]]
    described: list[dict[str, Any]] = [
        {"site": site, "value": _plain(scores[pair]), "cost": None, "left": None}
        for site, pair in zip(sites.tolist(), pairs, strict=True)
    ]
    if state.cost is not None:
        prices = {k: state.cost.to(state.position, sites, level=k, time_s=state.time_s) for k in set(at)}
        for n, candidate in enumerate(described):
            candidate["cost"] = _plain(prices[at[n]][n])
            for limit in state.limits:
                candidate[LEFT[limit.name]] = limit.after(state.position, sites[n], at[n])
    if len(state.levels) > 1:
        for candidate, level in zip(described, at, strict=True):
            candidate["level"] = level
    return described


def _plain(score: float) -> float | str:
    """Return a score in a form that JSON can hold: an infinite one as text."""
    return float(score) if np.isfinite(score) else str(float(score))


def highest(scores: Array) -> int | None:
    """Return the index of the highest score (N,), the lowest of ties; None if all are minus infinity.

    Raises
    ------
    PolicyError
        A score is NaN.

    Examples
    --------
    >>> highest(np.array([1.0, 3.0, 3.0 + 1e-12])), highest(np.array([1.0, np.inf, np.inf]))
    (1, 1)
    """
    best = float(scores.max())
    if best == -np.inf:
        return None
    if np.isnan(best):
        count = np.count_nonzero(np.isnan(scores))
        raise PolicyError(f"{THIS_POLICY} gave NaN as the score of {count} of {len(scores)} candidates")
    tie = TIE * abs(best) if best < np.inf else 0.0
    return int(np.argmax(scores >= best - tie))


def needs_declared_costs(cost: CostModel | None, problem: str = "needs declared costs") -> CostModel:
    """Return the costs; raise an `InputError` unless they are declared."""
    if cost is None:
        raise InputError(
            f"{THIS_POLICY} {problem}",
            expected="costs that the agent knows",
            where="agent.costs",
            fix='set costs = "declared", if the world has them, or choose another policy: fieldbo policies',
        )
    return cost


def needs_positive_costs(cost: CostModel | None, domain: Domain) -> None:
    """Raise an `InputError` unless even staying put and sampling costs something."""
    cost = needs_declared_costs(cost, "divides by the cost, which is not declared")
    least = cost.least_sampling_cost(domain.sites)
    if least <= 0:
        raise InputError(
            f"sampling again at the same site costs {least:g}, and {THIS_POLICY} divides by the cost",
            expected="a sampling cost above 0",
            where="cost",
            fix=cost.to_price_samples,
        )
