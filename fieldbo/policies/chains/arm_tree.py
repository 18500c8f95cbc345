"""The tree of a lazy rule's arms: who shares which branch, how arms are drawn, and what they learn.

==============  ==========================================================================================
``N``           number of modules; the last has no cells
``K``           number of arms; an arm is a cell of each of the first N - 1 modules
``p``, log_p    probabilities of the arms, and their logarithms, (K,)
``d_m``         depth of module m = 1 .. N - 1: so many branchings lie between its level and the next one's
``s_m``         height above the leaves at which module m branches, ``d_m + ... + d_{N-1}``
``H``           height of the tree, ``s_1``
``A_h(i)``      arms that agree with arm i on every module with ``s_m > h``; ``A_0`` = {i}, ``A_H`` = all
``sigma_h``     -1 or 1, a coin for each height h = 0 .. H - 1
``l_0``         losses of the arms, (K,); ``l_h`` those smoothed up to height h; eta the learning rate
==============  ==========================================================================================

Lin, Miano and Dyer (2021), *Bayesian optimization for modular black-box systems with switching costs*,
sections 2.2 and 3 and appendices A, B and D: slowly moving bandits over such a tree. Only logarithms of
probabilities are kept, so that nothing ever underflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError

Integers = NDArray[np.intp]

Recipe = Literal["eq17", "eq20"]
"""The two that the paper prints: one rounds up, one down."""


def arms_of(sizes: Sequence[int]) -> Integers:
    """Return all products of cells, (K, N - 1), in lexicographic order.

    Parameters
    ----------
    sizes : sequence of N - 1 int
        Number of cells of each module but the last.

    Examples
    --------
    >>> arms_of([2, 3]).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    return np.indices(tuple(sizes)).reshape(len(sizes), -1).T.astype(np.intp)


def heights(depths: Sequence[int]) -> Integers:
    """Return the heights (N - 1,) at which modules branch: ``s_m = d_m + ... + d_{N-1}``.

    Examples
    --------
    >>> heights([2, 1]).tolist()
    [3, 1]
    """
    return np.cumsum(np.asarray(depths, dtype=np.intp)[::-1])[::-1]


def families(arms: Integers, depths: Sequence[int], h: int) -> Integers:
    """Return which family (K,) each arm belongs to at height h: arm i's family is ``A_h(i)``.

    Parameters
    ----------
    arms : (K, N - 1) int array
    depths : sequence of N - 1 int
        Each at least 1.
    h : int
        From 0, every arm its own family, to H, all one family.

    Examples
    --------
    >>> families(arms_of([2, 3]), [2, 1], 1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    shared = int(np.sum(heights(depths) > h))  # heights fall from module to module: the first so many
    if shared == arms.shape[1]:
        return np.arange(len(arms))
    if not shared:
        return np.zeros(len(arms), dtype=np.intp)
    return np.unique(arms[:, :shared], axis=0, return_inverse=True)[1].reshape(-1)


def log_total(log_p: Array, family: Integers) -> Array:
    """Return the logarithm of each family's total probability, (F,), given arms' log_p (K,).

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
    """Return log_p (K,) shifted so that the probabilities add up to 1."""
    return np.asarray(log_p - log_total(log_p, np.zeros(len(log_p), dtype=np.intp))[0])


def log_conditional(log_p: Array, family: Integers, i: int) -> Array:
    """Return the log of ``p( . | A_h(i))``, (K,): minus infinity outside of arm i's family.

    Lin et al. (2021), algorithm 1, line 5.

    Parameters
    ----------
    log_p : (K,) array
    family : (K,) int array
        Of height h, as `families` returns them.
    i : int

    Examples
    --------
    >>> p = np.array([0.1, 0.25, 0.05, 0.2, 0.3, 0.1])
    >>> np.exp(log_conditional(np.log(p), families(arms_of([2, 3]), [2, 1], 1), 4)).round(4).tolist()
    [0.0, 0.0, 0.0, 0.3333, 0.5, 0.1667]
    """
    return normalised(np.where(family == family[i], log_p, -np.inf))


def drawn(log_q: Array, u: float) -> int:
    """Return the arm that a uniform number u in [0, 1) draws from log probabilities (K,), normalised or not.

    An arm of minus infinity is never drawn.

    Examples
    --------
    >>> drawn(np.log([0.2, 0.5, 0.3]), 0.69), drawn(np.array([-np.inf, -1e6, -np.inf]), 0.99)
    (1, 1)
    """
    share = np.cumsum(np.exp(log_q - log_q.max()))
    return int(np.searchsorted(share, u * share[-1], side="right"))


def first_down(sigma: ArrayLike) -> int:
    """Return h_t, the first height h whose coin ``sigma_h`` is -1; H, their number, if none is.

    Examples
    --------
    >>> first_down([1, 1, -1, 1]), first_down([1, 1])
    (2, 2)
    """
    coins = np.append(np.asarray(sigma, dtype=float), -1.0)
    return int(np.argmax(coins < 0))


class Losses(NamedTuple):
    """Smoothed losses: ``levels`` (H, K), of the heights 0 .. H - 1, and ``total`` (K,), which is learned."""

    levels: Array
    total: Array


