"""How a value is read: noise variance, which may vary by place, and the levels a sensor can be set to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError


@dataclass(frozen=True)
class Level:
    """One setting of a sensor.

    Parameters
    ----------
    variance : float
        Of a reading's noise, in squared units of the value.
    cost : float
        What a reading costs on top of the move, in the world's cost unit.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    variance: float
    cost: float

    def __post_init__(self) -> None:
        for name, value in (("variance", self.variance), ("cost", self.cost)):
            if not (np.isfinite(value) and value >= 0):
                raise InputError(
                    f"{name} = {value}", expected="a finite number of at least 0", where="sensor.levels"
                )


@dataclass(frozen=True)
class Sensor:
    """A sensor whose noise may grow along the axes, and that may have several settings.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of a reading's noise, in the unit of the values; at least 0.
    slope : sequence of float
        By how much the standard deviation grows along each axis, per unit of the axis and from its
        coordinate 0; none: the noise is the same everywhere.
    levels : sequence of Level
        The settings to choose from, each with its variance and cost, in place of `noise_sd`.

    Examples
    --------
    >>> Sensor(noise_sd=0.5, slope=(0.0, 0.1)).variance(np.array([[3.0, 0.0], [3.0, 5.0]]))
    array([0.25, 1.  ])
    >>> Sensor(levels=(Level(1e-6, 15.0), Level(0.05, 2.0))).variance(np.zeros((2, 2)), level=1)
    array([0.05, 0.05])
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    noise_sd: float = 0.0
    slope: tuple[float, ...] = ()
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise_sd) and self.noise_sd >= 0):
            raise InputError(
                f"noise {self.noise_sd}",
                expected="a standard deviation of at least 0, in the unit of the values",
                where="sensor.noise_sd",
            )
        if self.levels and self.noise_sd:
            raise InputError(
                f"noise_sd = {self.noise_sd} beside levels",
                expected="one of them",
                where="sensor",
                fix="leave noise_sd out: each level has its own variance",
            )
        if not np.isfinite(self.slope).all():
            raise InputError(f"slope {list(self.slope)}", expected="finite numbers", where="sensor.slope")

    @property
    def settings(self) -> int:
        """How many settings there are to choose from; at least 1."""
        return max(1, len(self.levels))

    @property
    def varies(self) -> bool:
        """Whether the noise differs between places or settings."""
        return self.settings > 1 or bool(np.any(self.slope))

    @property
    def level_costs(self) -> tuple[float, ...]:
        """What each setting costs on top of the move; empty where there is one without a cost of its own."""
        return tuple(level.cost for level in self.levels)

    def variance(self, sites: Array, level: int = 0) -> Array:
        """Return the noise variance (N,) of a reading at each site (N, d), in squared units of the value.

        Raises
        ------
        InputError
            There is no such level.
        """
        if level not in range(self.settings):
            raise InputError(f"level {level}", expected=f"0 to {self.settings - 1}", where="sensor.levels")
        sd = np.sqrt(self.levels[level].variance) if self.levels else self.noise_sd
        return np.asarray(np.square(sd + (sites @ self.slope if self.slope else np.zeros(len(sites)))))

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` if this sensor does not fit the domain."""
        if not self.slope:
            return
        if len(self.slope) != domain.dimension:
            raise InputError(
                f"a slope of {len(self.slope)} numbers",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="sensor.slope",
            )
        least = min(np.sqrt(level.variance) for level in self.levels) if self.levels else self.noise_sd
        worst = float((least + domain.sites @ self.slope).min())
        if worst < 0:
            raise InputError(
                f"a noise standard deviation of {worst:g} somewhere in the domain",
                expected="at least 0 everywhere",
                where="sensor.slope",
            )
