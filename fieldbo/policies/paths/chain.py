"""What a vehicle can drive with a reading every so often: a chain of points with short links.

The chain starts at the vehicle and ends at a destination. No link is longer than the spacing of the readings;
a shorter one is driven with a bend, so a chain is exactly what the rest of the budget pays for. The search
for the best chain begins with rough tours, or with what is left of the last plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.errors import InputError

_SWEEPS = 2000
_SLACK = 1e-9  # of a link: what rounding adds


@dataclass(frozen=True, eq=False)
class Chain:
    """The limits of a chain of `count` points in a box.

    Parameters
    ----------
    start : (d,) array
        Where the vehicle is.
    count : int
        Number of points m, the readings to come.
    spacing : float
        Longest link, of those from the start and between points.
    low, high : (d,) arrays
        The box.
    destination : (d,) array, optional
        Where the vehicle has to be in the end; by default anywhere.
    last : float, optional
        Longest link from the last point to the destination; by default `spacing`.
    rates : (d,) array, optional
        A link is as long as ``norm(rates * displacement)``; by default 1 along each axis.

    Raises
    ------
    InputError
        The destination is out of reach, or a length is not above 0.

    Examples
    --------
    >>> chain = Chain(np.zeros(2), 3, 0.5, np.zeros(2), np.ones(2), np.array([1.0, 1.0]))
    >>> chain.longest_excess(np.full((3, 2), 0.5)) > 0  # the first link and the last are too long
    True
    >>> chain.longest_excess(chain.pulled(np.full((3, 2), 0.5))) <= 1e-9
    True
    """

    start: Array
    count: int
    spacing: float
    low: Array
    high: Array
    destination: Array | None = None
    last: float | None = None
    rates: Array | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or not self.spacing > 0 or not (self.last is None or self.last >= 0):
            raise InputError(
                f"a chain of {self.count} points, {self.spacing:g} apart, {self.last} from its end",
                expected="at least one point and lengths above 0",
            )
        if self.destination is None:
            return
        distance = float(np.linalg.norm(self.scale * (self.destination - self.start)))
        if distance > self.reach * (1 + _SLACK):
            raise InputError(
                f"the destination {self.destination.tolist()} is {distance:g} away, "
                f"and {self.count} readings reach {self.reach:g} far",
                expected="a destination within reach",
                fix="raise the budget or the spacing, or choose a nearer destination",
            )

    @property
    def scale(self) -> Array:
        """The rates (d,)."""
        return np.ones(len(self.start)) if self.rates is None else self.rates

    @property
    def end(self) -> float:
        """Longest link to the destination."""
        return self.spacing if self.last is None else self.last

    @property
    def reach(self) -> float:
        """Length of the whole chain when stretched."""
        return self.count * self.spacing + self.end

    def excess(self, points: Array) -> Array:
        """Return ``(length / longest)^2 - 1`` of each link of `points` (m, d): at most 0 if short enough.

        The links are m, and one more to the destination if there is any.
        """
        square, _ = self._squares(points)
        return square - 1.0

    def longest_excess(self, points: Array) -> float:
        """Return the largest `excess`; rounding adds up to 1e-9."""
        return float(self.excess(points).max())

    def jacobian(self, points: Array) -> Array:
        """Return the derivatives of `excess` (links, m d) by the points (m, d)."""
        _, slopes = self._squares(points)
        m, d = points.shape
        whole = np.zeros((len(slopes), m, d))
        rows = np.arange(m)
        whole[rows, rows] = slopes[:m]
        whole[rows[1:], rows[:-1]] = -slopes[1:m]
        if len(slopes) > m:
            whole[m, m - 1] = -slopes[m]
        return whole.reshape(len(slopes), m * d)

    def _squares(self, points: Array) -> tuple[Array, Array]:
        """Return the links' squared lengths, in longest links, and the slopes (links, d) by the later end."""
        steps = np.diff(points, axis=0, prepend=self.start[None])
        longest = np.full(len(points), self.spacing)
        if self.destination is not None:
            steps = np.vstack([steps, self.destination - points[-1]])
            longest = np.append(longest, max(self.end, 1e-12))
        scaled = steps * self.scale / longest[:, None]
        slopes = 2.0 * scaled * self.scale / longest[:, None]
        return np.einsum("md,md->m", scaled, scaled), slopes

    def pulled(self, points: Array) -> Array:
        """Return the points (m, d) with links pulled together until none is too long.

        Forward from the start and backward from the destination, in turn, each point moves to its neighbour
        as far as it must (Aristidou and Lasenby 2011). Points never leave the box, which is convex.
        """
        at = np.clip(points, self.low, self.high)
        if self.longest_excess(at) <= _SLACK:
            return at
        at, scale = at * self.scale, self.scale
        start, end = self.start * scale, None if self.destination is None else self.destination * scale
        for _ in range(_SWEEPS):
            self._pull(at, start, self.spacing, self.spacing)
            if end is None or np.linalg.norm(end - at[-1]) <= self.end * (1 + _SLACK / 4):
                break
            self._pull(at[::-1], end, self.end, self.spacing)
            if np.linalg.norm(at[0] - start) <= self.spacing * (1 + _SLACK / 4):
                break
        else:
            at = self._stretch(at)
        return np.clip(at / scale, self.low, self.high)

    @staticmethod
    def _pull(points: Array, anchor: Array, first: float, longest: float) -> None:
        """Move points in place towards the one before, from `anchor` on."""
        before, limit = anchor.tolist(), first
        for n, row in enumerate(points.tolist()):
            gap = sum((a - b) ** 2 for a, b in zip(row, before, strict=True)) ** 0.5
            if gap > limit:
                share = limit / gap
                row = [b + share * (a - b) for a, b in zip(row, before, strict=True)]  # noqa: PLW2901
                points[n] = row
            before, limit = row, longest

    def _stretch(self, points: Array) -> Array:
        """Return the points blended with the straight chain, as little as makes every link short enough.

        `points` are scaled by the rates. Links are convex in the points, and those of the straight chain fit.
        """
        assert self.destination is not None
        lengths = np.append(np.full(self.count, self.spacing), self.end)
        along = np.cumsum(lengths)[:-1] / lengths.sum()
        start, end = self.start * self.scale, self.destination * self.scale
        straight = start + along[:, None] * (end - start)
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            fits = self.longest_excess((points + middle * (straight - points)) / self.scale) <= _SLACK
            low, high = (low, middle) if fits else (middle, high)
        blended: Array = points + high * (straight - points)
        return blended


