"""Joint draws of the posterior at many points, by a pivoted Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from fieldbo._numerics.arrays import Array

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
    rows = _factored(variance, covariances) if len(mean) <= _FEW else _grown(variance, covariances, apart)
    left = np.maximum(variance - np.einsum("rp,rp->p", rows, rows), 0.0)
    common = rng.standard_normal((n, len(rows))) @ rows
    return np.asarray((mean + common + np.sqrt(left) * rng.standard_normal((n, len(mean)))).T)


def _factored(variance: Array, covariances: Covariances) -> Array:
    """Return the rows (R, P) of the factor of the whole matrix, as far as it is positive definite."""
    covariance = covariances(np.arange(len(variance)))
    lower, pivots, rank, _ = dpstrf(covariance, tol=_SMALLEST * variance.max(initial=0.0), lower=1)
    rows = np.zeros((rank, len(variance)))
    rows[:, pivots - 1] = np.tril(lower)[:, :rank].T
    return rows


def _grown(variance: Array, covariances: Covariances, apart: float) -> Array:
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
