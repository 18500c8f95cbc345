"""The rivals of TruVaR for level sets: GCHK, straddle and maximum variance.

Each can divide its score by the cost of the move (``per_cost``).
"""

from __future__ import annotations

import base64

import numpy as np
from pydantic import PositiveFloat

from fieldbo._numerics.arrays import Mask
from fieldbo.belief.question import LevelSet, ShareOfMaximum
from fieldbo.messages import Correction, EndReason, Event, Fitted, Observation, Stop
from fieldbo.policies.acquisition import Ambiguity, ambiguity, straddle
from fieldbo.policies.choice import PerCost
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.validation import settings


@settings("policy")
class MaximumVariance(PerCost):
    """Sample where the posterior variance is largest, whatever the question."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest posterior variance (per unit of cost)."""
        return self.best(state, state.surface.variance, memory)


@settings("policy")
class Straddle(PerCost):
    """Sample where ``kappa s - |mu - h|`` is largest (Bryan et al. 2005)."""

    answers = (LevelSet, ShareOfMaximum)

    kappa: PositiveFloat = 1.96
    """Multiplier of the standard deviation."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest straddle score (per unit of cost)."""
        scores = straddle(state.surface.mean, state.surface.sd, state.threshold, self.kappa)
        return self.best(state, scores, memory)


@settings("policy")
class GCHK(PerCost):
    """Sample the most ambiguous site that is not yet classified (Gotovos et al. 2013).

    If the threshold is a share of the unknown maximum: the site of the widest interval, among those not yet
    classified and those that may be the maximum.
    """

    answers = (LevelSet, ShareOfMaximum)

    kappa: PositiveFloat = 3.0
    """Half width of the confidence bounds in standard deviations, the paper's ``sqrt(beta)``."""
    intersect: bool = False
    """Whether to intersect the bounds with earlier ones, so that they only tighten."""

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Tighten the remembered bounds; start again if the belief was rebuilt."""
        if not self.intersect or not isinstance(event, Observation | Correction | Fitted):
            return memory
        bounds = self._ambiguity(state, None if state.rebuilt else memory)
        return {
            name: base64.b64encode(bound.tobytes()).decode()
            for name, bound in (("lower", bounds.lower), ("upper", bounds.upper))
        }

    def _ambiguity(self, state: State, memory: Memory) -> Ambiguity:
        before = {k: np.frombuffer(base64.b64decode(v)) for k, v in (memory or {}).items()}
        surface = state.surface
        bounds = ambiguity(surface.mean, surface.sd, state.threshold, self.kappa, **before)
        if not isinstance(state.question, ShareOfMaximum):
            return bounds
        may_be_maximum = bounds.upper >= bounds.lower.max()
        wanted = self._unclassified(state, bounds) | may_be_maximum
        return bounds._replace(score=np.where(wanted, bounds.upper - bounds.lower, -np.inf))

    def _unclassified(self, state: State, bounds: Ambiguity) -> Mask:
        """Return the sites (N,) that the bounds do not classify, as bool."""
        if not isinstance(state.question, ShareOfMaximum):
            return bounds.score >= 0
        pessimistic = state.threshold_if(float(bounds.lower.max()))
        optimistic = state.threshold_if(float(bounds.upper.max()))
        return np.asarray((bounds.upper >= pessimistic) & (bounds.lower <= optimistic))

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the most ambiguous affordable site (per unit of cost); Stop when all are classified."""
        bounds = self._ambiguity(state, memory)
        unclassified = self._unclassified(state, bounds)
        why = {"unclassified": int(unclassified.sum())}
        # The scale of a provisional model is a guess, which cannot classify a site.
        if state.steps and not unclassified.any() and not state.provisional:
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        wanted = (bounds.score >= 0) | state.provisional
        return self.best(state, np.where(wanted, bounds.score, -np.inf), memory, **why)
