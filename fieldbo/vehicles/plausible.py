"""What people enter by hand: whether it is likely, by comparison with all that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.dialogue import number_in
from fieldbo.world.world import World

_SPREADS = 10
"""How many spreads beyond all others a number is questioned."""

_FEWEST_NUMBERS = 3
"""Numbers that must be known before another one is questioned."""

_FEWEST_READINGS = 2
"""The same for readings."""

_LEAST_SPREAD = 0.05
"""The least spread of so few readings, as a fraction of the largest: they may be similar by chance."""

_EARLIER_SPREADS = 1
"""How many spreads beyond all readings, those before the mission included, a reading is questioned."""

_OVERDRAWN = 10
"""An undeclared cost of more than this many batteries must be a typing error."""


def earlier_values(mission: Mission) -> list[float]:
    """Return the readings that were known before a mission: of its survey, and those it begins with."""
    surveyed = np.empty(0) if mission.world.surveyed is None else mission.world.surveyed
    return [*surveyed.tolist(), *mission.earlier.values.tolist()]


def reading_in(text: str, sensor: Sensor) -> float:
    """Return the reading in a text: a number, ``failed`` (NaN), or ``<0.1`` at the limit of detection.

    Raises
    ------
    InputError
        The text holds no number, or the sensor has no such limit.
    """
    if text.strip().lower() == "failed":
        return math.nan
    if not text.startswith("<"):
        return number_in(text)
    below, number = sensor.below, number_in(text[1:])
    if below is None:
        raise InputError(
            f"{text} was typed, but the sensor has no limit of detection",
            fix="type the number that the sensor shows, or stop and set sensor.below",
        )
    if number > below:
        raise InputError(f"{text} was typed, but the limit of detection is {below:g}", fix="type it again")
    return number


def doubt_about_reading(number: float, world: World, known: Sequence[float], earlier: Sequence[float]) -> str:
    """Return a question about a reading that is far from all others; empty if it is likely.

    Parameters
    ----------
    number : float
    world : World
    known : sequence of float
        Readings of the run; NaN is left out.
    earlier : sequence of float
        Those before it.
    """
    others = [x for x in known if math.isfinite(x)]
    least = float(np.sqrt(world.sensor.variance(world.domain.middle[None], 0)[0]))
    if len(earlier) >= _FEWEST_READINGS:
        similar = _LEAST_SPREAD * float(np.abs(earlier).max())
        if _fits(number, [*earlier, *others], max(least, similar), _EARLIER_SPREADS):
            return ""
        return f"earlier readings: {min(earlier):g} to {max(earlier):g}; really {number:g}?"
    if len(others) == _FEWEST_READINGS:
        least = max(least, _LEAST_SPREAD * float(np.abs(others).max()))
    return _doubt(number, others, least, _FEWEST_READINGS)


def doubt_about_cost(cost: float, planned: float | None, paid: Sequence[float]) -> str:
    """Return a question about a cost that is far from all others; empty if it is likely."""
    return _doubt(cost, paid if planned is None else [*paid, planned], 0.0, _FEWEST_NUMBERS)


def check_cost(cost: float, mission: Mission, number: int) -> None:
    """Raise an `InputError` if a vehicle can't have spent that much on one order."""
    battery, unit = mission.vehicles[number].battery, mission.world.cost_unit
    # If undeclared, a cost may exceed the battery.
    most = battery if mission.declared_cost is not None else _OVERDRAWN * battery
    if not 0 <= cost <= most:
        limit = "the battery" if most == battery else f"{_OVERDRAWN} times the battery"
        raise InputError(f"the cost must be between 0 and {limit}, {most:g} {unit}")


def _doubt(number: float, others: Sequence[float], least: float, fewest: int) -> str:
    """Return a question about a number more than ten spreads away from all others; empty if it is not."""
    known = [other for other in others if math.isfinite(other)]
    if len(known) < fewest or _fits(number, known, least, _SPREADS):
        return ""
    return f"{min(known):g} to {max(known):g} so far; really {number:g}?"


def _fits(number: float, known: Sequence[float], least: float, spreads: float) -> bool:
    """Return whether a number is within so many spreads of known ones; the least spread is `least`."""
    low, high = min(known), max(known)
    return not max(number - high, low - number) > spreads * max(high - low, least) > 0
