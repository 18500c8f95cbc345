"""The belief over one candidate set at once, kept up to date one reading at a time.

With ``V = L^-1 k(X, C)`` (n, N) a new reading adds one row to V: O(nN) for the row, O(N) for mean and
variance. The full covariance ``k(C, C) - V^T V`` (N, N) is made when it is first asked for, and kept by
rank-one updates from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from fieldbo.domain import Array
from fieldbo.gp import Belief

_REPEATS = 1.5
"""Rows for each distinct site at which repeated readings are pooled."""


class Surface:
    """Posterior mean, variance and covariance over fixed candidates, in model units.

    A working buffer: :meth:`append` changes it in place.

    Parameters
    ----------
    belief : Belief
    candidates : (N, d) array

    Attributes
    ----------
    belief : Belief
        What has been read so far.
    mean, variance : (N,) arrays
        Of the function, without noise.

    Examples
    --------
    >>> from fieldbo.kernels import Matern52
    >>> s = Surface(Belief(Matern52([1.0])), [[0.0], [1.0], [9.0]])
    >>> s.append([[0.0]], [2.0], [0.01])
    >>> s.mean.round(2)
    array([1.98, 1.04, 0.  ])
    """

    def __init__(self, belief: Belief, candidates: ArrayLike) -> None:
        self.candidates: Array = np.atleast_2d(np.asarray(candidates, dtype=float))
        self._begin(belief)

    def _begin(self, belief: Belief) -> None:
        """Take everything from a belief, as if no reading had come one by one."""
        self.belief = belief
        self._covariance: Array | None = None
        self._base = belief.size
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

    def covariance(self, rows: Any = slice(None)) -> Array:
        """Return the covariances between the candidates in `rows` and all candidates.

        Parameters
        ----------
        rows : index
            Anything that indexes N candidates; a slice gives a view that the next reading changes.

        Returns
        -------
        (len(rows), N) array
        """
        if self._covariance is None:
            # From the rows of the start, then one by one: the digits don't depend on when it is asked for.
            c, v = self.candidates, self._rows[: self._base]
            self._covariance = self.belief.kernel(c, c) - v.T @ v
            for n in range(self._base, self.belief.size):
                self._downdate(self._rows[n])
        view: Array = self._covariance[rows]
        return view

    def append(
        self,
        sites: ArrayLike,
        values: ArrayLike,
        noise_variances: ArrayLike,
        times_s: ArrayLike | None = None,
    ) -> None:
        """Take in readings, in place; O(nN) each, and O(N^2) where the covariance is kept.

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
        if self._covariance is not None:
            self._downdate(new)
        self._distinct.add(site.tobytes())
        if n + 1 > _REPEATS * len(self._distinct):
            self._pool()

    def _downdate(self, row: Array) -> None:
        """Take one row of V into the covariance, in blocks that stay in the cache."""
        assert self._covariance is not None
        for start in range(0, self.size, 256):
            block = slice(start, start + 256)
            self._covariance[block] -= row[block, None] * row

    def _pool(self) -> None:
        """Pool the repeated readings of a site, so that n counts sites."""
        b = self.belief
        belief = Belief(b.kernel, scatter=b.scatter).given(b.sites, b.values, b.noise_variances)
        self._begin(belief)

    def copy(self) -> Surface:
        """Return a surface that may be changed without touching this one."""
        other = object.__new__(Surface)
        other.belief, other.candidates, other._base = self.belief, self.candidates, self._base
        other._distinct = set(self._distinct)
        other._rows, other.mean, other.variance = self._rows.copy(), self.mean.copy(), self.variance.copy()
        other._covariance = None if self._covariance is None else self._covariance.copy()
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
