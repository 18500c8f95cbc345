"""Cells of a modular system's variables, and the boxes in which a lazy rule looks for its next point.

===========  ================================================================================================
``N``        number of modules; each has some of the axes, and all but the last are cut into cells
``cell``     a closed box over one module's axes: an array (2, D_m) of its lower and its upper ends
``cells``    of one module, (n_m, 2, D_m); of all of them, a list with N - 1 such arrays
``arm``      a cell of each of the first N - 1 modules, (N - 1,) numbers of cells; K arms, (K, N - 1)
``m``        a module, counted from 0
===========  ================================================================================================

After Lin, Miano and Dyer (2021), sections 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.policies.chains.arm_tree import Integers

Columns = Sequence[Sequence[int]]
"""Of each module: which of the domain's axes are its own."""


def sliced(low: Array, high: Array, axis: int, parts: int = 2) -> Array:
    """Return a box (D,) cut across one axis into equal cells, (parts, 2, D).

    Examples
    --------
    >>> sliced(np.zeros(2), np.array([4.0, 1.0]), axis=0)[:, :, 0].tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    ends = np.linspace(low[axis], high[axis], parts + 1)
    cells = np.repeat(np.stack([low, high])[None], parts, axis=0).astype(float)
    cells[:, 0, axis], cells[:, 1, axis] = ends[:-1], ends[1:]
    return cells


def halves(cell: Array, unit: ArrayLike | float = 1.0) -> Array:
    """Return a cell (2, D) bisected across its longest side, the first of equal ones: (2, 2, D), lower first.

    Parameters
    ----------
    cell : (2, D) array
    unit : float or (D,) array
        In what sides are measured, for example the lengths of the axes.

    Examples
    --------
    >>> halves(np.array([[0.0, 0.0], [0.5, 1.0]])).tolist()
    [[[0.0, 0.0], [0.5, 0.5]], [[0.0, 0.5], [0.5, 1.0]]]
    """
    sides = (cell[1] - cell[0]) / unit
    longest = int(np.argmax(sides >= sides.max() * (1 - 1e-9)))
    return sliced(cell[0], cell[1], longest)


class Refined(NamedTuple):
    """Finer cells of each module, arms over them (K, N - 1), and from which old arm each comes, (K,)."""

    cells: list[Array]
    arms: Integers
    parents: Integers


def refined(
    cells: Sequence[Array], arms: Integers, keep: Integers, units: Sequence[ArrayLike | float] | None = None
) -> Refined:
    """Bisect every cell that a surviving arm uses, and make arms of the halves.

    Lin et al. (2021), section 3.3.

    New cells are numbered by module in the old cells' order, the lower half first; cells that no survivor
    uses are dropped. The arms are all products of the halves of each survivor's cells, in lexicographic
    order.

    Parameters
    ----------
    cells : sequence of N - 1 arrays (n_m, 2, D_m)
    arms : (K, N - 1) int array
    keep : int array
        The surviving arms, at least one.
    units : sequence of N - 1 floats or (D_m,) arrays, optional
        In what each module's sides are measured; see `halves`.

    Examples
    --------
    >>> line = [np.array([[[0.0], [1.0]], [[1.0], [2.0]]])]
    >>> finer = refined(line, np.array([[0], [1]]), np.array([1]))
    >>> finer.cells[0].ravel().tolist(), finer.arms.ravel().tolist(), finer.parents.tolist()
    ([1.0, 1.5, 1.5, 2.0], [0, 1], [1, 1])
    """
    survivors = arms[keep]
    units = [1.0] * len(cells) if units is None else units
    finer, renamed = list[Array](), np.empty_like(survivors)
    for m, old in enumerate(cells):
        used, renamed[:, m] = np.unique(survivors[:, m], return_inverse=True)
        finer.append(np.concatenate([halves(old[k], units[m]) for k in used]))
    sides = np.indices((2,) * len(cells)).reshape(len(cells), -1).T
    products = (2 * renamed[:, None, :] + sides).reshape(-1, len(cells)).astype(np.intp)
    found, first = np.unique(products, axis=0, return_index=True)
    return Refined(finer, found, np.asarray(keep, dtype=np.intp)[first // len(sides)])


def first_changed(arms: Integers, before: ArrayLike | None) -> Integers:
    """Return the first module (K,) in which each arm's cell differs from those of the arm before.

    N - 1, the last module, where none does; 0 where there was no arm before (Lin et al. 2021, eq. 8).

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
    """Return a box (d,) with the values of the modules before m held where they are: low == high there.

    Examples
    --------
    >>> low, high = pinned([0, 0, 0], [1, 1, 1], [(0,), (1, 2)], 1, np.array([0.3, 0.4, 0.5]))
    >>> low.tolist(), high.tolist()
    ([0.3, 0.0, 0.0], [0.3, 1.0, 1.0])
    """
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    held = [axis for own in columns[:m] for axis in own]
    low[held] = high[held] = position[held]
    return low, high


