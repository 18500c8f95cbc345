"""Compiled loops: which straight legs are free, and the cheapest of many routes with one more stop.

===========  ==================================================================================
``corners``  corners of closed rings, one ring after the other, (K, 2); the rings bound the free space
``first``    index of each ring's first corner, and K, (R + 1,)
``bounds``   low x, low y, high x and high y of each ring, (R, 4)
===========  ==================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from fieldbo._numerics.compiled import compiled

_FEW = 100_000  # legs or sums up to which more threads do not pay off


def _few(shape: tuple[int, ...], each: int) -> bool:
    """Return True if a single thread fills an array of that shape faster; threads take whole rows."""
    return shape[0] < 4 or shape[0] * shape[1] * each <= _FEW


@compiled()
def _crosses(px: float, py: float, qx: float, qy: float, corners: Any, first: Any, bounds: Any) -> bool:
    """Return True if the leg from p to q crosses a ring.

    A corner on the leg's line counts as on its right, so a leg through corners is treated like one next to
    them.
    """
    dx, dy = qx - px, qy - py
    west, east = min(px, qx), max(px, qx)
    south, north = min(py, qy), max(py, qy)
    for r in range(len(bounds)):
        if east < bounds[r, 0] or south > bounds[r, 3] or west > bounds[r, 2] or north < bounds[r, 1]:
            continue
        last = first[r + 1] - 1
        ax, ay = corners[last, 0], corners[last, 1]
        left = dx * (ay - py) - dy * (ax - px) > 0.0
        for k in range(first[r], first[r + 1]):
            bx, by = corners[k, 0], corners[k, 1]
            side = dx * (by - py) - dy * (bx - px) > 0.0
            if side != left:
                ex, ey = bx - ax, by - ay
                here = ex * (py - ay) - ey * (px - ax) > 0.0
                there = ex * (qy - ay) - ey * (qx - ax) > 0.0
                if here != there:
                    return True
            ax, ay, left = bx, by, side
    return False


@compiled()
def _row_in_outline(p: Any, ends: Any, corners: Any, first: Any, bounds: Any, row: Any) -> None:
    for j in range(len(ends)):
        row[j] = not _crosses(p[0], p[1], ends[j, 0], ends[j, 1], corners, first, bounds)


@compiled(parallel=True)
def _rows_in_outline(starts: Any, ends: Any, corners: Any, first: Any, bounds: Any, out: Any) -> None:
    for i in prange(len(starts)):
        _row_in_outline(starts[i], ends, corners, first, bounds, out[i])


@compiled()
def _few_in_outline(starts: Any, ends: Any, corners: Any, first: Any, bounds: Any, out: Any) -> None:
    for i in range(len(starts)):
        _row_in_outline(starts[i], ends, corners, first, bounds, out[i])


def free_in_outline(starts: Any, ends: Any, corners: Any, first: Any, bounds: Any) -> Any:
    """Return a mask (P, N) of the legs from `starts` (P, 2) to `ends` (N, 2) that cross no ring."""
    out = np.empty((len(starts), len(ends)), np.bool_)
    loop = _few_in_outline if _few(out.shape, 1) else _rows_in_outline
    loop(starts, ends, corners, first, bounds, out)
    return out


@compiled()
def _legs_in_outline(starts: Any, ends: Any, corners: Any, first: Any, bounds: Any, out: Any) -> None:
    for i in range(len(starts)):
        out[i] = not _crosses(starts[i, 0], starts[i, 1], ends[i, 0], ends[i, 1], corners, first, bounds)


def legs_in_outline(starts: Any, ends: Any, corners: Any, first: Any, bounds: Any) -> Any:
    """Return a mask (n,) of the legs from each of `starts` (n, 2) to its end in `ends` that cross no ring."""
    out = np.empty(len(starts), np.bool_)
    _legs_in_outline(starts, ends, corners, first, bounds, out)
    return out


@compiled()
def _enters(p: Any, q: Any, low: Any, high: Any) -> bool:
    """Return True if the leg from p to q runs inside a box (the slab method)."""
    for b in range(len(low)):
        enter, leave = 0.0, 1.0
        for k in range(len(p)):
            d = q[k] - p[k]
            if d == 0.0:
                if p[k] <= low[b, k] or p[k] >= high[b, k]:
                    leave = 0.0
            else:
                s, t = (low[b, k] - p[k]) / d, (high[b, k] - p[k]) / d
                enter, leave = max(enter, min(s, t)), min(leave, max(s, t))
            if enter >= leave:
                break
        if enter < leave:
            return True
    return False


@compiled(parallel=True)
def _rows_among_boxes(starts: Any, ends: Any, low: Any, high: Any, out: Any) -> None:
    for i in prange(len(starts)):
        for j in range(len(ends)):
            out[i, j] = not _enters(starts[i], ends[j], low, high)


@compiled()
def _few_among_boxes(starts: Any, ends: Any, low: Any, high: Any, out: Any) -> None:
    for i in range(len(starts)):
        for j in range(len(ends)):
            out[i, j] = not _enters(starts[i], ends[j], low, high)


def free_among_boxes(starts: Any, ends: Any, low: Any, high: Any) -> Any:
    """Return a mask (P, N) of the legs from `starts` (P, d) to `ends` (N, d) that enter no box.

    Parameters
    ----------
    starts, ends : (P, d) and (N, d) arrays
    low, high : (B, d) arrays
        Opposite corners of the boxes; may be infinite.
    """
    out = np.empty((len(starts), len(ends)), np.bool_)
    loop = _few_among_boxes if _few(out.shape, 1) else _rows_among_boxes
    loop(starts, ends, low, high, out)
    return out


@compiled()
def _legs_among_boxes(starts: Any, ends: Any, low: Any, high: Any, out: Any) -> None:
    for i in range(len(starts)):
        out[i] = not _enters(starts[i], ends[i], low, high)


def legs_among_boxes(starts: Any, ends: Any, low: Any, high: Any) -> Any:
    """Return a mask (n,) of the legs from each of `starts` (n, d) to its end in `ends` that enter no box."""
    out = np.empty(len(starts), np.bool_)
    _legs_among_boxes(starts, ends, low, high, out)
    return out


@compiled()
def _row_with_stop(to: Any, on: Any, row: Any) -> None:
    for v in range(len(to)):
        price = to[v]
        if price < np.inf:
            rest = on[v]
            for j in range(len(row)):
                cost = price + rest[j]
                row[j] = cost if cost < row[j] else row[j]


@compiled(parallel=True)
def _rows_with_stop(to: Any, on: Any, out: Any) -> None:
    for i in prange(len(to)):
        _row_with_stop(to[i], on, out[i])


@compiled()
def _few_with_stop(to: Any, on: Any, out: Any) -> None:
    for i in range(len(to)):
        _row_with_stop(to[i], on, out[i])


def take_stop(to: Any, on: Any, out: Any) -> None:
    """Lower `out` (P, N) to the cheapest route with a stop, ``min over v of to[i, v] + on[v, j]``.

    Parameters
    ----------
    to, on : (P, V) and (V, N) arrays
        Costs; infinite if there is no route.
    out : (P, N) array
        Costs so far; changed in place.
    """
    loop = _few_with_stop if _few(out.shape, len(on)) else _rows_with_stop
    loop(to, on, out)


@compiled()
def stops(to: Any, on: Any, price: Any) -> Any:
    """Return the stop v of each cheapest route, (P, N) int32; -1 if no stop is cheaper than `price`.

    Parameters
    ----------
    to, on
        As in `take_stop`.
    price : (P, N) array
        Costs without a stop.
    """
    stop = np.full(price.shape, np.int32(-1), np.int32)
    for i in range(len(to)):
        best = price[i].copy()
        for v in range(to.shape[1]):
            for j in range(len(best)):
                cost = to[i, v] + on[v, j]
                if cost < best[j]:
                    best[j], stop[i, j] = cost, v
    return stop
