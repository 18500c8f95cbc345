"""The rivals of TruVaR for level sets: GCHK, straddle and maximum variance.

Each has the option ``per_cost``: its score divided by the cost of the move.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np

from fieldbo.costs.base import CostModel
from fieldbo.domain import Array, Domain
from fieldbo.errors import InputError
from fieldbo.exchange import EndReason, Event, Fitted, Observation, Stop
from fieldbo.policies.acquisition import Ambiguity, ambiguity, straddle
from fieldbo.policies.base import Decision, Memory, Policy, State, best_affordable, needs_positive_costs


@dataclass(frozen=True)
class _PerCost(Policy):
    """A rule whose score can be divided by the cost of the move.

    Parameters
    ----------
    per_cost : bool
        Whether it is.
    """

    per_cost: bool = False

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is to be divided by, and is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs(f"{type(self).__name__} with per_cost", cost, domain)

    def _divided(self, scores: Array, state: State) -> Array:
        """Divide by the cost where a score is positive, so that a negative one is not made better by it.

        Where no affordable site has a positive score, the plain scores decide.
        """
        if not self.per_cost or not (scores[state.choosable()] > 0).any():
            return scores
        return np.where(scores > 0, scores / state.costs(), -np.inf)


@dataclass(frozen=True)
class MaximumVariance(_PerCost):
    """Sample where the field is least known; blind to the threshold."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest posterior variance (per unit of cost)."""
        return best_affordable(state, self._divided(state.surface.variance, state), memory)


@dataclass(frozen=True)
class Straddle(_PerCost):
    """Sample where ``kappa s - |mu - h|`` is largest (Bryan et al. 2005).

    Parameters
    ----------
    kappa : float
    """

    kappa: float = 1.96

    def __post_init__(self) -> None:
        _above_zero("kappa", self.kappa)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest straddle score (per unit of cost)."""
        scores = straddle(state.surface.mean, state.surface.sd, state.threshold, self.kappa)
        return best_affordable(state, self._divided(scores, state), memory)


@dataclass(frozen=True)
class GCHK(_PerCost):
    """Sample the most ambiguous site that is not yet classified (Gotovos et al. 2013).

    Parameters
    ----------
    kappa : float
        Width of the confidence bounds, the paper's ``sqrt(beta)``.
    intersect : bool
        Bounds only ever tighten: each is cut with those before.
    """

    kappa: float = 3.0
    intersect: bool = False

    def __post_init__(self) -> None:
        _above_zero("kappa", self.kappa)

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Tighten the bounds, where they are kept; a fit starts them anew."""
        if not self.intersect or not isinstance(event, Observation | Fitted):
            return memory
        past = None if isinstance(event, Fitted) else memory
        found = self._ambiguity(state, past)
        return {
            name: base64.b64encode(bound.tobytes()).decode()
            for name, bound in (("lower", found.lower), ("upper", found.upper))
        }

    def _ambiguity(self, state: State, memory: Memory) -> Ambiguity:
        bounds = {k: np.frombuffer(base64.b64decode(v)) for k, v in (memory or {}).items()}
        surface = state.surface
        return ambiguity(surface.mean, surface.sd, state.threshold, self.kappa, **bounds)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the most ambiguous affordable site (per unit of cost); Stop when none is ambiguous."""
        scores = self._ambiguity(state, memory).score
        # A provisional model's scale is a guess, and says of no site that it is classified.
        open_sites = (scores >= 0) | state.provisional
        why = {"unclassified": int(open_sites.sum())}
        if state.steps and not open_sites.any():
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        divided = self._divided(np.where(open_sites, scores, -np.inf), state)
        return best_affordable(state, divided, memory, **why)


def _above_zero(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise InputError(f"{name} = {value}", expected="a number above 0", where=f"policy.{name}")
