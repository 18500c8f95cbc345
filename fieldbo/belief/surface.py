"""The belief over a fixed set of candidates, updated one reading at a time, and joint draws of it.

With ``V = L^-1 k(X, C)`` (n, N) a new reading adds one row to V: O(nN) for the row, O(N) for mean and
variance. Covariances ``k(C, C) - V^T V`` are computed on demand; :mod:`fieldbo.belief.lookahead` sums over
all of them. Draws use a pivoted Cholesky factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.lookahead import Gains, Lookahead, posterior_covariance
from fieldbo.belief.posterior import Belief, points_of

_REPEATS = 1.5
"""Rows per distinct site beyond which repeated readings are pooled."""


class Surface:
    """Posterior mean, variance and covariance over fixed candidates, in model units.

    Policies read `mean`, `variance` and `sd`, ask for rows of the `covariance`, and look ahead with
    `believing` (a copy in which some sites count as read) and `truncated_gains`.

    :meth:`append` changes a surface in place. Never call it on the surface of a `State`: work on a `copy`.

    Parameters
    ----------
    belief : Belief
    candidates : (N, d) array
    memory_bytes : float, optional
        Memory for covariances between candidates; by default half of what is free.

    Raises
    ------
    InputError
        The candidates have more or fewer coordinates than the points of the belief's kernel.

    Attributes
    ----------
    belief : Belief
        The posterior at any point, after all readings so far.
    candidates : (N, d) array
    mean, variance : (N,) arrays
        Of the function, without noise.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> surface = Surface(Belief(Matern52([1.0])), [[0.0], [1.0], [9.0]])
    >>> surface.append([[0.0]], [2.0], [0.01])
    >>> surface.mean.round(2)
    array([1.98, 1.04, 0.  ])
    >>> surface.believing([[9.0]], 0.01).variance.round(2)
    array([0.01, 0.73, 0.01])
    """

    def __init__(self, belief: Belief, candidates: ArrayLike, memory_bytes: float | None = None) -> None:
        self.candidates: Array = points_of(candidates, belief.kernel, "candidate")
        self.memory_bytes = memory_bytes
        self._begin(belief)

    def _begin(self, belief: Belief) -> None:
        self.belief = belief
        self._lookahead: Lookahead | None = None
        self._distinct = {site.tobytes() for site in belief.sites}
        self._rows = np.empty((max(16, 2 * belief.size), len(self.candidates)))
        if belief.size:
            self._rows[: belief.size] = belief._solve(self.candidates)
        rows = self._rows[: belief.size]
        self.mean: Array = rows.T @ belief.weights
        if belief.prior_mean is not None:
            self.mean += belief.prior_mean(self.candidates)
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
        """Covariances for `truncated_gains`, created at the first access."""
        if self._lookahead is None:
            self._lookahead = Lookahead(self.belief.kernel, self.candidates, self.memory_bytes)
        return self._lookahead

    def covariance(self, rows: Any = slice(None), columns: Any = slice(None)) -> Array:
        """Return the covariances between the candidates in `rows` and those in `columns`; O(n) per pair.

        Parameters
        ----------
        rows, columns : index
            Any index into the N candidates.

        Returns
        -------
        (len(rows), len(columns)) array
        """
        indices = np.arange(self.size)
        a, b = np.atleast_1d(indices[rows]), np.atleast_1d(indices[columns])
        V = self._rows[: self.belief.size]
        return posterior_covariance(self.belief.kernel, self.candidates, V, a, b)

    def covariance_with(self, points: ArrayLike, columns: Any = slice(None)) -> Array:
        """Return the covariances between any points and candidates.

        O(n^2) per point and O(n) per pair.

        Parameters
        ----------
        points : (P, d) array
        columns : index
            Any index into the N candidates.

        Returns
        -------
        (P, len(columns)) array
        """
        at, columns = points_of(points, self.belief.kernel), np.arange(self.size)[columns]
        prior = self.belief.kernel(at, self.candidates[columns])
        if not self.belief.size:
            return prior
        return prior - self.belief._solve(at).T @ self._rows[: self.belief.size, columns]

    def truncated_gains(self, members: Mask, noise: ArrayLike, floor: float) -> Gains:
        """Return how much a reading at each candidate would reduce the members' truncated variances.

        ``sum_M max(s^2_m, floor) - sum_M max(s^2_m|x, floor)`` for each candidate x, as in eq. 3 of Bogunovic
        et al. 2016, in single precision, with an error bound.

        Parameters
        ----------
        members : (N,) bool array
            The candidates in M.
        noise : (N,) or (N, K) array
            Noise variance of a reading at each candidate (and level).
        floor : float
            ``eta^2 / beta``.

        Returns
        -------
        Gains
            Values and error bounds, each (N, K).
        """
        levels = np.asarray(noise, dtype=float).reshape(self.size, -1)
        # Members below the floor can't gain.
        counted = np.flatnonzero(members & (self.variance > floor))
        return self.lookahead.gains(self._rows[: self.belief.size], self.variance, counted, levels, floor)

    @property
    def process_variance(self) -> Array:
        """Variance (N,) of the function about its level, without readings."""
        return self.belief.kernel.process_variance(self.candidates)

    def over(self, candidates: ArrayLike) -> Surface:
        """Return the same belief over other candidates (M, d)."""
        return Surface(self.belief, candidates, self.memory_bytes)

    def draws(self, n: int, rng: np.random.Generator, among: Any = slice(None), apart: float = 0.01) -> Array:
        """Return joint draws (M, n) of the function at some candidates.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        among : index
            Any index into the N candidates.
        apart : float
            Share of the total variance that may be drawn independently at each candidate; see `joint_draws`.
        """
        at = np.arange(self.size)[among]
        mean, variance = self.mean[at], self.variance[at]
        return joint_draws(mean, variance, lambda rows: self.covariance(at[rows], at), n, rng, apart=apart)

    def append(self, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike) -> None:
        """Add readings, in place; O(nN) each.

        Parameters
        ----------
        sites : (k, d) array
            Anywhere, not only at candidates.
        values : (k,) array
            Model units.
        noise_variances : float or (k,) array

        Raises
        ------
        InputError, ModelError
            As for `Belief.condition_on`.
        """
        x = points_of(sites, self.belief.kernel, "site")
        y = np.atleast_1d(np.asarray(values, dtype=float))
        v = np.broadcast_to(np.asarray(noise_variances, dtype=float), y.shape)
        if len(y) == 1:
            self._append_one(x[0], float(y[0]), float(v[0]))
        elif len(y):
            self._append_together(x, y, v)

    def _append_together(self, sites: Array, values: Array, noise_variances: Array) -> None:
        """Add several readings, as `_append_one` one by one would, up to rounding."""
        n, k = self.belief.size, len(values)
        self.belief, rows, pivots = self.belief.extended_by(sites, values, noise_variances)
        self._make_room(n + k)
        new = self.belief.kernel(sites, self.candidates) - rows @ self._rows[:n]
        self._rows[n : n + k] = solve_triangular(pivots, new, lower=True, check_finite=False)
        new = self._rows[n : n + k]
        self.mean += self.belief.weights[n:] @ new
        self.variance -= np.einsum("kc,kc->c", new, new)
        np.maximum(self.variance, 0.0, out=self.variance)
        self._note_sites(sites)

    def _make_room(self, n: int) -> None:
        if n > len(self._rows):
            grown = np.empty((max(n, 2 * self.belief.size), self.size))
            grown[: len(self._rows)] = self._rows
            self._rows = grown

    def _note_sites(self, sites: Array) -> None:
        """Note that sites (k, d) were read; pool the readings if many are repeated."""
        self._distinct.update(site.tobytes() for site in sites)
        if self.belief.size > _REPEATS * len(self._distinct):
            self._pool()

    def _append_one(self, site: Array, value: float, noise: float) -> None:
        n = self.belief.size
        self.belief, row, pivot = self.belief.extended(site, value, noise)
        self._make_room(n + 1)
        new = self._rows[n]
        np.subtract(self.belief.kernel(site[None], self.candidates)[0], row @ self._rows[:n], out=new)
        new /= pivot
        self.mean += new * self.belief.weights[n]
        self.variance -= np.square(new)
        np.maximum(self.variance, 0.0, out=self.variance)
        self._note_sites(site[None])

    def _pool(self) -> None:
        """Pool the repeated readings of a site, so that n counts sites."""
        b = self.belief
        empty = Belief(b.kernel, scatter=b.scatter, prior_mean=b.prior_mean)
        self._begin(empty.condition_on(b.sites, b.values, b.noise_variances))

    def exact_gains(self, rows: ArrayLike, noise: ArrayLike, members: Mask, floor: float) -> Array:
        """Return the `truncated_gains` of some candidates, in double precision.

        Parameters
        ----------
        rows : (p,) int array
            Indices of the candidates; one may come several times.
        noise : (p,) array
            Noise variance of the reading at each.
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
        """Free the memory of the look-ahead; the next access creates it again."""
        self._lookahead = None

    def copy(self) -> Surface:
        """Return an independent copy."""
        other = object.__new__(Surface)
        other.belief, other.candidates, other.memory_bytes = self.belief, self.candidates, self.memory_bytes
        other._distinct = set(self._distinct)
        other._rows, other.mean, other.variance = self._rows.copy(), self.mean.copy(), self.variance.copy()
        other._lookahead = None if self._lookahead is None else self._lookahead.copy()
        return other

    def believing(self, sites: ArrayLike, noise_variances: ArrayLike) -> Surface:
        """Return a copy in which `sites` (k, d) count as read, with their expected values.

        The mean stays the same; the variances shrink as they would after any values.

        Parameters
        ----------
        sites : (k, d) array
        noise_variances : float or (k,) array
            Of those readings, in model units.
        """
        other = self.copy()
        x = points_of(sites, self.belief.kernel, "site")
        v = np.broadcast_to(np.asarray(noise_variances, dtype=float), (len(x),))
        for site, noise in zip(x, v, strict=True):
            other._append_one(site, float(other.belief.mean(site[None])[0]), float(noise))
        return other

    def exceedance(self, threshold: float) -> Array:
        """Return the probability (N,) that the function is at or above `threshold` (model units)."""
        sd = self.sd
        with np.errstate(divide="ignore", invalid="ignore"):
            p = ndtr((self.mean - threshold) / sd)
        return np.where(sd > 0, p, (self.mean >= threshold).astype(float))


