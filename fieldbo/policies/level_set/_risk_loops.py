"""Expected drops of risk, summed over members for each candidate; and short tours.

The sums are in single precision and in units of the prior's variance.

===========  ==================================================================================
``C``        covariances of members with candidates, one row per member
``R``        coefficients of each member's drop ``G = q R(sqrt(1 - q))``, lowest power first
``q``        share of each member's variance that is explained already, (R,)
``scale``    ``1 / (noise + s^2)`` of each candidate, (W,)
===========  ==================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from fieldbo._numerics.compiled import compiled

_PARTS = 8
_TERMS = 64  # summed in single precision before they are added to a double
_ONE, _NONE = np.float32(1.0), np.float32(0.0)


@compiled()
def _add_member(row: Any, R: Any, known: Any, share: Any, q: Any, before: Any, scale: Any, sums: Any) -> None:
    """Add a member's drops to `sums` (W,).

    Parameters
    ----------
    row : (W,) array
        Its covariances. Each counts less by `known`, a bound of its rounding: a reading at a candidate that
        is known brings no gain.
    R : (7,) array
    known, q, before : float32
        `before` is the drop at q, which the sum counts from.
    share : float32
        ``1 / s^2`` of the member.
    """
    r0, r1, r2, r3, r4, r5, r6 = R[0], R[1], R[2], R[3], R[4], R[5], R[6]
    for x in range(len(row)):
        c = abs(row[x]) - known
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
def add_drops(
    C: Any, at: Any, R: Any, known: Any, share: Any, q: Any, before: Any, scale: Any, out: Any
) -> None:
    """Add to `out` (W,) the drops that a reading at each candidate would bring to the members.

    Parameters
    ----------
    C : (., W) float32 array
    at : (R,) int array
        The members' rows of C.
    R : (R, 7) float32 array
    known : float32
    share, q, before : (R,) float32 arrays
        As for one member, see `_add_member`.
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
                _add_member(C[at[k]], R[k], known, share[k], q[k], before[k], scale, sums)
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


@compiled(parallel=True)
def condition(C: Any, of_members: Any, of_candidates: Any) -> None:
    """Subtract the outer product of `of_members` (R,) and `of_candidates` (W,) from C (R, W)."""
    for k in prange(len(C)):
        f, row = of_members[k], C[k]
        for x in range(len(row)):
            row[x] -= f * of_candidates[x]
