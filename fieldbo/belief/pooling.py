"""Repeated readings of a site, pooled into one of equal information."""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array

NOISE_FLOOR = 1e-10
"""Least noise variance, relative to the prior's: the factor exists even for a perfect sensor."""


def pool(sites: Array, values: Array, noise_variances: Array) -> tuple[Array, Array, Array, float]:
    """Pool repeated readings of a site into one of equal information.

    Parameters
    ----------
    sites : (n, d) array
    values, noise_variances : (n,) arrays

    Returns
    -------
    sites, values, noise_variances : (m, d), (m,), (m,) arrays
        One row per site, in order of first reading: ``ybar = sum(y / v) / sum(1 / v)``, ``1 / sum(1 / v)``.
    scatter : float
        Contribution of the scatter within sites to the log marginal likelihood,
        ``-1/2 [sum log 2 pi v - log 2 pi vbar + sum (y - ybar)^2 / v]`` summed over sites.
    """
    unique, first, which = np.unique(sites, axis=0, return_index=True, return_inverse=True)
    if len(unique) == len(sites):
        return sites, values, noise_variances, 0.0
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    which = rank[which.reshape(-1)]
    precision = np.bincount(which, 1.0 / noise_variances)
    pooled = np.bincount(which, values / noise_variances) / precision
    scatter = -0.5 * float(
        np.sum(np.log(2 * np.pi * noise_variances))
        + np.sum(np.log(precision / (2 * np.pi)))
        + np.sum((values - pooled[which]) ** 2 / noise_variances)
    )
    return unique[order], pooled, 1.0 / precision, scatter
