"""The tree of arms of a slowly moving bandit: which arms share a branch, how one is drawn, what they learn.

==============  ==========================================================================================
``N``           number of modules; the last has no regions
``K``           number of arms; an arm is one region of each of the first N - 1 modules
``p``, log_p    probabilities of the arms and their logarithms, (K,)
``d_m``         depth of module m = 1 .. N - 1: the number of branchings between its level and the next
``s_m``         height above the leaves at which module m branches, ``d_m + ... + d_{N-1}``
``H``           height of the tree, ``s_1``
``A_h(i)``      arms that agree with arm i on every module with ``s_m > h``; ``A_0`` = {i}, ``A_H`` = all
``sigma_h``     a coin, -1 or 1, for each height h = 0 .. H - 1
``l_0``         losses of the arms, (K,); ``l_h`` those smoothed up to height h; eta is the learning rate
==============  ==========================================================================================

Lin, Miano and Dyer (2021), *Bayesian optimization for modular black-box systems with switching costs*,
sections 2.2 and 3 and appendices A, B and D. Probabilities are kept as logarithms, so they never underflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask

Integers = NDArray[np.intp]


def arms_of(sizes: Sequence[int]) -> Integers:
    """Return all combinations of regions, (K, N - 1), in lexicographic order.

    Parameters
    ----------
    sizes : sequence of N - 1 int
        Number of regions of each module but the last.

    Examples
    --------
    >>> arms_of([2, 3]).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    return np.indices(tuple(sizes)).reshape(len(sizes), -1).T.astype(np.intp)


def heights(depths: Sequence[int]) -> Integers:
    """Return the height (N - 1,) at which each module branches, ``s_m = d_m + ... + d_{N-1}``.

    Examples
    --------
    >>> heights([2, 1]).tolist()
    [3, 1]
    """
    return np.cumsum(np.asarray(depths, dtype=np.intp)[::-1])[::-1]


