"""TruVaR: reduce the truncated variance of the sites in question, per unit of cost.

Bogunovic, Scarlett, Krause and Cevher (2016), algorithm 1, for level sets and optima; the equations are
theirs. The memory holds the epoch, and H and L as base64 of packed bits.

===========  ==========================================================================
``M``        sites in question: not yet classified, or potential maximisers
``H, L``     sites inside and outside the level set; for an optimum, L holds the sites ruled out
``u, l``     upper and lower confidence bounds, ``mu +- sqrt(beta) s``
``i``        epoch; ``t`` counts readings from 1
``beta``     ``a log(|D| t_i^2)``, t_i the first step of the epoch
``eta``      target of the epoch for ``sqrt(beta) s``
``r``        factor by which eta shrinks from epoch to epoch
===========  ==========================================================================

All in model units.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum, ShareOfMaximum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import Correction, EndReason, Event, Fitted, Observation, Query, Stop
from fieldbo.policies.acquisition import truncated_variance_reduction
from fieldbo.policies.choice import LEADING, best_pair, highest, leading, needs_positive_costs
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.validation import settings


class Sets(NamedTuple):
    """Sites in question, high sites and low sites, each (N,) bool."""

    M: Mask
    H: Mask
    L: Mask


class Epoch(NamedTuple):
    """Number of the epoch, its beta and its eta."""

    i: int
    beta: float
    eta: float


def beta_at(a: float, n_candidates: int, t: int) -> float:
    """Return ``a log(|D| t^2)`` (section 4).

    Examples
    --------
    >>> round(beta_at(1.0, 2500, 1), 3)
    7.824
    """
    return float(a * np.log(n_candidates * float(t) ** 2))


def beta_in_theory(n_candidates: int, spent: float, least_cost: float, delta: float) -> float:
    """Return ``2 log(|D| C^2 pi^2 / (6 delta c_min^2))`` (eq. 14), with C the cost spent.

    Far more cautious than `beta_at`.

    Examples
    --------
    >>> round(beta_in_theory(100, 50.0, 2.0, 0.1), 3)
    27.686
    """
    steps = spent / least_cost
    return float(2.0 * np.log(n_candidates * steps**2 * np.pi**2 / (6.0 * delta)))


def update_sets(
    mu: Array, s: Array, h: float | tuple[float, float], beta: float, before: Sets, *, monotone: bool
) -> Sets:
    """Return the sets after classifying by the bounds ``mu +- sqrt(beta) s`` (eqs. 6 and 7); ties stay in M.

    Parameters
    ----------
    mu, s : (N,) arrays
    h : float or pair of float
        The threshold, or the lowest and highest value that it may have.
    beta : float
    before : Sets
    monotone : bool
        True to keep classified sites as they are, False to classify all sites again.
    """
    width = np.sqrt(beta) * s
    pessimistic, optimistic = h if isinstance(h, tuple) else (h, h)
    high, low = mu - width > optimistic, mu + width < pessimistic
    if not monotone:
        return Sets(~(high | low), high, low)
    return Sets(before.M & ~(high | low), before.H | (before.M & high), before.L | (before.M & low))


def threshold_bounds(
    mu: Array, s: Array, threshold_if: Callable[[float], float], beta: float
) -> tuple[float, float]:
    """Return the lowest and the highest threshold that the bounds of the field's maximum allow.

    ``h_pes, h_opt = omega max l, omega max u`` over all sites (appendix A); equal for an explicit threshold.
    """
    width = np.sqrt(beta) * s
    return threshold_if(float((mu - width).max())), threshold_if(float((mu + width).max()))


def potential_maximisers(mu: Array, s: Array, beta: float, among: Mask | None = None) -> Mask:
    """Return the sites (N,) whose upper bound reaches the highest lower bound, ``u >= max l`` (eq. 5).

    Parameters
    ----------
    mu, s : (N,) arrays
    beta : float
    among : (N,) bool array, optional
        Restricts the comparison to these sites.
    """
    width = np.sqrt(beta) * s
    open_sites = np.ones(len(mu), dtype=bool) if among is None else among
    return np.asarray(open_sites & (mu + width >= (mu - width)[open_sites].max()))


def advance_epoch(
    s: Array,
    M: Mask,
    epoch: Epoch,
    t: int,
    *,
    a: float,
    n_candidates: int,
    r: float = 0.1,
    delta: float = 0.0,
) -> Epoch:
    """Return the epoch, advanced while all of M is certain enough (algorithm 1, lines 5 and 6).

    ``sqrt(beta) max_M s <= (1 + delta) eta`` starts the next epoch, with t_i = t + 1. An empty M, or
    ``eta = 0``, leaves the epoch as it is.
    """
    i, beta, eta = epoch
    if not M.any() or eta <= 0:
        return epoch
    worst = float(s[M].max())
    while eta > 0 and np.sqrt(beta) * worst <= (1.0 + delta) * eta:
        i, eta, beta = i + 1, eta * r, beta_at(a, n_candidates, t + 1)
        if worst == 0:
            break
    return Epoch(i, beta, eta)


_BLOCK = 256  # sites scored at once in double precision


@dataclass(frozen=True, eq=False)
class Reduction:
    """Eq. 3 over a surface: the reduction of the members' truncated variances, per unit of cost.

    Parameters
    ----------
    members : (N,) bool array
        The sites to sum over.
    noise, cost : (N, K) arrays
        Noise variance and cost (above 0) of a reading at each site and level.
    able : (N, K) bool array
        The pairs that can be chosen.
    beta, eta : float
    """

    members: Mask
    noise: Array
    cost: Array
    able: Mask
    beta: float
    eta: float

    def scores(self, surface: Surface) -> Array:
        """Return the scores (N, K), minus infinity for pairs that can be chosen but cannot lead.

        Single precision, with its error bound, finds the pairs that may be among the leading ones; double
        precision scores these again.
        """
        if not self.members.any():
            return np.zeros_like(self.cost)
        gains = surface.truncated_gains(self.members, self.noise, self.eta**2 / self.beta)
        scores = self.beta * gains.value / self.cost
        if not self.able.any():
            return scores
        slack = self.beta * gains.error / self.cost
        lowest = (scores - slack)[self.able]
        rank = -min(LEADING, lowest.size)
        least = np.partition(lowest, rank)[rank]
        in_question = self.able & (scores + slack >= least)
        if least > 0 or gains.value[self.able].any():  # otherwise there is no gain anywhere: all are equal
            scores[self.able & ~in_question] = -np.inf
            rows, levels = np.nonzero(in_question)
            scores[rows, levels] = self.exact(surface, rows, levels)
        return scores

    def exact(self, surface: Surface, rows: Any, levels: Any) -> Array:
        """Return the scores (p,) of the pairs `rows` (p,), `levels` (p,), in double precision."""
        gains = surface.exact_gains(rows, self.noise[rows, levels], self.members, self.eta**2 / self.beta)
        return np.asarray(self.beta * gains / self.cost[rows, levels])

    def batch(self, surface: Surface, k: int) -> list[tuple[int, int, float]]:
        """Return the first k steps of the greedy cover as (site, level, score); a pair may come twice.

        Members, beta, eta and costs stay as they are; the variances count earlier pairs as read.
        """
        chosen: list[tuple[int, int, float]] = []
        for _ in range(k):
            if chosen:
                site, level, _ = chosen[-1]
                surface = surface.believing(surface.candidates[site], self.noise[site, level])
            scores = np.where(self.able, self.scores(surface), -np.inf)
            flat = highest(scores.ravel())
            if flat is None:
                break
            site, level = divmod(flat, scores.shape[1])
            chosen.append((site, level, float(scores[site, level])))
        return chosen


@dataclass(frozen=True, eq=False)
class Anticipation(Reduction):
    """Eq. 3 over the set that would remain: a site that a reading would classify counts in full.

    The mean stands in for the unknown value (appendix A). All in double precision: error bounds do not cover
    the jump of a site that leaves the set.

    Parameters
    ----------
    leaves_below : (N,) array
        Variance below which each site would be classified.
    """

    leaves_below: Array

    def scores(self, surface: Surface) -> Array:
        """Return the scores (N, K), in double precision."""
        floor = self.eta**2 / self.beta
        now, leaves = surface.variance[self.members], self.leaves_below[self.members]
        # A site that would be classified already brings no gain.
        before = np.where(now < leaves, 0.0, np.maximum(now, floor))
        total = surface.variance[:, None] + self.noise
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        gain = np.empty_like(self.cost)
        for start in range(0, surface.size, _BLOCK):
            some = np.arange(start, min(start + _BLOCK, surface.size))
            squares = np.square(surface.covariance(some, self.members))
            for level in range(self.cost.shape[1]):
                left = now - squares * scale[some, level, None]
                after = np.where(left < leaves, 0.0, np.maximum(left, floor))
                gain[some, level] = np.sum(before - after, axis=1)
        return np.asarray(self.beta * gain / self.cost)


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
        epoch = advance_epoch(
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
        return update_sets(mu, sd, h, beta, before, monotone=monotone)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the pair of the largest reduction per unit of cost; Stop when nothing is in question."""
        sets, epoch = self._recall(memory, state.domain.size)
        why = self._why(sets, epoch)
        if self._is_answered(state, sets):
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        reduction = self._reduction(state, sets, epoch)
        scores = reduction.scores(state.surface)
        if self.within:
            scores[~sets.M] = -np.inf
        decision = best_pair(state, scores, reduction.able, memory, **why)
        keeps_to_sites = not state.domain.continuous or self.within or self.anticipate
        return decision if keeps_to_sites else self._polish(state, reduction, decision)

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return the first `k` steps of the greedy cover, each at its cost from the present position."""
        sets, epoch = self._recall(memory, state.domain.size)
        if self._is_answered(state, sets):
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

    def _is_answered(self, state: State, sets: Sets) -> bool:
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

    def _polish(self, state: State, reduction: Reduction, decision: Decision) -> Decision:
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
