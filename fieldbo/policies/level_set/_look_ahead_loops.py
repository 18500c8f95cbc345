"""Sums over members of what a reading at each candidate changes.

Single precision, in units of the prior's variance.

===========  ==================================================================================
``C``        covariances of members with candidates, one row per member
``at``       the members' rows of C, (R,)
``known``    a bound of the covariances' rounding, by which they count less
``share``    ``1 / s^2`` of each member, (R,)
``scale``    ``1 / (noise + s^2)`` of each candidate, (W,)
===========  ==================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from fieldbo._numerics.compiled import compiled

_BLOCK = 256  # candidates at once
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_ROOT_HALF = np.float32(np.sqrt(0.5))
_LEAST = np.float32(1e-6)  # share of the variance that is left

# Abramowitz and Stegun (1964), formula 7.1.28, for erf(x / sqrt(2)).
_A = [0.0705230784, 0.0422820123, 0.0092705272, 0.0001520143, 0.0002765672, 0.0000430638]
_A1, _A2, _A3, _A4, _A5, _A6 = (np.float32(a * 0.5 ** (n / 2)) for n, a in enumerate(_A, 1))


@compiled(inline=True)
def _ndtr(x: Any) -> Any:
    """Return the standard normal distribution function at x, to within 1.5e-6."""
    y = abs(x)
    v = _A6 * y + _A5
    v = v * y + _A4
    v = v * y + _A3
    v = v * y + _A2
    v = v * y + _A1
    v = v * y + _ONE
    v = v * v
    v = v * v
    v = v * v
    v = v * v
    tail = _HALF / v
    return _ONE - tail if x > _ZERO else tail


@compiled()
def _add_from_row(c: Any, row: Any, known: Any, share: Any, scale: Any, places: Any, sums: Any) -> None:
    """Add to `sums` (W,) a member's function, from its row; `places` (W,) is working memory."""
    end = np.float32(len(row) - 1)
    middle, last = _HALF * end, np.uint32(len(row) - 2)
    for x in range(len(c)):
        v = abs(c[x]) - known
        v = v if v > _ZERO else _ZERO
        q = v * v * share * scale[x]
        q = q if q < _ONE else _ONE
        side = q if q < _HALF else _ONE - q
        place = middle * np.sqrt(side + side)
        places[x] = place if q < _HALF else end - place
    for x in range(len(c)):
        below = np.uint32(np.int32(places[x]))  # numba checks a signed index
        below = below if below < last else last
        low = row[below]
        sums[x] += low + (places[x] - np.float32(np.int32(below))) * (row[below + np.uint32(1)] - low)


@compiled(parallel=True)
def add_from_rows(C: Any, at: Any, rows: Any, known: Any, share: Any, scale: Any, out: Any) -> None:
    """Add to `out` (W,) the sums over members of a function of the variance q that a reading explains.

    Parameters
    ----------
    C, at, known, share, scale
        See above.
    rows : (R, 2 M + 1) float32 array
        Each member's function at ``sqrt(2 q) = 0, 1 / M, ..., 1``, then at ``sqrt(2 (1 - q))`` backwards.
    out : (W,) float64 array
    """
    W = len(scale)
    for block in prange((W + _BLOCK - 1) // _BLOCK):
        first, stop = block * _BLOCK, min((block + 1) * _BLOCK, W)
        places, sums = np.empty(stop - first, np.float32), np.zeros(stop - first, np.float32)
        for k in range(len(at)):
            c = C[at[k], first:stop]
            _add_from_row(c, rows[k], known, share[k], scale[first:stop], places, sums)
        for x in range(first, stop):
            out[x] += sums[x - first]


@compiled(parallel=True)
def add_changes(C: Any, at: Any, t: Any, known: Any, share: Any, scale: Any, readings: Any, out: Any) -> None:
    """Add to `out` (K, W) how much the sum of ``p`` changes after each of K readings at each candidate.

    ``p' = Phi((t + r z) / sqrt(1 - r^2))``, r the correlation of a member with the reading.

    Parameters
    ----------
    C, at, known, share, scale
        See above.
    t : (R,) float32 array
        ``(mu - h) / s`` of the members.
    readings : (K,) float32 array
        Standardised, ``z``.
    out : (K, W) float32 array
    """
    W = len(scale)
    for block in prange((W + _BLOCK - 1) // _BLOCK):
        first, stop = block * _BLOCK, min((block + 1) * _BLOCK, W)
        size = stop - first
        root = np.empty(size, np.float32)
        slope, centre = np.empty(size, np.float32), np.empty(size, np.float32)
        sums = np.zeros((len(readings), size), np.float32)
        for x in range(size):
            root[x] = np.sqrt(scale[first + x])
        for k in range(len(at)):
            c, inverse, now = C[at[k]], np.sqrt(share[k]), _ndtr(t[k])
            for x in range(size):
                v = c[first + x]
                size_of = max(abs(v) - known, _ZERO)
                r = min(size_of * inverse * root[x], _ONE)
                r = r if v > _ZERO else -r
                w = _ONE / np.sqrt(max(_ONE - r * r, _LEAST))
                slope[x], centre[x] = r * w, t[k] * w
            for n in range(len(readings)):
                z, of_reading = readings[n], sums[n]
                for x in range(size):
                    of_reading[x] += _ndtr(centre[x] + slope[x] * z) - now
        for n in range(len(readings)):
            for x in range(size):
                out[n, first + x] += sums[n, x]
