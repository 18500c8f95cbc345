"""Regions of a modular system's variables, and the boxes that each arm searches for its next point.

===========  ================================================================================================
``N``        number of modules; each has some of the axes, and all but the last are cut into regions
``region``   a closed box over one module's axes: an array (2, D_m) of its lower and upper ends
``regions``  of one module, (n_m, 2, D_m); of all modules, a list of N - 1 such arrays
``arm``      one region of each of the first N - 1 modules, as (N - 1,) region numbers; K arms, (K, N - 1)
``m``        a module, counted from 0
===========  ================================================================================================

Lin, Miano and Dyer (2021), sections 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.policies.chains.arm_tree import Integers

Columns = Sequence[Sequence[int]]
"""The numbers of each module's axes in the domain."""


def sliced(low: Array, high: Array, axis: int, parts: int = 2) -> Array:
    """Cut a box (D,) across one axis into equal regions, (parts, 2, D).

    Examples
    --------
    >>> sliced(np.zeros(2), np.array([4.0, 1.0]), axis=0)[:, :, 0].tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    ends = np.linspace(low[axis], high[axis], parts + 1)
    regions = np.repeat(np.stack([low, high])[None], parts, axis=0).astype(float)
    regions[:, 0, axis], regions[:, 1, axis] = ends[:-1], ends[1:]
    return regions


def halves(region: Array, unit: ArrayLike | float = 1.0) -> Array:
    """Bisect a region (2, D) across its longest side, the first if several: (2, 2, D), lower half first.

    Parameters
    ----------
    region : (2, D) array
    unit : float or (D,) array
        Unit of each side, for example the lengths of the axes.

    Examples
    --------
    >>> halves(np.array([[0.0, 0.0], [0.5, 1.0]])).tolist()
    [[[0.0, 0.0], [0.5, 0.5]], [[0.0, 0.5], [0.5, 1.0]]]
    """
    sides = (region[1] - region[0]) / unit
    longest = int(np.argmax(sides >= sides.max() * (1 - 1e-9)))
    return sliced(region[0], region[1], longest)


class Refined(NamedTuple):
    """Finer regions of each module, the arms over them (K, N - 1), and each arm's parent (K,)."""

    regions: list[Array]
    arms: Integers
    parents: Integers


