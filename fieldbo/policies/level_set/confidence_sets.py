"""TruVaR's confidence sets (the sites still in question) and epochs (the accuracy sought there).

===========  ==========================================================================
``M``        sites in question: not yet classified, or potential maximisers
``H, L``     sites inside and outside the level set; for an optimum, L holds the sites ruled out
``u, l``     upper and lower confidence bounds, ``mu +- sqrt(beta) s``
``i``        epoch; ``t`` counts readings from 1
``beta``     ``a log(|D| t_i^2)``, t_i the first step of the epoch
``eta``      target of the epoch for ``sqrt(beta) s``
``r``        factor by which eta shrinks from epoch to epoch
===========  ==========================================================================

Equations are those of Bogunovic, Scarlett, Krause and Cevher (2016). All in model units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask


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


def updated_sets(
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
