"""You are the vehicle: orders are printed, and what came of them is typed in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fieldbo.domain import Array
from fieldbo.errors import InputError
from fieldbo.exchange import Event, GoHome, Observation, Order, Query, Rejected
from fieldbo.mission import Mission
from fieldbo.vehicles.base import Vehicle

T = TypeVar("T")

HELP = (
    "Enter takes what stands in [brackets]. 'skip' passes a site over; Ctrl-C stops: "
    "everything you have entered is kept."
)


class ByHand(Vehicle):
    """Prints where to go; reads position, value and cost from the keyboard.

    Parameters
    ----------
    mission : Mission
    number : int
        Which of the mission's vehicles.
    read : Callable
        Asks for a line, like the built-in ``input``, which it is by default.
    write : Callable
        Prints a line.
    """

    def __init__(
        self,
        mission: Mission,
        number: int = 0,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
    ) -> None:
        self.world, self.crew = mission.world, mission.crew[number]
        self.position: Array = self.crew.start
        self._read, self._write = read, write
        self._began = time.monotonic()
        self._leaving = False
        self._orders: list[Order] = []
        self._done: dict[str, list[Event]] = {}
        self._write(HELP)

    def send(self, order: Order) -> None:
        """Print the order, when those before it are done.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C came after the last value was typed.
        """
        if self._leaving:
            raise KeyboardInterrupt
        if order.id in self._done or any(o.id == order.id for o in self._orders):
            return
        self._orders.append(order)
        if len(self._orders) == 1:
            self._announce(order)

    def _announce(self, order: Order) -> None:
        if isinstance(order, GoHome):
            self._write(f"\n{order.id}: go home, to {self._place(self.crew.home)}")
        else:
            price = "" if order.expected_cost is None else f"  (about {self._price(order.expected_cost)})"
            self._write(f"\n{order.id}: go to {self._place(order.site)}{self._setting(order)}{price}")

    def _place(self, site: Array | None) -> str:
        assert site is not None
        return ", ".join(
            f"{a.name} {x:g} {a.unit}".rstrip() for a, x in zip(self.world.domain.axes, site, strict=True)
        )

    def _setting(self, query: Query) -> str:
        """Return which setting of the sensor is to be used; nothing where there is only one."""
        sensor, unit = self.world.sensor, self.world.quantity.unit
        if sensor.settings == 1:
            return ""
        sd = float(np.sqrt(sensor.variance(query.site[None], query.level)[0]))
        return f" with setting {query.level} (noise sd {sd:.2g}{'' if unit in ('', '1') else f' {unit}'})"

    def _price(self, cost: float) -> str:
        return f"{cost:g} {self.world.cost_unit}"

    def events(self, timeout_s: float) -> list[Event]:
        """Read the answer to the order that is out; waits for the keyboard, however long.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C, or the end of the input.
        """
        if not self._orders:
            return []
        order = self._orders[0]
        try:
            event = self._home(order) if isinstance(order, GoHome) else self._visit(order)
        except EOFError:
            raise KeyboardInterrupt from None
        self.position = event.position if isinstance(event, Observation) else self.position
        self._done[str(order.id)] = [event]
        del self._orders[0]
        if self._orders:
            self._announce(self._orders[0])
        return [event]

    def _visit(self, query: Query) -> Event:
        planned = query.expected_cost
        position = self._ask("  position", self._site, ", ".join(f"{x:g}" for x in query.site), query.site)
        if position is None:
            return Rejected(str(query.id), "skipped by hand")
        value = self._ask(f"  {self.world.quantity.label}", self._number)
        if value is None:
            return Rejected(str(query.id), "skipped by hand")
        try:
            cost = self._ask(
                f"  cost ({self.world.cost_unit})",
                self._cost,
                None if planned is None else f"{planned:g}",
                planned,
            )
        except (KeyboardInterrupt, EOFError):
            if planned is None:
                raise
            self._leaving, cost = True, planned  # a value that was typed is kept, at the planned cost
        if cost is None:
            return Rejected(str(query.id), "skipped by hand")
        return query.observed(
            value,
            noise_variance=float(self.world.sensor.variance(position[None], query.level)[0]),
            time_s=time.monotonic() - self._began,
            cost=cost,
            position=position,
        )

    def _home(self, order: GoHome) -> Event:
        home = self.crew.home
        assert home is not None
        planned = float(self.world.cost.travel(self.position, home[None])[0])
        cost = self._ask(f"  cost ({self.world.cost_unit})", self._cost, f"{planned:g}", planned)
        if cost is None:
            return Rejected(order.id, "skipped by hand")
        none = np.empty(0)
        return Observation(order.id, np.empty((0, len(home))), none, none, none, home, cost)

    def _ask(
        self, prompt: str, parse: Callable[[str], T], shown: str | None = None, default: T | None = None
    ) -> T | None:
        """Ask until the answer can be read; None is 'skip'."""
        while True:
            typed = self._read(f"{prompt} [{shown}]: " if shown is not None else f"{prompt}: ").strip()
            if typed.lower() == "skip":
                return None
            if not typed and default is not None:
                return default
            try:
                return parse(typed)
            except (ValueError, InputError) as error:
                self._write(f"    {error}; once more, please")

    def _number(self, text: str) -> float:
        try:
            number = float(text.replace(",", "."))
        except ValueError:
            raise InputError(f"{text!r} is not a number") from None
        if not np.isfinite(number):
            raise InputError(f"{text!r} is not a finite number")
        return number

    def _cost(self, text: str) -> float:
        cost = self._number(text)
        if not 0 <= cost <= self.crew.battery:
            raise InputError(f"a cost lies between 0 and the whole battery, {self._price(self.crew.battery)}")
        return cost

    def _site(self, text: str) -> Array:
        parts = [p for p in text.replace(";", " ").replace(",", " ").split() if p]
        names = ", ".join(a.name for a in self.world.domain.axes)
        if len(parts) != self.world.domain.dimension:
            raise InputError(
                f"{self.world.domain.dimension} coordinates are needed ({names}), and {len(parts)} came"
            )
        site = np.array([self._number(p) for p in parts])
        domain = self.world.domain
        if not np.all(
            (domain.low <= site) & (site <= domain.high)
        ):  # what is in an obstacle's clearance is true
            raise InputError(f"{site.tolist()} lies outside the domain ({names})")
        return site
