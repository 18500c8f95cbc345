"""Outliers: test each reading against the others, and fit the model to those that pass.

=============  ====================================================================================
``C``          ``k(X, X) + diag(v)``, (n, n), one row per reading: repeated ones are not pooled
``K``, ``D``   the readings kept and dropped
``P``          inverse of ``C[K, K]``
``z``          standardised error of a reading, predicted from the kept ones other than itself, (n,)
=============  ====================================================================================

A kept reading has ``z_i = (P y)_i / sqrt(P_ii)`` (Rasmussen and Williams 2006, eqs. 5.10 to 5.12), a dropped
one ``z_i = (y_i - C_iK P y_K) / sqrt(C_ii - C_iK P C_Ki)``. One matrix holds both; the sweep operator
(Goodnight 1979, The American Statistician 33) moves a reading from K to D, or back, in O(n^2).

The worst reading is dropped first, so that two bad ones do not hide each other for long. A bad reading makes
its good neighbours look bad; therefore every dropped reading that the kept ones predict, or that other
dropped ones confirm, is readmitted in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import ndtri

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.kernels import Indices, Kernel
from fieldbo.errors import InputError, ModelError

CUTOFF = 4.0
"""Largest error in standard deviations; one good reading in 16,000 exceeds it."""

LEAST_READINGS = 5
"""With fewer readings none is dropped."""

MOST_DROPPED = 0.2
"""Largest fraction of readings to drop: if more look bad, it is the model that is wrong."""

ROUNDS = 4
"""Most rounds of fitting and testing."""

_CONFIRMED = 0.5  # fraction of the cutoff within which two dropped readings confirm each other
_CLUSTER = 3
_NEIGHBOURS = 4  # two readings are neighbours if each is among the 4 most correlated with the other
_FLOOR = 1e-6  # least noise variance, relative to the prior's: smaller errors do no harm
_MAD_TO_SD = 1.4826  # for a normal distribution
_ABSURD = 1e6  # spreads from the median; a sum with such a value has no digits left for the others
_DWARFED = 1000.0
"""Readings this many times further from the others than those are from each other dwarf them."""

Fitted = TypeVar("Fitted")


def believable(
    kernel: Kernel,
    sites: ArrayLike,
    values: ArrayLike,
    noise_variances: ArrayLike,
    *,
    cutoff: float = CUTOFF,
) -> Mask:
    """Return which readings agree with the others; O(n^3).

    Parameters
    ----------
    kernel : Kernel
        Prior covariance, in model units.
    sites : (n, d) array
        A site may be read more than once; each reading is tested separately.
    values : (n,) array
        Model units.
    noise_variances : float or (n,) array
        Model units.
    cutoff : float
        Standard deviations beyond which a reading is an outlier. Where the errors of the kept readings
        exceed what the model predicts, for example because a length scale is too long, it grows with them.

    Returns
    -------
    (n,) bool array
        True for a believable reading. All are, for fewer than five readings; otherwise at least four fifths.

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
        raise InputError(f"{len(x)} sites and {len(y)} values", expected="one value per site")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(v).all()):
        raise InputError("a site, value or noise variance is NaN or infinite", expected="finite readings")
    if len(y) < LEAST_READINGS:
        return np.ones(len(y), dtype=bool)
    sane, most = _not_absurd(kernel, x, y), int(MOST_DROPPED * len(y))
    dropped = int(np.count_nonzero(~sane))
    if dropped > most:
        sane, dropped = np.ones(len(y), dtype=bool), 0
    readings = _Readings(kernel, x[sane], y[sane], v[sane])
    readings.drop(cutoff, most - dropped)
    readings.readmit(cutoff)
    sane[sane] = readings.kept
    return sane


def _not_absurd(kernel: Kernel, sites: Array, values: Array) -> Mask:
    """Return which values (n,) can be compared with the others at all."""
    away = np.abs(values - np.median(values))
    spread = np.maximum(np.sqrt(kernel.diagonal(sites)), _MAD_TO_SD * np.median(away))
    return np.asarray(away <= _ABSURD * spread)


