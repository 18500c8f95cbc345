"""Find the best point of a continuous domain: draw candidates, then climb from the best of them.

=========  ============================================================================
``d``      number of axes
``reach``  length of a climb's first step, as a fraction of the axes' lengths
=========  ============================================================================

No point leaves the domain: all stay between the axes' ends and outside obstacles. `climb_together` runs many
climbs within boxes at once, without a domain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import one_blas_thread
from fieldbo._numerics.streams import sobol
from fieldbo.domain.domain import Domain

Rising = Callable[[Array], tuple[float, Array]]
"""A function of a point (d,) that returns its value and gradient (d,)."""


_STEP = 1e-5  # step of a central difference, as a fraction of an axis

_SCALES = 0.3 * 0.25 ** np.arange(4)
"""Standard deviations of candidates around a place, as fractions of the axes: 0.3 down to 0.005."""

_MOVED = 3.0
"""Mean number of coordinates that a candidate changes of its place: all of them up to three axes."""

_ROUNDS = 8
"""Number of attempts to draw candidates outside obstacles, before sites replace them."""


def around(domain: Domain, rng: np.random.Generator, n: int, places: ArrayLike = ()) -> Array:
    """Return candidates in a continuous domain: some spread over it, some around places of interest.

    First come the places themselves, then quasi-random (scrambled Sobol) points, then up to half of all
    candidates around the places in turn, near and far. With many axes, a candidate changes only some of its
    place's coordinates, because the others are good already.

    Parameters
    ----------
    domain : Domain
    rng : numpy.random.Generator
        Generators with equal states give equal candidates.
    n : int
        Number of candidates.
    places : (k, d) array
        For example the vehicle's position, and where the best values are expected.

    Returns
    -------
    (n, d) array
        All in the domain.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> box = Domain.box([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], 8)
    >>> around(box, np.random.default_rng(0), 5, [[2.0, 0.5]]).shape
    (5, 2)
    >>> around(box, np.random.default_rng(0), 5, [[2.0, 0.5]])[0]
    array([2. , 0.5])
    """
    d = domain.dimension
    centres = np.asarray(places, dtype=float).reshape(-1, d)
    centres = domain.clipped(centres[domain.contains(centres)])[:n]
    near = n // 2 - len(centres) if len(centres) else 0
    far = n - len(centres) - max(0, near)
    points = sobol(d, rng)

    def anywhere(count: int) -> Array:
        shares = points.random(1 << (count - 1).bit_length())  # balanced in powers of two
        return domain.low + shares * domain.extent

    def nearby(count: int) -> Array:
        turn = np.arange(count)
        scale = _SCALES[turn // len(centres) % len(_SCALES)]
        moved = rng.random((count, d)) < _MOVED / d
        moved[turn, rng.integers(d, size=count)] = True
        steps = rng.standard_normal((count, d)) * scale[:, None] * domain.extent
        return domain.clipped(centres[turn % len(centres)] + moved * steps)

    return np.concatenate(
        [centres, _inside(domain, rng, far, anywhere), _inside(domain, rng, max(0, near), nearby)]
    )


def _inside(domain: Domain, rng: np.random.Generator, n: int, make: Callable[[int], Array]) -> Array:
    """Return `n` points in the domain; `make(count)` returns at least `count` candidates for them."""
    inside = np.empty((0, domain.dimension))
    for _ in range(_ROUNDS):
        if len(inside) >= n:
            break
        points = make(max(n, 2 * (n - len(inside))))
        inside = np.concatenate([inside, points[domain.contains(points)]])
    return np.concatenate([inside[:n], domain.draw(max(0, n - len(inside)), rng)])


def climbed(function: Rising, starts: Array, domain: Domain) -> Array:
    """Return the best point (d,) that climbs from several starts reach.

    Parameters
    ----------
    function : Callable
        Takes a point (d,) and returns its value, with a spread of about 1, and its gradient (d,).
    starts : (k, d) array
        Points in the domain.
    domain : Domain
        A continuous domain.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> hill = lambda x: (-float((x - 3) @ (x - 3)), -2 * (x - 3))
    >>> climbed(hill, np.array([[0.0]]), Domain.box([Axis("x", "m", 0, 10)], 8)).round(4)
    array([3.])
    """
    climbs = [_climb(function, start, domain, domain.extent) for start in starts]
    return max(climbs, key=lambda climb: climb[1])[0]


def polished(
    scores: Callable[[Array], Array], start: ArrayLike, domain: Domain, reach: float = 0.1, calls: int = 20
) -> tuple[Array, float]:
    """Return the best point that a climb sees, for scores without known gradients.

    Parameters
    ----------
    scores : Callable
        Takes points (m, d) and returns scores (m,). The climb avoids points whose score is not finite.
    start : (d,) array
        A point in the domain, for example the best candidate.
    domain : Domain
        A continuous domain.
    reach : float
        Length of the first step, as a fraction of the axes' lengths.
    calls : int
        Approximate number of calls of `scores`, each with 2 d + 1 points.

    Returns
    -------
    point : (d,) array
    score : float
        At least the score of the start.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> box = Domain.box([Axis("x", "m", 0, 10), Axis("y", "m", 0, 4)], 8)
    >>> point, score = polished(lambda x: -((x - [3, 9]) ** 2).sum(axis=1), [1, 1], box)
    >>> point.round(4), round(score, 4)
    (array([3., 4.]), -25.0)
    """
    rising, at = differenced(scores, domain), np.asarray(start, dtype=float)
    value, gradient = rising(at)
    unit = reach * domain.extent
    slope = float(np.abs(gradient * unit).max())
    if not np.isfinite(value) or slope == 0.0:
        return at, value
    # The optimiser's tolerances suit slopes of about 1 and values around 0.
    return _climb(rising, at, domain, unit, calls, level=value, slope=slope)


def differenced(scores: Callable[[Array], Array], domain: Domain) -> Rising:
    """Return a function that computes a score and its gradient by central differences.

    At an edge of the domain, and next to a score that is not finite, the difference is one-sided.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> box = Domain.box([Axis("x", "m", 0, 10)], 8)
    >>> value, gradient = differenced(lambda x: 3 * x[:, 0], box)(np.array([10.0]))
    >>> value, gradient.round(6)
    (30.0, array([3.]))
    """
    d = domain.dimension
    steps = _STEP * np.diag(domain.extent)

    def rising(point: Array) -> tuple[float, Array]:
        neighbours = domain.clipped(np.concatenate([point + steps, point - steps]))
        neighbours[~domain.contains(neighbours)] = point
        values = np.asarray(scores(np.concatenate([neighbours, point[None]])), dtype=float)
        value, sides = values[-1], values[:-1]
        if not np.isfinite(value):
            return float(value), np.zeros(d)
        invalid = ~np.isfinite(sides)
        neighbours[invalid], sides = point, np.where(invalid, value, sides)
        width = np.diag(neighbours[:d] - neighbours[d:])
        divisor = np.where(width > 0, width, 1.0)
        return float(value), np.where(width > 0, (sides[:d] - sides[d:]) / divisor, 0.0)

    return rising


def _climb(
    function: Rising,
    start: Array,
    domain: Domain,
    unit: Array,
    calls: int = 15_000,
    level: float = 0.0,
    slope: float = 1.0,
) -> tuple[Array, float]:
    """Return the best point of the domain that a climb sees, and its value; minus infinity if there is none.

    The optimiser sees steps from the start in units of `unit` (d,), and ``(value - level) / slope``.
    """
    from scipy.optimize import minimize

    best, most = start, -np.inf

    def falling(steps: Array) -> tuple[float, Array]:
        nonlocal best, most
        point = domain.clipped(start + steps * unit)
        if domain.contains(point[None])[0]:
            value, gradient = function(point)
            if np.isfinite(value):
                if value > most:
                    best, most = point, value
                return (level - value) / slope, -gradient * unit / slope
        # A wall that slopes down to the best point seen sends the line search back to it.
        away = (point - best) / unit
        bottom = (level - most) / slope if np.isfinite(most) else 0.0
        return bottom + 1.0 + float(away @ away), 2.0 * away

    with one_blas_thread():  # the optimiser's matrices are tiny
        minimize(
            falling,
            np.zeros(len(start)),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip((domain.low - start) / unit, (domain.high - start) / unit, strict=True)),
            options={"maxfun": calls},
        )
    return best, most


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
