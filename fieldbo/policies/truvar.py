"""TruVaR: shrink the truncated variance of what is still in question, per unit of cost.

Bogunovic, Scarlett, Krause and Cevher (2016), algorithm 1, for level sets and optima.

===========  ==========================================================================
``M``        sites in question: not yet classified, or potential maximisers
``H, L``     sites above the threshold and below it; for an optimum L is ruled out
``u, l``     upper and lower confidence bounds, ``mu +- sqrt(beta) s``
``i``        epoch; ``t`` counts readings, the first one included
``beta``     ``a log(|D| t_i^2)``, t_i the first step of the epoch
``eta``      target standard deviation of the epoch, times the root of beta
``r``        by which eta shrinks from epoch to epoch
===========  ==========================================================================

All in model units. The memory keeps the epoch, and H and L as base64 of packed bits.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fieldbo.costs.base import CostModel
from fieldbo.domain import Array, Domain, Mask
from fieldbo.errors import InputError
from fieldbo.exchange import EndReason, Event, Fitted, Observation, Query, Stop
from fieldbo.policies.acquisition import truncated_variance_reduction
from fieldbo.policies.base import Decision, Memory, Policy, State, best_pair, highest, needs_positive_costs
from fieldbo.question import Optimum, ShareOfMaximum
from fieldbo.surface import Surface

NOISY = 1e-4
"""Readings whose noise variance exceeds this share of the prior's are noisy: sets must be able to grow."""

_BLOCK = 256  # sites that are scored in double precision at once


class Sets(NamedTuple):
    """Sites in question, high and low ones, each (N,) bool."""

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
    """Return ``2 log(|D| C^2 pi^2 / (6 delta c_min^2))`` (eq. 14), with C what was spent: far more cautious.

    Examples
    --------
    >>> round(beta_in_theory(100, 50.0, 2.0, 0.1), 3)
    27.686
    """
    steps = spent / least_cost
    return float(2.0 * np.log(n_candidates * steps**2 * np.pi**2 / (6.0 * delta)))


def updated_sets(
    mu: Array, s: Array, h: float | tuple[float, float], beta: float, before: Sets, *, monotone: bool
) -> Sets:
    """Classify what the bounds ``mu +- sqrt(beta) s`` allow (eqs. 6 and 7); ties stay in M.

    Parameters
    ----------
    mu, s : (N,) arrays
    h : float or pair of float
        The threshold; or the lowest and the highest that it may be.
    beta : float
    before : Sets
    monotone : bool
        True: what is classified stays so. False: all sites are classified afresh.
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

    ``h_pes, h_opt = omega max l, omega max u`` over all sites (appendix A); equal where it is explicit.
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
        The sites that come into question: only they are looked at.
    """
    width = np.sqrt(beta) * s
    open_sites = np.ones(len(mu), dtype=bool) if among is None else among
    return np.asarray(open_sites & (mu + width >= (mu - width)[open_sites].max()))


