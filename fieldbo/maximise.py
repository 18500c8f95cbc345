"""The best point of a box: candidates to choose from, and the climb from the best of them.

=========  ============================================================================
``d``      number of axes
``share``  a point in shares of the axes' lengths, (d,), from 0 to 1
``reach``  length of a climb's first step, in shares of the axes' lengths
=========  ============================================================================

Nothing here leaves the domain: neither the box between the axes' ends, nor for an obstacle in it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo.domain import Array, Domain, Mask
from fieldbo.threads import one_blas_thread

Rising = Callable[[Array], tuple[float, Array]]
"""Of a point (d,): the value there and its gradient (d,)."""

ManyRising = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]
"""Of points (m, d) and which climbs (m,) they belong to: the values (m,) there and gradients (m, d)."""

_STEP = 1e-5  # share of an axis: of a central difference

_SCALES = 0.3 * 0.25 ** np.arange(4)
"""Standard deviations of candidates about a place, in shares of the axes' lengths: 0.3 down to 0.005."""

_MOVED = 3.0
"""So many coordinates of a place are changed on average: all of them up to three axes."""

_ROUNDS = 8
"""So often candidates that fall into obstacles are drawn anew, before sites take their place."""


def around(domain: Domain, rng: np.random.Generator, n: int, places: ArrayLike = ()) -> Array:
    """Return candidates of a continuous domain: some all over it, some about places of interest.

    First the places themselves, then quasi-random (scrambled Sobol) points, then points about the places,
    by turns, near and far; of those up to half of all. In many dimensions only some of the coordinates of
    a place are changed: its others are good already.

    Parameters
    ----------
    domain : Domain
    rng : numpy.random.Generator
        The same one gives the same candidates.
    n : int
        How many.
    places : (k, d) array
        For example where the vehicle is, and where the best values are expected.

    Returns
    -------
    (n, d) array
        All in the domain.

    Examples
    --------
    >>> from fieldbo.domain import Axis
    >>> box = Domain.box([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], 8)
    >>> around(box, np.random.default_rng(0), 5, [[2.0, 0.5]]).shape
    (5, 2)
    >>> around(box, np.random.default_rng(0), 5, [[2.0, 0.5]])[0]
    array([2. , 0.5])
    """
    from scipy.stats import qmc

    d = domain.dimension
    centres = np.asarray(places, dtype=float).reshape(-1, d)
    centres = domain.clipped(centres[domain.contains(centres)])[:n]
    near = n // 2 - len(centres) if len(centres) else 0
    far = n - len(centres) - max(0, near)
    sobol = qmc.Sobol(d, rng=rng)

    def anywhere(count: int) -> Array:
        points = sobol.random(1 << (count - 1).bit_length())  # even in powers of two
        return domain.low + points * domain.extent

    def about(count: int) -> Array:
        turn = np.arange(count)
        scale = _SCALES[turn // len(centres) % len(_SCALES)]
        moved = rng.random((count, d)) < _MOVED / d
        moved[turn, rng.integers(d, size=count)] = True
        steps = rng.standard_normal((count, d)) * scale[:, None] * domain.extent
        return domain.clipped(centres[turn % len(centres)] + moved * steps)

    return np.concatenate(
        [centres, _inside(domain, rng, far, anywhere), _inside(domain, rng, max(0, near), about)]
    )


def _inside(domain: Domain, rng: np.random.Generator, n: int, made: Callable[[int], Array]) -> Array:
    """Return `n` points that `made(count)` makes, at least so many a call, and that lie in the domain."""
    found = np.empty((0, domain.dimension))
    for _ in range(_ROUNDS):
        if len(found) >= n:
            break
        points = made(max(n, 2 * (n - len(found))))
        found = np.concatenate([found, points[domain.contains(points)]])
    return np.concatenate([found[:n], domain.draw(max(0, n - len(found)), rng)])


def climbed(function: Rising, starts: Array, domain: Domain) -> Array:
    """Return the best point (d,) that can be climbed to from several.

    Parameters
    ----------
    function : Callable
        Of a point (d,); returns the value, of about unit spread, and its gradient (d,).
    starts : (k, d) array
        In the domain.
    domain : Domain
        A continuous one.

    Examples
    --------
    >>> from fieldbo.domain import Axis
    >>> hill = lambda x: (-float((x - 3) @ (x - 3)), -2 * (x - 3))
    >>> climbed(hill, np.array([[0.0]]), Domain.box([Axis("x", "m", 0, 10)], 8)).round(4)
    array([3.])
    """
    climbs = [_climb(function, start, domain, domain.extent) for start in starts]
    return max(climbs, key=lambda climb: climb[1])[0]


def climbed_together(
    function: ManyRising,
    starts: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    rounds: int = 30,
    reach: float = 0.1,
) -> tuple[Array, Array]:
    """Return where several climbs end, all of them taken at once: each round asks for one point of each.

    Quasi-Newton (BFGS) steps within a box: coordinates at an end that the way leads out of stay there. A step
    that rises too little is shortened.

    Parameters
    ----------
    function : Callable
        Of points (m, d), and of which climbs (m,), rows of `starts`, they are; returns values (m,) and
        gradients (m, d). Asked only for climbs that still go on.
    starts : (B, d) array
    low, high : (d,) or (B, d) arrays
        The box, or each climb's own; where both are equal a coordinate stays as it is.
    rounds : int
        How often `function` is asked.
    reach : float
        Length of the first step, in shares of the box.

    Returns
    -------
    points : (B, d) array
        The best that each climb saw.
    values : (B,) array
        Never below those of the starts.

    Examples
    --------
    >>> def hills(x, which):
    ...     return -((x - 3) ** 2).sum(axis=1), -2 * (x - 3)
    >>> points, values = climbed_together(hills, [[0.0, 1.0], [9.0, 9.0]], [0, 0], [[4, 2], [10, 10]])
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
    curve = np.broadcast_to(np.eye(d), (count, d, d)).copy()  # the inverse of minus the second derivatives
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


_RISE = 1e-4  # share of the rise that the slope promises, of which a step must bring more
_STILL = 1e-7  # share of the box: steps that count as none
_SHORTEST = 1e-4  # share of a step to which it is shortened
_FLAT = 1e-9  # rise, as a share of the value, after which a climb has arrived


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
    """Return the steps (m, d) that the climbs `on` (m,) would take, in shares of their boxes."""
    rising = slope[on]
    shut = ((at[on] <= low[on]) & (rising < 0)) | ((at[on] >= high[on]) & (rising > 0))
    uphill = np.where(shut, 0.0, rising)
    step = np.where(shut, 0.0, np.einsum("bij,bj->bi", curve[on], uphill))
    lost = np.einsum("bi,bi->b", step, uphill) <= 0
    curve[on[lost]], fresh[on[lost]] = np.eye(at.shape[1]), True  # no way up: begin anew
    step[lost] = uphill[lost]
    largest = np.maximum(np.abs(step).max(axis=1), 1e-300)
    return np.asarray(step * np.minimum(1.0, np.where(fresh[on], reach, 1.0) / largest)[:, None])


def _learn(curve: Array, climbs: NDArray[np.intp], s: Array, y: Array, fresh: Mask) -> None:
    """Take up in `curve` (B, d, d) how slopes fell by `y` (m, d) over steps `s` (m, d) of some climbs."""
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


def polished(
    scores: Callable[[Array], Array], start: ArrayLike, domain: Domain, reach: float = 0.1, calls: int = 20
) -> tuple[Array, float]:
    """Return the best point that a climb sees, for scores of which no gradient is known.

    Parameters
    ----------
    scores : Callable
        Of points (m, d); returns (m,). Where it is not finite no step is taken to.
    start : (d,) array
        In the domain, the best candidate for example.
    domain : Domain
        A continuous one.
    reach : float
        Length of the first step, in shares of the axes' lengths.
    calls : int
        About how often `scores` is asked, each time for 2 d + 1 points.

    Returns
    -------
    point : (d,) array
    score : float
        Never below that of the start.

    Examples
    --------
    >>> from fieldbo.domain import Axis
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
    # The optimiser's tolerances are meant for slopes of about one, and values about zero.
    return _climb(rising, at, domain, unit, calls, level=value, slope=slope)


def differenced(scores: Callable[[Array], Array], domain: Domain) -> Rising:
    """Return the value and gradient of scores (m,) of points (m, d), by central differences.

    At an edge of the domain, and beside a score that is not finite, by the difference on the other side.

    Examples
    --------
    >>> from fieldbo.domain import Axis
    >>> box = Domain.box([Axis("x", "m", 0, 10)], 8)
    >>> value, gradient = differenced(lambda x: 3 * x[:, 0], box)(np.array([10.0]))
    >>> value, gradient.round(6)
    (30.0, array([3.]))
    """
    d = domain.dimension
    steps = _STEP * np.diag(domain.extent)

    def rising(point: Array) -> tuple[float, Array]:
        beside = domain.clipped(np.concatenate([point + steps, point - steps]))
        beside[~domain.contains(beside)] = point
        values = np.asarray(scores(np.concatenate([beside, point[None]])), dtype=float)
        value, sides = values[-1], values[:-1]
        if not np.isfinite(value):
            return float(value), np.zeros(d)
        lost = ~np.isfinite(sides)
        beside[lost], sides = point, np.where(lost, value, sides)
        width = np.diag(beside[:d] - beside[d:])
        apart = np.where(width > 0, width, 1.0)
        return float(value), np.where(width > 0, (sides[:d] - sides[d:]) / apart, 0.0)

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
    """Return the best point of the domain that a climb sees, and its value; minus infinity if it saw none.

    The optimiser is given steps from the start in `unit` (d,), and what a value is above `level` in `slope`.
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
        # A wall that falls towards the best point seen sends the line search back to it.
        away = (point - best) / unit
        bottom = (level - most) / slope if np.isfinite(most) else 0.0
        return bottom + 1.0 + float(away @ away), 2.0 * away

    with one_blas_thread():  # its matrices are tiny
        minimize(
            falling,
            np.zeros(len(start)),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip((domain.low - start) / unit, (domain.high - start) / unit, strict=True)),
            options={"maxfun": calls},
        )
    return best, most
