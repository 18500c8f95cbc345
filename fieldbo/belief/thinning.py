"""What a model takes of the many readings that one order may bring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain

MOST = 20
"""Most readings of one observation that a model takes."""

_LEAST_NOISE = 0.01
"""Least noise variance of pooled readings, relative to that of one: they share drift and calibration."""

_OF_MEDIAN = np.pi / 2.0
"""Variance of the median of many normal readings, relative to that of their mean."""


class Thinned(NamedTuple):
    """Pooled readings: `sites` (m, d), `values`, `noise_variances` (m,); `which` (k,) holds each reading."""

    sites: Array
    values: Array
    noise_variances: Array
    which: NDArray[np.int64]


def thinned(sites: Array, values: Array, noise_variances: Array, domain: Domain) -> Thinned:
    """Pool the readings of one observation that lie near each other.

    Readings nearest to the same node of a lattice become one: the median of the values, at the median of the
    sites. The lattice is that of the domain's grid, or has a hundred nodes per axis of a box. It is coarsened
    until at most `MOST` readings are left. A single reading stays as it is.

    Parameters
    ----------
    sites : (k, d) array
    values, noise_variances : (k,) arrays
    domain : Domain

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> river = Domain.grid([Axis("along", "m", 0, 10)], [11])
    >>> x = np.array([[0.0], [0.1], [5.0]])
    >>> thinned(x, np.array([1.0, 3.0, 7.0]), np.ones(3), river).values
    array([2., 7.])
    """
    if len(values) < 2:
        return Thinned(sites, values, noise_variances, np.arange(len(values)))
    cell, sites_from_low = cell_sizes(domain), sites - domain.low
    which = _cells(sites_from_low, cell)
    while which.max() >= MOST:
        cell = 2.0 * cell
        which = _cells(sites_from_low, cell)
    if which.max() + 1 == len(values):
        return Thinned(sites, values, noise_variances, which)
    bins = [which == number for number in range(which.max() + 1)]
    return Thinned(
        np.array([np.median(sites[some], axis=0) for some in bins]),
        np.array([np.median(values[some]) for some in bins]),
        np.array([_pooled(noise_variances[some]) for some in bins]),
        which,
    )


def cell_sizes(domain: Domain) -> Array:
    """Return the spacing (d,) of places that count as different."""
    return np.where(np.isfinite(domain.spacing), domain.spacing, domain.extent / 100.0)


def places(sites: Array, domain: Domain) -> int:
    """Return at how many different places sites (n, d) lie."""
    return int(_cells(sites - domain.low, cell_sizes(domain)).max(initial=-1)) + 1 if len(sites) else 0


def _cells(sites: Array, cell: Array) -> NDArray[np.int64]:
    """Return the number of each reading's cell (k,), counted in the order of the first reading in it."""
    nodes = np.round(sites / cell)
    _, first, which = np.unique(nodes, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.reshape(-1)]


def _pooled(noise_variances: Array) -> float:
    """Return the noise variance of the median of readings."""
    n, mean = len(noise_variances), float(noise_variances.mean())
    return mean if n == 1 else mean * max(_LEAST_NOISE, min(1.0, _OF_MEDIAN / n))
