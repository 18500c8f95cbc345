"""What readings, none of them taken yet, tell of the reported place and cover of the places nobody has seen.

===========  ==========================================================================
``W``        candidates for a reading
``Q``        candidates that are read
``x*``       the site of the largest mean under a belief
===========  ==========================================================================

In model units, where larger is better.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array
from fieldbo.belief.covering import Covering
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.surface import Surface

_SEEN = 0.5  # of what hides would be found by a reading that covers it


def expected_excess(gap: Array, sd: Array) -> Array:
    """Return ``E max(N(-gap, sd^2), 0)``: by how much something is expected to exceed what is `gap` above it.

    Examples
    --------
    >>> expected_excess(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(3)
    array([0.399, 0.083, 0.   ])
    """
    spread = np.maximum(sd, 1e-150)
    z = np.clip(-gap / spread, -1e150, 1e150)
    return np.maximum(spread * (z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)), 0.0)


class Mixture:
    """Two beliefs at once, each as likely as the other: what differs between them is not known, either.

    ===========  ==================================================
    ``mean``     ``(m + m') / 2``
    covariance   ``(K + K') / 2 + (m - m') (m - m')^T / 4``
    ===========  ==================================================

    Parameters
    ----------
    surfaces : pair of Surface
        Over the same candidates.
    level : float
        What is added to the means of the second one.
    """

    def __init__(self, surfaces: tuple[Surface, Surface], level: float) -> None:
        self.surfaces, self.level = surfaces, level
        first, second = surfaces
        self.apart: Array = first.mean - second.mean - level
        self.mean: Array = first.mean - 0.5 * self.apart
        self.variance: Array = 0.5 * (first.variance + second.variance) + 0.25 * self.apart**2

    def over(self, candidates: Array) -> Mixture:
        """Return the same beliefs over other candidates (M, d)."""
        first, second = self.surfaces
        return Mixture((Surface(first.belief, candidates), Surface(second.belief, candidates)), self.level)

    def covariance(self) -> Array:
        """Return the covariances between all candidates (N, N)."""
        first, second = self.surfaces
        within = 0.5 * (first.covariance() + second.covariance())
        return within + 0.25 * np.outer(self.apart, self.apart)


class Tells:
    """What readings are expected to add to the value of the reported place.

    A reading elsewhere may show that its place is better, and one at x* that another place is. The place x*
    is the one of the largest mean now, and the means stay as they are: a tour is not worth more by luck.

    Parameters
    ----------
    places : Mixture
        Over the W candidates for a reading, and x* as the last one.
    noise : (W,) array
        Noise variances of the readings, above 0.
    slack : float
        Differences between means below this are left for later.
    """

    def __init__(self, places: Mixture, noise: Array, slack: float) -> None:
        sites = places.surfaces[0].candidates
        self._noise, self._covariances = noise, places.covariance()
        self._variances = np.diag(self._covariances).copy()
        self._gaps = places.mean[-1] + slack - places.mean
        self._at_best = (sites == sites[-1]).all(axis=1)

    def after(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate tells (W,), and what those at the stops tell."""
        at, K, W = np.array(stops, dtype=int), self._covariances, len(self._noise)
        left, beside, told = self._variances, K[-1], 0.0
        if len(at):
            L = np.linalg.cholesky(K[np.ix_(at, at)] + np.diag(self._noise[at]))
            B = solve_triangular(L, K[at], lower=True, check_finite=False)
            for n, stop in enumerate(stops):
                told += float(self._told(left, beside, np.array([stop]))[0])
                left, beside = left - B[n] ** 2, beside - B[n] * B[n, -1]
        return self._told(left, beside, np.arange(W)), told

    def _told(self, variances: Array, beside: Array, at: Whole) -> Array:
        """Return what a reading tells at some candidates, by variances and covariances with x* (W + 1,)."""
        variance = np.maximum(variances[at], 0.0)
        moved = np.abs(variance - beside[at]) / np.sqrt(variance + self._noise[at])
        told = expected_excess(self._gaps[at], moved)
        for n in np.flatnonzero(self._at_best[at]):
            moved = np.abs(variance[n] - beside) / math.sqrt(variance[n] + self._noise[at[n]])
            others = expected_excess(self._gaps, moved)[~self._at_best]
            told[n] = others.max(initial=0.0)
        return told


class Covers:
    """What readings take away from the places where something higher than the best reading could hide.

    Parameters
    ----------
    covering : Covering
    sites : (W, d) array
        Candidates for a reading.
    noise : (W,) array
        Noise variances of the readings.
    excess : float
        By how much something hidden is expected to exceed the best reading; what a reading with more noise
        than that may not notice.
    """

    def __init__(self, covering: Covering, sites: Array, noise: Array, excess: float) -> None:
        from fieldbo.policies.optimum._loops import patches_covered

        self._covering, self._excess = covering, excess
        self._starts, self._columns, self._shares = patches_covered(*covering.around(sites))
        noticed = excess**2 + covering.readings.sd**2
        self._shares *= np.repeat(np.minimum(1.0, noticed / (excess**2 + noise)), np.diff(self._starts))

    def after(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate covers (W,), and what those at the stops cover."""
        from fieldbo.policies.optimum._loops import further_covered

        out, covering = np.empty(len(self._starts) - 1), self._covering
        together = further_covered(
            self._starts,
            self._columns,
            self._shares,
            covering.weights,
            covering.covered,
            np.array(stops, dtype=np.int64),
            out,
        )
        return _SEEN * self._excess * out, _SEEN * self._excess * float(together)


class Worth:
    """What readings at a few candidates are worth: what they tell, and what they cover.

    Parameters
    ----------
    covers : Covers
    tells : Tells, optional
        None before the first fit.
    """

    def __init__(self, covers: Covers, tells: Tells | None) -> None:
        self._covers, self._tells = covers, tells

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate would add, and what those at the stops add.

        See :meth:`fieldbo.policies.tour_plan.Outlook.gains`; each stop comes at most once, and gains 0.
        """
        gains, added = self._covers.after(stops)
        if self._tells is not None:
            told, before = self._tells.after(stops)
            gains, added = gains + told, added + before
        gains[stops] = 0.0
        return gains, added

    def covers(self, stops: list[int]) -> float:
        """Return the part of what the readings at the stops add that is covering."""
        return self._covers.after(stops)[1]