_FEW = 1024  # points whose covariance matrix is factored as a whole
_SMALLEST = 1e-14  # of the largest variance: what is left below it is rounding

Covariances = Callable[[Any], Array]
"""From an index of R points to their covariances (R, P) with all points."""


def joint_draws(
    mean: Array,
    variance: Array,
    covariances: Covariances,
    n: int,
    rng: np.random.Generator,
    *,
    apart: float = 0.01,
) -> Array:
    """Return n joint draws (P, n) of a normal at P points.

    A pivoted Cholesky factor explains all but a share `apart` of the total variance; what is left at each
    point is drawn independently. Each point thus has its exact mean and variance. With many points only as
    many rows of the covariance matrix are computed as the factor needs: few, where the function is smooth.

    Parameters
    ----------
    mean, variance : (P,) arrays
    covariances : Callable
        ``covariances(rows) -> (R, P)``.
    n : int
    rng : numpy.random.Generator
    apart : float

    Examples
    --------
    >>> line = np.linspace(0, 1, 200)
    >>> rows = lambda at: np.exp(-0.5 * (line[at][:, None] - line) ** 2)
    >>> draws = joint_draws(np.zeros(200), np.ones(200), rows, 1000, np.random.default_rng(0), apart=0)
    >>> bool(np.abs(np.diff(draws, axis=0)).max() < 0.05), float(draws.std().round(1))
    (True, 1.0)
    """
    rows = (
        _factor_whole(variance, covariances)
        if len(mean) <= _FEW
        else _factor_enough(variance, covariances, apart)
    )
    left = np.maximum(variance - np.einsum("rp,rp->p", rows, rows), 0.0)
    common = rng.standard_normal((n, len(rows))) @ rows
    return np.asarray((mean + common + np.sqrt(left) * rng.standard_normal((n, len(mean)))).T)