def dwarfing(values: ArrayLike, beside: Sequence[float] = (), *, skewed: bool = False) -> Indices:
    """Return the indices of values that dwarf all others, at most a third of them; usually none.

    They are further from the others than 1,000 times what those are from each other; 1,000,000 times if there
    are fewer than five, or if values are skewed. A model that believes them can't tell the others apart.

    Parameters
    ----------
    values : (n,) array
        Finite.
    beside : sequence of float
        What else counts as another value, such as the threshold.
    skewed : bool

    Examples
    --------
    >>> dwarfing([1.0, 3.0, 2.0, 1e30, 1.5]).tolist(), dwarfing([1.0, 3.0, 2.0, 90.0, 1.5]).tolist()
    ([3], [])
    >>> dwarfing([0.0, 0.0, 1e30, 0.0]).tolist(), dwarfing([0.0, 0.0, 1e30, 0.0], beside=[1.0]).tolist()
    ([], [2])
    """
    y = np.asarray(values, dtype=float)
    factor = _DWARFED**2 if skewed or len(y) < LEAST_READINGS else _DWARFED
    for sign in (1.0, -1.0):  # far above the others, or far below
        order = np.argsort(sign * y, kind="stable")
        z, others = sign * y[order], sign * np.asarray(beside, dtype=float)
        most = max(len(y) // 3, 1)
        first = np.arange(len(y) - 1, len(y) - 1 - most, -1)  # of those that may be far
        first = first[first >= (0 if len(others) else 1)]
        top = np.maximum(np.append(z, -np.inf)[first - 1], np.max(others, initial=-np.inf))
        bottom = np.min(others, initial=np.min(z, initial=np.inf))
        with np.errstate(over="ignore"):
            far = (z[first] - top > factor * (top - bottom)) & (top > bottom)
        if far.any():
            return np.sort(order[first[np.argmax(far)] :])
    return np.empty(0, dtype=np.intp)


class _Readings:
    """Kept and dropped readings, and the matrix of what the kept ones predict.

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
                "  fix:      shorten the length scales, or use a Matern kernel"
            ) from error
        P = cho_solve(factor, np.eye(n), check_finite=False)
        self.swept = np.zeros((n + 1, n + 1))
        self.swept[:n, :n] = -0.5 * (P + P.T)
        self.swept[n, :n] = self.swept[:n, n] = P @ values
        self.kept: Mask = np.ones(n, dtype=bool)

    def _move(self, i: int) -> None:
        """Move a reading from kept to dropped, or back; O(n^2)."""
        row = self.swept[i].copy()
        self.swept -= np.outer(row, row / row[i])
        self.swept[i] = self.swept[:, i] = row / abs(row[i])
        self.swept[i, i] = -1.0 / row[i]
        self.kept[i] = not self.kept[i]

    def z(self) -> Array:
        """Return the absolute standardised errors (n,)."""
        return np.asarray(np.abs(self.swept[:-1, -1]) / np.sqrt(np.abs(np.diag(self.swept)[:-1])))

    def drop(self, cutoff: float, most: int) -> None:
        """Drop the worst reading until none exceeds the cutoff, or `most` are dropped."""
        for _ in range(most):
            z = np.where(self.kept, self.z(), 0.0)
            worst = int(np.argmax(z))
            if z[worst] <= cutoff:
                return
            self._move(worst)

    def readmit(self, cutoff: float) -> None:
        """Readmit dropped readings, the likeliest first; then those that confirm each other."""
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
        """Return by what factor (n,), at least 1, the kept readings' errors exceed what the model predicts.

        The median of ``|z|`` over that of a normal, with dropped readings counted as larger than all others.
        Errors that are mostly noise (as at repeated sites) and errors that are mostly the field's are
        measured separately: a length scale that is too long inflates only the latter.
        """
        z, diagonal = self.z(), np.abs(np.diag(self.swept)[:-1])
        variance = np.where(self.kept, 1.0 / diagonal, diagonal)
        noisy = variance < 2.0 * self.noise_variances
        excess = np.ones(len(z))
        for group in (noisy, ~noisy):
            like = group if (group & self.kept).sum() >= LEAST_READINGS else np.ones_like(group)
            typical = ndtri(0.5 + 0.25 * self.kept[like].mean())
            excess[group] = np.median(z[like & self.kept]) / typical
        # No length scale makes an error larger than the values themselves.
        spread = np.maximum(self.prior_sd, _MAD_TO_SD * np.median(np.abs(self.values[self.kept])))
        return np.asarray(np.maximum(np.minimum(excess, spread / np.sqrt(variance)), 1.0))

    def _pair(self, limit: float) -> Sequence[int]:
        """Return the two dropped readings that predict each other best, if both errors are within `limit`.

        Two faulty readings seldom agree; two readings of a peak do.
        """
        dropped = np.flatnonzero(~self.kept)
        if len(dropped) < 2:
            return []
        S, r = self.swept[np.ix_(dropped, dropped)], self.swept[dropped, -1]
        variance = np.diag(S)
        error = r[:, None] - S / variance * r  # of the row's reading, given also the column's
        left = np.maximum(variance[:, None] - S**2 / variance, np.finfo(float).tiny)
        z = np.abs(error) / np.sqrt(left)
        z = np.maximum(z, z.T)
        np.fill_diagonal(z, np.inf)
        a, b = np.unravel_index(int(np.argmin(z)), z.shape)
        return [int(dropped[a]), int(dropped[b])] if z[a, b] <= limit else []

    def _cluster(self) -> Sequence[int]:
        """Return three or more dropped readings that are neighbours and err in the same direction, if any.

        A steep peak on flat ground looks like this; a model with one length scale and variance misses it.
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
    """Return which readings are believable before the first fit.

    The prior's mean and variance are those of the values, after clipping them at three robust standard
    deviations from the median.

    Parameters
    ----------
    kernel : Kernel
        With variance 1 and the expected length scales.
    sites : (n, d) array
    values : (n,) array
        In any unit.
    noise_variances : float or (n,) array
        In that unit squared.

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
    # If more than half of the values are equal, there is no scale to clip at.
    tame = np.clip(y, median - reach, median + reach) if reach > 0 else y
    mean, sd = float(tame.mean()), float(tame.std()) or 1.0
    return believable(kernel, sites, (y - mean) / sd, np.asarray(noise_variances) / sd**2)


def fit_believed(first: Mask, fit_to: Callable[[Mask], Fitted], believed: Callable[[Fitted], Mask]) -> Fitted:
    """Alternate between fitting to the believed readings and testing all, until the same ones are believed.

    Parameters
    ----------
    first : (n,) bool array
        Readings to believe before the first fit. A fit to all would explain outliers by noise, or by length
        scales that are too short, and would not detect them.
    fit_to : callable
        ``fit_to(kept) -> Fitted``, the fit to the readings in `kept`, (n,) bool.
    believed : callable
        ``believed(fitted) -> (n,) bool``, the readings that a fit believes.

    Returns
    -------
    Fitted
        The last of at most four fits.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0, 50.0])
    >>> float(fit_believed(y < 2.5, lambda kept: y[kept].mean(), lambda mean: abs(y - mean) < 5))
    2.0
    """
    kept = first
    for _ in range(ROUNDS):
        fitted = fit_to(kept)
        now = believed(fitted)
        if np.array_equal(now, kept):
            break
        kept = now
    return fitted