def resize(chain: Chain, points: Array, count: int) -> Array:
    """Return `count` points (count, d) along the same way as `points` (m, d) with m of at least 1.

    Points are added in the middle of the longest link, or left out where that changes the way least.
    """
    scaled = [*(points * chain.scale)]
    start = chain.start * chain.scale
    while len(scaled) < count:
        steps = np.diff([start, *scaled], axis=0)
        longest = int(np.argmax(np.linalg.norm(steps, axis=1)))
        scaled.insert(longest, scaled[longest] - steps[longest] / 2)
    while len(scaled) > count:
        whole = np.array([start, *scaled])
        straight = np.linalg.norm(whole[2:] - whole[:-2], axis=1)
        legs = np.linalg.norm(np.diff(whole, axis=0), axis=1)
        scaled.pop(int(np.argmin(np.append(legs[:-1] + legs[1:] - straight, legs[-1]))))
    return np.array(scaled) / chain.scale


_LLOYD_ROUNDS = 10
_CLOUD = 60  # random points per point to spread
_LEAST_GAIN = 1e-9  # of the tour's length; less is rounding


def tours(chain: Chain, rng: np.random.Generator, count: int, among: Array | None = None) -> list[Array]:
    """Return `count` feasible chains (m, d) that spread their points and follow them in a short order.

    Each visits m evenly spread points from the start to the destination, in the order of farthest insertion
    and 2-opt.

    Parameters
    ----------
    chain : Chain
    rng : numpy.random.Generator
    count : int
    among : (N, d) array, optional
        Sites to spread the points over; by default the box.

    Examples
    --------
    >>> chain = Chain(np.zeros(2), 12, 0.3, np.zeros(2), np.ones(2))
    >>> [tour.shape for tour in tours(chain, np.random.default_rng(0), 2)]
    [(12, 2), (12, 2)]
    """
    return [chain.pulled(_tour(chain, _spread(chain, rng, among))) for _ in range(count)]


