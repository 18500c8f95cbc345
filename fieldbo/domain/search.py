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
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.domain.domain import Domain

Rising = Callable[[Array], tuple[float, Array]]
"""Of a point (d,): the value there and its gradient (d,)."""


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
    >>> from fieldbo.domain.axes import Axis
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
    # The optimiser's tolerances are meant for slopes of about one, and values about zero.
    return _climb(rising, at, domain, unit, calls, level=value, slope=slope)


def differenced(scores: Callable[[Array], Array], domain: Domain) -> Rising:
    """Return the value and gradient of scores (m,) of points (m, d), by central differences.

    At an edge of the domain, and beside a score that is not finite, by the difference on the other side.

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