def refined(
    regions: Sequence[Array],
    arms: Integers,
    keep: Integers,
    units: Sequence[ArrayLike | float] | None = None,
) -> Refined:
    """Bisect every region that a surviving arm uses, and make arms of the halves.

    New regions are numbered per module in the old regions' order, lower half first. Regions that no survivor
    uses are dropped. The arms are all products of the halves of each survivor's regions, in lexicographic
    order (Lin et al. 2021, section 3.3).

    Parameters
    ----------
    regions : sequence of N - 1 arrays (n_m, 2, D_m)
    arms : (K, N - 1) int array
    keep : int array
        The surviving arms, at least one.
    units : sequence of N - 1 floats or (D_m,) arrays, optional
        Unit of each module's sides; see `halves`.

    Examples
    --------
    >>> line = [np.array([[[0.0], [1.0]], [[1.0], [2.0]]])]
    >>> finer = refined(line, np.array([[0], [1]]), np.array([1]))
    >>> finer.regions[0].ravel().tolist(), finer.arms.ravel().tolist(), finer.parents.tolist()
    ([1.0, 1.5, 1.5, 2.0], [0, 1], [1, 1])
    """
    survivors = arms[keep]
    units = [1.0] * len(regions) if units is None else units
    finer, renamed = list[Array](), np.empty_like(survivors)
    for m, old in enumerate(regions):
        used, renamed[:, m] = np.unique(survivors[:, m], return_inverse=True)
        finer.append(np.concatenate([halves(old[k], units[m]) for k in used]))
    sides = np.indices((2,) * len(regions)).reshape(len(regions), -1).T
    products = (2 * renamed[:, None, :] + sides).reshape(-1, len(regions)).astype(np.intp)
    distinct, first = np.unique(products, axis=0, return_index=True)
    return Refined(finer, distinct, np.asarray(keep, dtype=np.intp)[first // len(sides)])


def first_changed(arms: Integers, before: ArrayLike | None) -> Integers:
    """Return the first module (K,) whose region differs between each arm and the previous arm.

    N - 1, the last module, if none does; 0 if there is no previous arm (Lin et al. 2021, eq. 8).

    Parameters
    ----------
    arms : (K, N - 1) int array
    before : (N - 1,) int array or None

    Examples
    --------
    >>> first_changed(np.array([[0, 1], [0, 2], [1, 1]]), [0, 1]).tolist()
    [2, 1, 0]
    """
    if before is None:
        return np.zeros(len(arms), dtype=np.intp)
    other = arms != np.asarray(before)
    return np.asarray(np.where(other.any(axis=1), np.argmax(other, axis=1), arms.shape[1]))


def pinned(low: ArrayLike, high: ArrayLike, columns: Columns, m: int, position: Array) -> tuple[Array, Array]:
    """Return the ends (d,) of a box in which the modules before m keep their values: low equals high there.

    Examples
    --------
    >>> low, high = pinned([0, 0, 0], [1, 1, 1], [(0,), (1, 2)], 1, np.array([0.3, 0.4, 0.5]))
    >>> low.tolist(), high.tolist()
    ([0.3, 0.0, 0.0], [0.3, 1.0, 1.0])
    """
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    held = [axis for axes in columns[:m] for axis in axes]
    low[held] = high[held] = position[held]
    return low, high


class Boxes(NamedTuple):
    """One box per arm to search for its next point: lower and upper ends, (K, d) each."""

    low: Array
    high: Array


def boxes_of(
    arms: Integers,
    regions: Sequence[Array],
    columns: Columns,
    changed: Integers,
    position: Array,
    low: ArrayLike,
    high: ArrayLike,
) -> Boxes:
    """Return the box of each arm's next point (Lin et al. 2021, eq. 8).

    Modules before the first one to change keep their values; from it on they stay within their regions. The
    last module is free.

    Parameters
    ----------
    arms : (K, N - 1) int array
    regions : sequence of N - 1 arrays (n_m, 2, D_m)
    columns : sequence of N sequences of int
    changed : (K,) int array
        First module to change, from `first_changed`.
    position : (d,) array
        Present settings of the system.
    low, high : (d,) arrays
        Ends of the axes.

    Examples
    --------
    >>> regions = [np.array([[[0.0], [0.5]], [[0.5], [1.0]]])]
    >>> boxes = boxes_of(np.array([[0], [1]]), regions, [(0,), (1,)], np.array([1, 0]),
    ...                  np.array([0.2, 0.7]), [0, 0], [1, 1])
    >>> boxes.low.tolist(), boxes.high.tolist()
    ([[0.2, 0.0], [0.5, 0.0]], [[0.2, 1.0], [1.0, 1.0]])
    """
    lows = np.tile(np.asarray(low, dtype=float), (len(arms), 1))
    highs = np.tile(np.asarray(high, dtype=float), (len(arms), 1))
    for m, boxes in enumerate(regions):
        axes = list(columns[m])
        lows[:, axes], highs[:, axes] = boxes[arms[:, m], 0], boxes[arms[:, m], 1]
        held = (changed > m)[:, None]
        lows[:, axes] = np.where(held, position[axes], lows[:, axes])
        highs[:, axes] = np.where(held, position[axes], highs[:, axes])
    return Boxes(lows, highs)


def within(points: Array, low: Array, high: Array) -> Mask:
    """Return which points (n, d) lie in a closed box."""
    return np.asarray(((points >= low) & (points <= high)).all(axis=1))


def best_in_box(points: Array, losses: Array, low: Array, high: Array) -> int | None:
    """Return the index of the least loss in a closed box, the first if several; None if no point is inside.

    Parameters
    ----------
    points : (n, d) array
    losses : (n,) array
    low, high : (d,) arrays
    """
    inside = within(points, low, high)
    return int(np.argmin(np.where(inside, losses, np.inf))) if inside.any() else None


def arm_at(arms: Integers, regions: Sequence[Array], columns: Columns, position: Array) -> int | None:
    """Return the first arm whose regions hold a position (d,), or None.

    Examples
    --------
    >>> regions = [np.array([[[0.0], [0.5]], [[0.5], [1.0]]])]
    >>> arm_at(np.array([[1]]), regions, [(0,), (1,)], np.array([0.2, 0.7])) is None
    True
    """
    holds = np.ones(len(arms), dtype=bool)
    for m, boxes in enumerate(regions):
        point = position[list(columns[m])]
        inside = np.asarray(((boxes[:, 0] <= point) & (point <= boxes[:, 1])).all(axis=1))
        holds &= inside[arms[:, m]]
    return int(np.argmax(holds)) if holds.any() else None
