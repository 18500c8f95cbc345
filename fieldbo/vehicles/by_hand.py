"""You are the vehicle: orders are printed, and what came of them is typed in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.chain import Modular
from fieldbo.domain.axes import Axis
from fieldbo.errors import InputError
from fieldbo.messages import Event, Fitted, GoHome, Observation, Order, Query, Rejected, Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle

T = TypeVar("T")

HELP = (
    "Enter takes what stands in [brackets]. 'skip' passes a site over; 'quit' or Ctrl-C stops: "
    "everything you have entered is kept."
)

_QUITS = ("quit", "q", "exit")
"""What stops as Ctrl-C does."""

_RESOLUTION = 1e-5
"""Settings are told to this share of their axis' length."""

_OVERDRAWN = 10
"""A cost that nobody knew may be so many batteries; beyond that it is a slip."""


class ByHand(Vehicle):
    """Prints where to go; reads position, value and cost from the keyboard.

    In a cell, where variables are set rather than gone to, it prints what to set, what to leave as it comes
    and which modules run anew, and reads what the variables left free turned out to be. A setting is told to
    a few digits and kept to the last one: Enter, or the digits that were told, stand for the exact number, so
    that a module whose settings were kept counts as unchanged.

    What came about is taken for true, as `Observation` tells: what lies beyond the ends of its axis is asked
    for a second time, and taken if it is typed again.

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
        self.world, self.crew = mission.world, mission.vehicles[number]
        self.cost = mission.declared_cost
        self.position: Array = self.crew.start
        self._cell = self.world.domain.controls is not None or isinstance(self.world.cost, Modular)
        self._moved = False
        self._read, self._write = read, write
        self._began = time.monotonic()
        self._leaving = False
        self._doubted: set[tuple[str, str]] = set()
        self._orders: list[Order] = []
        self._done: set[str] = set()
        self._write(HELP)

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Go on from where the latest observation was; the clock goes on from then, too."""
        for event in events:
            if isinstance(event, Observation):
                self.position, self._moved = event.position, True
                if len(event.times_s):
                    self._began = time.monotonic() - float(event.times_s[-1])
            if not isinstance(event, Telemetry | Fitted):
                self._done.add(event.order)

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
            back = "set back to" if self._cell else "go home, to"
            self._write(f"\n{order.id}: {back} {self._place(self.crew.home)}")
        else:
            price = "" if order.expected_cost is None else f"  (about {self._price(order.expected_cost)})"
            task = self._settings(order) if self._cell else f"go to {self._place(order.site)}"
            self._write(f"\n{order.id}: {task}{self._setting(order)}{price}")

    def _settings(self, query: Query) -> str:
        """Return what is to be set, kept as it is and left free, and which modules then run anew."""
        chain, axes, free = self.world.cost, self.world.domain.axes, np.isnan(query.site)
        by_modules = isinstance(chain, Modular)
        kept = (query.site == self.position) & (by_modules and self._moved)  # at first all is to be set
        groups: dict[str, list[str]] = {"set": [], "keep": []}
        for axis, x, stays in zip(axes, query.site.tolist(), kept, strict=True):
            if not math.isnan(x):
                groups["keep" if stays else "set"].append(
                    f"{axis.name} {shown(axis, x)} {axis.unit}".rstrip()
                )
        parts = [f"{verb} {', '.join(settings)}" for verb, settings in groups.items() if settings]
        if left := [axis.name for axis, on in zip(axes, free, strict=True) if on]:
            parts.append(f"leave {_listed(left)} as {'it comes' if len(left) == 1 else 'they come'}")
        if isinstance(chain, Modular):
            parts.append(self._anew(chain, query.site))
        return "; ".join(parts)

    def _anew(self, chain: Modular, site: Array) -> str:
        """Return which modules of a chain run anew, each with its cost where that is declared."""
        first = int(chain.first_changed(self.position, site[None])[0])
        names = []
        for module in chain.modules[first:]:
            paid = self.cost is not None and (module is not chain.modules[-1] or chain.charge_last)
            names.append(f"{module.name} ({self._price(module.cost)})" if paid else module.name)
        return f"{_listed(names)} {'runs' if len(names) == 1 else 'run'} anew"

    def _place(self, site: Array | None) -> str:
        assert site is not None
        told = zip(self.world.domain.axes, site, strict=True)
        return ", ".join(f"{a.name} {self._digits(a, x)} {a.unit}".rstrip() for a, x in told)

    def _digits(self, axis: Axis, x: float) -> str:
        return shown(axis, x) if self._cell else f"{x:g}"

    def _setting(self, query: Query) -> str:
        """Return which setting of the sensor is to be used; nothing where there is only one."""
        sensor, unit = self.world.sensor, self.world.quantity.unit
        if sensor.settings == 1:
            return ""
        site = np.where(
            np.isnan(query.site), self.world.domain.middle, query.site
        )  # of what is not known yet
        sd = float(np.sqrt(sensor.variance(site[None], query.level)[0]))
        return f" with setting {query.level} (noise sd {sd:.2g}{'' if unit in ('', '1') else f' {unit}'})"

    def _price(self, cost: float) -> str:
        return f"{cost:g} {self.world.cost_unit}"

    def events(self, timeout_s: float) -> list[Event]:
        """Read the answer to the order that is out; waits for the keyboard, however long.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C, 'quit', or the end of the input.
        """
        if not self._orders:
            return []
        order = self._orders[0]
        try:
            event = self._home(order) if isinstance(order, GoHome) else self._visit(order)
        except EOFError:
            raise KeyboardInterrupt from None
        if isinstance(event, Observation):
            self.position, self._moved = event.position, True
        self._done.add(str(order.id))
        del self._orders[0]
        if self._orders:
            self._announce(self._orders[0])
        return [event]

    def _visit(self, query: Query) -> Event:
        planned = query.expected_cost
        position = self._found(query) if self._cell else self._reached(query)
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

    def _reached(self, query: Query) -> Array | None:
        """Ask where one is (d,); None is 'skip'."""
        planned = ", ".join(f"{x:g}" for x in query.site)
        return self._ask("  position", self._site, planned, query.site)

    def _found(self, query: Query) -> Array | None:
        """Ask what was set, then what each variable left free turned out to be (d,); None is 'skip'."""
        axes, free, site = self.world.domain.axes, np.isnan(query.site), query.site.copy()
        ours = [k for k, on in enumerate(free) if not on]
        planned = ", ".join(shown(axes[k], site[k]) for k in ours)
        done = self._ask("  set to", lambda text: self._as_set(text, query.site, ours), planned, site[ours])
        if done is None:
            return None
        site[ours] = done
        for k in np.flatnonzero(free):
            came = self._ask(f"  {axes[k].label} came to", partial(self._on, axes[k]))
            if came is None:
                return None
            site[k] = came
        return site

    def _as_set(self, text: str, planned: Array, ours: Sequence[int]) -> Array:
        """Return what was set (n,), of the variables `ours`; digits as they were told stand for all."""
        axes = self.world.domain.axes
        parts = self._parts(text, [axes[k].name for k in ours], "settings")
        told = zip(ours, parts, strict=True)
        return np.array([self._on(axes[k], part, planned[k], self.position[k]) for k, part in told])

    def _on(self, axis: Axis, text: str, *told: float) -> float:
        """Return a number on an axis; beyond its ends what is typed twice.

        The digits of a number that was `told`, or of an end, stand for the exact one.
        """
        number = self._number(text)
        for exact in (*told, axis.low, axis.high):
            if number == float(shown(axis, exact)):
                return exact
        if not axis.low <= number <= axis.high:
            ends = f"{shown(axis, axis.low)} and {shown(axis, axis.high)} {axis.unit}".rstrip()
            self._doubt(f"{axis.name} lies between {ends}", f"if it really was {text}, type that again")
        return number

    def _doubt(self, said: str, fix: str) -> None:
        """Raise an `InputError` the first time that something is said of the answer to a question."""
        if (said, fix) not in self._doubted:
            self._doubted.add((said, fix))
            raise InputError(said, fix=fix)

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
        """Ask until the answer can be read; None is 'skip', and 'quit' is Ctrl-C."""
        self._doubted.clear()
        while True:
            typed = self._read(f"{prompt} [{shown}]: " if shown is not None else f"{prompt}: ").strip()
            if typed.lower() == "skip":
                return None
            if typed.lower() in _QUITS:
                raise KeyboardInterrupt
            if not typed and default is not None:
                return default
            try:
                return parse(typed)
            except InputError as error:
                self._write(f"    {error.problem}; {error.fix or 'once more, please'}")

    def _number(self, text: str) -> float:
        try:
            number = float(text.replace(",", "."))
        except ValueError:
            raise InputError(f"{text!r} is not a number") from None
        if not np.isfinite(number):
            raise InputError(f"{text!r} is not a finite number")
        return number

    def _cost(self, text: str) -> float:
        cost, battery = self._number(text), self.crew.battery
        most = battery if self.cost is not None else _OVERDRAWN * battery  # nobody knew: it may overdraw
        if not 0 <= cost <= most:
            times = "the whole battery" if most == battery else f"{_OVERDRAWN} batteries"
            raise InputError(f"a cost lies between 0 and {times}, {self._price(most)}")
        return cost

    def _site(self, text: str) -> Array:
        domain = self.world.domain
        names = ", ".join(a.name for a in domain.axes)
        site = np.array([self._number(p) for p in self._parts(text, [a.name for a in domain.axes])])
        if domain.beyond(site).any():  # what is in an obstacle's clearance is true
            said = f"{site.tolist()} lies outside the domain ({names})"
            self._doubt(said, "if you really are there, type it again")
        return site

    def _parts(self, text: str, names: Sequence[str], what: str = "coordinates") -> list[str]:
        """Return what stands between commas, semicolons and blanks: as many numbers as there are names."""
        parts = text.replace(";", " ").replace(",", " ").split()
        if len(parts) != len(names):
            raise InputError(f"{len(names)} {what} are needed ({', '.join(names)}), and {len(parts)} came")
        return parts


def shown(axis: Axis, x: float) -> str:
    """Return a setting with enough digits to be set: to a hundred-thousandth of its axis' length.

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


def _listed(names: Sequence[str]) -> str:
    """Return names as in a sentence.

    Examples
    --------
    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