def families(arms: Integers, depths: Sequence[int], h: int) -> Integers:
    """Return the number (K,) of each arm's family ``A_h(i)`` at height h.

    Parameters
    ----------
    arms : (K, N - 1) int array
    depths : sequence of N - 1 int
        Each at least 1.
    h : int
        From 0 (each arm is a family) to H (all arms are one family).

    Examples
    --------
    >>> families(arms_of([2, 3]), [2, 1], 1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    shared = int(np.sum(heights(depths) > h))  # heights decrease from module to module
    if shared == arms.shape[1]:
        return np.arange(len(arms))
    if not shared:
        return np.zeros(len(arms), dtype=np.intp)
    return np.unique(arms[:, :shared], axis=0, return_inverse=True)[1].reshape(-1)


def log_total(log_p: Array, family: Integers) -> Array:
    """Return the logarithm of each family's total probability, (F,).

    Examples
    --------
    >>> log_total(np.log([0.1, 0.3, 0.6]), np.array([0, 0, 1])).round(4)
    array([-0.9163, -0.5108])
    """
    top = np.full(int(family.max()) + 1, -np.inf)
    np.maximum.at(top, family, log_p)
    level = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(level + np.log(np.bincount(family, np.exp(log_p - level[family]))))


def normalised(log_p: Array) -> Array:
    """Return log_p (K,), shifted so that the probabilities sum to 1."""
    return np.asarray(log_p - log_total(log_p, np.zeros(len(log_p), dtype=np.intp))[0])


def log_conditional(log_p: Array, family: Integers, i: int) -> Array:
    """Return the logarithm of ``p( . | A_h(i))``, (K,); minus infinity outside arm i's family.

    Lin et al. (2021), algorithm 1, line 5.

    Parameters
    ----------
    log_p : (K,) array
    family : (K,) int array
        Families at height h, from `families`.
    i : int

    Examples
    --------
    >>> p = np.array([0.1, 0.25, 0.05, 0.2, 0.3, 0.1])
    >>> np.exp(log_conditional(np.log(p), families(arms_of([2, 3]), [2, 1], 1), 4)).round(4).tolist()
    [0.0, 0.0, 0.0, 0.3333, 0.5, 0.1667]
    """
    return normalised(np.where(family == family[i], log_p, -np.inf))


def drawn(log_q: Array, u: float) -> int:
    """Return the arm that a uniform number u in [0, 1) draws from log probabilities (K,).

    They need not be normalised. An arm at minus infinity is never drawn.

    Examples
    --------
    >>> drawn(np.log([0.2, 0.5, 0.3]), 0.69), drawn(np.array([-np.inf, -1e6, -np.inf]), 0.99)
    (1, 1)
    """
    share = np.cumsum(np.exp(log_q - log_q.max()))
    return int(np.searchsorted(share, u * share[-1], side="right"))


def first_down(sigma: ArrayLike) -> int:
    """Return h_t, the lowest height whose coin ``sigma_h`` is -1, or H if there is none.

    Examples
    --------
    >>> first_down([1, 1, -1, 1]), first_down([1, 1])
    (2, 2)
    """
    coins = np.append(np.asarray(sigma, dtype=float), -1.0)
    return int(np.argmax(coins < 0))


class Losses(NamedTuple):
    """Smoothed losses: ``levels`` (H, K) for heights 0 .. H - 1, and ``total`` (K,), which the arms learn."""

    levels: Array
    total: Array


def smoothed(
    log_p: Array, losses: Array, sigma: ArrayLike, arms: Integers, depths: Sequence[int], eta: float
) -> Losses:
    """Return the losses that a slowly moving bandit learns from (Lin et al. 2021, eqs. 4 and 5).

    ``l_h(i) = -1/eta log( sum over j in A_h(i) of p(j) exp(-eta (1 + sigma_{h-1}) l_{h-1}(j)) / p(A_h(i)) )``
    and ``total = l_0 + sum over h < H of sigma_h l_h``. All levels above the first -1 are 0.

    Parameters
    ----------
    log_p : (K,) array
    losses : (K,) array
        Losses of all arms, ``l_0``.
    sigma : (H,) array
        Coins, -1 or 1.
    arms : (K, N - 1) int array
    depths : sequence of N - 1 int
    eta : float
        Learning rate, above 0.

    Examples
    --------
    >>> losses = smoothed(np.log([0.5, 0.5]), np.array([0.3, 0.8]), [1], arms_of([2]), [1], eta=1.0)
    >>> losses.total.round(4).tolist()
    [0.6, 1.6]
    """
    coins = np.asarray(sigma, dtype=float)
    levels = np.zeros((len(coins), len(log_p)))
    levels[0] = losses
    total = losses + coins[0] * losses
    for h in range(1, min(len(coins), first_down(coins) + 1)):
        family = families(arms, depths, h)
        weighted = log_p - eta * 2.0 * levels[h - 1]  # all coins below are 1
        log_family = log_total(log_p, family)
        possible = np.isfinite(log_family)  # a family that can't be drawn learns nothing
        levels[h] = (
            np.subtract(
                log_family, log_total(weighted, family), out=np.zeros_like(log_family), where=possible
            )
            / eta
        )[family]
        total = total + coins[h] * levels[h]
    return Losses(levels, total)


def updated(log_p: Array, losses: Array, eta: float) -> Array:
    """Return the log probabilities (K,) after the multiplicative update ``p(i) exp(-eta l(i))``, normalised.

    Examples
    --------
    >>> np.exp(updated(np.log([0.5, 0.5]), np.array([0.6, 1.6]), eta=1.0)).round(4).tolist()
    [0.7311, 0.2689]
    """
    return normalised(log_p - eta * losses)


def bandit_losses(log_p: Array, i: int, loss: float) -> Array:
    """Estimate all losses (K,) from arm i's alone: ``loss / p(i)`` for arm i, 0 for the others.

    Lin et al. (2021), algorithm 2, line 7.

    Examples
    --------
    >>> bandit_losses(np.log([0.8, 0.2]), 1, 0.6).round(4).tolist()
    [0.0, 3.0]
    """
    estimates = np.zeros(len(log_p))
    estimates[i] = loss * np.exp(-log_p[i])
    return estimates


def steps_below(below: ArrayLike, log_p: Array, factor: float) -> Integers:
    """Return the number of consecutive steps, (K,), that each arm has been below ``factor / K``.

    Parameters
    ----------
    below : (K,) int array
        The same count after the previous step.
    log_p : (K,) array
    factor : float

    Examples
    --------
    >>> steps_below([3, 3], np.log([0.99, 0.01]), 0.1).tolist()
    [0, 4]
    """
    return np.where(log_p < np.log(factor / len(log_p)), np.asarray(below, dtype=np.intp) + 1, 0)


def surviving(below: ArrayLike, window: int) -> Mask:
    """Return which arms (K,) survive: those below for fewer than `window` consecutive steps.

    Examples
    --------
    >>> surviving([0, 10, 9], 10).tolist()
    [True, False, True]
    """
    survives: Mask = np.asarray(below) < window
    return survives
