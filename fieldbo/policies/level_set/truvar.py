"""TruVaR: shrink the truncated variance of what is still in question, per unit of cost.

Bogunovic, Scarlett, Krause and Cevher (2016), algorithm 1, for level sets and optima. Sets and epochs are
those of :mod:`fieldbo.policies.level_set.confidence_sets`, the score is that of
:mod:`fieldbo.policies.level_set.reduction`. The memory keeps the epoch, and H and L as base64 of packed bits.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum, ShareOfMaximum
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Event, Fitted, Observation, Query, Stop
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

NOISY = 1e-4
"""Readings whose noise variance exceeds this share of the prior's are noisy: sets must be able to grow."""


def _pack(mask: Mask) -> str:
    return base64.b64encode(np.packbits(mask).tobytes()).decode()


def _unpack(text: str, n: int) -> Mask:
    bits = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.unpackbits(bits, count=n).astype(bool)


def _candidates(state: State) -> int:
    """Return |D|, counting (site, level) pairs; at least 2, as a single one would have beta = 0."""
    return max(2, state.domain.size * len(state.levels))


@dataclass(frozen=True)
class TruVaR(Policy):
    """Shrink the truncated variance of what is in question, per unit of cost (Bogunovic et al. 2016).

    Where the sensor has several settings, each (site, level) pair is a candidate. In a continuous domain
    the best representer is then moved within its cell to where the score is highest; batches and the
    variants `within` and `anticipate` keep to representers.

    Parameters
    ----------
    per_cost : bool
        Divide by the cost of the move, as the paper does; False is the rule that ignores costs.
    a : float
        Scale of beta. For an optimum the paper takes 0.5, which rules the true one out in one run of eight.
    eta : float
        The first epoch's; 0 makes it pure variance reduction.
    r : float
        Between 0 and 1.
    delta : float
        How much early an epoch may end.
    monotone : bool, optional
        Whether what is classified stays so. By default it does where hyperparameters are known and noise
        is below 1e-4 of the prior's variance.
    within : bool
        Whether only sites still in question are read.
    anticipate : bool
        Whether a site that a reading is expected to classify counts as won; some fifteen times slower.
    answered_at : int
        The question for an optimum is answered once so few potential maximisers are left; 0 is never. In
        a continuous domain it never is.
    """

    per_cost: bool = True
    a: float = 1.0
    eta: float = 1.0
    r: float = 0.1
    delta: float = 0.0
    monotone: bool | None = None
    within: bool = False
    anticipate: bool = False
    answered_at: int = 1

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("a", self.a > 0, "a number above 0"),
            ("eta", self.eta >= 0, "a number of at least 0"),
            ("r", 0 < self.r < 1, "a number between 0 and 1"),
            ("delta", self.delta >= 0, "a number of at least 0"),
            ("answered_at", self.answered_at >= 0, "a whole number of at least 0"),
        ):
            if not (good and np.isfinite(getattr(self, name))):
                raise InputError(f"{name} = {getattr(self, name)}", expected=expected, where=f"policy.{name}")

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs("TruVaR", cost, domain)

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
        """Return how many of n sites a memory holds to be in question."""
        return int(self._recall(memory, n)[0].M.sum())

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Update the sets and the epoch after a reading or a fit; afresh where the belief was rebuilt.

        While the model is provisional nothing is classified.
        """
        if not isinstance(event, Observation | Fitted) or state.provisional:
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
        """Return eq. 3 as it stands; for a share of the maximum, potential maximisers count as well."""
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
        """Move the choice within its cell of a continuous domain to where the score is highest."""
        from scipy.optimize import minimize

        if not isinstance(query := decision.choice, Query):
            return decision
        domain, level = state.domain, query.level
        noise = reduction.noise[decision.why["site"], level : level + 1]
        surface = state.surface
        # What is below the floor already can't gain.
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
        found = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 20})
        site = np.clip(domain.low + found.x * domain.extent, domain.low, domain.high)
        # A place that is turned down takes its cell out of the choice: it has to be the representer's own.
        own = domain.nearest(site) == decision.why["site"] and domain.contains(site)[0]
        better = found.fun < -decision.why["score"]
        if not (own and better and state.affordable(site[None], level=level)[0]):
            return decision
        score = -float(found.fun)
        told = leading(state, np.array([score]), np.array([True]), [level], site[None])
        why = {**decision.why, "score": score, "best": [*told, *decision.why["best"][1:]]}
        return replace(decision, choice=replace(query, site=site), why=why)

    def warnings(self, state: State) -> list[str]:
        """Warn where the prior alone is sure of every site, and where memory makes decisions slow."""
        return [*self._sure_at_once(state), *self._short_of_memory(state)]

    def _sure_at_once(self, state: State) -> list[str]:
        if np.isnan(state.threshold):
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
            "model.variance nearer to the values"
        ]

    def _short_of_memory(self, state: State) -> list[str]:
        lookahead = state.surface.lookahead
        if lookahead.keeps:
            return []
        return [
            f"covariances between {state.domain.size} sites take {lookahead.kept_bytes / 1e9:.2g} GB, and "
            f"may take {lookahead.most_bytes / 1e9:.2g} GB: they are computed anew at each decision, which "
            "is slower and chooses the same; model.memory_gb allows more"
        ]


def _leaves_below(state: State, beta: float) -> Array:
    """Return the variances (N,) below which sites would be classified if their means stayed as they are."""
    mu, sd = state.surface.mean, state.surface.sd
    if isinstance(state.question, Optimum):
        gap = (mu - np.sqrt(beta) * sd).max() - mu
    else:
        pessimistic, optimistic = threshold_bounds(mu, sd, state.threshold_if, beta)
        gap = np.maximum(pessimistic - mu, mu - optimistic)
    return np.asarray(np.square(np.maximum(gap, 0.0)) / beta)
