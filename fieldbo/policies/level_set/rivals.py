"""The rivals of TruVaR for level sets: GCHK, straddle and maximum variance.

Each has the option ``per_cost``: its score divided by the cost of the move.
"""

from __future__ import annotations

import base64

import numpy as np
from pydantic import PositiveFloat

from fieldbo._numerics.arrays import Mask
from fieldbo.belief.question import LevelSet, ShareOfMaximum
from fieldbo.messages import EndReason, Event, Fitted, Observation, Stop
from fieldbo.policies.acquisition import Ambiguity, ambiguity, straddle
from fieldbo.policies.choice import PerCost
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.validation import settings


@settings("policy")
class MaximumVariance(PerCost):
    """Sample where the field is least known; blind to the question."""

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

    Where the threshold is a share of the unknown maximum, the widest interval among the sites that are not
    yet classified, and those that may be the maximum.

    """

    answers = (LevelSet, ShareOfMaximum)

    kappa: PositiveFloat = 3.0
    """Half width of the confidence bounds in standard deviations, the paper's ``sqrt(beta)``."""
    intersect: bool = False
    """Whether to intersect each bound with those before it, so that bounds only tighten."""

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Tighten the bounds, where they are kept; a belief that was rebuilt starts them anew."""
        if not self.intersect or not isinstance(event, Observation | Fitted):
            return memory
        past = None if state.rebuilt else memory
        found = self._ambiguity(state, past)
        return {
            name: base64.b64encode(bound.tobytes()).decode()
            for name, bound in (("lower", found.lower), ("upper", found.upper))
        }

    def _ambiguity(self, state: State, memory: Memory) -> Ambiguity:
        bounds = {k: np.frombuffer(base64.b64decode(v)) for k, v in (memory or {}).items()}
        surface = state.surface
        found = ambiguity(surface.mean, surface.sd, state.threshold, self.kappa, **bounds)
        if not isinstance(state.question, ShareOfMaximum):
            return found
        may_be_maximum = found.upper >= found.lower.max()
        wanted = self._unclassified(state, found) | may_be_maximum
        return found._replace(score=np.where(wanted, found.upper - found.lower, -np.inf))

    def _unclassified(self, state: State, found: Ambiguity) -> Mask:
        """Return the sites (N,) that the bounds do not classify."""
        if not isinstance(state.question, ShareOfMaximum):
            return found.score >= 0
        pessimistic = state.threshold_if(float(found.lower.max()))
        optimistic = state.threshold_if(float(found.upper.max()))
        return np.asarray((found.upper >= pessimistic) & (found.lower <= optimistic))

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the most ambiguous affordable site (per unit of cost); Stop when all are classified."""
        found = self._ambiguity(state, memory)
        unclassified = self._unclassified(state, found)
        why = {"unclassified": int(unclassified.sum())}
        # A provisional model's scale is a guess, and says of no site that it is classified.
        if state.steps and not unclassified.any() and not state.provisional:
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        wanted = (found.score >= 0) | state.provisional
        return self.best(state, np.where(wanted, found.score, -np.inf), memory, **why)
