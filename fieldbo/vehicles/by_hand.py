"""You are the vehicle: orders are printed, and you type in the outcome."""

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
    "Press Enter to accept the value in [brackets]. Type 'skip' to skip a site. Type 'quit' or press Ctrl-C "
    "to stop; everything that you have entered is kept."
)

_QUIT = ("quit", "q", "exit")
"""Words that stop the run, as Ctrl-C does."""

_RESOLUTION = 1e-5
"""Precision of the printed settings, as a fraction of the axis' length."""

_OVERDRAWN = 10
"""An undeclared cost of more than this many batteries must be a typing error."""


class ByHand(Vehicle):
    """Prints where to go, and reads position, value and cost from the keyboard.

    In a factory cell, it prints which variables to set, which to keep or leave free, and which modules to
    run; then it asks for the values that the free variables took. It prints a setting to a few digits but
    keeps the exact number: Enter, or typing the printed digits, stands for that number, so that a module
    whose settings are kept counts as unchanged.

    Whatever you confirm is taken as true, as in `Observation`: it asks again about a number beyond the ends
    of its axis, and accepts it if you type it a second time.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    read : Callable
        Asks for a line, like the built-in ``input``.
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
        self.world, self.spec = mission.world, mission.vehicles[number]
        self.cost = mission.declared_cost
        self.position: Array = self.spec.start
        self._cell = self.world.domain.controls is not None or isinstance(self.world.cost, Modular)
        self._moved = False
        self._read, self._write = read, write
        self._began = time.monotonic()
        self._stopping = False
        self._doubted: set[str] = set()
        self._orders: list[Order] = []
        self._settled: set[str] = set()
        self._write(HELP)

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue from the place and time of the latest observation."""
        for event in events:
            if isinstance(event, Observation):
                self.position, self._moved = event.position, True
                if len(event.times_s):
                    self._began = time.monotonic() - float(event.times_s[-1])
            if not isinstance(event, Telemetry | Fitted):
                self._settled.add(event.order)

    def catch_up(self, time_s: float) -> None:
        """Continue at the time of the wall clock."""
        self._began = min(self._began, time.monotonic() - time_s)

    def send(self, order: Order) -> None:
        """Print the order once those before it are settled.

        Raises
        ------
        KeyboardInterrupt
            You pressed Ctrl-C after typing the last value.
        """
        if self._stopping:
            raise KeyboardInterrupt
        if order.id in self._settled or any(o.id == order.id for o in self._orders):
            return
        self._orders.append(order)
        if len(self._orders) == 1:
            self._announce(order)

    def _announce(self, order: Order) -> None:
        if isinstance(order, GoHome):
            verb = "return to" if self._cell else "go home to"
            self._write(f"\n{order.id}: {verb} {self._place(self.spec.home)}")
        else:
            price = "" if order.expected_cost is None else f"  (about {self._price(order.expected_cost)})"
            task = self._settings(order) if self._cell else f"go to {self._place(order.site)}"
            self._write(f"\n{order.id}: {task}{self._level(order)}{price}")

    def _settings(self, query: Query) -> str:
        """Return which variables to set, to keep and not to set, and which modules to run."""
        chain, axes, free = self.world.cost, self.world.domain.axes, np.isnan(query.site)
        by_modules = isinstance(chain, Modular)
        kept = (query.site == self.position) & (
            by_modules and self._moved
        )  # everything has to be set at first
        groups: dict[str, list[str]] = {"set": [], "keep": []}
        for axis, x, stays in zip(axes, query.site.tolist(), kept, strict=True):
            if not math.isnan(x):
                groups["keep" if stays else "set"].append(
                    f"{axis.name} {shown(axis, x)} {axis.unit}".rstrip()
                )
        parts = [f"{verb} {', '.join(settings)}" for verb, settings in groups.items() if settings]
        if free.any():
            parts.append(f"do not set {_listed([axes[k].name for k in np.flatnonzero(free)])}")
        if isinstance(chain, Modular):
            parts.append(f"run {self._modules(chain, query.site)}")
        return "; ".join(parts)

    def _modules(self, chain: Modular, site: Array) -> str:
        """Return which modules of a chain to run, each with its cost if that is declared."""
        first = int(chain.first_changed(self.position, site[None])[0])
        names = []
        for module in chain.modules[first:]:
            charged = self.cost is not None and (module is not chain.modules[-1] or chain.charge_last)
            names.append(f"{module.name} ({self._price(module.cost)})" if charged else module.name)
        return _listed(names)

    def _place(self, site: Array | None) -> str:
        assert site is not None
        coordinates = zip(self.world.domain.axes, site, strict=True)
        return ", ".join(f"{a.name} {self._digits(a, x)} {a.unit}".rstrip() for a, x in coordinates)

    def _digits(self, axis: Axis, x: float) -> str:
        return shown(axis, x) if self._cell else f"{x:g}"

    def _level(self, query: Query) -> str:
        """Return which level of the sensor to use; nothing if there is only one."""
        sensor, unit = self.world.sensor, self.world.quantity.unit
        if sensor.settings == 1:
            return ""
        site = np.where(np.isnan(query.site), self.world.domain.middle, query.site)
        sd = float(np.sqrt(sensor.variance(site[None], query.level)[0]))
        return f" with setting {query.level} (noise sd {sd:.2g}{'' if unit in ('', '1') else f' {unit}'})"

    def _price(self, cost: float) -> str:
        return f"{cost:g} {self.world.cost_unit}"

    def events(self, timeout_s: float) -> list[Event]:
        """Ask for the outcome of the outstanding order; waits for the keyboard, however long.

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
        self._settled.add(str(order.id))
        del self._orders[0]
        if self._orders:
            self._announce(self._orders[0])
        return [event]

    def _visit(self, query: Query) -> Event:
        planned = query.expected_cost
        position = self._ask_settings(query) if self._cell else self._ask_position(query)
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
            self._stopping, cost = True, planned  # keep the value that was typed, at the planned cost
        if cost is None:
            return Rejected(str(query.id), "skipped by hand")
        return query.observed(
            value,
            noise_variance=float(self.world.sensor.variance(position[None], query.level)[0]),
            time_s=time.monotonic() - self._began,
            cost=cost,
            position=position,
        )

    def _ask_position(self, query: Query) -> Array | None:
        """Ask for the position (d,); None for 'skip'."""
        planned = ", ".join(f"{x:g}" for x in query.site)
        return self._ask("  position", self._site, planned, query.site)

    def _ask_settings(self, query: Query) -> Array | None:
        """Ask what was set, then which value each free variable took (d,); None for 'skip'."""
        axes, free, site = self.world.domain.axes, np.isnan(query.site), query.site.copy()
        controlled = [k for k, is_free in enumerate(free) if not is_free]
        planned = ", ".join(shown(axes[k], site[k]) for k in controlled)
        actual = self._ask(
            "  settings",
            lambda text: self._settings_in(text, query.site, controlled),
            planned,
            site[controlled],
        )
        if actual is None:
            return None
        site[controlled] = actual
        for k in np.flatnonzero(free):
            measured = self._ask(f"  measured {axes[k].label}", partial(self._on, axes[k]))
            if measured is None:
                return None
            site[k] = measured
        return site

    def _settings_in(self, text: str, planned: Array, controlled: Sequence[int]) -> Array:
        """Return the settings (n,) of the controlled variables; printed digits stand for the exact number."""
        axes = self.world.domain.axes
        parts = self._parts(text, [axes[k].name for k in controlled], "settings")
        return np.array(
            [
                self._on(axes[k], part, planned[k], self.position[k])
                for k, part in zip(controlled, parts, strict=True)
            ]
        )

    def _on(self, axis: Axis, text: str, *printed: float) -> float:
        """Return a number on an axis, or one beyond its ends if it is typed twice.

        The printed digits of a number, or of an end, stand for the exact number.
        """
        number = self._number(text)
        for exact in (*printed, axis.low, axis.high):
            if number == float(shown(axis, exact)):
                return exact
        if not axis.low <= number <= axis.high:
            ends = f"{shown(axis, axis.low)} to {shown(axis, axis.high)} {axis.unit}".rstrip()
            self._doubt(f"{text} is outside the range of {axis.name}, {ends}")
        return number

    def _doubt(self, problem: str) -> None:
        """Raise an `InputError` about the answer to a question, the first time only."""
        if problem not in self._doubted:
            self._doubted.add(problem)
            raise InputError(problem, fix="type it again to confirm")

    def _home(self, order: GoHome) -> Event:
        home = self.spec.home
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
        """Ask until the answer is valid; None for 'skip'; 'quit' acts as Ctrl-C."""
        self._doubted.clear()
        while True:
            typed = self._read(f"{prompt} [{shown}]: " if shown is not None else f"{prompt}: ").strip()
            if typed.lower() == "skip":
                return None
            if typed.lower() in _QUIT:
                raise KeyboardInterrupt
            if not typed and default is not None:
                return default
            try:
                return parse(typed)
            except InputError as error:
                self._write(f"    {error.problem}; {error.fix or 'try again'}")

    def _number(self, text: str) -> float:
        try:
            number = float(text.replace(",", "."))
        except ValueError:
            raise InputError(f"{text!r} is not a number") from None
        if not np.isfinite(number):
            raise InputError(f"{text!r} is not a finite number")
        return number

    def _cost(self, text: str) -> float:
        cost, battery = self._number(text), self.spec.battery
        most = (
            battery if self.cost is not None else _OVERDRAWN * battery
        )  # if undeclared, it may exceed the battery
        if not 0 <= cost <= most:
            limit = "the battery" if most == battery else f"{_OVERDRAWN} times the battery"
            raise InputError(f"the cost must be between 0 and {limit}, {self._price(most)}")
        return cost

    def _site(self, text: str) -> Array:
        domain = self.world.domain
        names = ", ".join(a.name for a in domain.axes)
        site = np.array([self._number(p) for p in self._parts(text, [a.name for a in domain.axes])])
        if domain.beyond(site).any():  # a position within an obstacle's clearance is plausible
            self._doubt(f"{site.tolist()} is outside the domain ({names})")
        return site

    def _parts(self, text: str, names: Sequence[str], what: str = "coordinates") -> list[str]:
        """Split text at commas, semicolons and blanks into one part per name."""
        parts = text.replace(";", " ").replace(",", " ").split()
        if len(parts) != len(names):
            raise InputError(f"enter {len(names)} {what} ({', '.join(names)}), not {len(parts)}")
        return parts


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


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Examples
    --------
    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
