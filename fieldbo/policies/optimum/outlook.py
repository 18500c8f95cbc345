"""What readings, none of them taken yet, are expected to add to the value of the recommended place.

===========  ==========================================================================
``W``        candidates for a reading
``P``        places: the candidates, then those that can be recommended already
``S``        joint draws of the places' values, each with a reading
``mu``       posterior mean of the places, (P,)
``Q``        candidates that are read
``m_Q``      posterior mean after those readings, (P, S)
===========  ==========================================================================

In model units, where larger is better.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Single
from fieldbo.belief.surface import Surface


class Outlook:
    """What readings at a few candidates are expected to add to the value of the recommended place.

    The place of the largest mean is recommended in the end, among those that can be recommended already and
    those that were read. Readings at Q add ``E max m_Q - max mu``, averaged over draws that come in pairs,
    mirrored at the mean: so readings that cannot change the recommendation add nothing.

    Parameters
    ----------
    surface : Surface
        The belief over the places.
    noise : (W,) array
        Noise variance of a reading at each candidate, above 0. The candidates are the first W places.
    draws : int
        Rounded down to an even number.
    rng : numpy.random.Generator

    Examples
    --------
    Two sites may be better than the one that is known; a second reading at the same one adds nothing:

    >>> from fieldbo.belief.kernels import Matern52
    >>> from fieldbo.belief.posterior import Belief
    >>> belief = Belief(Matern52([1.0])).condition_on([[0.0]], [0.5], 1e-6)
    >>> surface = Surface(belief, [[50.0], [100.0], [0.0]])
    >>> outlook = Outlook(surface, np.full(2, 1e-6), 10_000, np.random.default_rng(0))
    >>> outlook.gains([])[0].round(1)
    array([0.2, 0.2])
    >>> outlook.gains([0])[0].round(1)
    array([0. , 0.2])
    """

    def __init__(self, surface: Surface, noise: Array, draws: int, rng: np.random.Generator) -> None:
        W = len(noise)
        self._noise, self._good = noise, np.arange(W, surface.size)
        self._covariances = surface.covariance()
        half = surface.draws(draws // 2, rng)[:W] - surface.mean[:W, None]
        half += np.sqrt(noise)[:, None] * rng.standard_normal(half.shape)
        self._surprises = np.concatenate([half, -half], axis=1)
        self._mean = surface.mean - surface.mean[W:].max()
        # Single precision has no digits for tiny variances.
        self._unit = float(np.sqrt(np.diag(self._covariances).max(initial=0.0))) or 1.0
        self._readings = self._in_unit(self._mean[:W, None] + self._surprises)

    def _in_unit(self, values: Array, power: int = 1) -> Single:
        return np.asarray(values / self._unit**power, np.float32)

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate would add after those at some stops.

        Parameters
        ----------
        stops : list of int
            Candidates, each at most once.

        Returns
        -------
        gains : (W,) array
            0 at the stops.
        added : float
            What the readings at the stops add together.
        """
        from fieldbo.policies.optimum._loops import growth_after

        at, K, W = np.array(stops, dtype=int), self._covariances, len(self._noise)
        # The readings explain B'B of the covariances, and move the means by B'e.
        L = np.linalg.cholesky(K[np.ix_(at, at)] + np.diag(self._noise[at]))
        both = np.concatenate([K[at], self._surprises[at]], axis=1)
        solved = solve_triangular(L, both, lower=True, check_finite=False) if len(at) else both
        B, e = solved[:, : len(K)], solved[:, len(K) :]
        means = self._in_unit(self._mean[:, None] + B.T @ e)
        known = np.concatenate([self._good, at])
        left = np.maximum(np.diag(K)[:W] - np.square(B[:, :W]).sum(axis=0), 0.0)
        top, gains = means[known].max(axis=0), np.empty(W)
        growth_after(
            means,
            known,
            self._in_unit(K[:W, known] - B[:, :W].T @ B[:, known], 2),
            self._in_unit(left, 2),
            self._in_unit(1.0 / (left + self._noise), -2),
            self._readings,
            top,
            gains,
        )
        gains[at] = 0.0
        return self._unit * np.maximum(gains, 0.0), self._unit * float(top.mean(dtype=float))
