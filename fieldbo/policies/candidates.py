"""Candidates of policies for an optimum, and the choice among them, on a grid or in a box.

On a grid the candidates are its sites. In a box each decision draws new ones, all over the box and around the
vehicle and the best sites so far, and climbs from the best of them.

Candidates that are known exactly are left out, as another reading there would teach nothing. Once all are,
the question is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.readings import NOISE_FLOOR
from fieldbo.belief.surface import Surface
from fieldbo.domain.search import around, polished
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.choice import PerCost, leading
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.validation import settings

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
