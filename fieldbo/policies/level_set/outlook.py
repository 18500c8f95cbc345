"""What several readings, none of them taken yet, are expected to remove of the risk together.

Each planned reading updates the variances and the covariances between members and candidates, which do not
depend on its value. In units of the prior's variance.
"""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.surface import Surface
from fieldbo.policies.level_set.risk import Risk, coefficients_at, drop_of


class Outlook:
    """The risk that is left once readings at some of a few candidates are taken.

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
        self._surface, self._risk, self._sites = surface, risk, sites
        self._unit = surface.lookahead.unit
        self._covariances = risk.covariances(surface, sites)
        self._rounding = np.float32(surface.lookahead.rounding(risk.members))
        self._noise, self._variance = noise / self._unit, surface.variance[sites] / self._unit
        self._before = surface.variance[risk.members] / self._unit
        self._explained = np.zeros(len(risk.members))
        self._drop = coefficients_at(risk.t)
        self._planned = list[Array]()

    def gains(self) -> Array:
        """Return how much another reading at each candidate is expected to remove of the risk, (W,)."""
        from fieldbo.policies.level_set._risk_loops import add_drops

        gains = np.zeros(len(self._sites))
        add_drops(
            self._covariances,
            np.arange(len(self._before)),
            self._drop.astype(np.float32),
            self._rounding,
            (1.0 / self._before).astype(np.float32),
            self._explained.astype(np.float32),
            drop_of(self._drop, self._explained).astype(np.float32),
            (1.0 / (self._variance + self._noise)).astype(np.float32),
            gains,
        )
        return self._risk.weight * np.maximum(gains, 0.0)  # rounding

    def read(self, candidate: int) -> None:
        """Plan a reading at a candidate."""
        from fieldbo.policies.level_set._risk_loops import condition

        root = np.sqrt(self._variance[candidate] + self._noise[candidate])
        row = self._surface.covariance(self._sites[candidate], self._sites)[0] / self._unit
        for earlier in self._planned:
            row -= earlier[candidate] * earlier
        row /= root
        column = self._covariances[:, candidate] / np.float32(root)
        self._explained = np.minimum(self._explained + np.square(column) / self._before, 1.0)
        self._variance = np.maximum(self._variance - np.square(row), 0.0)
        self._planned.append(row)
        condition(self._covariances, column, row.astype(np.float32))