def advanced_epoch(
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
    """Advance epochs while all of M is certain enough (algorithm 1, lines 5 and 6).

    ``sqrt(beta) max_M s <= (1 + delta) eta`` starts the next epoch, in which t_i = t + 1. An empty M, or
    eta = 0, leaves the epoch as it is.
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


@dataclass(frozen=True, eq=False)
class Reduction:
    """Eq. 3 over a surface: what readings would take off the members' truncated variances, per cost.

    Parameters
    ----------
    members : (N,) bool array
        The sites that are summed over.
    noise, cost : (N, K) arrays
        Of a reading at each site and level; costs above 0.
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
        """Return the scores (N, K): exact for the best pairs, minus infinity for pairs that can't be it.

        Single precision finds the pairs that may be the best within its error; they are scored again.
        """
        if not self.members.any():
            return np.zeros_like(self.cost)
        gains = surface.truncated_gains(self.members, self.noise, self.eta**2 / self.beta)
        scores = self.beta * gains.value / self.cost
        if not self.able.any():
            return scores
        slack = self.beta * gains.error / self.cost
        least = np.max((scores - slack)[self.able])
        in_question = self.able & (scores + slack >= least)
        if least > 0 or gains.value[self.able].any():
            scores[self.able & ~in_question] = -np.inf
            rows, levels = np.nonzero(in_question)
            scores[rows, levels] = self.exact(surface, rows, levels)
        return scores

    def exact(self, surface: Surface, rows: Any, levels: Any) -> Array:
        """Return the scores (n,) of the pairs (`rows`, `levels`), in double precision."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            some = slice(start, start + _BLOCK)
            at = rows[some]
            found[some] = truncated_variance_reduction(
                surface.covariance(at)[:, self.members],
                surface.variance[at],
                self.noise[at, levels[some]],
                surface.variance[self.members],
                self.cost[at, levels[some]],
                self.beta,
                self.eta,
            )
        return found

    def batch(self, surface: Surface, k: int) -> list[tuple[int, int, float]]:
        """Return the first k steps of the greedy cover as (site, level, score); a pair may come twice.

        Members, beta, eta and costs stay as they are; the variances count the pairs before as read.
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
    """Eq. 3 with the set that would remain: a site that a reading would classify counts as won whole.

    The mean stands in for the value that is not known yet (appendix A). All in double precision: a site
    leaves the set at once, which no bound of an error covers.

    Parameters
    ----------
    leaves_below : (N,) array
        The variance below which each site would be classified.
    """

    leaves_below: Array

    def scores(self, surface: Surface) -> Array:
        """Return the scores (N, K)."""
        found = np.empty_like(self.cost)
        for level in range(self.cost.shape[1]):
            rows = np.arange(surface.size)
            found[:, level] = self.exact(surface, rows, np.full(surface.size, level))
        return found

    def exact(self, surface: Surface, rows: Any, levels: Any) -> Array:
        """Return the scores (n,) of the pairs (`rows`, `levels`)."""
        floor = self.eta**2 / self.beta
        now = surface.variance[self.members]
        found = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            some = slice(start, start + _BLOCK)
            at = rows[some]
            total = surface.variance[at] + self.noise[at, levels[some]]
            drop = np.square(surface.covariance(at)[:, self.members]) / np.where(total > 0, total, np.inf)[:, None]
            after = np.where(now - drop < self.leaves_below[self.members], 0.0, np.maximum(now - drop, floor))
            gain = np.sum(np.maximum(now, floor) - after, axis=1)
            found[some] = self.beta * gain / self.cost[at, levels[some]]
        return found


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
    """Truncated variance reduction for level sets and optima.

    Where the sensor has several settings, each (site, level) pair is a candidate.

    Parameters
    ----------
    per_cost : bool
        Divide by the cost of the move, as the paper does; False is the rule that ignores costs.
    a : float, optional
        Scale of beta. By default 1 for a level set and 0.5 for an optimum, as in the paper.
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
        Whether a site that a reading is expected to classify counts as won; ten times slower.
    answered_at : int
        The question for an optimum is answered once so few potential maximisers are left; 0 is never. In
        a continuous domain it never is.
    """

    per_cost: bool = True
    a: float | None = None
    eta: float = 1.0
    r: float = 0.1
    delta: float = 0.0
    monotone: bool | None = None
    within: bool = False
    anticipate: bool = False
    answered_at: int = 1

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("a", self.a is None or self.a > 0, "a number above 0"),
            ("eta", self.eta >= 0, "a number of at least 0"),
            ("r", 0 < self.r < 1, "a number between 0 and 1"),
            ("delta", self.delta >= 0, "a number of at least 0"),
            ("answered_at", self.answered_at >= 0, "a whole number of at least 0"),
        ):
            value = getattr(self, name)
            if not (good and (value is None or np.isfinite(value))):
                raise InputError(f"{name} = {value}", expected=expected, where=f"policy.{name}")

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs("TruVaR", cost, domain)

    def _a(self, state: State) -> float:
        if self.a is not None:
            return self.a
        return 0.5 if isinstance(state.question, Optimum) else 1.0

    def _is_monotone(self, state: State) -> bool:
        if self.monotone is not None:
            return self.monotone
        prior = state.belief.kernel.diagonal(state.domain.sites[:1])[0]
        return bool(state.fixed_model and np.all(state.at_levels(state.noise) <= NOISY * prior))

    def start(self, state: State) -> Memory:
        """Begin the first epoch with nothing classified."""
        none = np.zeros(state.domain.size, dtype=bool)
        first = Epoch(1, beta_at(self._a(state), _candidates(state), 1), self.eta)
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
        """Update the sets and the epoch after a reading or a fit.

        While the model is provisional nothing is classified.
        """
        if not isinstance(event, Observation | Fitted) or state.provisional:
            return memory
        before, epoch = self._recall(memory, state.domain.size)
        afresh = isinstance(event, Fitted) or not memory["monotone"]
        sd = state.surface.sd
        sets = self._sets(state, sd, epoch.beta, before, monotone=not afresh)
        epoch = advanced_epoch(
            sd,
            sets.M,
            epoch,
            state.steps,
            a=self._a(state),
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
        return self._polished(state, reduction, decision) if state.domain.continuous else decision

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
        members, variance = domain.sites[reduction.members], state.surface.variance[reduction.members]

        def loss(unit: Array) -> float:
            x = (domain.low + unit * domain.extent)[None]
            price = np.ones(1)
            if self.per_cost and state.cost is not None:
                price = state.cost.to(state.position, x, level=level, time_s=state.time_s)
            score = truncated_variance_reduction(
                state.belief.covariance(x, members),
                state.belief.variance(x),
                noise,
                variance,
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
        if not found.fun < -decision.why["score"] or not state.affordable(site[None], level=level)[0]:
            return decision
        why = {**decision.why, "score": -float(found.fun)}
        return replace(decision, choice=replace(query, site=site), why=why)

    def warnings(self, state: State) -> list[str]:
        """Warn where the prior alone is sure of every site."""
        if np.isnan(state.threshold):
            return []
        root = np.sqrt(beta_at(self._a(state), _candidates(state), 1))
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


def _leaves_below(state: State, beta: float) -> Array:
    """Return the variances (N,) below which sites would be classified if their means stayed as they are."""
    mu, sd = state.surface.mean, state.surface.sd
    if isinstance(state.question, Optimum):
        gap = (mu - np.sqrt(beta) * sd).max() - mu
    else:
        pessimistic, optimistic = threshold_bounds(mu, sd, state.threshold_if, beta)
        gap = np.maximum(pessimistic - mu, mu - optimistic)
    return np.asarray(np.square(np.maximum(gap, 0.0)) / beta)
