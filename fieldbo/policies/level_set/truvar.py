"""TruVaR: reduce the truncated variance of the sites in question, per unit of cost.

Bogunovic, Scarlett, Krause and Cevher (2016), algorithm 1, for level sets and optima. For sets and epochs see
:mod:`fieldbo.policies.level_set.confidence_sets`, for the score :mod:`fieldbo.policies.level_set.reduction`.
The memory holds the epoch, and H and L as base64 of packed bits.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum, ShareOfMaximum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import Correction, EndReason, Event, Fitted, Observation, Query, Stop
from fieldbo.policies.acquisition import truncated_variance_reduction
from fieldbo.policies.choice import best_pair, leading, needs_positive_costs
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.policies.level_set.confidence_sets import (
    Epoch,
    Sets,
    advanced_epoch,
    beta_at,
    potential_maximisers,
    threshold_bounds,
    updated_sets,
)
from fieldbo.policies.level_set.reduction import Anticipation, Reduction
from fieldbo.validation import settings

NOISY = 1e-4
"""Noise variance, relative to the prior's, above which sets must be able to grow."""


def _pack(mask: Mask) -> str:
    return base64.b64encode(np.packbits(mask).tobytes()).decode()


def _unpack(text: str, n: int) -> Mask:
    bits = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.unpackbits(bits, count=n).astype(bool)


def _candidates(state: State) -> int:
    """Return |D|, counting (site, level) pairs; at least 2, as a single one would have beta = 0."""
    return max(2, state.domain.size * len(state.levels))