class Boxes(NamedTuple):
    """One box an arm, in which its next point is sought: lower and upper ends, (K, d) each."""

    low: Array
    high: Array


def boxes_of(
    arms: Integers,
    cells: Sequence[Array],
    columns: Columns,
    changed: Integers,
    position: Array,
    low: ArrayLike,
    high: ArrayLike,
) -> Boxes:
    """Return where each arm's next point may lie (Lin et al. 2021, eq. 8).

    The modules before the first one changed keep their values, those from it on stay within their cells, and
    the last module is free.

    Parameters
    ----------
    arms : (K, N - 1) int array
    cells : sequence of N - 1 arrays (n_m, 2, D_m)
    columns : sequence of N sequences of int
    changed : (K,) int array
        The first module that changes, as `first_changed` returns it.
    position : (d,) array
        Where the system stands.
    low, high : (d,) arrays
        Ends of the axes.

    Examples
    --------
    >>> cells = [np.array([[[0.0], [0.5]], [[0.5], [1.0]]])]
    >>> boxes = boxes_of(np.array([[0], [1]]), cells, [(0,), (1,)], np.array([1, 0]), np.array([0.2, 0.7]),
    ...                  [0, 0], [1, 1])
    >>> boxes.low.tolist(), boxes.high.tolist()
    ([[0.2, 0.0], [0.5, 0.0]], [[0.2, 1.0], [1.0, 1.0]])
    """
    lows = np.tile(np.asarray(low, dtype=float), (len(arms), 1))
    highs = np.tile(np.asarray(high, dtype=float), (len(arms), 1))
    for m, own in enumerate(cells):
        axes = list(columns[m])
        lows[:, axes], highs[:, axes] = own[arms[:, m], 0], own[arms[:, m], 1]
        held = (changed > m)[:, None]
        lows[:, axes] = np.where(held, position[axes], lows[:, axes])
        highs[:, axes] = np.where(held, position[axes], highs[:, axes])
    return Boxes(lows, highs)


def within(points: Array, low: Array, high: Array) -> Mask:
    """Return which points (n, d) lie in a closed box."""
    return np.asarray(((points >= low) & (points <= high)).all(axis=1))


def best_in_box(points: Array, losses: Array, low: Array, high: Array) -> int | None:
    """Return the point of a closed box with the least loss, the first of equal ones; None if none is in it.

    Parameters
    ----------
    points : (n, d) array
    losses : (n,) array
    low, high : (d,) arrays
    """
    inside = within(points, low, high)
    return int(np.argmin(np.where(inside, losses, np.inf))) if inside.any() else None


def arm_at(arms: Integers, cells: Sequence[Array], columns: Columns, position: Array) -> int | None:
    """Return the first arm whose cells hold a position (d,); None if it lies in no arm's cells.

    Examples
    --------
    >>> cells = [np.array([[[0.0], [0.5]], [[0.5], [1.0]]])]
    >>> arm_at(np.array([[1]]), cells, [(0,), (1,)], np.array([0.2, 0.7])) is None
    True
    """
    holds = np.ones(len(arms), dtype=bool)
    for m, own in enumerate(cells):
        place = position[list(columns[m])]
        inside = np.asarray(((own[:, 0] <= place) & (place <= own[:, 1])).all(axis=1))
        holds &= inside[arms[:, m]]
    return int(np.argmax(holds)) if holds.any() else None
