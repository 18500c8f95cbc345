"""A boat on a line that lowers a probe: along-track travel, and depth paid at each sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel, not_negative
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError


@dataclass(frozen=True)
class Transect(CostModel):
    """``along_rate |d along| + depth_rate (depth + 1)``: the second part is the sample's.

    The cost of Bogunovic et al. 2016, section 4. The probe is lowered and raised at every sample, so
    depth is paid at each, and only the way along the track depends on where the boat was.

    Parameters
    ----------
    along_rate : float
        Cost per metre along the track (the first axis).
    depth_rate : float
        Cost per metre of depth (the second axis), and of handling the probe.

    Examples
    --------
    >>> Transect().to([200.0, 9.0], [[100.0, 3.0], [350.0, 0.0]])
    array([41. , 41.5])
    """

    along_rate: float = 0.25
    depth_rate: float = 4.0

    def __post_init__(self) -> None:
        not_negative(
            "cost",
            along_rate=self.along_rate,
            depth_rate=self.depth_rate,
            seconds_per_unit=self.seconds_per_unit,
        )

    def _travel(self, positions: Array, sites: Array) -> Array:
        return self.along_rate * np.abs(positions[:, None, 0] - sites[None, :, 0])

    def _sampling(self, sites: Array) -> Array:
        return self.depth_rate * (np.abs(sites[:, 1]) + 1.0)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the probe's way: up, along the surface, and down again."""
        start, end = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        way = np.stack([start, [start[0], 0.0], [end[0], 0.0], end])
        turns = np.flatnonzero(np.any(np.diff(way, axis=0) != 0, axis=1)) + 1
        return way[[0, *turns]] if len(turns) else way[[0, -1]]

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the domain has two axes, the second one a depth from 0."""
        if domain.dimension != 2 or domain.axes[1].low < 0:
            raise InputError(
                f"a transect cost on axes {', '.join(a.name for a in domain.axes)}",
                expected="two axes: position along the track, and depth of at least 0",
                where="cost.kind",
            )
