"""Which readings a model can believe: a test of each against the others, and a fit to those that pass.

=============  ====================================================================================
``C``          ``k(X, X) + diag(v)``, (n, n), a row for each reading: repeated ones are not pooled
``K``, ``D``   the readings kept and dropped
``P``          inverse of ``C[K, K]``
``z``          standardised error of a reading, predicted from the kept ones other than itself, (n,)
=============  ====================================================================================

Of a kept reading ``z_i = (P y)_i / sqrt(P_ii)`` (Rasmussen and Williams 2006, eqs. 5.10 to 5.12), of a
dropped one ``z_i = (y_i - C_iK P y_K) / sqrt(C_ii - C_iK P C_Ki)``. Both are read off one matrix, to
which the sweep operator (Goodnight 1979, The American Statistician 33) takes a reading from K to D, or
back, in O(n^2).

Readings are dropped worst first, so that two bad ones do not hide each other for long; a bad one makes
its good neighbours look bad, so that in the end every dropped reading that the kept ones predict, or
that other dropped ones confirm, comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import ndtri

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.kernels import Kernel
from fieldbo.errors import InputError, ModelError

CUTOFF = 4.0
"""How many standard deviations a reading may be off; of 16,000 good ones, one is off by more."""

LEAST_READINGS = 5
"""Of fewer readings none is dropped."""

MOST_DROPPED = 0.2
"""Largest share of the readings that is dropped: where more look bad, the model is."""

ROUNDS = 4
"""How often a fit and a test of the readings take turns at most."""

_CONFIRMED = 0.5  # share of the cutoff within which two dropped readings confirm each other
_CLUSTER = 3
_NEIGHBOURS = 4  # two readings are neighbours if each is among so many most correlated with the other
_FLOOR = 1e-6  # least noise variance, as a share of the prior's: an error below it ruins nothing
_MAD_TO_SD = 1.4826  # of a normal

Fitted = TypeVar("Fitted")


def believable(
    kernel: Kernel,
    sites: ArrayLike,
    values: ArrayLike,
    noise_variances: ArrayLike,
    *,
    cutoff: float = CUTOFF,
) -> Mask:
    """Say which readings the others make believable; O(n^3).

    Parameters
    ----------
    kernel : Kernel
        Prior covariance, in model units.
    sites : (n, d) array
        A site may be read more than once: each reading is tested on its own.
    values : (n,) array
        Model units.
    noise_variances : float or (n,) array
        Model units.
    cutoff : float
        Standard deviations beyond which a reading is not believed. Where the kept readings' own errors
        are larger than the model says, as with a length scale that is too long, it grows with them.

    Returns
    -------
    (n,) bool array
        All true for fewer than five readings; false for a fifth of them at most.

    Raises
    ------
    InputError
        The arrays' lengths differ, or a number is not finite.
    ModelError
        The covariance matrix is not positive definite.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> x = np.linspace(0, 1, 9)[:, None]
    >>> y = np.sin(4 * x[:, 0])
    >>> y[3] += 10
    >>> believable(Matern52([0.5]), x, y, 1e-6).tolist()
    [True, True, True, False, True, True, True, True, True]
    """
    x = np.atleast_2d(np.asarray(sites, dtype=float))
    y = np.atleast_1d(np.asarray(values, dtype=float))
    v = np.broadcast_to(np.asarray(noise_variances, dtype=float), y.shape)
    if len(x) != len(y):
        raise InputError(f"{len(x)} sites and {len(y)} values", expected="a value for each site")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(v).all()):
        raise InputError("a site, value or noise variance is NaN or infinite", expected="finite readings")
    if len(y) < LEAST_READINGS:
        return np.ones(len(y), dtype=bool)
    readings = _Readings(kernel, x, y, v)
    readings.drop(cutoff)
    readings.readmit(cutoff)
    return readings.kept


class _Readings:
    """Kept and dropped readings, and the matrix that knows what the kept ones predict.

    ``swept`` (n + 1, n + 1) is symmetric: ``-P`` among the kept readings, ``P C_KD`` between kept and
    dropped, ``C_DD - C_DK P C_KD`` among the dropped; its last column holds ``P y_K`` and
    ``y_D - C_DK P y_K``.
    """

    def __init__(self, kernel: Kernel, sites: Array, values: Array, noise_variances: Array) -> None:
        n = len(values)
        self.noise_variances: Array = np.maximum(noise_variances, _FLOOR * kernel.diagonal(sites))
        C = kernel(sites, sites)
        self.values, self.prior_sd = values, np.sqrt(np.diag(C))
        self.correlation: Array = C / np.outer(self.prior_sd, self.prior_sd)
        np.fill_diagonal(self.correlation, -np.inf)
        C[np.diag_indices(n)] += self.noise_variances
        try:
            factor = cho_factor(C, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise ModelError(
                f"the covariance matrix of {n} readings is not positive definite\n"
                "  fix:      shorten the length scales, or take a Matern kernel"
            ) from error
        P = cho_solve(factor, np.eye(n), check_finite=False)
        self.swept = np.zeros((n + 1, n + 1))
        self.swept[:n, :n] = -0.5 * (P + P.T)
        self.swept[n, :n] = self.swept[:n, n] = P @ values
        self.kept: Mask = np.ones(n, dtype=bool)

    def _move(self, i: int) -> None:
        """Move a reading from the kept to the dropped ones, or back; O(n^2)."""
        row = self.swept[i].copy()
        self.swept -= np.outer(row, row / row[i])
        self.swept[i] = self.swept[:, i] = row / abs(row[i])
        self.swept[i, i] = -1.0 / row[i]
        self.kept[i] = not self.kept[i]

    def z(self) -> Array:
        """Return the standardised errors (n,), without sign."""
        return np.asarray(np.abs(self.swept[:-1, -1]) / np.sqrt(np.abs(np.diag(self.swept)[:-1])))

    def drop(self, cutoff: float) -> None:
        """Drop the worst reading beyond the cutoff, again and again."""
        for _ in range(int(MOST_DROPPED * len(self.kept))):
            z = np.where(self.kept, self.z(), 0.0)
            worst = int(np.argmax(z))
            if z[worst] <= cutoff:
                return
            self._move(worst)

    def readmit(self, cutoff: float) -> None:
        """Take dropped readings back, the likeliest first; then those that confirm each other."""
        while not self.kept.all():
            z = self.z() / self._excess()
            likeliest = int(np.argmin(np.where(self.kept, np.inf, z)))
            if z[likeliest] <= cutoff:
                self._move(likeliest)
                continue
            confirmed = self._pair(_CONFIRMED * cutoff)
            if not len(confirmed):
                confirmed = self._cluster()
            if not len(confirmed):
                return
            for i in confirmed:
                self._move(i)

    def _excess(self) -> Array:
        """Return how many times larger errors are than the model says, going by the kept readings, (n,).

        The median of ``|z|``, as a normal's, where the dropped ones count as larger than all; 1 at least.
        Errors that are mostly noise, as of repeated readings, and those that are mostly the field's are
        told apart: a length scale that is too long makes only the latter larger.
        """
        z, diagonal = self.z(), np.abs(np.diag(self.swept)[:-1])
        variance = np.where(self.kept, 1.0 / diagonal, diagonal)
        noisy = variance < 2.0 * self.noise_variances
        excess = np.ones(len(z))
        for group in (noisy, ~noisy):
            like = group if (group & self.kept).sum() >= LEAST_READINGS else np.ones_like(group)
            typical = ndtri(0.5 + 0.25 * self.kept[like].mean())
            excess[group] = np.median(z[like & self.kept]) / typical
        # No length scale makes an error larger than the values themselves are.
        spread = np.maximum(self.prior_sd, _MAD_TO_SD * np.median(np.abs(self.values[self.kept])))
        return np.asarray(np.maximum(np.minimum(excess, spread / np.sqrt(variance)), 1.0))

    def _pair(self, limit: float) -> Sequence[int]:
        """Return the two dropped readings that predict each other best, if both errors are within limit.

        Two sensors' faults seldom agree; a peak that is read twice does.
        """
        dropped = np.flatnonzero(~self.kept)
        if len(dropped) < 2:
            return []
        S, r = self.swept[np.ix_(dropped, dropped)], self.swept[dropped, -1]
        variance = np.diag(S)
        error = r[:, None] - S / variance * r  # of the row's reading, given the column's as well
        left = np.maximum(variance[:, None] - S**2 / variance, np.finfo(float).tiny)
        z = np.abs(error) / np.sqrt(left)
        z = np.maximum(z, z.T)
        np.fill_diagonal(z, np.inf)
        a, b = np.unravel_index(int(np.argmin(z)), z.shape)
        return [int(dropped[a]), int(dropped[b])] if z[a, b] <= limit else []

    def _cluster(self) -> Sequence[int]:
        """Return dropped readings that are neighbours and off the same way, if there are three of them.

        So is a steep peak on flat ground, of which a model of one length scale and variance knows nothing.
        """
        from scipy.sparse.csgraph import connected_components

        dropped = np.flatnonzero(~self.kept)
        if len(dropped) < _CLUSTER:
            return []
        near = np.zeros_like(self.correlation, dtype=bool)
        nearest = np.argsort(-self.correlation, axis=1, kind="stable")[:, :_NEIGHBOURS]
        np.put_along_axis(near, nearest, True, axis=1)
        upwards = self.swept[dropped, -1] > 0
        links = (near & near.T)[np.ix_(dropped, dropped)] & (upwards[:, None] == upwards)
        _, label = connected_components(links, directed=False)
        size = np.bincount(label)
        return dropped[label == np.argmax(size)].tolist() if size.max() >= _CLUSTER else []


def believable_at_first(
    kernel: Kernel, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike
) -> Mask:
    """Say which readings are believable before there is a fit that bad ones have not touched.

    The values' own mean and spread, which serve for a prior's, are taken after those that are far off
    were moved to three robust standard deviations from the median.

    Parameters
    ----------
    kernel : Kernel
        Of variance 1, with the length scales that are expected.
    sites : (n, d) array
    values : (n,) array
        In any unit.
    noise_variances : float or (n,) array
        In the square of that unit.

    Returns
    -------
    (n,) bool array

    Raises
    ------
    InputError, ModelError
        As for `believable`.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> believable_at_first(Matern52([2.0]), np.arange(7.0)[:, None], [20, 21, 22, 22, 90, 20, 19], 0.01)
    array([ True,  True,  True,  True, False,  True,  True])
    """
    y = np.asarray(values, dtype=float)
    if len(y) < LEAST_READINGS:
        return np.ones(len(y), dtype=bool)
    median = np.median(y)
    reach = 3.0 * _MAD_TO_SD * float(np.median(np.abs(y - median)))
    # Where more than half of the values are the same, nothing says how far is far.
    tame = np.clip(y, median - reach, median + reach) if reach > 0 else y
    mean, sd = float(tame.mean()), float(tame.std()) or 1.0
    return believable(kernel, sites, (y - mean) / sd, np.asarray(noise_variances) / sd**2)


def fit_believed(first: Mask, fit_to: Callable[[Mask], Fitted], believed: Callable[[Fitted], Mask]) -> Fitted:
    """Fit to the believed readings and test all again, in turns, until the same ones are believed.

    Parameters
    ----------
    first : (n,) bool array
        What is believed before the first fit. A fit to all would explain bad readings by noise, or by
        length scales that are too short, and find nothing wrong with them.
    fit_to : callable
        The fit to some readings, given as (n,) bool.
    believed : callable
        Which of all readings a fit believes, (n,) bool.

    Returns
    -------
    Fitted
        The last fit, of four at most.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0, 50.0])
    >>> float(fit_believed(y < 2.5, lambda kept: y[kept].mean(), lambda mean: abs(y - mean) < 5))
    2.0
    """
    kept = first
    for _ in range(ROUNDS):
        found = fit_to(kept)
        now = believed(found)
        if np.array_equal(now, kept):
            break
        kept = now
    return found
