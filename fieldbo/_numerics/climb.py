"""Several quasi-Newton climbs within boxes, run together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask

ManyRising = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]
"""A function of points (m, d) and their climbs (m,) that returns values (m,) and gradients (m, d)."""


def climb_together(
    function: ManyRising,
    starts: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    rounds: int = 30,
    reach: float = 0.1,
) -> tuple[Array, Array]:
    """Return where several climbs end; each round evaluates one point of every climb.

    The steps are quasi-Newton (BFGS) steps within a box. A coordinate at an end of the box stays there if the
    step leads outside. A step that rises too little is shortened.

    Parameters
    ----------
    function : Callable
        Takes points (m, d) and the indices (m,) of their climbs, which are rows of `starts`; returns values
        (m,) and gradients (m, d). Called only for climbs that have not ended.
    starts : (B, d) array
    low, high : (d,) or (B, d) arrays
        One box for all climbs, or one box per climb; a coordinate with equal ends is fixed.
    rounds : int
        Maximum number of calls of `function`.
    reach : float
        Length of the first step, as a fraction of the box.

    Returns
    -------
    points : (B, d) array
        The best point that each climb saw.
    values : (B,) array
        At least the values of the starts.

    Examples
    --------
    >>> def hills(x, which):
    ...     return -((x - 3) ** 2).sum(axis=1), -2 * (x - 3)
    >>> points, values = climb_together(hills, [[0.0, 1.0], [9.0, 9.0]], [0, 0], [[4, 2], [10, 10]])
    >>> points.round(4).tolist()
    [[3.0, 2.0], [3.0, 3.0]]
    """
    at = np.array(starts, dtype=float)
    count, d = at.shape
    low, high = (np.broadcast_to(np.asarray(end, dtype=float), at.shape) for end in (low, high))
    extent = high - low
    unit = np.where(extent > 0, extent, 1.0)
    at = np.clip(at, low, high)
    value, gradient = function(at, np.arange(count))
    value, slope = np.array(value, dtype=float), np.asarray(gradient, dtype=float) * extent
    curve = np.broadcast_to(np.eye(d), (count, d, d)).copy()  # inverse of the negated Hessian
    fresh, length = np.ones(count, dtype=bool), np.ones(count)
    going = np.isfinite(value)
    for _ in range(rounds - 1):
        on = np.flatnonzero(going)
        step = _steps(on, at, low, high, slope, curve, fresh, reach)
        steepest = np.abs(step).max(axis=1)
        going[on[steepest < _STILL]] = False
        on, step = on[steepest >= _STILL], step[steepest >= _STILL]
        if not len(on):
            break
        there = np.clip(at[on] + length[on, None] * step * unit[on], low[on], high[on])
        moved = (there - at[on]) / unit[on]
        seen, gradient = function(there, on)
        now = np.asarray(gradient, dtype=float) * extent[on]
        promised = np.einsum("bd,bd->b", slope[on], moved)
        up = np.isfinite(seen) & (seen >= value[on] + _RISE * promised) & (promised > 0)
        length[on] = np.where(up, 1.0, 0.3 * length[on])
        going[on[~up & (length[on] < _SHORTEST)]] = False
        rose = on[up]
        _learn(curve, rose, moved[up], slope[rose] - now[up], fresh)
        flat = seen[up] - value[rose] <= _FLAT * (1.0 + np.abs(value[rose]))
        at[rose], value[rose], slope[rose] = there[up], seen[up], now[up]
        going[rose[flat]] = False
    return at, value


_RISE = 1e-4  # fraction of the rise predicted by the slope that a step must exceed
_STILL = 1e-7  # fraction of the box; shorter steps end a climb
_SHORTEST = 1e-4  # fraction of a step to which it may be shortened
_FLAT = 1e-9  # rise, relative to the value, below which a climb has converged


def _steps(
    on: NDArray[np.intp],
    at: Array,
    low: Array,
    high: Array,
    slope: Array,
    curve: Array,
    fresh: Mask,
    reach: float,
) -> Array:
    """Return the steps (m, d) that the climbs `on` (m,) would take, as fractions of their boxes."""
    rising = slope[on]
    shut = ((at[on] <= low[on]) & (rising < 0)) | ((at[on] >= high[on]) & (rising > 0))
    uphill = np.where(shut, 0.0, rising)
    step = np.where(shut, 0.0, np.einsum("bij,bj->bi", curve[on], uphill))
    astray = np.einsum("bi,bi->b", step, uphill) <= 0
    curve[on[astray]], fresh[on[astray]] = np.eye(at.shape[1]), True  # not uphill: restart
    step[astray] = uphill[astray]
    largest = np.maximum(np.abs(step).max(axis=1), 1e-300)
    return np.asarray(step * np.minimum(1.0, np.where(fresh[on], reach, 1.0) / largest)[:, None])


def _learn(curve: Array, climbs: NDArray[np.intp], s: Array, y: Array, fresh: Mask) -> None:
    """Update `curve` (B, d, d) of some climbs, whose slopes fell by `y` (m, d) over steps `s` (m, d)."""
    sy = np.einsum("bi,bi->b", s, y)
    yy = np.einsum("bi,bi->b", y, y)
    bent = sy > 1e-10 * np.sqrt(yy * np.einsum("bi,bi->b", s, s))
    climbs, s, y, sy, yy = climbs[bent], s[bent], y[bent], sy[bent], yy[bent]
    if not len(climbs):
        return
    first = fresh[climbs]
    H = curve[climbs]
    H[first] *= (sy / yy)[first, None, None]
    fresh[climbs] = False
    Hy = np.einsum("bij,bj->bi", H, y)
    grown = (1.0 + np.einsum("bi,bi->b", y, Hy) / sy) / sy
    cross = s[:, :, None] * Hy[:, None, :] / sy[:, None, None]
    H += grown[:, None, None] * s[:, :, None] * s[:, None, :] - cross - cross.transpose(0, 2, 1)
    curve[climbs] = H
