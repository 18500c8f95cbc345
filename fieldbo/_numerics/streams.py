"""Named random streams, and quasi-random points.

From one seed there is a generator for each purpose and each ask. A stream is keyed by its name *and* the
number of the ask that it serves. More draws in one stream therefore leave all others unchanged, and a replay
needs no saved generator state.

Scrambled Sobol points are those of `scipy.stats.qmc`, whose import takes longer than most commands. The
directions are those of Joe and Kuo, *Constructing Sobol sequences with better two-dimensional projections*
(2008); the scrambling is that of Matoušek, *On the L2-discrepancy for anchored boxes* (1998): a random lower
triangle of bits by which the directions are multiplied, and a random shift.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array

Stream = Literal[
    "sensor",
    "policy",
    "model",
    "initial",
    "field",
    "start",
    "score",
    "observe",
    "cost",
    "chance",
    "stop",
    "truth",
    "along",
    "advice",
    "bootstrap",
    "unnoticed",
]
# A run's draws depend on these numbers: add new names at the end.
_KEYS = {name: key for key, name in enumerate(get_args(Stream))}


def stream(seed: int, name: Stream, ask: int = 0) -> np.random.Generator:
    """Return the generator of a stream at one ask.

    Parameters
    ----------
    seed : int
        The mission's seed; for a field, the world's draw.
    name : str
        The purpose: ``"sensor"``, ``"policy"``, ``"model"``, ``"initial"``, ``"field"``, ``"start"``,
        ``"score"``, ``"observe"`` (a policy's draws, keyed by event), ``"cost"`` (noise on the real cost of
        a simulated order), ``"chance"`` (variables that it leaves free), ``"stop"`` (how sure the answer
        is), ``"truth"`` (samples of free variables for true expected values), ``"along"`` (noise of the
        readings on the way), ``"advice"`` (fields drawn from the belief, keyed by their number),
        ``"bootstrap"`` (runs of a comparison, drawn again) or ``"unnoticed"`` (patches between readings).
    ask : int
        Number of the agent's ask that it serves.

    Examples
    --------
    >>> a, b = stream(7, "sensor", 3), stream(7, "sensor", 3)
    >>> a.standard_normal() == b.standard_normal()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_KEYS[name], ask)))


_BITS = 30

_DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
)
"""Of each coordinate after the first: its primitive polynomial, as bits, and the first direction numbers."""


class Points(Protocol):
    """A sequence of points in the unit cube."""

    def random(self, n: int) -> Array:
        """Return the next `n` points (n, d)."""


def sobol(d: int, rng: np.random.Generator) -> Points:
    """Return scrambled Sobol points, the same as those of ``scipy.stats.qmc.Sobol(d, rng=rng)``.

    The first 2^k of them are balanced.

    Parameters
    ----------
    d : int
        Number of coordinates.
    rng : numpy.random.Generator

    Examples
    --------
    >>> sobol(2, np.random.default_rng(0)).random(4).round(2)
    array([[0.41, 0.96],
           [0.72, 0.11],
           [0.9 , 0.53],
           [0.22, 0.41]])
    """
    if 0 < d <= len(_DIRECTIONS) + 1:
        return _Sobol(d, rng)
    from scipy.stats import qmc

    points: Points = qmc.Sobol(d, rng=rng)
    return points


class _Sobol:
    def __init__(self, d: int, rng: np.random.Generator) -> None:
        bits, (rng,) = np.arange(_BITS, dtype=np.uint32), rng.spawn(1)
        shift = rng.integers(2, size=(d, _BITS), dtype=np.uint32)
        triangles = np.tril(rng.integers(2, size=(d, _BITS, _BITS), dtype=np.uint32), -1)
        triangles += np.eye(_BITS, dtype=np.uint32)
        # the most significant bit comes first in the rows of a triangle
        digits = np.stack([_directions(j) for j in range(d)])[:, None] >> bits[::-1, None] & 1
        scrambled = triangles @ digits & 1
        self._directions = (scrambled << bits[::-1, None]).sum(axis=1, dtype=np.uint32)
        self._shift = (shift << bits).sum(axis=1, dtype=np.uint32)
        self._drawn = 0

    def random(self, n: int) -> Array:
        """Return the next `n` points (n, d)."""
        index = np.arange(self._drawn, self._drawn + n)
        gray = index ^ index >> 1  # a point differs from the one before in one direction
        points = np.tile(self._shift, (n, 1))
        for bit in range(int(gray.max(initial=0)).bit_length()):
            points ^= np.where(gray[:, None] >> bit & 1, self._directions[:, bit], np.uint32(0))
        self._drawn += n
        return points * 2.0**-_BITS


def _directions(j: int) -> NDArray[np.uint32]:
    """Return the direction numbers (30,) of coordinate `j`, as whole numbers below 2^30."""
    numbers = [1] * _BITS
    if j:
        polynomial, first = _DIRECTIONS[j - 1]
        degree = len(first)
        numbers[:degree] = first
        for k in range(degree, _BITS):
            number = numbers[k - degree]
            for i in range(1, degree + 1):
                if polynomial >> degree - i & 1:
                    number ^= numbers[k - i] << i
            numbers[k] = number
    return np.array([number << _BITS - 1 - k for k, number in enumerate(numbers)], dtype=np.uint32)