def smoothed(
    log_p: Array, losses: Array, sigma: ArrayLike, arms: Integers, depths: Sequence[int], eta: float
) -> Losses:
    """Return the losses that slowly moving bandits learn from (Lin et al. 2021, eqs. 4 and 5).

    ``l_h(i) = -1/eta log( sum over j in A_h(i) of p(j) exp(-eta (1 + sigma_{h-1}) l_{h-1}(j)) / p(A_h(i)) )``
    and ``total = l_0 + sum over h < H of sigma_h l_h``. Above the first -1 all are 0.

    Parameters
    ----------
    log_p : (K,) array
    losses : (K,) array
        Of all arms, ``l_0``.
    sigma : (H,) array
        The coins.
    arms : (K, N - 1) int array
    depths : sequence of N - 1 int
    eta : float
        Above 0.

    Examples
    --------
    >>> told = smoothed(np.log([0.5, 0.5]), np.array([0.3, 0.8]), [1], arms_of([2]), [1], eta=1.0)
    >>> told.total.round(4).tolist()
    [0.6, 1.6]
    """
    coins = np.asarray(sigma, dtype=float)
    levels = np.zeros((len(coins), len(log_p)))
    levels[0] = losses
    total = losses + coins[0] * losses
    for h in range(1, min(len(coins), first_down(coins) + 1)):
        family = families(arms, depths, h)
        lost = log_p - eta * 2.0 * levels[h - 1]  # all coins below are 1
        whole = log_total(log_p, family)
        there = np.isfinite(whole)  # a family that can't be drawn learns nothing
        levels[h] = (
            np.subtract(whole, log_total(lost, family), out=np.zeros_like(whole), where=there) / eta
        )[family]
        total = total + coins[h] * levels[h]
    return Losses(levels, total)


def updated(log_p: Array, losses: Array, eta: float) -> Array:
    """Return the log probabilities (K,) after a multiplicative update, ``p(i) exp(-eta l(i))``, normalised.

    Examples
    --------
    >>> np.exp(updated(np.log([0.5, 0.5]), np.array([0.6, 1.6]), eta=1.0)).round(4).tolist()
    [0.7311, 0.2689]
    """
    return normalised(log_p - eta * losses)


def bandit_losses(log_p: Array, i: int, loss: float) -> Array:
    """Return estimates (K,) of all losses where only arm i's is seen: ``loss / p(i)``, and 0 elsewhere.

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
    """Return for how many steps in a row, (K,), each arm has been below ``factor / K``.

    Parameters
    ----------
    below : (K,) int array
        The same after the step before.
    log_p : (K,) array
    factor : float

    Examples
    --------
    >>> steps_below([3, 3], np.log([0.99, 0.01]), 0.1).tolist()
    [0, 4]
    """
    return np.where(log_p < np.log(factor / len(log_p)), np.asarray(below, dtype=np.intp) + 1, 0)


def surviving(below: ArrayLike, window: int) -> Mask:
    """Return which arms (K,) stay: not those that were below for `window` steps in a row.

    Examples
    --------
    >>> surviving([0, 10, 9], 10).tolist()
    [True, False, True]
    """
    stays: Mask = np.asarray(below) < window
    return stays


class Depths(NamedTuple):
    """What a recipe says: ``raw``, whole numbers but for the last, and the ``depths`` to take."""

    raw: tuple[float, ...]
    depths: tuple[int, ...]


def depth_recipe(
    costs: Sequence[float], lam: float, steps: int, arms: int, recipe: Recipe = "eq17"
) -> Depths:
    """Return the depths that keep the cost of moving in bounds (Lin et al. 2021, eqs. 17 and 20).

    ``d_m = b_m - d_1 - ... - d_{m-1}`` for m up to N - 2, where b_m is
    ``-log2( (c_{m+1} + ... + c_{N-1}) / (c_1 + ... + c_{N-1}) ) - log2(lam)/2``, rounded down (eq. 20). In
    eq. 17 it is ``+ log2(lam)/2``, and rounded up. The last is ``log2(T^(1/3) / log K)`` less the others,
    with a natural log. What is taken is at least 1, and whole.

    Parameters
    ----------
    costs : sequence of N - 1 floats
        Of running each module but the last; above 0.
    lam : float
        What a unit of cost weighs against a unit of value; above 0.
    steps : int
        T, for how many steps.
    arms : int
        K; of a single arm the last depth is 1.
    recipe : {"eq17", "eq20"}

    Raises
    ------
    InputError
        A cost or `lam` is not above 0.

    Examples
    --------
    >>> depth_recipe([40, 10, 5], lam=0.1, steps=200, arms=8, recipe="eq20").depths
    (3, 2, 1)
    """
    c = np.asarray(costs, dtype=float)
    if not (np.all(c > 0) and lam > 0):
        raise InputError(
            f"depths by {recipe} for costs {c.tolist()} and lam = {lam:g}",
            expected="costs above 0 of all modules but the last, and lam above 0",
            where="policy.depths",
            fix="give the depths themselves, for example depths = [1]",
        )
    sign, rounded = (0.5, np.ceil) if recipe == "eq17" else (-0.5, np.floor)
    raw: list[float] = []
    for m in range(1, len(c)):
        raw.append(float(rounded(-np.log2(c[m:].sum() / c.sum()) + sign * np.log2(lam))) - sum(raw))
    last = np.log2(steps ** (1 / 3) / np.log(arms)) - sum(raw) if arms > 1 else 1.0
    raw.append(float(last))
    return Depths(tuple(raw), tuple(max(1, int(np.ceil(d))) for d in raw))


def movement_regret(values: ArrayLike, best: float, movement: ArrayLike, lam: float) -> float:
    """Return ``sum over t of f(x_t) - f* + lam Gamma_t`` (Lin et al. 2021, eq. 7), of a minimisation.

    Parameters
    ----------
    values : (T,) array
        The function at the points sampled.
    best : float
        Its least value.
    movement : (T,) array
        What each move cost.
    lam : float
        What a unit of cost weighs against a unit of value.

    Examples
    --------
    >>> round(movement_regret([0.5, 0.4, 0.2], 0.1, [50, 10, 0], lam=0.1), 9)
    6.8
    """
    over = np.asarray(values, dtype=float) - best
    return float(np.sum(over + lam * np.asarray(movement, dtype=float)))
