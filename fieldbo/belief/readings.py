"""Readings as a model takes them: pooled where they repeat each other.

`Data` is what a model is fitted to. `pool` makes one reading of those at one site, and `thinned` a few of the
many that one order may bring.

A *piece* is a run of readings that lie within one cell of the first of them. With n readings of noise
variance v, whose distances along the piece have mean 0 and standard deviation s, the least-squares line
through their values is given by its values at -s and at s. These two are independent, each of variance
2 v / n, and hold all that the readings say about a line. A parabola passes through them, too, at exactly
those points (the nodes of a Gauss quadrature with two points).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor

PIECE = 0.2
"""Length of a piece, in length scales. The error of the belief is measured in `benchmarks/on_the_way.py`."""

MOST = 100
"""Most pieces of one observation."""

LEAST_NOISE = 0.01
"""Least noise variance of pooled readings, relative to that of one: they share drift and calibration."""

_OF_MEDIAN = np.pi / 2.0
"""Variance of the median of many normal readings, relative to that of their mean."""

_NARROW = 0.1
"""Readings with a smaller standard deviation of their places, in cells, lie at one place."""

_ONE_CELL = 1.0 - 1e-9
"""Length of a piece in cells, less rounding: neighbouring sites are not pooled."""

_FEWEST, _SPIKE = 5, 5.0
"""A spike is this many standard deviations from the median of a piece, if that has the fewest readings."""


class Thinned(NamedTuple):
    """Pooled readings: `sites` (m, d), `values`, `noise_variances` (m,).

    `which` (k,) holds the pooled reading of each reading; -1 for a spike, which is left out.
    """

    sites: Array
    values: Array
    noise_variances: Array
    which: NDArray[np.int64]


def thinned(
    sites: Array, values: Array, noise_variances: Array, cell: Array, below: float | None = None
) -> Thinned:
    """Pool neighbouring readings of one observation.

    Each piece becomes two readings on the least-squares line through its values, or one, their mean, if it is
    read at one place. Spikes are left out. If some readings of a piece are at or below the limit of
    detection, it becomes one: their median. A single reading stays as it is.

    Parameters
    ----------
    sites : (k, d) array
        In the order in which they were read.
    values, noise_variances : (k,) arrays
    cell : (d,) array
        Length of a piece along each axis; doubled until there are at most `MOST` pieces.
    below : float, optional
        The sensor's limit of detection.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0], [50.0]])
    >>> pooled = thinned(x, 2.0 * x[:, 0], np.ones(5), np.array([4.0]))
    >>> pooled.sites[:, 0].round(2), pooled.values.round(2), pooled.noise_variances
    (array([ 0.38,  2.62, 50.  ]), array([  0.76,   5.24, 100.  ]), array([0.5, 0.5, 1. ]))
    """
    if len(values) < 2:
        return Thinned(sites, values, noise_variances, np.arange(len(values)))
    starts = _starts(sites / cell)
    while len(starts) > MOST:
        cell = 2.0 * cell
        starts = _starts(sites / cell)
    if len(starts) == len(values):
        return Thinned(sites, values, noise_variances, np.arange(len(values)))
    taken: list[tuple[Array, Array, Array]] = []
    which = np.empty(len(values), dtype=np.int64)
    rows = 0
    for first, end in zip(starts, [*starts[1:], len(values)], strict=True):
        piece = slice(first, end)
        *pooled, among = _pool_piece(sites[piece], values[piece], noise_variances[piece], cell, below)
        which[piece] = np.where(among < 0, -1, rows + among)
        rows += len(pooled[1])
        taken.append((pooled[0], pooled[1], pooled[2]))
    pooled_sites, pooled_values, pooled_noises = (np.concatenate(part) for part in zip(*taken, strict=True))
    return Thinned(pooled_sites, pooled_values, pooled_noises, which)


def cell_sizes(domain: Domain) -> Array:
    """Return the spacing (d,) of places that count as different."""
    return np.where(np.isfinite(domain.spacing), domain.spacing, domain.extent / 100.0)


def places(sites: Array, domain: Domain) -> int:
    """Return at how many different places sites (n, d) lie."""
    nodes = np.round((sites - domain.low) / cell_sizes(domain))
    return len(np.unique(nodes, axis=0)) if len(sites) else 0


def _starts(scaled: Array) -> list[int]:
    """Return where each piece begins, given sites (k, d) in cells; only the first if there are too many."""
    starts = [0]
    while len(starts) <= MOST:
        first = starts[-1]
        beyond = np.linalg.norm(scaled[first + 1 :] - scaled[first], axis=1) > _ONE_CELL
        if not beyond.any():
            break
        starts.append(first + 1 + int(np.argmax(beyond)))
    return starts


def _pool_piece(
    sites: Array, values: Array, noise_variances: Array, cell: Array, below: float | None
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Pool the readings of a piece; also return which pooled reading each belongs to, -1 for a spike."""
    n = len(values)
    if n == 1:
        return sites, values, noise_variances, np.zeros(1, dtype=np.int64)
    if below is not None and (values <= below).any():
        noise = noise_variances.mean() * max(LEAST_NOISE, min(1.0, _OF_MEDIAN / n))
        return (
            _middle(sites),
            np.median(values, keepdims=True),
            np.array([noise]),
            np.zeros(n, dtype=np.int64),
        )
    kept = ~_spikes(values, noise_variances)
    sites, values, noise_variances, n = sites[kept], values[kept], noise_variances[kept], int(kept.sum())
    middle, noise = _middle(sites), float(noise_variances.mean())
    _, spreads, axes = np.linalg.svd((sites - middle) / cell, full_matrices=False)
    sd = float(spreads[0]) / np.sqrt(n)
    among = np.full(len(kept), -1)
    if sd < _NARROW:
        among[kept] = 0
        return middle, values.mean(keepdims=True), np.array([noise * max(LEAST_NOISE, 1.0 / n)]), among
    along = (sites - middle) / cell @ axes[0]
    if along[-1] < along[0]:  # onwards, whatever sign the decomposition gives
        along, axes = -along, -axes
    slope, ends = float(along @ values) / float(along @ along), np.array([-sd, sd])
    among[kept] = along > 0
    return (
        middle + ends[:, None] * axes[0] * cell,
        values.mean() + slope * ends,
        np.full(2, noise * max(LEAST_NOISE, 2.0 / n)),
        among,
    )


