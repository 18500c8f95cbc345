"""TruVaR for level sets: shrink the truncated variance of what is not yet classified, per unit of cost.

Bogunovic, Scarlett, Krause and Cevher (2016), algorithm 1.

===========  ==========================================================================
``M, H, L``  sites not yet classified, above the threshold, below it
``i``        epoch; ``t`` counts readings, the first one included
``beta``     ``a log(|D| t_i^2)``, t_i the first step of the epoch
``eta``      target standard deviation of the epoch, times the root of beta
``r``        by which eta shrinks from epoch to epoch
===========  ==========================================================================

All in model units. The memory keeps the epoch, and H and L as base64 of packed bits.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldbo.costs.base import CostModel
from fieldbo.domain import Array, Domain, Mask
from fieldbo.errors import InputError
from fieldbo.exchange import EndReason, Event, Fitted, Observation, Stop
from fieldbo.policies.acquisition import truncated_variance_reduction
from fieldbo.policies.base import Decision, Memory, Policy, State, best_affordable, needs_positive_costs

NOISY = 1e-4
"""Readings whose noise variance exceeds this share of the prior's are noisy: sets must be able to grow."""


class Sets(NamedTuple):
    """Unclassified, high and low sites, each (N,) bool."""

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


def updated_sets(mu: Array, s: Array, h: float, beta: float, before: Sets, *, monotone: bool) -> Sets:
    """Classify what the bounds ``mu +- sqrt(beta) s`` allow (eqs. 6 and 7); ties stay in M.

    Parameters
    ----------
    mu, s : (N,) arrays
    h, beta : float
    before : Sets
    monotone : bool
        True: what is classified stays so. False: all sites are classified afresh.
    """
    width = np.sqrt(beta) * s
    high, low = mu - width > h, mu + width < h
    if not monotone:
        return Sets(~(high | low), high, low)
    return Sets(before.M & ~(high | low), before.H | (before.M & high), before.L | (before.M & low))


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


def _pack(mask: Mask) -> str:
    return base64.b64encode(np.packbits(mask).tobytes()).decode()


def _unpack(text: str, n: int) -> Mask:
    bits = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.unpackbits(bits, count=n).astype(bool)


def _candidates(state: State) -> int:
    """Return |D|; at least 2, as a single site would have beta = 0."""
    return max(2, state.domain.size)


@dataclass(frozen=True)
class TruVaR(Policy):
    """Truncated variance reduction for level sets.

    Parameters
    ----------
    per_cost : bool
        Divide by the cost of the move, as the paper does; False is the rule that ignores costs.
    a : float
        Scale of beta.
    eta : float
        The first epoch's; 0 makes it pure variance reduction.
    r : float
        Between 0 and 1.
    delta : float
        How much early an epoch may end.
    monotone : bool, optional
        Whether what is classified stays so. By default it does where hyperparameters are known and noise
        is below 1e-4 of the prior's variance.
    """

    per_cost: bool = True
    a: float = 1.0
    eta: float = 1.0
    r: float = 0.1
    delta: float = 0.0
    monotone: bool | None = None

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("a", self.a > 0, "a number above 0"),
            ("eta", self.eta >= 0, "a number of at least 0"),
            ("r", 0 < self.r < 1, "a number between 0 and 1"),
            ("delta", self.delta >= 0, "a number of at least 0"),
        ):
            if not (good and np.isfinite(getattr(self, name))):
                raise InputError(f"{name} = {getattr(self, name)}", expected=expected, where=f"policy.{name}")

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is missing or can be 0, or there are too many sites."""
        domain.check_pairs("TruVaR")
        if self.per_cost:
            needs_positive_costs("TruVaR", cost, domain)

    def _is_monotone(self, state: State) -> bool:
        if self.monotone is not None:
            return self.monotone
        prior = state.belief.kernel.diagonal(state.domain.sites[:1])[0]
        return bool(state.fixed_model and np.all(state.noise() <= NOISY * prior))

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

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Update the sets and the epoch after a reading or a fit.

        While the model is provisional nothing is classified.
        """
        if not isinstance(event, Observation | Fitted) or state.provisional:
            return memory
        before, epoch = self._recall(memory, state.domain.size)
        afresh = isinstance(event, Fitted) or not memory["monotone"]
        surface = state.surface
        sets = updated_sets(
            surface.mean, surface.sd, state.threshold, epoch.beta, before, monotone=not afresh
        )
        epoch = advanced_epoch(
            surface.sd,
            sets.M,
            epoch,
            state.steps,
            a=self.a,
            n_candidates=_candidates(state),
            r=self.r,
            delta=self.delta,
        )
        return self._remember(sets, epoch, memory["monotone"])

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the site of the largest reduction per unit of cost; Stop when all is classified."""
        sets, epoch = self._recall(memory, state.domain.size)
        why = {"epoch": epoch.i, "beta": epoch.beta, "eta": epoch.eta, "unclassified": int(sets.M.sum())}
        if state.steps and not sets.M.any():
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        surface = state.surface
        # What is below eta already can't gain: only the rest of M is summed.
        open_sites = sets.M & (surface.variance > epoch.eta**2 / epoch.beta)
        members = slice(None) if open_sites.all() else open_sites
        scores = truncated_variance_reduction(
            surface.covariance(members).T,
            surface.variance,
            state.noise(),
            surface.variance[members],
            state.costs() if self.per_cost else np.ones(surface.size),
            epoch.beta,
            epoch.eta,
        )
        return best_affordable(state, scores, memory, **why)

    def warnings(self, state: State) -> list[str]:
        """Warn where the prior alone is sure of every site."""
        width = np.sqrt(beta_at(self.a, _candidates(state), 1)) * state.surface.sd
        if np.all(np.abs(state.threshold - state.surface.mean) > width):
            return [
                "the prior classifies every site before the first reading: the threshold lies more than "
                f"sqrt(beta) = {np.sqrt(beta_at(self.a, _candidates(state), 1)):.2f} prior standard "
                "deviations from the prior mean; set model.mean and model.variance nearer to the values"
            ]
        return []
