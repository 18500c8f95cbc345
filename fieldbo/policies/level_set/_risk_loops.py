"""Expected drops of risk, summed over members for each candidate.

The sums are in single precision and in units of the prior's variance.

===========  ==================================================================================
``C``        covariances of members with candidates, one row per member
``R``        coefficients of each member's drop ``G = q R(sqrt(1 - q))``, lowest power first
``share``    ``1 / s^2`` of each member, (R,)
``scale``    ``1 / (noise + s^2)`` of each candidate, (W,)
===========  ==================================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange

from fieldbo._numerics.compiled import compiled

_PARTS = 8
_TERMS = 64  # summed in single precision before they are added to a double
_ONE, _NONE = np.float32(1.0), np.float32(0.0)


@compiled()
def _drop(R: Any, q: Any) -> Any:
    """Return a member's drop once the share q of its variance is explained."""
    w = np.sqrt(_ONE - q)
    drop = R[6]
    for power in range(5, -1, -1):
        drop = drop * w + R[power]
    return q * drop


@compiled()
def _add_member(
    row: Any, R: Any, rounding: Any, share: Any, q: Any, before: Any, scale: Any, sums: Any
) -> None:
    """Add a member's drops to `sums` (W,).

    Parameters
    ----------
    row : (W,) array
        Its covariances. Each counts less by `rounding`, a bound of its error: a reading at a candidate that
        is known brings no gain.
    R : (7,) array
    rounding, q, before : float32
        `q` is the share that is explained already, and `before` the drop that this has brought.
    share : float32
        ``1 / s^2`` of the member.
    """
    r0, r1, r2, r3, r4, r5, r6 = R[0], R[1], R[2], R[3], R[4], R[5], R[6]
    for x in range(len(row)):
        c = abs(row[x]) - rounding
        c = c if c > _NONE else _NONE
        after = q + c * c * share * scale[x]
        after = after if after < _ONE else _ONE
        w = np.sqrt(_ONE - after)
        drop = r6 * w + r5
        drop = drop * w + r4
        drop = drop * w + r3
        drop = drop * w + r2
        drop = drop * w + r1
        drop = drop * w + r0
        sums[x] += after * drop - before


@compiled(parallel=True)
def add_drops(C: Any, at: Any, R: Any, rounding: Any, share: Any, scale: Any, out: Any) -> None:
    """Add to `out` (W,) the drops that a reading at each candidate would bring to the members.

    Parameters
    ----------
    C : (., W) float32 array
    at : (R,) int array
        The members' rows of C.
    R : (R, 7) float32 array
    rounding : float32
    share : (R,) float32 array
    scale : (W,) float32 array
    out : (W,) float64 array
    """
    W, members = C.shape[1], len(at)
    # The number of parts does not depend on that of threads: sums keep their order.
    size = max(_TERMS, (members + _PARTS - 1) // _PARTS)
    parts = (members + size - 1) // size
    partial = np.zeros((parts, W))
    for p in prange(parts):
        sums = np.empty(W, np.float32)
        for start in range(p * size, min((p + 1) * size, members), _TERMS):
            sums[:] = _NONE
            for k in range(start, min(start + _TERMS, (p + 1) * size, members)):
                _add_member(C[at[k]], R[k], rounding, share[k], _NONE, _NONE, scale, sums)
            for x in range(W):
                partial[p, x] += sums[x]
    for p in range(parts):
        for x in range(W):
            out[x] += partial[p, x]


@compiled(parallel=True)
def gather(C: Any, at: Any, columns: Any, out: Any) -> None:
    """Copy the rows `at` and the `columns` of C into `out`."""
    for k in prange(len(at)):
        row = C[at[k]]
        for x in range(len(columns)):
            out[k, x] = row[columns[x]]


@compiled()
def _conditioned(K: Any, noise: Any, stops: Any, B: Any, scale: Any) -> Any:
    """Return the Cholesky factor L (k, k) of the readings' covariances at `stops`.

    Sets B (k, W) to ``L^-1 K`` of the stops, and `scale` (W,) to ``1 / (noise + s^2)``, with the variances
    after the readings at the stops.
    """
    k, W = B.shape
    L, row, left = np.zeros((k, k)), np.empty(W), np.diag(K).copy()
    for j in range(k):
        pivot = K[stops[j], stops[j]] + noise[stops[j]]
        row[:] = K[stops[j]]
        for i in range(j):
            f = B[i, stops[j]]
            for w in range(W):
                row[w] -= f * B[i, w]
            L[j, i] = f
            pivot -= f * f
        L[j, j] = math.sqrt(max(pivot, noise[stops[j]]))  # less is rounding
        for w in range(W):
            B[j, w] = row[w] / L[j, j]
            left[w] -= B[j, w] * B[j, w]
    for w in range(W):
        scale[w] = np.float32(1.0 / (max(left[w], 0.0) + noise[w]))
    return L


@compiled()
def _subtract_four(rows: Any, f: Any, row: Any) -> None:
    """Subtract f[0] rows[0] to f[3] rows[3] from `row` (W,), in one pass."""
    b0, b1, b2, b3 = rows[0], rows[1], rows[2], rows[3]
    f0, f1, f2, f3 = f[0], f[1], f[2], f[3]
    for w in range(len(row)):
        row[w] -= (f0 * b0[w] + f1 * b1[w]) + (f2 * b2[w] + f3 * b3[w])


@compiled(parallel=True)
def add_further_drops(
    C: Any, K: Any, noise: Any, stops: Any, R: Any, rounding: Any, share: Any, out: Any, removed: Any
) -> None:
    """Add to `out` (W,) the drops that one more reading would bring after those at `stops`.

    Parameters
    ----------
    C : (R, W) float32 array
        Covariances of members with candidates, before the readings.
    K : (W, W) float64 array
        Covariances between candidates.
    noise : (W,) float64 array
    stops : (k,) int array
        Candidates; one may come again.
    R : (R, 7) float32 array
    rounding : float32
    share : (R,) float32 array
    out : (W,) float64 array
    removed : (R,) float32 array
        Set to the drop that the readings at the stops bring to each member.
    """
    members, W = C.shape
    k = len(stops)
    B, scale = np.empty((k, W)), np.empty(W, np.float32)
    L = _conditioned(K, noise, stops, B, scale)
    rows = np.zeros((k + -k % 4, W), np.float32)  # four at a time
    rows[:k] = B
    size = max(_TERMS, (members + _PARTS - 1) // _PARTS)
    parts = (members + size - 1) // size
    partial = np.zeros((parts, W))
    for p in prange(parts):
        row, sums = np.empty(W, np.float32), np.empty(W, np.float32)
        a, f = np.zeros(len(rows)), np.empty(4, np.float32)
        for start in range(p * size, min((p + 1) * size, members), _TERMS):
            sums[:] = _NONE
            for m in range(start, min(start + _TERMS, (p + 1) * size, members)):
                row[:] = C[m]
                q = 0.0
                for j in range(k):
                    x = np.float64(C[m, stops[j]])
                    for i in range(j):
                        x -= L[j, i] * a[i]
                    a[j] = x / L[j, j]
                    q += a[j] * a[j]
                for j in range(0, k, 4):
                    f[:] = a[j : j + 4]
                    _subtract_four(rows[j : j + 4], f, row)
                q = min(q * share[m], 1.0)
                removed[m] = _drop(R[m], np.float32(q))
                _add_member(row, R[m], rounding, share[m], np.float32(q), removed[m], scale, sums)
            for w in range(W):
                partial[p, w] += sums[w]
    for p in range(parts):
        for w in range(W):
            out[w] += partial[p, w]
