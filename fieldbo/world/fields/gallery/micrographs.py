"""Synthetic micrographs with known cells, and a score of how well a segmentation finds them.

A picture is made as follows; the same draw always gives the same pictures:

1. Cells are ellipses with half axes of 6 to 12 pixels. A third lie anywhere, the others next to an existing
   one, so that they touch. Where two overlap slightly, a pixel belongs to the cell whose middle is nearer,
   relative to the half axes. Each cell has its own brightness and fades towards its rim.
2. Distractors are nearly as bright: small round debris, and thin winding fibres.
3. The lens blurs everything. A glow lies underneath, brighter to one side and in broad patches.
4. The camera counts photons (Poisson) and adds its own noise (normal).

Brightness is relative to the brightest cell. The score, `f1`, goes by objects: it shows whether touching
cells were separated, which a score by pixels would hardly do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream

Labels = NDArray[np.int32]
"""Number of the object that each pixel belongs to, from 1; 0 is background."""

PHOTONS = 15.0
"""Mean photon count of a pixel of brightness 1."""
READ_SD = 0.08
"""Standard deviation of the camera's own noise, in brightness."""
OVERLAPS = (0.5, 0.6, 0.7)
"""Least overlaps of a matching pair; F1 is the mean over them."""

_PIXELS_A_CELL = 1300  # picture area per cell
_PIXELS_A_DEBRIS = 2500
_PIXELS_A_FIBRE = 6000
_LENS = 1.2  # standard deviation of the blur, in pixels
_SHARED = 0.1  # largest fraction of a new cell's pixels that may belong to another
_TRIES = 100  # per cell, on average
_EDGE = 6.0  # least distance of a cell's middle from the picture's edge


@dataclass(frozen=True, eq=False)
class Micrograph:
    """A picture and its true cells.

    Attributes
    ----------
    light : (h, w) array
        Observed brightness.
    cells : (h, w) int array
        The true cells.
    """

    light: Array
    cells: Labels


def micrographs(draw: int, count: int, size: int) -> tuple[Micrograph, ...]:
    """Return the pictures of a draw.

    Parameters
    ----------
    draw : int
    count : int
        Number of pictures; they differ.
    size : int
        Pixels along a side.

    Examples
    --------
    >>> first, second = micrographs(draw=0, count=2, size=128)
    >>> first.light.shape, int(first.cells.max())
    ((128, 128), 13)
    >>> bool((first.light == second.light).any())
    False
    """
    return tuple(_micrograph(stream(draw, "field", k), size) for k in range(count))


def _micrograph(rng: np.random.Generator, size: int) -> Micrograph:
    scene, cells = np.zeros((size, size)), np.zeros((size, size), np.int32)
    _add_cells(rng, scene, cells)
    _add_debris(rng, scene)
    _add_fibres(rng, scene)
    true = np.maximum(gaussian_filter(scene, _LENS) + _glow(rng, size), 0.02)
    light = rng.poisson(PHOTONS * true) / PHOTONS + READ_SD * rng.standard_normal(true.shape)
    return Micrograph(frozen_array(light), cells)


def _add_cells(rng: np.random.Generator, scene: Array, cells: Labels) -> None:
    """Draw cells into a scene (h, w), and their numbers into `cells` (h, w)."""
    size, wanted = len(scene), max(1, round(scene.size / _PIXELS_A_CELL))
    nearest = np.full(scene.shape, np.inf)  # in half axes, from the middle of a pixel's cell
    placed: list[tuple[Array, float]] = []
    for _ in range(_TRIES * wanted):
        long = rng.uniform(7.0, 12.0)
        halves = np.array([long, max(6.0, long * rng.uniform(0.65, 1.0))])
        reach, turn, bright = float(np.sqrt(np.prod(halves))), rng.uniform(0, np.pi), rng.uniform(0.5, 1.0)
        middle = rng.uniform(_EDGE, size - _EDGE, 2)
        if placed and rng.uniform() < 0.65:
            neighbour, its_reach = placed[rng.integers(len(placed))]
            angle, gap = rng.uniform(0, 2 * np.pi), (its_reach + reach) * rng.uniform(0.9, 1.02)
            middle = neighbour + gap * np.array([np.cos(angle), np.sin(angle)])
        if (np.abs(middle - size / 2) > size / 2 - _EDGE).any():
            continue
        here, away = _around(middle, long, size)
        along = away[0] * np.cos(turn) + away[1] * np.sin(turn)
        across = away[1] * np.cos(turn) - away[0] * np.sin(turn)
        far = np.hypot(along / halves[0], across / halves[1])
        inside = far < 1.0
        if (inside & (cells[here] > 0)).sum() > _SHARED * inside.sum():
            continue
        placed.append((middle, reach))
        mine = inside & (far < nearest[here])
        nearest[here][mine], cells[here][mine] = far[mine], len(placed)
        _brighten(scene, here, np.where(inside, bright * (1.0 - 0.35 * far**2), 0.0))
        if len(placed) == wanted:
            return


