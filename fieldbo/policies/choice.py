"""The best affordable query: from a table of scores, or among the candidates for an optimum.

On a grid the candidates for an optimum are its sites. In a box each decision draws new ones, all over the box
and around the vehicle and the best sites so far, and climbs from the best of them.

Candidates that are known exactly are left out, as another reading there would teach nothing. Once all are,
the question is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import NonNegativeInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.readings import NOISE_FLOOR
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import around, polished
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


_BEST_SITES = 3
"""Number of sites read, those of the largest mean, around which candidates are drawn in a box."""

_KNOWN = 1.1 * NOISE_FLOOR
"""Variance, relative to the prior's, at which a point counts as known: the floor, and rounding."""


def incumbent(surface: Surface) -> float:
    """Return the best posterior mean over the sites that were read, or over all candidates if none was.

    Examples
    --------
    >>> from fieldbo.belief.posterior import Belief
    >>> from fieldbo.belief.kernels import Matern52
    >>> read = Surface(Belief(Matern52([1.0])).condition_on([[0.0], [5.0]], [2.0, 1.0], 0.25), [[0.0], [9.0]])
    >>> round(incumbent(read), 3)
    1.6
    """
    belief = surface.belief
    if not belief.size:
        return float(surface.mean.max())
    return float(np.max(belief.mean_at_sites()))


def reading_noise(state: State, level: int, surface: Surface | None = None) -> Array:
    """Return the noise variances (N,) of readings, raised to the belief's floor above 0.

    At the candidates of a surface; by default at the domain's sites.
    """
    over = state.surface if surface is None else surface
    return np.maximum(state.noise(level, over), NOISE_FLOOR * over.belief.kernel.diagonal(over.candidates))


def known_exactly(belief: Belief, points: Array, variance: Array) -> Mask:
    """Return which points (P, d) are known exactly, as (P,) bool: only the noise floor is left of `variance`.

    A reading without noise makes its site known; readings with noise above the floor never do in practice.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> points = np.array([[0.0], [0.1], [9.0]])
    >>> belief = Belief(Matern52([1.0])).condition_on([[0.0], [9.0]], [2.0, 1.0], [0.0, 1e-6])
    >>> known_exactly(belief, points, belief.variance(points))
    array([ True, False, False])
    """
    return np.asarray(variance <= _KNOWN * belief.kernel.diagonal(points))


def worth_reading(state: State, surface: Surface) -> Mask:
    """Return which candidates (N,) of a surface are not known exactly, as bool.

    All are worth reading if none would be left while the model is provisional: its variances are a guess.
    """
    known = known_exactly(surface.belief, surface.candidates, surface.variance)
    return ~known | (state.provisional and bool(known.all()))


@settings("policy")
class ForOptimum(PerCost):
    """A policy for an optimum, whose scores leave out sites that are known exactly."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    def best(self, state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
        """Return the decision for the best affordable site that is not known exactly (per unit of cost).

        A Stop, "question answered", if all sites that were not rejected are known.
        """
        worth = worth_reading(state, state.surface)
        left = ~state.rejected if len(state.rejected) else np.ones(len(worth), dtype=bool)
        if left.any() and not worth[left].any():
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        return super().best(state, np.where(worth, scores, -np.inf), memory, **why)


def over_candidates(state: State, candidates: int) -> Surface | EndReason:
    """Return the belief over the candidates; the reason to stop if all were rejected, or are known exactly.

    Parameters
    ----------
    state : State
    candidates : int
        Number to draw in a box.
    """
    belief, points, rejected = state.belief, state.domain.sites, state.rejected
    if state.domain.continuous:
        read = belief.sites[np.argsort(-belief.mean_at_sites(), kind="stable")[:_BEST_SITES]]
        centres = np.concatenate([state.position[None], read.reshape(-1, state.domain.dimension)])
        points = around(state.domain, state.rng, candidates, np.unique(centres, axis=0))
        rejected = near_rejected(state, points)
    if rejected.any():
        points = points[~rejected]
    if not len(points):
        return EndReason.STOPPED_BY_POLICY
    surface = state.surface if points is state.domain.sites else Surface(belief, points)
    worth = worth_reading(state, surface)
    if not worth.any():
        return EndReason.QUESTION_ANSWERED
    return surface if worth.all() else Surface(belief, points[worth])


def near_rejected(state: State, points: Array) -> Mask:
    """Return True for points of a box (m, d) whose nearest site was rejected, as (m,) bool."""
    if not state.rejected.any():
        return np.zeros(len(points), dtype=bool)
    return state.rejected[[state.domain.nearest(point) for point in points]]


def readable(state: State, points: Array, level: int = 0) -> Mask:
    """Return which points (m, d) are affordable, not rejected and not known exactly, as (m,) bool."""
    able = state.affordable(points, level=level) & ~near_rejected(state, points)
    if able.any():
        able &= ~known_exactly(state.belief, points, state.belief.variance(points))
    return able


def best_candidate(
    state: State,
    surface: Surface,
    scores: Array,
    able: Mask,
    elsewhere: Callable[[Array], Array],
    memory: Memory,
    level: int = 0,
    **why: Any,
) -> Decision:
    """Return the decision for the best candidate; in a box, for a better point that a climb from it reaches.

    Parameters
    ----------
    state : State
    surface : Surface
        The belief over the candidates.
    scores : (N,) array
        One per candidate; minus infinity excludes it.
    able : (N,) bool array
        Candidates that are affordable.
    elsewhere : Callable
        ``elsewhere(points) -> (m,)``, the scores of other affordable points (m, d).
    memory : plain data
    level : int
        The sensor's level to read with.
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop if no candidate remains: "stopped by policy" if all are affordable, otherwise "battery spent".
    """
    best = leading(state, scores, able, (level,), surface.candidates)
    if not best:
        reason = EndReason.STOPPED_BY_POLICY if able.all() else EndReason.BATTERY_SPENT
        return Decision(Stop(reason), memory, why)
    site = np.array(best[0]["site"])
    if state.domain.continuous:
        point, score = climbed(state, elsewhere, site, level)
        if np.isfinite(score) and score > float(best[0]["value"]):
            site, able = point, np.ones(1, dtype=bool)
            best[0] = leading(state, np.array([score]), able, (level,), point[None])[0]
    else:
        why = {"site": state.domain.nearest(site), **why}
    return Decision(Query(site, level=level), memory, {"score": best[0]["value"], "best": best, **why})


def climbed(
    state: State, scores: Callable[[Array], Array], start: Array, level: int = 0
) -> tuple[Array, float]:
    """Return the best point of a box that a climb sees, and its score; minus infinity if there is none.

    The climb avoids points that are not affordable, were rejected or are known exactly.

    Parameters
    ----------
    state : State
    scores : Callable
        ``scores(points) -> (m,)``, the scores of points (m, d).
    start : (d,) array
    level : int
        The sensor's level to read with.
    """

    def of_affordable(points: Array) -> Array:
        able = readable(state, points, level)
        values = np.full(len(points), -np.inf)
        if able.any():
            values[able] = scores(points[able])
        return values

    return polished(of_affordable, start, state.domain)
