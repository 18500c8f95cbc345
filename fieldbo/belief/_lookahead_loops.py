"""Covariances, and the sums over them that truncated variance reduction needs.

In single precision and in units of the prior's variance, unless stated otherwise.

===========  ==================================================================================
``C``        rows of the posterior covariance, (R, W): members by candidates
``V``        ``L^-1 k(X, .)``, (n, N); the posterior covariance is ``k - V^T V``
``room``     ``max(s^2_m - floor, 0)`` of each member m, (R,)
``scale``    ``1 / (noise + s^2)`` of each candidate at each level, (K, W)
===========  ==================================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange

from fieldbo._numerics.compiled import compiled

SE, MATERN32, MATERN52 = 0, 1, 2

_CHUNK = 1024  # candidates per tile, which stays in the cache
_PARTS = 8
_TERMS = 64  # summed in single precision before they are added to a double
_LOG2E = np.float32(1.4426950408889634)
_LEAST = np.float32(-126.0)


@compiled()
def _exp2(x: Any) -> Any:
    """Return ``2^x`` for x of at most 0, in single precision, without a call that prevents vectorisation."""
    x = x if x > _LEAST else _LEAST
    whole = np.floor(x)
    f = x - whole
    # Minimax polynomial of 2^f on [0, 1): relative error below 2e-7.
    p = np.float32(1.8775767e-3)
    p = p * f + np.float32(8.9893397e-3)
    p = p * f + np.float32(5.5826318e-2)
    p = p * f + np.float32(2.4015361e-1)
    p = p * f + np.float32(6.9315308e-1)
    p = p * f + np.float32(9.9999994e-1)
    power = (np.int32(whole) + np.int32(127)) << np.int32(23)
    return p * np.int32(power).view(np.float32)


@compiled()
def _fill(kind: int, scaled: Any, m: int, low: int, line: Any) -> None:
    """Fill `line` (W,) with prior correlations between site m and sites low to low + W."""
    width = len(line)
    for x in range(width):
        gap = scaled[0, low + x] - scaled[0, m]
        line[x] = np.float32(gap * gap)
    for j in range(1, scaled.shape[0]):
        for x in range(width):
            gap = scaled[j, low + x] - scaled[j, m]
            line[x] += np.float32(gap * gap)
    if kind == SE:
        for x in range(width):
            line[x] = _exp2(np.float32(-0.5) * _LOG2E * line[x])
    elif kind == MATERN32:
        for x in range(width):
            s = np.sqrt(np.float32(3.0) * line[x])
            line[x] = (np.float32(1.0) + s) * _exp2(-_LOG2E * s)
    else:
        for x in range(width):
            s = np.sqrt(np.float32(5.0) * line[x])
            polynomial = np.float32(1.0) + s + s * s * np.float32(1.0 / 3.0)
            line[x] = polynomial * _exp2(-_LOG2E * s)


@compiled()
def _add_four(C: Any, at: Any, room: Any, z: Any, sums: Any) -> None:
    """Add ``min(C^2 z, room)`` to `sums` (W,) for four rows of C (., W): one pass over four streams."""
    r0, r1, r2, r3 = C[at[0]], C[at[1]], C[at[2]], C[at[3]]
    t0, t1, t2, t3 = room[0], room[1], room[2], room[3]
    for x in range(len(sums)):
        zx = z[x]
        a0 = r0[x] * r0[x] * zx
        a0 = a0 if a0 < t0 else t0
        a1 = r1[x] * r1[x] * zx
        a1 = a1 if a1 < t1 else t1
        a2 = r2[x] * r2[x] * zx
        a2 = a2 if a2 < t2 else t2
        a3 = r3[x] * r3[x] * zx
        a3 = a3 if a3 < t3 else t3
        sums[x] += (a0 + a1) + (a2 + a3)


@compiled()
def _add_one(row: Any, room: Any, z: Any, sums: Any) -> None:
    for x in range(len(sums)):
        a = row[x] * row[x] * z[x]
        sums[x] += a if a < room else room


@compiled()
def _add_terms(C: Any, at: Any, room: Any, scale: Any, low: int, sums: Any) -> None:
    """Add the terms of up to four members, in rows `at` of C (., W), to `sums` (K, W)."""
    for level in range(len(scale)):
        z = scale[level, low : low + sums.shape[1]]
        if len(at) == 4:
            _add_four(C, at, room, z, sums[level])
        else:
            for k in range(len(at)):
                _add_one(C[at[k]], room[k], z, sums[level])


@compiled()
def _bring_up_to_date(row: Any, m: int, since: int, n: int, V: Any) -> None:
    """Subtract rows `since` to n of V from site m's row of the covariance."""
    for j in range(since, n):
        v, f = V[j], V[j, m]
        for x in range(len(row)):
            row[x] -= f * v[x]