def _middle(sites: Array) -> Array:
    """Return the mean (1, d) of sites; equal ones keep their coordinates to the last bit."""
    return sites[:1] if (sites == sites[0]).all() else sites.mean(axis=0, keepdims=True)


def _spikes(values: Array, noise_variances: Array) -> NDArray[np.bool_]:
    """Return which readings (n,) of a piece are spikes."""
    if len(values) < _FEWEST:
        return np.zeros(len(values), dtype=bool)
    off = np.abs(values - np.median(values))
    spread = max(1.4826 * float(np.median(off)), float(np.sqrt(noise_variances.mean())))
    return np.asarray(off > _SPIKE * spread)


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


class Data(NamedTuple):
    """Readings, in the user's units.

    Attributes
    ----------
    sites : (n, d) array
    values, noise_variances : (n,) arrays
        The variances are those that the sensor declares, without the part in proportion to the value.
    means : (n,) array or None
        The prior mean at the sites.
    sensor : Sensor
        By default one without a limit of detection, and without noise in proportion to the value.

    Examples
    --------
    >>> import numpy as np
    >>> data = Data(np.array([[0.0], [1.0]]), np.array([2.0, 3.0]), np.array([0.1, 0.1]))
    >>> data.only(np.array([False, True])).values
    array([3.])
    """

    sites: Array
    values: Array
    noise_variances: Array
    means: Array | None = None
    sensor: Sensor = Sensor()

    def only(self, which: Mask | slice) -> Data:
        """Return some of the readings."""
        means = None if self.means is None else self.means[which]
        return Data(self.sites[which], self.values[which], self.noise_variances[which], means, self.sensor)