def _factor_whole(variance: Array, covariances: Covariances) -> Array:
    """Return the rows (R, P) of the factor of the whole matrix, as far as it is positive definite."""
    covariance = covariances(np.arange(len(variance)))
    lower, pivots, rank, _ = dpstrf(covariance, tol=_SMALLEST * variance.max(initial=0.0), lower=1)
    rows = np.zeros((rank, len(variance)))
    rows[:, pivots - 1] = np.tril(lower)[:, :rank].T
    return rows


def _factor_enough(variance: Array, covariances: Covariances, apart: float) -> Array:
    """Return the first rows (R, P) of the factor, until only a share `apart` of the variance is left."""
    left = np.array(variance, dtype=float)
    enough, least = apart * left.sum(), _SMALLEST * left.max(initial=0.0)
    rows = np.empty((64, len(left)))
    rank = 0
    while rank < len(left) and left.sum() > enough:
        pivot = int(np.argmax(left))
        if left[pivot] <= least:
            break
        if rank == len(rows):
            rows = np.concatenate([rows, np.empty_like(rows)])
        row = covariances([pivot])[0] - rows[:rank, pivot] @ rows[:rank]
        row /= np.sqrt(left[pivot])
        rows[rank] = row
        left -= row**2
        left[pivot] = 0.0
        np.maximum(left, 0.0, out=left)
        rank += 1
    return rows[:rank]
