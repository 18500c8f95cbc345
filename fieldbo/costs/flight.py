"""A vehicle that flies from stop to stop: it speeds up, cruises and brakes, climbs and hovers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import above_zero, not_negative, priced
from fieldbo.costs.legs import Legs
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class Flight(Legs):
    """Energy of a flight: ``(power * seconds + climb * up + descent * down) / joules_per_unit``.

    Every straight leg starts and ends at rest: over a length s with speed v and acceleration a it takes
    ``s / v + v / a`` seconds, and ``2 sqrt(s / a)`` where s is too short to reach v. A way round an obstacle
    is several legs; of those that bend at corners of what is free the cheapest in energy is taken. Now and
    then a stop in the open would be cheaper, as long legs cost less a metre.

    Parameters
    ----------
    speed : float
        m/s, while it cruises.
    acceleration : float
        m/s^2, speeding up and braking.
    power : float
        W while it moves.
    hover_power : float
        W while it samples.
    hover_s : float
        Seconds that a sample takes.
    climb, descent : float
        J for each metre up or down, on top of the power.
    up : str, optional
        Name of the axis that is height, by default the last one; one that points down is turned round.
    joules_per_unit : float
        J in one unit of cost; 3600 where that is Wh.

    Examples
    --------
    >>> drone = Flight(speed=5.0, acceleration=2.5, power=180.0, climb=90.0)
    >>> drone.travel_s([0.0, 0.0], [[20.0, 0.0], [0.0, 10.0]])
    array([6., 4.])
    >>> drone.travel([0.0, 0.0], [[20.0, 0.0], [0.0, 10.0]])
    array([0.3 , 0.45])
    """

    # No setting here: no more than that many, whether it moves or hovers.
    seconds_per_unit: ClassVar[float] = np.inf  # type: ignore[misc]
    speed: float = 5.0
    acceleration: float = 2.0
    power: float = 200.0
    hover_power: float = 200.0
    hover_s: float = 0.0
    climb: float = 0.0
    descent: float = 0.0
    up: str | None = None
    joules_per_unit: float = 3600.0

    def __post_init__(self) -> None:
        above_zero(
            "cost", speed=self.speed, acceleration=self.acceleration, joules_per_unit=self.joules_per_unit
        )
        not_negative(
            "cost",
            power=self.power,
            hover_power=self.hover_power,
            hover_s=self.hover_s,
            climb=self.climb,
            descent=self.descent,
        )
        least = min(self.power, self.hover_power) if self.hover_s else self.power
        if least > 0:
            object.__setattr__(self, "seconds_per_unit", self.joules_per_unit / least)

    def _seconds(self, starts: Array, ends: Array) -> Array:
        """Return how long straight legs take (P, N)."""
        length = cdist(starts, ends)
        ramp = self.speed / self.acceleration
        cruising = length / self.speed + ramp
        return np.where(length < self.speed * ramp, 2.0 * np.sqrt(length / self.acceleration), cruising)

    def _leg(self, starts: Array, ends: Array) -> Array:
        joules = self.power * self._seconds(starts, ends)
        if self.climb or self.descent:
            axis, sign = self._height
            rise = sign * (ends[None, :, axis] - starts[:, None, axis])
            joules += np.where(rise > 0, self.climb, -self.descent) * rise
        return joules / self.joules_per_unit

    @property
    def _height(self) -> tuple[int, float]:
        """Which axis is height, and 1, or -1 where it points down."""
        if self._domain is None:
            return -1, 1.0
        names = [a.name for a in self._domain.axes]
        axis = -1 if self.up is None else names.index(self.up)
        return axis, -1.0 if self._domain.axes[axis].positive == "down" else 1.0

    def _sampling(self, sites: Array) -> Array:
        return np.full(len(sites), self.hover_power * self.hover_s / self.joules_per_unit)

    @property
    def seconds_per_travel(self) -> float | None:
        """None: a climb takes energy and no time."""
        return None

    def travel_s(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return how long the way of least energy takes, in seconds; shapes as in `travel`."""
        ways = self._ways
        if ways is None:
            return priced(self._seconds, positions, sites)
        return priced(lambda a, b: ways.along(a, b, self._seconds), positions, sites)

    def sampling_s(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return how long it hovers for a sample (N,), in seconds, whatever the sensor's setting."""
        return np.full(len(np.atleast_2d(np.asarray(sites, dtype=float))), self.hover_s)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the axes are in metres and `up` is one of them."""
        names = [a.name for a in domain.axes]
        if self.up is not None and self.up not in names:
            raise UnknownNameError.of("axis", self.up, names, where="cost.up")
        for axis in domain.axes:
            if axis.unit != "m":
                raise InputError(
                    f"a flight along axis {axis.name!r} in {axis.unit or 'no unit'}",
                    expected="axes in m",
                    where="cost.kind",
                    fix="give the axes in metres",
                )
