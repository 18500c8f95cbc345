"""A vehicle that flies from stop to stop: it accelerates, cruises, brakes, climbs and hovers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import pairwise_costs
from fieldbo.costs.legs import Legs
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.validation import settings


@settings("cost")
class Flight(Legs):
    """Energy of a flight: ``(power * seconds + climb * up + descent * down) / joules_per_unit``.

    Every straight leg starts and ends at rest. With speed v and acceleration a, a leg of length s takes
    ``s / v + v / a`` seconds, or ``2 sqrt(s / a)`` if it is too short to reach v. A route around an obstacle
    consists of several legs; among the routes that bend at corners of the free space, the one that needs the
    least energy is chosen. Because long legs cost less per metre, a route with a stop in the open may
    occasionally be cheaper still.

    Examples
    --------
    >>> drone = Flight(speed=5.0, acceleration=2.5, power=180.0, climb=90.0)
    >>> drone.travel_s([0.0, 0.0], [[20.0, 0.0], [0.0, 10.0]])
    array([6., 4.])
    >>> drone.travel([0.0, 0.0], [[20.0, 0.0], [0.0, 10.0]])
    array([0.3 , 0.45])
    """

    # Not a setting here: an upper bound, which holds for both moving and hovering.
    seconds_per_unit: ClassVar[float] = np.inf  # type: ignore[misc]
    speed: PositiveFloat = 5.0
    """Cruising speed, in m/s."""
    acceleration: PositiveFloat = 2.0
    """Acceleration and deceleration, in m/s^2."""
    power: NonNegativeFloat = 200.0
    """Power while moving, in W."""
    hover_power: NonNegativeFloat = 200.0
    """Power while sampling, in W."""
    hover_s: NonNegativeFloat = 0.0
    """Seconds that a sample takes."""
    climb: NonNegativeFloat = 0.0
    """Energy per metre up, in J, in addition to the power."""
    descent: NonNegativeFloat = 0.0
    """Energy per metre down, in J, in addition to the power."""
    up: str | None = None
    """Name of the vertical axis, by default the last one; an axis that points down is reversed."""
    joules_per_unit: PositiveFloat = 3600.0
    """Joules per unit of cost; 3600 if the cost unit is Wh."""

    def __post_init__(self) -> None:
        least = min(self.power, self.hover_power) if self.hover_s else self.power
        if least > 0:
            object.__setattr__(self, "seconds_per_unit", self.joules_per_unit / least)

    def _leg_seconds(self, starts: Array, ends: Array) -> Array:
        """Return the duration (P, N) of straight legs."""
        from scipy.spatial.distance import cdist

        length = cdist(starts, ends)
        ramp = self.speed / self.acceleration
        cruising = length / self.speed + ramp
        return np.where(length < self.speed * ramp, 2.0 * np.sqrt(length / self.acceleration), cruising)

    def leg_between(self, starts: Array, ends: Array) -> Array:
        joules = self.power * self._leg_seconds(starts, ends)
        if self.climb or self.descent:
            axis, sign = self._vertical
            rise = sign * (ends[None, :, axis] - starts[:, None, axis])
            joules += np.where(rise > 0, self.climb, -self.descent) * rise
        return joules / self.joules_per_unit

    @property
    def _vertical(self) -> tuple[int, float]:
        """The index of the vertical axis, and 1, or -1 if it points down."""
        if self._domain is None:
            return -1, 1.0
        names = [a.name for a in self._domain.axes]
        axis = -1 if self.up is None else names.index(self.up)
        return axis, -1.0 if self._domain.axes[axis].positive == "down" else 1.0

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.hover_power * self.hover_s / self.joules_per_unit)

    @property
    def seconds_per_travel(self) -> float | None:
        """None: climbing takes energy but no extra time."""
        return None

    def travel_s(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the seconds that the route of least energy takes; shapes as in `travel`."""
        paths = self._paths
        if paths is None:
            return pairwise_costs(self._leg_seconds, positions, sites)
        return pairwise_costs(lambda a, b: paths.along(a, b, self._leg_seconds), positions, sites)

    def sampling_s(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return the seconds (N,) that the vehicle hovers for a sample, whatever the sensor's level."""
        return np.full(len(np.atleast_2d(np.asarray(sites, dtype=float))), self.hover_s)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless all axes are in metres and `up` is one of them."""
        names = [a.name for a in domain.axes]
        if self.up is not None and self.up not in names:
            raise UnknownNameError.of("axis", self.up, names, where="cost.up")
        for axis in domain.axes:
            if axis.unit != "m":
                raise InputError(
                    f"a flight cost needs metres, but axis {axis.name!r} is in {axis.unit or 'no unit'}",
                    expected="axes in m",
                    where="cost.kind",
                    fix="give the axes in metres",
                )