def _spread(chain: Chain, rng: np.random.Generator, among: Array | None) -> Array:
    """Return m points (m, d) spread over the box, or over sites, by a few rounds of Lloyd's algorithm."""
    from scipy.spatial import cKDTree

    m, d = chain.count, len(chain.start)
    cloud = among
    if cloud is None:
        cloud = chain.low + rng.random((_CLOUD * m, d)) * (chain.high - chain.low)
    centres = cloud[rng.choice(len(cloud), m, replace=len(cloud) < m)]
    for _ in range(_LLOYD_ROUNDS):
        _, nearest = cKDTree(centres * chain.scale).query(cloud * chain.scale)
        sizes = np.bincount(nearest, minlength=m)[:, None]
        sums = np.stack([np.bincount(nearest, x, m) for x in cloud.T], axis=1)
        centres = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres)
    return centres


def _tour(chain: Chain, points: Array) -> Array:
    """Return the points (m, d) in a short order from the start to the destination."""
    m = len(points)
    ends = [chain.start] if chain.destination is None else [chain.start, chain.destination]
    gaps = cdist(*2 * (np.vstack([points, *ends]) * chain.scale,))
    near = gaps[:m, m:].min(axis=1)
    if chain.destination is None:
        gaps = np.pad(gaps, (0, 1))  # an end that every point is next to
    order = np.array([m, m + 1])
    for _ in range(m):
        far = int(np.argmax(near))
        added = gaps[order[:-1], far] + gaps[far, order[1:]] - gaps[order[:-1], order[1:]]
        order = np.insert(order, int(np.argmin(added)) + 1, far)
        near = np.minimum(near, gaps[:m, far])
        near[far] = -1.0  # done
    return points[_shorten(gaps, order)[1:-1]]


def _shorten(gaps: Array, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the order with stretches reversed as long as that shortens it; both ends stay."""
    for _ in range(20 * len(order)):
        here, there = order[:-1], order[1:]
        legs = gaps[here, there]
        # Legs i < j give way to one between their starts and one between their ends.
        saved = legs[:, None] + legs - gaps[np.ix_(here, here)] - gaps[np.ix_(there, there)]
        i, j = np.unravel_index(int(np.argmax(np.triu(saved, 1))), saved.shape)
        if i >= j or saved[i, j] <= _LEAST_GAIN * legs.sum():
            break
        order[i + 1 : j + 1] = order[i + 1 : j + 1][::-1].copy()
    return order


Objective = Callable[[Array], tuple[float, Array]]
"""From points (m, d) to the loss that their readings leave, and its gradient (m, d)."""


@on_one_blas_thread
def improved(objective: Objective, chain: Chain, plan: Array, iterations: int) -> tuple[Array, float]:
    """Return a feasible plan (m, d) at least as good as `plan`, and its loss.

    Parameters
    ----------
    objective : Callable
    chain : Chain
    plan : (m, d) array
        Pulled together first if its links are too long.
    iterations : int
        Most iterations of sequential quadratic programming (SLSQP, Kraft 1988).
    """
    from scipy.optimize import Bounds, minimize

    best = chain.pulled(plan)
    least = objective(best)[0]
    if iterations < 1 or not least > 0:
        return best, least
    # In links, and in today's loss: the first step, along the gradient, then has a fair length.
    shape, unit = best.shape, chain.spacing / chain.scale
    low, high, units = (np.tile(row, len(best)) for row in (chain.low / unit, chain.high / unit, unit))

    def loss(flat: Array) -> tuple[float, Array]:
        value, gradient = objective(flat.reshape(shape) * unit)
        return value / least, (gradient * unit / least).ravel()

    links: Any = {
        "type": "ineq",
        "fun": lambda flat: -chain.excess(flat.reshape(shape) * unit),
        "jac": lambda flat: -chain.jacobian(flat.reshape(shape) * unit) * units,
    }
    search: Any = minimize  # its stubs have no constraints with a jacobian
    found = search(
        loss,
        (best / unit).ravel(),
        jac=True,
        method="SLSQP",
        bounds=Bounds(low, high),
        constraints=links,
        options={"maxiter": iterations, "ftol": 1e-9},
    )
    if not np.isfinite(found.x).all():
        return best, least
    moved = chain.pulled(found.x.reshape(shape) * unit)
    value = objective(moved)[0]
    return (moved, value) if value < least else (best, least)


@on_one_blas_thread
def first_plan(
    objective: Objective, chain: Chain, starts: Iterable[Array], iterations: int
) -> tuple[Array, float]:
    """Return the best plan (m, d) found from any of the starts (m, d), and its loss."""
    plans = (improved(objective, chain, start, iterations) for start in starts)
    return min(plans, key=lambda found: found[1])
