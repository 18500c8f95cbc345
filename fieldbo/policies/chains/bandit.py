"""A slowly moving bandit: the tree of its arms, how one is drawn, what they learn, and what it remembers.

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

The depths follow from the modules' costs. The two published recipes differ: eq. 17 rounds up, eq. 20 down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.policies.chains.boxes import Columns, Integers, arm_at, refined


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


Recipe = Literal["eq17", "eq20"]


class Depths(NamedTuple):
    """Depths (N - 1,) by a recipe: the ``raw`` values, whole but for the last, and the ``depths`` to use."""

    raw: tuple[float, ...]
    depths: tuple[int, ...]


def depth_recipe(
    costs: Sequence[float], lam: float, steps: int, arms: int, recipe: Recipe = "eq17"
) -> Depths:
    """Return the depths that bound the cost of moving (Lin et al. 2021, eqs. 17 and 20).

    ``d_m = b_m - d_1 - ... - d_{m-1}`` for m up to N - 2, where b_m is
    ``-log2( (c_{m+1} + ... + c_{N-1}) / (c_1 + ... + c_{N-1}) ) - log2(lam)/2``, rounded down (eq. 20). In
    eq. 17 the last term is ``+ log2(lam)/2``, and b_m is rounded up. The last depth is
    ``log2(T^(1/3) / log K)`` minus the others, with a natural logarithm. The depths to use are rounded up and
    at least 1.

    Parameters
    ----------
    costs : sequence of N - 1 floats
        Costs of all modules but the last, above 0.
    lam : float
        Weight of a unit of cost relative to a unit of value, above 0.
    steps : int
        Number of steps, T.
    arms : int
        Number of arms, K. With a single arm the last depth is 1.
    recipe : {"eq17", "eq20"}

    Raises
    ------
    InputError
        If a cost or `lam` is not above 0.

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


@dataclass(frozen=True, eq=False)
class BanditState:
    """LaMBO's memory.

    Attributes
    ----------
    regions : list of (n_m, 2, D_m) arrays
        Regions of each module but the last.
    arms : (K, N - 1) int array
    log_p : (K,) array
    below : (K,) int array
        Number of consecutive steps that each arm was improbable.
    depths : tuple of N - 1 int
    value_scale : float
        Value that a loss of 1 corresponds to, in model units.
    arm : int or None
        The last arm; None before the first step, and once the arm's regions are dropped.
    h : int
    step : int
        Number of steps taken.
    refinements : int
        Number of times the regions were bisected.
    moves : int
        Number of changes of the first module in the current period.
    moved : bool
        Whether the last query changed the first module.
    """

    regions: list[Array]
    arms: Integers
    log_p: Array
    below: Integers
    depths: tuple[int, ...]
    value_scale: float
    arm: int | None = None
    h: int = 0
    step: int = 0
    refinements: int = 0
    moves: int = 0
    moved: bool = False

    @classmethod
    def over(
        cls, regions: list[Array], arms: Integers, depths: tuple[int, ...], value_scale: float
    ) -> BanditState:
        """Return the state before the first step: all arms equally probable, and free to go to any."""
        K = len(arms)
        uniform, below = np.full(K, -np.log(K)), np.zeros(K, dtype=np.intp)
        return cls(regions, arms, uniform, below, depths, value_scale, h=sum(depths))

    def restarted(self) -> BanditState:
        """Return the state with all arms equally probable again."""
        K = len(self.arms)
        return replace(self, log_p=np.full(K, -np.log(K)), below=np.zeros(K, dtype=np.intp))

    def to_plain(self) -> dict[str, Any]:
        """Return the state as numbers and lists."""
        plain = {**vars(self), "depths": list(self.depths)}
        plain |= {name: plain[name].tolist() for name in ("arms", "log_p", "below")}
        return {"cells": [boxes.tolist() for boxes in plain.pop("regions")], **plain}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> BanditState:
        """Return the state that `to_plain` wrote."""
        fields = {name: value for name, value in plain.items() if name != "cells"}
        fields["regions"] = [np.asarray(boxes, dtype=float) for boxes in plain["cells"]]
        fields["arms"] = np.asarray(plain["arms"], dtype=np.intp)
        fields["below"] = np.asarray(plain["below"], dtype=np.intp)
        fields["log_p"] = np.asarray(plain["log_p"], dtype=float)
        return cls(**{**fields, "depths": tuple(plain["depths"])})

    def current_arm(self, columns: Columns, position: Array) -> int | None:
        """Return the arm that holds the system's `position` (d,), or None before the first step.

        The last arm, as long as its regions hold the position; otherwise its query was not carried out.
        """
        if self.arm is None or arm_at(self.arms[[self.arm]], self.regions, columns, position) is not None:
            return self.arm
        return arm_at(self.arms, self.regions, columns, position)

    def refined(self, keep: Integers, domain: Domain, columns: Columns, position: Array) -> BanditState:
        """Bisect the regions that the arms in `keep` use, and make all arms equally probable.

        The last arm becomes the new arm that holds `position` (d,), if its predecessor is kept.
        """
        units = [domain.extent[list(axes)] for axes in columns[:-1]]
        finer = refined(self.regions, self.arms, keep, units)
        stays = self.current_arm(columns, position) in keep.tolist()
        arm = arm_at(finer.arms, finer.regions, columns, position) if stays else None
        return replace(
            self, regions=finer.regions, arms=finer.arms, arm=arm, refinements=self.refinements + 1
        ).restarted()

    def deepened(self, often: int) -> BanditState:
        """End a period: d_1 grows by 1 if the first module changed more than `often` times."""
        first, *rest = self.depths
        return replace(self, depths=(first + (self.moves > often), *rest), moves=0)
