"""How a value is read: noise variance, and the levels a sensor can be set to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo.domain import Array
from fieldbo.errors import InputError


@dataclass(frozen=True)
class Level:
    """One setting of a sensor: noise variance, and what a reading at it costs on top of the move."""

    variance: float
    cost: float = 0.0


@dataclass(frozen=True)
class Sensor:
    """A sensor with the same noise everywhere.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of a reading's noise, in the unit of the values; at least 0.

    Examples
    --------
    >>> Sensor(noise_sd=0.5).variance(np.zeros((2, 2)))
    array([0.25, 0.25])
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    noise_sd: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise_sd) and self.noise_sd >= 0):
            raise InputError(
                f"noise {self.noise_sd}",
                expected="a standard deviation of at least 0, in the unit of the values",
                where="sensor.noise_sd",
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """The settings to choose from; here one."""
        return (Level(self.noise_sd**2),)

    def variance(self, sites: Array, level: int = 0) -> Array:
        """Return the noise variance (N,) of a reading at each site (N, d), in squared units of the value."""
        return np.full(len(sites), self.levels[level].variance)
