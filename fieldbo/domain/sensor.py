"""How a value is read: the noise variance, which may vary by place, and the settings of a sensor.

For readings on the way, also whether they can come from one move: their times in order, their places near its
route.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from pydantic import FiniteFloat, NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.validation import settings


@settings("sensor.levels")
class Level:
    """One setting of a sensor."""

    variance: NonNegativeFloat
    """Variance of a reading's noise, in squared units of the value."""
    cost: NonNegativeFloat
    """Cost of a reading in addition to the move, in the world's cost unit."""


@settings("sensor.along")
class Along:
    """How often a sensor reads while the vehicle travels: per time, or per distance.

    Raises
    ------
    InputError
        Neither is given, or both.

    Examples
    --------
    >>> Along(every_m=5.0)
    Along(every_s=None, every_m=5.0)
    """

    every_s: PositiveFloat | None = None
    """Seconds between readings on the way."""
    every_m: PositiveFloat | None = None
    """Metres between readings on the way, along the route."""

    def __post_init__(self) -> None:
        if (self.every_s is None) == (self.every_m is None):
            both = self.every_s is not None
            raise InputError(
                f"every_s = {self.every_s:g} and every_m = {self.every_m:g}" if both else "along is empty",
                expected="every_s or every_m, one of them",
                where="sensor.along",
                fix="keep the one that your instrument is set to" if both else "write { every_s = 1 }",
            )

    @property
    def in_words(self) -> str:
        """The spacing, for example ``"every 5 m"``."""
        return f"every {self.every_m:g} m" if self.every_s is None else f"every {self.every_s:g} s"


