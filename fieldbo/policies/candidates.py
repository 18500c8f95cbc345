"""What a rule for an optimum chooses among, and its choice: given sites, or any point of a box.

Where sites are given they are the candidates. In a box candidates are drawn anew for each decision, all over
it and about the vehicle and the best places so far, and the best of them is climbed from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.surface import Surface
from fieldbo.domain.search import around, polished
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.choice import leading
from fieldbo.policies.contract import Decision, Memory, State

_BEST_PLACES = 3
"""So many of the sites that were read, those of the largest mean, have candidates about them in a box."""


def needs_candidates(candidates: int) -> None:
    """Raise an `InputError` unless there is a candidate to choose."""
    if candidates < 1:
        raise InputError(f"candidates = {candidates}", expected="at least 1", where="policy.candidates")


def over_candidates(state: State, candidates: int) -> Surface | None:
    """Return the belief over what can be chosen; None if all of it was rejected.

    Parameters
    ----------
    state : State
    candidates : int
        How many are drawn in a box.
    """
    belief, points, rejected = state.belief, state.domain.sites, state.rejected
    if state.domain.continuous:
        read = belief.sites[np.argsort(-belief.mean_at_sites(), kind="stable")[:_BEST_PLACES]]
        places = np.concatenate([state.position[None], read.reshape(-1, state.domain.dimension)])
        points = around(state.domain, state.rng, candidates, np.unique(places, axis=0))
        rejected = _rejected(state, points)
    if rejected.any():
        points = points[~rejected]
    if not len(points):
        return None
    return state.surface if points is state.domain.sites else Surface(belief, points)


def _rejected(state: State, points: Array) -> Mask:
    """Return which points of a box (m, d) lie about a place that was turned down."""
    if not state.rejected.any():
        return np.zeros(len(points), dtype=bool)
    return state.rejected[[state.domain.nearest(point) for point in points]]


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
    """Return the decision for the candidate of the highest score, or for the better point above it in a box.

    Parameters
    ----------
    state : State
    surface : Surface
        The belief over the candidates.
    scores : (N,) array
        Of the candidates; minus infinity rules one out.
    able : (N,) bool array
        Which of them can be paid for.
    elsewhere : Callable
        Of other points (m, d) that can be paid for; returns their scores (m,).
    memory : plain data
    level : int
        The sensor's setting to read with.
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop where no candidate can be had: "stopped by policy" if all can be paid for.
    """
    best = leading(state, scores, able, (level,), surface.candidates)
    if not best:
        reason = EndReason.STOPPED_BY_POLICY if able.all() else EndReason.BATTERY_SPENT
        return Decision(Stop(reason), memory, why)
    site = np.array(best[0]["site"])
    if state.domain.continuous:
        site = _climbed(state, elsewhere, site, best, level)
    else:
        why = {"site": state.domain.nearest(site), **why}
    return Decision(Query(site, level=level), memory, {"score": best[0]["value"], "best": best, **why})


def _climbed(
    state: State, scores: Callable[[Array], Array], site: Array, best: list[dict[str, Any]], level: int
) -> Array:
    """Return the point that the best candidate was improved to, after putting it in the first place."""

    def of_affordable(points: Array) -> Array:
        able = state.affordable(points, level=level) & ~_rejected(state, points)
        found = np.full(len(points), -np.inf)
        if able.any():
            found[able] = scores(points[able])
        return found

    point, score = polished(of_affordable, site, state.domain)
    if np.isfinite(score) and score > float(best[0]["value"]):
        able = np.ones(1, dtype=bool)
        best[0] = leading(state, np.array([score]), able, (level,), point[None])[0]
        return point
    return site