def _add_debris(rng: np.random.Generator, scene: Array) -> None:
    """Draw debris into a scene (h, w)."""
    size = len(scene)
    for _ in range(round(scene.size / _PIXELS_A_DEBRIS)):
        radius, bright = rng.uniform(1.5, 4.5), rng.uniform(0.5, 1.0)
        here, away = _around(rng.uniform(_EDGE, size - _EDGE, 2), radius, size)
        _brighten(scene, here, np.where(np.hypot(*away) < radius, bright, 0.0))


def _add_fibres(rng: np.random.Generator, scene: Array) -> None:
    """Draw fibres into a scene (h, w)."""
    size = len(scene)
    for _ in range(max(1, round(scene.size / _PIXELS_A_FIBRE))):
        at, heading = rng.uniform(0, size, 2), rng.uniform(0, 2 * np.pi)
        half, bright = rng.uniform(1.2, 2.4), rng.uniform(0.4, 0.8)
        for turn in 0.06 * rng.standard_normal(int(rng.uniform(40, 110))):
            heading += turn
            at += np.array([np.cos(heading), np.sin(heading)])
            if (np.abs(at - size / 2) > size / 2).any():
                break
            here, away = _around(at, half, size)
            _brighten(scene, here, np.where(np.hypot(*away) < half, bright, 0.0))


def _around(middle: Array, reach: float, size: int) -> tuple[tuple[slice, slice], Array]:
    """Return the part of a picture around `middle` (2,), and its pixels' offsets from there, (2, a, b)."""
    low = np.maximum(np.floor(middle - reach), 0).astype(int)
    high = np.minimum(np.ceil(middle + reach) + 1, size).astype(int)
    here = slice(int(low[0]), int(high[0])), slice(int(low[1]), int(high[1]))
    return here, np.mgrid[here] - middle[:, None, None]


def _brighten(scene: Array, here: tuple[slice, slice], light: Array) -> None:
    """Brighten a part of a scene where it is darker than `light`."""
    scene[here] = np.maximum(scene[here], light)


def _glow(rng: np.random.Generator, size: int) -> Array:
    """Return the background glow, (size, size), 0.3 to 1.1."""
    angle, at = rng.uniform(0, 2 * np.pi), np.mgrid[:size, :size] / size - 0.5
    slope = at[0] * np.cos(angle) + at[1] * np.sin(angle)
    patches = gaussian_filter(rng.standard_normal((size, size)), size / 8, mode="wrap")
    return np.asarray(0.7 + 0.28 * slope + 0.2 * patches / np.abs(patches).max())


def f1(segmented: Sequence[Labels], true: Sequence[Labels]) -> float:
    """Return the F1 score of segmented objects, over all pictures together, 0 to 1.

    The overlap of an object with a cell is the intersection of their pixels over the union; if it exceeds a
    half, neither matches another. F1 is ``2 p / (f + t)`` with ``p`` matching pairs among ``f`` objects and
    ``t`` true cells. A higher least overlap requires more accurate outlines: the score is the mean over
    `OVERLAPS`.

    Parameters
    ----------
    segmented, true : sequences of (h, w) int arrays
        Objects and cells of each picture. Numbers need not be contiguous.

    Examples
    --------
    >>> two = np.array([[1, 1, 0, 2, 2]], dtype=np.int32)
    >>> one_wrong = np.array([[0, 0, 3, 4, 4]], dtype=np.int32)
    >>> f1([two], [two]), f1([one_wrong], [two])
    (1.0, 0.5)
    """
    pairs, objects = np.zeros(len(OVERLAPS)), 0
    for ours, theirs in zip(segmented, true, strict=True):
        n, m = int(ours.max()) + 1, int(theirs.max()) + 1
        common = np.bincount(ours.ravel().astype(np.int64) * m + theirs.ravel(), minlength=n * m).reshape(
            n, m
        )
        areas = common.sum(axis=1)[:, None], common.sum(axis=0)[None, :]
        overlap = (common / np.maximum(areas[0] + areas[1] - common, 1))[1:, 1:]
        pairs += [(overlap > least).sum() for least in OVERLAPS]
        objects += sum(int((area.ravel()[1:] > 0).sum()) for area in areas)
    return float(np.mean(2.0 * pairs / objects)) if objects else 0.0
