"""What a vehicle can drive with a reading every so often: a chain of points with short links.

The chain starts at the vehicle and ends at a destination. No link is longer than the spacing of the readings;
a shorter one is driven with a bend, so a chain is exactly what the rest of the budget pays for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
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
            at = self._stretched(at)
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

    def _stretched(self, points: Array) -> Array:
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


def resized(chain: Chain, points: Array, count: int) -> Array:
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
