"""People as vehicles: what they are to do for an order, in words, and whether what they enter is likely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import Clock
from fieldbo.costs.cells import Modular
from fieldbo.domain.axes import Axis
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import Correction, Event, GoHome, Lost, Observation, Order, Query, Recharge, Rejected
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.dialogue import number_in
from fieldbo.vehicles.remote.orders import Goals
from fieldbo.vehicles.typed_places import listed, typed_places
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


class Person(Vehicle):
    """People as a vehicle, whatever they enter outcomes with; see `ByHand` and `ByForm`.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    clock : Clock

    Raises
    ------
    InputError
        The sensor reads on the way.
    """

    def __init__(self, mission: Mission, number: int, clock: Clock) -> None:
        if (along := mission.world.sensor.along) is not None:
            raise InputError(
                f"the sensor reads {along.in_words} on the way, and readings are typed by hand",
                expected="a sensor that reads at the end of an order",
                where="sensor.along",
                fix="delete along from the world's [sensor], or connect the instrument with a vehicle file",
            )
        self.mission, self.number = mission, number
        self.position: Array = mission.vehicles[number].start
        self.clock, self._began = clock, clock.now_s()
        self._earlier = earlier_values(mission)
        self._orders: list[Order] = []
        self._observed: list[Observation] = []
        self._settled: set[str] = set()

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue from the place and time of the latest observation."""
        for event in events:
            if isinstance(event, Observation | Rejected | Lost):
                self._settle(event)
            if isinstance(event, Observation) and len(event.times_s):
                self._began = self.clock.now_s() - float(event.times_s[-1])

    def catch_up(self, time_s: float) -> None:
        """Continue at the time of the wall clock."""
        self._began = min(self._began, self.clock.now_s() - time_s)

    def adopt(self, mission: Mission) -> None:
        self.mission = mission

    def is_known(self, order: Order) -> bool:
        """Return True if an order was sent before."""
        return order.id in self._settled or any(order.id == other.id for other in self._orders)

    @property
    def _time_s(self) -> float:
        """Seconds since the start of the run."""
        return self.clock.now_s() - self._began

    def _settle(self, event: Observation | Rejected | Lost) -> None:
        """Note the outcome of an order."""
        self._settled.add(event.order)
        self._orders = [order for order in self._orders if order.id != event.order]
        if isinstance(event, Observation):
            self._observed.append(event)
            self.position = event.position

    def _read(self, query: Query, value: float, position: Array, cost: float | None) -> Observation:
        """Return the observation of a reading at `position` (d,)."""
        variance = self.mission.world.sensor.variance(position[None], query.level)[0]
        return query.observed(
            value, noise_variance=float(variance), time_s=self._time_s, cost=cost, position=position
        )

    def _changed(self, order: Recharge) -> Observation:
        """Return the observation that the battery was changed, here."""
        return replace(replace(order, site=self.position).observed(), time_s=self._time_s)

    def _declared(self, query: Query, position: Array) -> float | None:
        """Return the declared cost of a query that was carried out elsewhere; None if there is no route."""
        cost = self.mission.world.cost
        price = float(cost.to(self.position, position[None], query.controls, query.level)[0])
        return price if math.isfinite(price) else None

    def _doubt_reading(self, value: float, instead_of: Observation | None = None) -> str:
        """Return a question about a reading that is far from all others; empty if it is likely."""
        known = [x for o in self._observed if o is not instead_of for x in o.values.tolist()]
        return doubt_about_reading(value, self.mission.world, known, self._earlier)

    def _doubt_cost(self, cost: float, planned: float | None) -> str:
        """Return a question about a cost that is far from all others; raise an `InputError` if impossible."""
        check_cost(cost, self.mission, self.number)
        return doubt_about_cost(cost, planned, [observation.cost for observation in self._observed])

    def _correct(self, before: Observation, k: int, value: float) -> Correction | None:
        """Return the correction of reading k of an observation; None if that changes nothing."""
        values = before.values.copy()
        values[k] = value
        if np.array_equal(values, before.values, equal_nan=True):
            return None
        self._observed[self._observed.index(before)] = replace(before, values=values)
        return Correction(before.order, before.part, values)


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


_RESOLUTION = 1e-5
"""Precision of the printed settings, as a fraction of the axis' length."""


def in_a_cell(world: World) -> bool:
    """Return True if the variables of a world are settings of a factory cell, not places."""
    return world.domain.controls is not None or isinstance(world.cost, Modular)