@settings("policy")
class TruVaR(Policy):
    """Reduce the truncated variance of the sites in question, per unit of cost (Bogunovic et al. 2016).

    If the sensor has several settings, each (site, level) pair is a candidate. In a continuous domain the
    best representative point is moved within its grid cell to the highest-scoring point; batches and the
    variants `within` and `anticipate` use representative points only.
    """

    per_cost: bool = True
    """Whether to divide by the cost of the move, as the paper does."""
    a: PositiveFloat = 1.0
    """Scale of beta. For an optimum the paper uses 0.5, but that rules out the true optimum in one run in
    eight."""
    eta: NonNegativeFloat = 1.0
    """Accuracy sought in the first epoch; 0 makes this pure variance reduction."""
    r: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Factor by which eta shrinks from epoch to epoch."""
    delta: NonNegativeFloat = 0.0
    """Tolerance: an epoch ends once the accuracy is within ``(1 + delta) eta``."""
    monotone: bool | None = None
    """Whether a classified site stays classified. Default: yes if the hyperparameters are fixed and the noise
    variance is below 1e-4 of the prior's."""
    within: bool = False
    """Whether to sample only sites still in question."""
    anticipate: bool = False
    """Whether to credit a site that a reading is expected to classify in full; about fifteen times slower."""
    answered_at: NonNegativeInt = 1
    """For an optimum on a grid: stop at this number of potential maximisers; 0 to never stop."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs(cost, domain)

    def _is_monotone(self, state: State) -> bool:
        if self.monotone is not None:
            return self.monotone
        prior = state.belief.kernel.diagonal(state.domain.sites[:1])[0]
        return bool(state.fixed_model and np.all(state.at_levels(state.noise) <= NOISY * prior))

    def start(self, state: State) -> Memory:
        """Begin the first epoch with nothing classified."""
        none = np.zeros(state.domain.size, dtype=bool)
        first = Epoch(1, beta_at(self.a, _candidates(state), 1), self.eta)
        return self._remember(Sets(~none, none, none), first, self._is_monotone(state))

    def _remember(self, sets: Sets, epoch: Epoch, monotone: bool) -> dict[str, Any]:
        return {"H": _pack(sets.H), "L": _pack(sets.L), **epoch._asdict(), "monotone": monotone}

    def _recall(self, memory: Memory, n: int) -> tuple[Sets, Epoch]:
        H, L = _unpack(memory["H"], n), _unpack(memory["L"], n)
        return Sets(~(H | L), H, L), Epoch(memory["i"], memory["beta"], memory["eta"])

    def open_sites(self, memory: Memory, n: int) -> int:
        """Return how many of `n` sites are in question, according to `memory`."""
        return int(self._recall(memory, n)[0].M.sum())

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Update the sets and the epoch after a reading or a fit.

        A rebuilt belief classifies all sites again; a provisional one classifies none.
        """
        if not isinstance(event, Observation | Correction | Fitted) or state.provisional:
            return memory
        before, epoch = self._recall(memory, state.domain.size)
        afresh = state.rebuilt or not memory["monotone"]
        sd = state.surface.sd
        sets = self._sets(state, sd, epoch.beta, before, monotone=not afresh)
        epoch = advanced_epoch(
            sd,
            sets.M,
            epoch,
            state.steps,
            a=self.a,
            n_candidates=_candidates(state),
            r=self.r,
            delta=self.delta,
        )
        return self._remember(sets, epoch, memory["monotone"])

    def _sets(self, state: State, sd: Array, beta: float, before: Sets, *, monotone: bool) -> Sets:
        mu = state.surface.mean
        if isinstance(state.question, Optimum):
            M = potential_maximisers(mu, sd, beta, before.M if monotone else None)
            return Sets(M, np.zeros_like(M), ~M)
        h = threshold_bounds(mu, sd, state.threshold_if, beta)
        return updated_sets(mu, sd, h, beta, before, monotone=monotone)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the pair of the largest reduction per unit of cost; Stop when nothing is in question."""
        sets, epoch = self._recall(memory, state.domain.size)
        why = self._why(sets, epoch)
        if self._answered(state, sets):
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        reduction = self._reduction(state, sets, epoch)
        scores = reduction.scores(state.surface)
        if self.within:
            scores[~sets.M] = -np.inf
        decision = best_pair(state, scores, reduction.able, memory, **why)
        keeps_to_sites = not state.domain.continuous or self.within or self.anticipate
        return decision if keeps_to_sites else self._polished(state, reduction, decision)

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return the first `k` steps of the greedy cover, each at its cost from the present position."""
        sets, epoch = self._recall(memory, state.domain.size)
        if self._answered(state, sets):
            return None
        chosen = self._reduction(state, sets, epoch).batch(state.surface, k)
        why = self._why(sets, epoch)
        return [
            Decision(
                Query(state.domain.sites[site], level=level),
                memory,
                {"score": score, "site": site, "batch": n, **why},
            )
            for n, (site, level, score) in enumerate(chosen)
        ]

    def _why(self, sets: Sets, epoch: Epoch) -> dict[str, Any]:
        return {"epoch": epoch.i, "beta": epoch.beta, "eta": epoch.eta, "unclassified": int(sets.M.sum())}

    def _answered(self, state: State, sets: Sets) -> bool:
        if not state.steps or state.provisional:
            return False
        if isinstance(state.question, Optimum):
            return not state.domain.continuous and int(sets.M.sum()) <= self.answered_at
        return not sets.M.any()

    def _reduction(self, state: State, sets: Sets, epoch: Epoch) -> Reduction:
        """Return the reduction (eq. 3); for a share of the maximum, potential maximisers are members too."""
        surface, able = state.surface, state.at_levels(state.choosable)
        members = sets.M
        if isinstance(state.question, ShareOfMaximum):
            members = members | potential_maximisers(surface.mean, surface.sd, epoch.beta)
        if self.within:
            able = able & sets.M[:, None]
        costs = state.at_levels(state.costs) if self.per_cost else np.ones(able.shape)
        whole = Reduction(members, state.at_levels(state.noise), costs, able, epoch.beta, epoch.eta)
        if not self.anticipate:
            return whole
        return Anticipation(**vars(whole), leaves_below=_leaves_below(state, epoch.beta))

    def _polished(self, state: State, reduction: Reduction, decision: Decision) -> Decision:
        """Return the decision for the best point near the chosen representer of a continuous domain."""
        from scipy.optimize import minimize

        if not isinstance(query := decision.choice, Query):
            return decision
        domain, level = state.domain, query.level
        noise = reduction.noise[decision.why["site"], level : level + 1]
        surface = state.surface
        # Members below the floor can't gain.
        wanted = np.flatnonzero(reduction.members & (surface.variance > reduction.eta**2 / reduction.beta))

        def loss(unit: Array) -> float:
            x = (domain.low + unit * domain.extent)[None]
            price = np.ones(1)
            if self.per_cost and state.cost is not None:
                price = state.cost.to(state.position, x, level=level, time_s=state.time_s)
            score = truncated_variance_reduction(
                surface.covariance_with(x, wanted),
                surface.belief.variance(x),
                noise,
                surface.variance[wanted],
                price,
                reduction.beta,
                reduction.eta,
            )
            return -float(score[0])

        start = (query.site - domain.low) / domain.extent
        cell = domain.size ** (-1.0 / domain.dimension)
        bounds = [(max(0.0, u - cell), min(1.0, u + cell)) for u in start]
        end = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 20})
        site = np.clip(domain.low + end.x * domain.extent, domain.low, domain.high)
        # A rejection excludes the nearest representer: it must be the one that was chosen.
        same = domain.nearest(site) == decision.why["site"] and domain.contains(site)[0]
        better = end.fun < -decision.why["score"]
        if not (same and better and state.affordable(site[None], level=level)[0]):
            return decision
        score = -float(end.fun)
        best = leading(state, np.array([score]), np.array([True]), [level], site[None])
        why = {**decision.why, "score": score, "best": [*best, *decision.why["best"][1:]]}
        return replace(decision, choice=replace(query, site=site), why=why)

    def warnings(self, state: State) -> list[str]:
        """Warn if the prior alone classifies every site, and if lack of memory slows decisions down."""
        return [*self._classified_by_prior(state), *self._short_of_memory(state)]

    def _classified_by_prior(self, state: State) -> list[str]:
        if np.isnan(state.threshold) or state.belief.size:  # earlier readings may answer the question
            return []
        root = np.sqrt(beta_at(self.a, _candidates(state), 1))
        surface = state.surface
        none = np.zeros(surface.size, dtype=bool)
        sets = self._sets(state, surface.sd, root**2, Sets(~none, none, none), monotone=False)
        if sets.M.any():
            return []
        return [
            "the prior classifies every site before the first reading: the threshold lies more than "
            f"sqrt(beta) = {root:.2f} prior standard deviations from the prior mean; set model.mean and "
            "model.variance closer to the values"
        ]

    def _short_of_memory(self, state: State) -> list[str]:
        lookahead = state.surface.lookahead
        if lookahead.keeps:
            return []
        return [
            f"covariances between {state.domain.size} sites need {lookahead.kept_bytes / 1e9:.2g} GB, and "
            f"{lookahead.most_bytes / 1e9:.2g} GB are allowed: each decision recomputes them, slower and "
            "with the same choices; raise model.memory_gb to keep them"
        ]


def _leaves_below(state: State, beta: float) -> Array:
    """Return the variance (N,) below which each site would be classified if the means stayed the same."""
    mu, sd = state.surface.mean, state.surface.sd
    if isinstance(state.question, Optimum):
        gap = (mu - np.sqrt(beta) * sd).max() - mu
    else:
        pessimistic, optimistic = threshold_bounds(mu, sd, state.threshold_if, beta)
        gap = np.maximum(pessimistic - mu, mu - optimistic)
    return np.asarray(np.square(np.maximum(gap, 0.0)) / beta)
