"""The belief over one candidate set at once, kept up to date one reading at a time.

With ``V = L^-1 k(X, C)`` (n, N) a new reading adds one row to V: O(nN) for the row, O(N) for mean and
variance. Covariances ``k(C, C) - V^T V`` are computed for the rows that are asked for; sums over all of them
are :mod:`fieldbo.belief.lookahead`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.lookahead import Gains, Lookahead, posterior_covariance
from fieldbo.belief.posterior import Belief

_REPEATS = 1.5
"""Rows for each distinct site at which repeated readings are pooled."""


class Surface:
    """Posterior mean, variance and covariance over fixed candidates, in model units.

    A working buffer: :meth:`append` changes it in place.

    Parameters
    ----------
    belief : Belief
    candidates : (N, d) array
    memory_bytes : float, optional
        What covariances between candidates may take; by default half of the memory that is free.

    Attributes
    ----------
    belief : Belief
        What has been read so far.
    mean, variance : (N,) arrays
        Of the function, without noise.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> s = Surface(Belief(Matern52([1.0])), [[0.0], [1.0], [9.0]])
    >>> s.append([[0.0]], [2.0], [0.01])
    >>> s.mean.round(2)
    array([1.98, 1.04, 0.  ])
    """

    def __init__(self, belief: Belief, candidates: ArrayLike, memory_bytes: float | None = None) -> None:
        self.candidates: Array = np.atleast_2d(np.asarray(candidates, dtype=float))
        self.memory_bytes = memory_bytes
        self._begin(belief)

    def _begin(self, belief: Belief) -> None:
        """Take everything from a belief, as if no reading had come one by one."""
        self.belief = belief
        self._own_lookahead: Lookahead | None = None
        self._distinct = {site.tobytes() for site in belief.sites}
        self._rows = np.empty((max(16, 2 * belief.size), len(self.candidates)))
        if belief.size:
            self._rows[: belief.size] = belief._solve(self.candidates)
        rows = self._rows[: belief.size]
        self.mean: Array = rows.T @ belief.weights
        self.variance: Array = np.maximum(
            belief.kernel.diagonal(self.candidates) - np.einsum("nc,nc->c", rows, rows), 0.0
        )

    @property
    def size(self) -> int:
        """Number of candidates, N."""
        return len(self.candidates)

    @property
    def sd(self) -> Array:
        """Posterior standard deviation (N,)."""
        return np.sqrt(self.variance)

    @property
    def solved(self) -> Array:
        """``V = L^-1 k(X, C)``, (n, N): the posterior covariance of candidates is ``k(C, C) - V^T V``."""
        return self._rows[: self.belief.size]

    @property
    def lookahead(self) -> Lookahead:
        """What `truncated_gains` works on; made when it is first asked for."""
        if self._own_lookahead is None:
            self._own_lookahead = Lookahead(self.belief.kernel, self.candidates, self.memory_bytes)
        return self._own_lookahead

    def covariance(self, rows: Any = slice(None), columns: Any = slice(None)) -> Array:
        """Return the covariances between the candidates in `rows` and those in `columns`; O(n) a pair.

        Parameters
        ----------
        rows, columns : index
            Anything that indexes N candidates.

        Returns
        -------
        (len(rows), len(columns)) array
        """
        every = np.arange(self.size)
        a, b = np.atleast_1d(every[rows]), np.atleast_1d(every[columns])
        V = self._rows[: self.belief.size]
        return posterior_covariance(self.belief.kernel, self.candidates, V, a, b)

    def covariance_with(self, points: ArrayLike, columns: Any = slice(None)) -> Array:
        """Return the covariances between any points and candidates.

        O(n^2) a point and O(n) a pair: what is known of the candidates is used again.

        Parameters
        ----------
        points : (P, d) array
        columns : index
            Anything that indexes N candidates.

        Returns
        -------
        (P, len(columns)) array
        """
        at, columns = np.atleast_2d(np.asarray(points, dtype=float)), np.arange(self.size)[columns]
        prior = self.belief.kernel(at, self.candidates[columns])
        if not self.belief.size:
            return prior
        return prior - self.belief._solve(at).T @ self._rows[: self.belief.size, columns]

    def truncated_gains(self, members: Mask, noise: ArrayLike, floor: float) -> Gains:
        """Return by how much a reading at each candidate would reduce the members' truncated variances.

        ``sum_M max(s^2_m, floor) - sum_M max(s^2_m|x, floor)`` for each candidate x, as in eq. 3 of Bogunovic
        et al. 2016, in single precision, with a bound of the error.

        Parameters
        ----------
        members : (N,) bool array
        noise : (N,) or (N, K) array
            Noise variance of a reading at each candidate (and level).
        floor : float
            ``eta^2 / beta``.

        Returns
        -------
        Gains
            Both parts (N, K).
        """
        levels = np.asarray(noise, dtype=float).reshape(self.size, -1)
        # What is below the floor already can't gain.
        counted = np.flatnonzero(members & (self.variance > floor))
        return self.lookahead.gains(self._rows[: self.belief.size], self.variance, counted, levels, floor)

    def append(
        self,
        sites: ArrayLike,
        values: ArrayLike,
        noise_variances: ArrayLike,
        times_s: ArrayLike | None = None,
    ) -> None:
        """Take in readings, in place; O(nN) each.

        Parameters
        ----------
        sites : (k, d) array
            Anywhere, not only at candidates.
        values : (k,) array
            Model units.
        noise_variances : float or (k,) array
        times_s : (k,) array, optional
            When they were taken; a belief without time leaves it out of account.

        Raises
        ------
        InputError, ModelError
            As for `Belief.given`.
        """
        x = np.atleast_2d(np.asarray(sites, dtype=float))
        y = np.atleast_1d(np.asarray(values, dtype=float))
        v = np.broadcast_to(np.asarray(noise_variances, dtype=float), y.shape)
        for site, value, noise in zip(x, y, v, strict=True):
            self._append_one(site, float(value), float(noise))

    def _append_one(self, site: Array, value: float, noise: float) -> None:
        n = self.belief.size
        self.belief, row, pivot = self.belief.extended(site, value, noise)
        if n == len(self._rows):
            grown = np.empty((2 * n, self.size))
            grown[:n] = self._rows
            self._rows = grown
        new = self._rows[n]
        np.subtract(self.belief.kernel(site[None], self.candidates)[0], row @ self._rows[:n], out=new)
        new /= pivot
        self.mean += new * self.belief.weights[n]
        self.variance -= np.square(new)
        np.maximum(self.variance, 0.0, out=self.variance)
        self._distinct.add(site.tobytes())
        if n + 1 > _REPEATS * len(self._distinct):
            self._pool()

    def _pool(self) -> None:
        """Pool the repeated readings of a site, so that n counts sites."""
        b = self.belief
        belief = Belief(b.kernel, scatter=b.scatter).given(b.sites, b.values, b.noise_variances)
        self._begin(belief)

    def exact_gains(self, rows: ArrayLike, noise: ArrayLike, members: Mask, floor: float) -> Array:
        """Return what `truncated_gains` does for some pairs of candidate and noise, in double precision.

        Parameters
        ----------
        rows : (p,) int array
            Which candidates.
        noise : (p,) array
            Noise variance of the reading of each.
        members, floor
            As for `truncated_gains`.

        Returns
        -------
        (p,) array
        """
        counted = np.flatnonzero(members & (self.variance > floor))
        V = self._rows[: self.belief.size]
        at, v = np.asarray(rows), np.asarray(noise, dtype=float)
        return self.lookahead.exact_gains(V, self.variance, at, v, counted, floor)

    def release(self) -> None:
        """Give back what the look-ahead takes; it is made again when it is asked for."""
        self._own_lookahead = None

    def copy(self) -> Surface:
        """Return a surface that may be changed without touching this one."""
        other = object.__new__(Surface)
        other.belief, other.candidates, other.memory_bytes = self.belief, self.candidates, self.memory_bytes
        other._distinct = set(self._distinct)
        other._rows, other.mean, other.variance = self._rows.copy(), self.mean.copy(), self.variance.copy()
        other._own_lookahead = None if self._own_lookahead is None else self._own_lookahead.copy()
        return other

    def believing(self, sites: ArrayLike, noise_variances: ArrayLike) -> Surface:
        """Return a copy as if `sites` (k, d) had been read and had given their expected values.

        The mean stays as it is; the variances shrink as they would after any values.
        """
        other = self.copy()
        x = np.atleast_2d(np.asarray(sites, dtype=float))
        v = np.broadcast_to(np.asarray(noise_variances, dtype=float), (len(x),))
        for site, noise in zip(x, v, strict=True):
            other._append_one(site, float(other.belief.mean(site[None])[0]), float(noise))
        return other

    def given(self, pending: Sequence[ArrayLike], noise_variance: float = 0.0) -> Array:
        """Return the variances (N,) as if the pending sites, each (d,), had been read."""
        sites = [np.asarray(p, dtype=float) for p in pending]
        if not sites:
            return self.variance.copy()
        return self.believing(np.stack(sites), noise_variance).variance

    def exceedance(self, threshold: float) -> Array:
        """Return the probabilities (N,) that the function is at or above `threshold` (model units)."""
        sd = self.sd
        with np.errstate(divide="ignore", invalid="ignore"):
            p = ndtr((self.mean - threshold) / sd)
        return np.where(sd > 0, p, (self.mean >= threshold).astype(float))
