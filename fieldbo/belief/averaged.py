"""The belief averaged over hyperparameters: a weighted set of Gaussian processes.

=============  ===================================================================================
``m_k, s_k``   mean and standard deviation of belief k
``w_k``        its weight; the weights sum to 1
=============  ===================================================================================

mean ``m = sum_k w_k m_k``, variance ``sum_k w_k (s_k^2 + m_k^2) - m^2``. A reading multiplies each weight by
the density that its belief gave to the reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import Belief, Moments
from fieldbo.belief.surface import Surface


class AveragedBelief:
    """Beliefs that share their readings and differ in their hyperparameters.

    Parameters
    ----------
    beliefs : sequence of Belief
        In the same model units.
    weights : (K,) array
        They sum to 1.
    """

    def __init__(self, beliefs: Sequence[Belief], weights: Array) -> None:
        self.beliefs, self.weights = tuple(beliefs), weights

    @property
    def sites(self) -> Array:
        """Sites that were read, (n, d)."""
        return self.beliefs[0].sites

    @property
    def values(self) -> Array:
        """Readings (n,) at the sites, in model units."""
        return self.beliefs[0].values

    @property
    def size(self) -> int:
        """Number of those sites, n."""
        return self.beliefs[0].size

    def mean(self, points: ArrayLike) -> Array:
        """Return the mean (P,) at `points` (P, d)."""
        return np.asarray(self.weights @ np.array([belief.mean(points) for belief in self.beliefs]))

    def variance(self, points: ArrayLike) -> Array:
        """Return the variance (P,) of the function, without noise, at `points` (P, d)."""
        means = np.array([belief.mean(points) for belief in self.beliefs])
        within = np.array([belief.variance(points) for belief in self.beliefs])
        return np.asarray(self.weights @ (within + (means - self.weights @ means) ** 2))

    def mean_at_sites(self) -> Array:
        """Return the mean (n,) at the sites that were read."""
        return np.asarray(self.weights @ np.array([belief.mean_at_sites() for belief in self.beliefs]))

    def with_gradients(self, points: ArrayLike) -> Moments:
        """Return mean and variance at `points` (P, d), and their gradients."""
        moments = [belief.with_gradients(points) for belief in self.beliefs]
        means, variances, slopes, by_variance = (np.array(numbers) for numbers in zip(*moments, strict=True))
        w = self.weights
        mean, slope = w @ means, np.tensordot(w, slopes, 1)
        variance = w @ variances + w @ (means - mean) ** 2
        of_means = np.tensordot(w, (means - mean)[:, :, None] * slopes, 1)
        return Moments(mean, variance, slope, np.tensordot(w, by_variance, 1) + 2.0 * of_means)


class AveragedSurface:
    """The averaged belief over fixed candidates, in model units; read it like a `Surface`.

    Parameters
    ----------
    surfaces : sequence of Surface
        Over the same candidates, in the same model units; they change with `append`.
    weights : (K,) array
        They sum to 1.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> sites = [[0.0], [1.0], [9.0]]
    >>> both = [Surface(Belief(Matern52([length])), sites) for length in (0.5, 5.0)]
    >>> averaged = AveragedSurface(both, np.array([0.5, 0.5]))
    >>> averaged.append([[0.0]], [1.0], [[0.01], [0.01]])
    >>> averaged.append([[1.0]], [1.1], [[0.01], [0.01]])
    >>> averaged.weights.round(2)  # similar values speak for the larger length scale
    array([0.17, 0.83])
    """

    def __init__(self, surfaces: Sequence[Surface], weights: ArrayLike) -> None:
        self.surfaces = tuple(surfaces)
        with np.errstate(divide="ignore"):
            self._before = np.log(np.asarray(weights, dtype=float)) - self._log_likelihoods()
        self._weights: Array | None = None
        self._moments: tuple[Array, Array] | None = None

    def _log_likelihoods(self) -> Array:
        return np.array([surface.belief.log_marginal_likelihood() for surface in self.surfaces])

    @property
    def weights(self) -> Array:
        """Weight of each surface, (K,)."""
        if self._weights is None:
            self._weights = np.asarray(softmax(self._before + self._log_likelihoods()))
        return self._weights

    @property
    def belief(self) -> AveragedBelief:
        """The averaged belief at any point."""
        return AveragedBelief([surface.belief for surface in self.surfaces], self.weights)

    @property
    def candidates(self) -> Array:
        """The candidates, (N, d)."""
        return self.surfaces[0].candidates

    @property
    def size(self) -> int:
        """Number of candidates, N."""
        return self.surfaces[0].size

    def _both(self) -> tuple[Array, Array]:
        """Return mean and variance (N,) of the mixture."""
        if self._moments is None:
            w, means = self.weights, np.array([surface.mean for surface in self.surfaces])
            mean = w @ means
            within = w @ np.array([surface.variance for surface in self.surfaces])
            self._moments = mean, within + w @ (means - mean) ** 2
        return self._moments

    @property
    def mean(self) -> Array:
        """Mean of the mixture (N,)."""
        return self._both()[0]

    @property
    def variance(self) -> Array:
        """Variance of the mixture (N,): that of the function, without noise."""
        return self._both()[1]

    @property
    def sd(self) -> Array:
        """Standard deviation of the mixture (N,)."""
        return np.sqrt(self.variance)

    @property
    def process_variance(self) -> Array:
        """Mean variance (N,) of the functions about their levels, without readings."""
        return np.asarray(self.weights @ np.array([surface.process_variance for surface in self.surfaces]))

    def exceedance(self, threshold: float) -> Array:
        """Return the probability (N,) that the function is at or above `threshold` (model units)."""
        p: Array = self.weights @ np.array([s.exceedance(threshold) for s in self.surfaces])
        return np.minimum(p, 1.0)  # weights may sum to more than 1 by rounding

    def append(self, sites: ArrayLike, values: ArrayLike, noise_variances: ArrayLike) -> None:
        """Add readings, in place; the weights change with them.

        Parameters
        ----------
        sites : (k, d) array
        values : (k,) array
            Model units.
        noise_variances : (K, k) array
            Of each reading, as each surface takes it.
        """
        for surface, noises in zip(self.surfaces, np.asarray(noise_variances), strict=True):
            surface.append(sites, values, noises)
        self._weights = self._moments = None

    def over(self, candidates: ArrayLike) -> AveragedSurface:
        """Return the same belief over other candidates (M, d)."""
        return AveragedSurface([surface.over(candidates) for surface in self.surfaces], self.weights)

    def draws(self, n: int, rng: np.random.Generator, among: Any = slice(None), apart: float = 0.01) -> Array:
        """Return joint draws (M, n) of the function at some candidates, as many of each surface as it weighs.

        Parameters are those of `Surface.draws`.
        """
        marks = (np.arange(n) + rng.random()) / n
        numbers = np.minimum(np.searchsorted(np.cumsum(self.weights), marks), len(self.surfaces) - 1)
        times = np.bincount(numbers, minlength=len(self.surfaces))
        drawn = [
            s.draws(k, rng, among, apart) for s, k in zip(self.surfaces, times.tolist(), strict=True) if k
        ]
        return np.concatenate(drawn, axis=1)