@settings("sensor")
class Sensor:
    """A sensor whose noise may grow along the axes and with the value, and that may have several settings.

    Examples
    --------
    >>> Sensor(noise_sd=0.5, slope=(0.0, 0.1)).variance(np.array([[3.0, 0.0], [3.0, 5.0]]))
    array([0.25, 1.  ])
    >>> Sensor(levels=(Level(1e-6, 15.0), Level(0.05, 2.0))).variance(np.zeros((2, 2)), level=1)
    array([0.05, 0.05])
    """

    noise_sd: NonNegativeFloat | None = None
    """Standard deviation of a reading's noise, in the unit of the values; 0 if readings are exact. Default:
    unknown; the model must then learn the noise."""
    slope: tuple[float, ...] = ()
    """Growth of the standard deviation per unit of each axis, from its coordinate 0. Default: none."""
    levels: tuple[Level, ...] = ()
    """The settings to choose from, each with its variance and cost, instead of `noise_sd`."""

    noise_share: NonNegativeFloat = 0.0
    """Standard deviation of noise that grows with the value, as a fraction of the value, at most 1: 0.05 for
    5%. Its variance is added to that of the other noise."""
    below: FiniteFloat | None = None
    """Limit of detection, in the unit of the values: a reading at or below it says only that the value is
    low. Default: none."""
    along: Along | None = None
    """How often the sensor also reads while the vehicle travels: ``{ every_s = 1 }`` or ``{ every_m = 5 }``.
    Default: it reads at the end of an order only."""

    def detects(self, value: float) -> bool:
        """Return whether a value lies above the limit of detection; True without one.

        Examples
        --------
        >>> Sensor(0.1, below=2.0).detects(2.0), Sensor(0.1).detects(-5.0)
        (False, True)
        """
        return self.below is None or value > self.below

    def __post_init__(self) -> None:
        if self.levels and self.noise_sd:
            raise InputError(
                f"noise_sd = {self.noise_sd} conflicts with levels",
                expected="one of them",
                where="sensor",
                fix="delete noise_sd: each level has its own variance",
            )
        if self.levels and self.along is not None:
            raise InputError(
                "along conflicts with levels",
                expected="readings on the way, or levels to choose from",
                where="sensor.along",
                fix="delete levels and set noise_sd, the noise of a reading on the way",
            )
        if self.along is not None and not (self.noise_sd or any(self.slope) or self.noise_share):
            raise InputError(
                "along is set, but not the noise of a reading"
                if self.noise_sd is None
                else "along is set, but readings are exact",
                expected="noise_sd above 0, which says what pooled readings weigh",
                where="sensor.noise_sd",
                fix='set noise_sd; roughly, if the mission has noise = "learned" in [model]',
            )
        if self.noise_share > 1:
            raise InputError(
                f"noise_share = {self.noise_share:g}",
                expected="a fraction of the value, at most 1",
                where="sensor.noise_share",
                fix=f"write {self.noise_share / 100:g} for {self.noise_share:g}%",
            )

    @property
    def declares_noise(self) -> bool:
        """Whether the noise is known, if only as 0."""
        return self.noise_sd is not None or bool(self.levels) or self.noise_share > 0

    @property
    def settings(self) -> int:
        """Number of settings to choose from; at least 1."""
        return max(1, len(self.levels))

    @property
    def varies(self) -> bool:
        """Whether the noise differs between places, settings or values."""
        return self.settings > 1 or bool(np.any(self.slope)) or self.noise_share > 0

    @property
    def level_costs(self) -> tuple[float, ...]:
        """The cost of each setting in addition to the move; empty without levels."""
        return tuple(level.cost for level in self.levels)

    def variance(self, sites: Array, level: int = 0) -> Array:
        """Return the noise variance of a reading at each site, without the part in proportion to the value.

        Parameters
        ----------
        sites : (N, d) array
        level : int
            The sensor's level.

        Returns
        -------
        (N,) array
            In squared units of the value.

        Raises
        ------
        InputError
            There is no such level.
        """
        if level not in range(self.settings):
            raise InputError(
                f"the sensor has no level {level}",
                expected=f"0 to {self.settings - 1}",
                where="sensor.levels",
            )
        sd = np.sqrt(self.levels[level].variance) if self.levels else self.noise_sd or 0.0
        return np.asarray(np.square(sd + (sites @ self.slope if self.slope else np.zeros(len(sites)))))

    def read(self, value: Array, noise_variance: Array, rng: np.random.Generator) -> Array:
        """Return simulated readings (n,) of values; the limit of detection where they do not exceed it.

        Parameters
        ----------
        value, noise_variance : (n,) arrays
            The variance is that of `variance`.
        rng : numpy.random.Generator

        Examples
        --------
        >>> Sensor(below=0.1).read(np.array([0.02]), np.zeros(1), np.random.default_rng(0))
        array([0.1])
        """
        sd = np.sqrt(noise_variance + np.square(self.noise_share * value))
        return self.at_least_the_limit(np.asarray(value + sd * rng.standard_normal(len(value))))

    def at_least_the_limit(self, readings: Array) -> Array:
        """Return readings (n,), with the limit of detection in place of those that do not exceed it."""
        return readings if self.below is None else np.maximum(readings, self.below)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` if this sensor does not fit the domain."""
        if not self.slope:
            return
        if len(self.slope) != domain.dimension:
            raise InputError(
                f"slope has {counted(len(self.slope), 'number')}",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="sensor.slope",
            )
        own = self.noise_sd or 0.0
        least = min(np.sqrt(level.variance) for level in self.levels) if self.levels else own
        lowest = float((least + domain.sites @ self.slope).min())
        if lowest < 0:
            raise InputError(
                f"the noise standard deviation falls to {lowest:g} in the domain",
                expected="at least 0 everywhere",
                where="sensor.slope",
            )


_OFF_ROUTE = 0.1
"""How far from its route a vehicle may be, as a fraction of the domain's longest side: vehicles drift."""


def off_route_m(domain: Domain) -> float:
    """Return how far from its route a vehicle may read, in metres: a tenth of the domain's longest side."""
    return _OFF_ROUTE * float(domain.extent.max())


def distances_from(route: Array, sites: Array) -> Array:
    """Return the distances (n,) of sites from a route.

    Parameters
    ----------
    route : (k, d) array
        Points, with straight legs in between; k is at least 1.
    sites : (n, d) array

    Examples
    --------
    >>> distances_from(np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[2.0, 3.0], [7.0, 4.0]]))
    array([3., 5.])
    """
    starts, ends = (route[:-1], route[1:]) if len(route) > 1 else (route, route)
    legs = ends - starts
    squares = np.maximum((legs**2).sum(axis=1), np.finfo(float).tiny)
    nearest = np.full(len(sites), np.inf)
    for start, leg, square in zip(starts, legs, squares, strict=True):
        share = np.clip((sites - start) @ leg / square, 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(sites - start - share[:, None] * leg, axis=1))
    return nearest


def in_order(times: Array) -> Mask:
    """Return which times (n,) to keep so that none decreases and as few as possible are left out.

    Examples
    --------
    >>> in_order(np.array([1.0, 2.0, 9.0, 3.0, 4.0])).tolist()
    [True, True, False, True, True]
    """
    kept = np.zeros(len(times), dtype=bool)
    if not (np.diff(times) < 0).any():
        return ~kept
    # Of all rising series of each length, the one with the lowest end, and its links backwards.
    ends, lasts, before = list[float](), list[int](), list[int]()
    for k, time in enumerate(times.tolist()):
        length = bisect_right(ends, time)
        before.append(lasts[length - 1] if length else -1)
        ends[length : length + 1], lasts[length : length + 1] = [time], [k]
    k = lasts[-1]
    while k >= 0:
        kept[k], k = True, before[k]
    return kept
