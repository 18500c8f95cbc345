"""What readings, none of them taken yet, are expected to remove of the risk together.

Variances and covariances after a reading do not depend on its value. All in units of the prior's variance.
"""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.surface import Surface
from fieldbo.policies.level_set.risk import Risk, coefficients_at


class Outlook:
    """What readings at a few candidates are expected to remove of the risk.

    Parameters
    ----------
    surface : Surface
    risk : Risk
    sites : (W,) int array
        The candidates: sites of the surface. One may come several times, with another noise.
    noise : (W,) array
        Noise variance of a reading at each, above 0.
    """

    def __init__(self, surface: Surface, risk: Risk, sites: Whole, noise: Array) -> None:
        unit = surface.lookahead.unit
        self._weight = risk.weight
        self._with_members = risk.covariances(surface, sites)
        self._covariances = surface.covariance(sites, sites) / unit
        self._noise = noise / unit
        self._rounding = np.float32(surface.lookahead.rounding)
        self._shares = (unit / surface.variance[risk.members]).astype(np.float32)
        self._drops = coefficients_at(risk.t).astype(np.float32)

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading would remove after those at some stops, and what these remove.

        Parameters
        ----------
        stops : list of int
            Candidates.

        Returns
        -------
        gains : (W,) array
        removed : float
        """
        from fieldbo.policies.level_set._risk_loops import add_further_drops

        gains, removed = np.zeros(len(self._noise)), np.zeros(len(self._shares), np.float32)
        add_further_drops(
            self._with_members,
            self._covariances,
            self._noise,
            np.array(stops, dtype=int),
            self._drops,
            self._rounding,
            self._shares,
            gains,
            removed,
        )
        return self._weight * np.maximum(gains, 0.0), self._weight * float(removed.sum(dtype=float))