class Tasks:
    """Puts the orders of one vehicle into words.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    """

    def __init__(self, mission: Mission, number: int = 0) -> None:
        self._spec, self._cell = mission.vehicles[number], in_a_cell(mission.world)
        self._goals = Goals(mission, number)
        self._places = typed_places(mission.world.domain)
        self._world, self._cost = mission.world, mission.declared_cost

    def adopt(self, mission: Mission) -> None:
        """Describe routes that lead round areas that were closed under way."""
        self._world, self._cost = mission.world, mission.declared_cost
        self._goals.adopt(mission)

    def text(self, order: Order, position: Array, *, moved: bool) -> str:
        """Return what to do for an order, with the points to pass, or the settings, and the cost to expect.

        Parameters
        ----------
        order : Query, GoHome or Recharge
        position : (d,) array
            Where the vehicle is; in a cell, its present settings.
        moved : bool
            Whether it has done any order: in a cell, everything has to be set at first.
        """
        if isinstance(order, Recharge):
            return f"{order.id}: change the battery: {order.battery} of {self._spec.batteries} comes next"
        if isinstance(order, GoHome):
            home = replace(order, site=self._spec.home)
            verb = "return" if self._cell else "go home"
            task = f"{verb}{self._bends(home, position)} to {self._place(self._spec.home)}"
            return f"{order.id}: {task}{self._legs(home, position)}"
        price = "" if order.expected_cost is None else f"  (about {self._price(order.expected_cost)})"
        if self._cell:
            task = self._settings(order, position, moved=moved)
        else:
            task = f"go{self._bends(order, position)} to {self._place(order.site)}"
        return f"{order.id}: {task}{self._level(order)}{price}{self._legs(order, position)}"

    def _bends(self, order: Order, position: Array) -> str:
        """Return the points to pass before the site; nothing if the route is straight, or in a cell."""
        if self._cell:
            return ""
        *bends, _ = self._goals.points(order, position)
        points = [f"({self._places.answer(point)})" for point in bends]
        return f" via {', '.join(points)}" if points else ""

    def _legs(self, order: Order, position: Array) -> str:
        """Return lengths and bearings of the legs to the site, on a line of its own; nothing in a cell."""
        if self._cell:
            return ""
        return self._places.legs(np.stack([position, *self._goals.points(order, position)]))

    def _settings(self, query: Query, position: Array, *, moved: bool) -> str:
        """Return which variables to set, to keep and not to set, and which modules to run."""
        chain, axes, free = self._world.cost, self._world.domain.axes, np.isnan(query.site)
        by_modules = isinstance(chain, Modular)
        kept = (query.site == position) & (by_modules and moved)
        groups: dict[str, list[str]] = {"set": [], "keep": []}
        for axis, x, stays in zip(axes, query.site.tolist(), kept, strict=True):
            if not math.isnan(x):
                groups["keep" if stays else "set"].append(
                    f"{axis.name} {shown(axis, x)} {axis.unit}".rstrip()
                )
        parts = [f"{verb} {', '.join(settings)}" for verb, settings in groups.items() if settings]
        if free.any():
            parts.append(f"do not set {listed([axes[k].name for k in np.flatnonzero(free)])}")
        if isinstance(chain, Modular):
            parts.append(f"run {self._modules(chain, query.site, position)}")
        return "; ".join(parts)

    def _modules(self, chain: Modular, site: Array, position: Array) -> str:
        """Return which modules of a chain to run, each with its cost if that is declared."""
        first = int(chain.first_changed(position, site[None])[0])
        names = []
        for module in chain.modules[first:]:
            charged = self._cost is not None and (module is not chain.modules[-1] or chain.charge_last)
            names.append(f"{module.name} ({self._price(module.cost)})" if charged else module.name)
        return listed(names)

    def _place(self, site: Array | None) -> str:
        assert site is not None
        if not self._cell:
            return self._places.text(site)
        settings = zip(self._world.domain.axes, site, strict=True)
        return ", ".join(f"{a.name} {shown(a, x)} {a.unit}".rstrip() for a, x in settings)

    def _level(self, query: Query) -> str:
        """Return which level of the sensor to use; nothing if there is only one."""
        sensor, unit = self._world.sensor, self._world.quantity.unit
        if sensor.settings == 1:
            return ""
        site = np.where(np.isnan(query.site), self._world.domain.middle, query.site)
        sd = float(np.sqrt(sensor.variance(site[None], query.level)[0]))
        return f" with setting {query.level} (noise sd {sd:.2g}{'' if unit in ('', '1') else f' {unit}'})"

    def _price(self, cost: float) -> str:
        return f"{cost:g} {self._world.cost_unit}"


def shown(axis: Axis, x: float) -> str:
    """Return a setting, rounded to a hundred-thousandth of its axis' length.

    Examples
    --------
    >>> shown(Axis("x", "", 0, 1), 1 / 3), shown(Axis("t", "K", 1000, 1001), 1000.25)
    ('0.33333', '1000.25')
    """
    decimals = math.ceil(-math.log10(_RESOLUTION * axis.extent))
    if not 0 <= decimals <= 9:
        return f"{x:.10g}"
    text = f"{x:.{decimals}f}"
    return "0" if float(text) == 0 else text.rstrip("0").rstrip(".") if decimals else text
