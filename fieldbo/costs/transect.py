"""A boat on a line that lowers a probe: travel along the track, and depth charged at each sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings


@settings("cost")
class Transect(CostModel):
    """``along_rate |d along| + depth_rate (depth + 1)``; the second term is the cost of the sample.

    The cost of Bogunovic et al. 2016, section 4. The boat lowers and raises the probe for every sample. Each
    sample therefore pays for its depth, and only the distance along the track depends on the position.

    Examples
    --------
    >>> Transect().to([200.0, 9.0], [[100.0, 3.0], [350.0, 0.0]])
    array([41. , 41.5])
    """

    along_rate: NonNegativeFloat = 0.25
    """Cost per metre along the track (the first axis)."""
    depth_rate: NonNegativeFloat = 4.0
    """Cost per metre of depth (the second axis), and of handling the probe."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        return self.along_rate * np.abs(starts[:, None, 0] - ends[None, :, 0])

    def sample_at(self, sites: Array) -> Array:
        return self.depth_rate * (np.abs(sites[:, 1]) + 1.0)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the probe's route: up, along the surface, and down again."""
        start, end = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        points = np.stack([start, [start[0], 0.0], [end[0], 0.0], end])
        turns = np.flatnonzero(np.any(np.diff(points, axis=0) != 0, axis=1)) + 1
        return points[[0, *turns]] if len(turns) else points[[0, -1]]

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the domain has two axes, the second a depth of at least 0."""
        if domain.dimension != 2 or domain.axes[1].low < 0:
            raise InputError(
                f"a transect cost does not fit the axes {', '.join(a.name for a in domain.axes)}",
                expected="two axes: position along the track, and depth of at least 0",
                where="cost.kind",
            )
