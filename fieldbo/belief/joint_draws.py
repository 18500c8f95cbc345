"""Joint draws of the posterior at many points, by a Cholesky factor of low rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fieldbo._numerics.arrays import Array

_SMALLEST = 1e-14  # of the largest variance: what is left below it is rounding


def joint_draws(
    mean: Array,
    variance: Array,
    covariances_of: Callable[[int], Array],
    n: int,
    rng: np.random.Generator,
    *,
    apart: float = 0.01,
) -> Array:
    """Return n joint draws (P, n) of a normal with a covariance of which only some rows are needed.

    A pivoted Cholesky factor explains all but a share `apart` of the total variance; what is left at each
    point is drawn independently. Each point thus has its exact mean and variance. Time and memory grow with
    the points times the rank, which is small where the function is smooth.

    Parameters
    ----------
    mean, variance : (P,) arrays
    covariances_of : Callable
        ``covariances_of(i) -> (P,)``, the covariances of point i with all points.
    n : int
    rng : numpy.random.Generator
    apart : float

    Examples
    --------
    >>> line = np.linspace(0, 1, 200)
    >>> row = lambda i: np.exp(-0.5 * (line[i] - line) ** 2)
    >>> draws = joint_draws(np.zeros(200), np.ones(200), row, 1000, np.random.default_rng(0), apart=1e-9)
    >>> bool(np.abs(np.diff(draws, axis=0)).max() < 0.05), draws.std(axis=1).mean().round(1)
    (True, np.float64(1.0))
    """
    left = np.array(variance, dtype=float)
    enough, least = apart * left.sum(), _SMALLEST * left.max(initial=0.0)
    rows = np.empty((min(64, len(mean)), len(mean)))
    rank = 0
    while rank < len(mean) and left.sum() > enough:
        pivot = int(np.argmax(left))
        if left[pivot] <= least:
            break
        if rank == len(rows):
            rows = np.concatenate([rows, np.empty((min(rank, len(mean) - rank), len(mean)))])
        row = covariances_of(pivot) - rows[:rank, pivot] @ rows[:rank]
        row /= np.sqrt(left[pivot])
        rows[rank] = row
        left -= row**2
        left[pivot] = 0.0
        np.maximum(left, 0.0, out=left)
        rank += 1
    common = rng.standard_normal((n, rank)) @ rows[:rank]
    return np.asarray((mean + common + np.sqrt(left) * rng.standard_normal((n, len(mean)))).T)
