"""Policies to compare others with: random sites, the lawnmower's sweep, and scores of single sites.

The first two use no model. Maximum variance, straddle and GCHK, rivals of TruVaR for level sets, go by the
mean and the standard deviation at each site. All but the sweep can divide their score by the cost of the move
(``per_cost``).
"""

from __future__ import annotations

import base64

import numpy as np
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import LevelSet, ShareOfMaximum
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import Correction, EndReason, Event, Fitted, Observation, Query, Stop
from fieldbo.policies.acquisition import Ambiguity, ambiguity, straddle
from fieldbo.policies.choice import PerCost
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, Policy, State
from fieldbo.validation import settings


@settings("policy")
class Random(PerCost):
    """Sample a random affordable site; with ``per_cost``, cheap sites more often."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return a random affordable site."""
        return self.best(state, state.rng.random(state.domain.size), memory)


def sweep(domain: Domain, lines: int, along: int = 0) -> Array:
    """Return the sites of a boustrophedon sweep, in order, as (k, d).

    Evenly spaced lines of sites, each followed in the opposite direction to the one before.

    Parameters
    ----------
    domain : Domain
    lines : int
        Number of lines, at most one per distinct position along the axis.
    along : int
        The axis along which the lines are spaced.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> lawn = Domain.grid([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], (3, 2))
    >>> sweep(lawn, 2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [2.0, 0.0]]
    """
    positions = np.unique(domain.sites[:, along])
    chosen = positions[_evenly_spread(len(positions), lines)]
    others = [j for j in range(domain.dimension) if j != along]
    rows = []
    for number, position in enumerate(chosen):
        line = domain.sites[domain.sites[:, along] == position]
        line = line[np.lexsort(line[:, others[::-1]].T)] if others else line
        rows.append(line[:: 1 if number % 2 == 0 else -1])
    return np.concatenate(rows)


def _evenly_spread(size: int, n: int) -> Array:
    """Return up to `n` evenly spread indices into `size` items, the ends included."""
    return np.unique(np.linspace(0, size - 1, min(n, size)).round().astype(int))


@settings("policy")
class Lawnmower(Policy):
    """Sweep in parallel lines, as surveys are flown and sailed; stop at the end of the sweep."""

    lines: PositiveInt = 10
    """Number of lines."""
    samples: PositiveInt = 10
    """Most samples on a line, evenly spread."""
    along: NonNegativeInt = 0
    """Number of the axis along which the lines are spaced, from 0."""
    level: NonNegativeInt = 0
    """The sensor's level to read with."""

    def _route(self, domain: Domain) -> Array:
        if not 0 <= self.along < domain.dimension:
            raise InputError(
                f"there is no axis {self.along} for along",
                expected=f"the number of an axis, 0 to {domain.dimension - 1}",
                where="policy.along",
            )
        sites = sweep(domain, self.lines, self.along)
        cuts = np.flatnonzero(np.diff(sites[:, self.along])) + 1
        lines = np.split(sites, cuts)
        return np.concatenate([line[_evenly_spread(len(line), self.samples)] for line in lines])

    def check(self, cost: object, domain: Domain) -> None:
        """Raise an `InputError` if the axis does not exist, or the domain has no lines of sites."""
        if domain.continuous:
            raise InputError(
                f"{THIS_POLICY} follows the lines of a grid, but the domain is a box",
                expected='a domain of kind "grid"',
                where="policy.kind",
            )
        self._route(domain)

    def start(self, state: State) -> Memory:
        """Start at the sweep's first site."""
        return 0

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next site of the sweep that was not rejected; Stop if it is not affordable."""
        route = self._route(state.domain)
        rejected = (
            state.domain.sites[state.rejected] if len(state.rejected) else np.empty((0, route.shape[1]))
        )
        at = memory
        while at < len(route) and (rejected == route[at]).all(axis=1).any():
            at += 1
        if at >= len(route):
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory)
        why = {"next": at, "of": len(route)}
        if not state.affordable(route[at : at + 1], level=self.level)[0]:
            return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return Decision(Query(route[at], level=self.level), at + 1, why)


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