@compiled(parallel=True)
def add_gains(C: Any, members: Any, since: Any, V: Any, n: int, room: Any, scale: Any, out: Any) -> None:
    """Update rows of C, and add their terms ``min(C^2 scale, room)`` to each candidate's sum.

    Both happen in one pass over C, whose memory traffic dominates the time: each thread reads whole rows.

    Parameters
    ----------
    C : (., N) float32 array
        Changed in place.
    members : (R,) int array
    since : (R,) int array
        Number of rows of V that each member's row already accounts for.
    V : (., N) float32 array
    n : int
        Number of rows of V in use.
    room : (R,) float32 array
    scale : (K, N) float32 array
    out : (N, K) float64 array
        Added to.
    """
    N, levels, R = C.shape[1], len(scale), len(members)
    # The number of parts does not depend on that of threads: sums keep their order.
    share = max(_TERMS, (R + _PARTS - 1) // _PARTS)
    parts = (R + share - 1) // share
    partial = np.zeros((parts, levels, N))
    for p in prange(parts):
        sums = np.empty((levels, N), np.float32)
        for start in range(p * share, min((p + 1) * share, R), _TERMS):
            stop = min(start + _TERMS, (p + 1) * share, R)
            sums[:] = np.float32(0.0)
            for k in range(start, stop, 4):
                end = min(k + 4, stop)
                for i in range(k, end):
                    _bring_up_to_date(C[members[i]], members[i], since[i], n, V)
                _add_terms(C, members[k:end], room[k:end], scale, 0, sums)
            for level in range(levels):
                for x in range(N):
                    partial[p, level, x] += sums[level, x]
    for level in range(levels):
        for p in range(parts):
            for x in range(N):
                out[x, level] += partial[p, level, x]


@compiled(parallel=True)
def begin_rows(kind: int, scaled: Any, members: Any, at: Any, C: Any) -> None:
    """Fill the rows `at` of C (., N) with the members' prior covariances; parameters as for `make_rows`."""
    N = C.shape[1]
    for b in prange((N + _CHUNK - 1) // _CHUNK):
        low, high = b * _CHUNK, min((b + 1) * _CHUNK, N)
        for k in range(len(members)):
            _fill(kind, scaled, members[k], low, C[at[k], low:high])


@compiled(parallel=True)
def update_rows(C: Any, at: Any, members: Any, since: Any, V: Any, n: int) -> None:
    """Subtract from the members' rows `at` of C what readings since the latest update explain, one by one.

    A row's bits depend on the readings alone, not on when it was updated, or together with which others.

    Parameters
    ----------
    C : (., N) float32 array
        Changed in place.
    at, members : (R,) int arrays
    since : (R,) int array
        Number of rows of V that each member's row already accounts for.
    V : (., N) float32 array
    n : int
        Number of rows of V in use.
    """
    N = C.shape[1]
    for b in prange((N + _CHUNK - 1) // _CHUNK):
        low, high = b * _CHUNK, min((b + 1) * _CHUNK, N)
        for k in range(len(members)):
            line, m = C[at[k], low:high], members[k]
            for j in range(since[k], n):
                v, f = V[j, low:high], V[j, m]
                for x in range(high - low):
                    line[x] -= f * v[x]


@compiled()
def _columns(V: Any, members: Any) -> Any:
    """Return the members' columns of V as rows (R, n)."""
    rows = np.empty((len(members), len(V)), np.float32)
    for k in range(len(members)):
        for j in range(len(V)):
            rows[k, j] = V[j, members[k]]
    return rows


@compiled()
def _fill_tile(kind: int, scaled: Any, members: Any, mine: Any, others: Any, low: int, tile: Any) -> None:
    """Fill `tile` (R, W) with posterior covariances between members and candidates from `low` on.

    `mine` (R, n) and `others` (n, W) are the members' and the candidates' parts of V.
    """
    width = tile.shape[1]
    if len(others):
        explained = np.dot(mine, others)
    for k in range(len(members)):
        line = tile[k]
        _fill(kind, scaled, members[k], low, line)
        if len(others):
            less = explained[k]
            for x in range(width):
                line[x] -= less[x]


@compiled(parallel=True)
def make_rows(kind: int, scaled: Any, members: Any, V: Any, C: Any) -> None:
    """Fill the members' rows of C (N, N) with posterior covariances.

    Parameters
    ----------
    kind : int
        SE, MATERN32 or MATERN52.
    scaled : (d, N) array
        Sites in length scales; double, as differences in single precision would lose digits.
    members : (R,) int array
    V : (n, N) float32 array
    C : (N, N) float32 array
    """
    N = V.shape[1]
    mine = _columns(V, members)
    for b in prange((N + _CHUNK - 1) // _CHUNK):
        low, high = b * _CHUNK, min((b + 1) * _CHUNK, N)
        others = V[:, low:high].copy()
        tile = np.empty((_TERMS, high - low), np.float32)
        for start in range(0, len(members), _TERMS):
            stop = min(start + _TERMS, len(members))
            some = members[start:stop]
            _fill_tile(kind, scaled, some, mine[start:stop], others, low, tile)
            for k in range(stop - start):
                C[some[k], low:high] = tile[k]


@compiled()
def _add_back(tile: Any, first: int, rows: int, room: Any, scale: Any, sums: Any) -> None:
    """Add the terms of the tile's columns as members, for each of the rows `first` to ``first + rows``.

    The covariance is symmetric: a tile serves its rows and its columns.
    """
    for level in range(len(scale)):
        for k in range(rows):
            line, z = tile[k], scale[level, first + k]
            for start in range(0, len(room), _TERMS):
                total = np.float32(0.0)
                for x in range(start, min(start + _TERMS, len(room))):
                    a = line[x] * line[x] * z
                    total += a if a < room[x] else room[x]
                sums[level, first + k] += total


@compiled(parallel=True)
def add_gains_of_tiles(kind: int, scaled: Any, V: Any, room: Any, scale: Any, out: Any) -> None:
    """Do the same as `add_gains`, with covariances that are computed tile by tile and not stored.

    The members are the first R candidates. A tile of members with members counts both ways, so that each
    covariance is computed once.

    Parameters
    ----------
    kind, scaled, V
        As for `make_rows`.
    room : (R,) float32 array
    scale, out
        As for `add_gains`.
    """
    N, R, levels = V.shape[1], len(room), len(scale)
    members = np.arange(R)
    mine = _columns(V, members)
    # No chunk holds members and others. Later chunks of members meet more tiles: deal from both ends.
    inside = (R + _CHUNK - 1) // _CHUNK
    chunks = inside + (N - R + _CHUNK - 1) // _CHUNK
    back = np.zeros((inside, levels, R))
    for turn in prange(chunks):
        b = turn // 2 if turn % 2 == 0 else chunks - 1 - turn // 2
        among = b < inside
        low = b * _CHUNK if among else R + (b - inside) * _CHUNK
        high = min(low + _CHUNK, R if among else N)
        others = V[:, low:high].copy()
        tile = np.empty((_TERMS, high - low), np.float32)
        sums = np.empty((levels, high - low), np.float32)
        # Members before the chunk count both ways; those of the chunk meet each other here.
        end = high if among else R
        start = 0
        while start < end:
            stop = min(start + _TERMS, end)
            if among and start < low:
                stop = min(stop, low)
            _fill_tile(kind, scaled, members[start:stop], mine[start:stop], others, low, tile)
            sums[:] = np.float32(0.0)
            for k in range(0, stop - start, 4):
                last = min(k + 4, stop - start)
                _add_terms(tile, members[k:last], room[start + k : start + last], scale, low, sums)
            for level in range(levels):
                for x in range(high - low):
                    out[low + x, level] += sums[level, x]
            if among and start < low:
                _add_back(tile, start, stop - start, room[low:high], scale, back[b])
            start = stop
    for b in range(inside):
        for level in range(levels):
            for m in range(R):
                out[m, level] += back[b, level, m]


@compiled(parallel=True)
def exact_gains(
    kind: int,
    scaled: Any,
    variance: float,
    rows: Any,
    members: Any,
    others: Any,
    mine: Any,
    scale: Any,
    room: Any,
) -> Any:
    """Return the sums (n,) of the candidates `rows` in double precision.

    Parameters
    ----------
    kind, scaled
        As for `make_rows`.
    variance : float
        Of the prior.
    rows, members : (n,) and (R,) int arrays
    others, mine : (n, .) and (R, .) arrays
        The parts of V of `rows` and of `members`, one row per site.
    scale, room : (n,) and (R,) arrays
    """
    d, readings = scaled.shape[0], mine.shape[1]
    gains = np.empty(len(rows))
    for i in prange(len(rows)):
        total = 0.0
        for k in range(len(members)):
            r2 = 0.0
            for j in range(d):
                gap = scaled[j, rows[i]] - scaled[j, members[k]]
                r2 += gap * gap
            if kind == SE:
                c = math.exp(-0.5 * r2)
            elif kind == MATERN32:
                s = math.sqrt(3.0 * r2)
                c = (1.0 + s) * math.exp(-s)
            else:
                s = math.sqrt(5.0 * r2)
                c = (1.0 + s + s * s / 3.0) * math.exp(-s)
            explained = 0.0
            for j in range(readings):
                explained += others[i, j] * mine[k, j]
            c = variance * c - explained
            a = c * c * scale[i]
            total += a if a < room[k] else room[k]
        gains[i] = total
    return gains
