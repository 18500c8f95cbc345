"""You are the vehicle: orders are printed, and you type in the outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.axes import Axis
from fieldbo.errors import InputError
from fieldbo.messages import (
    Correction,
    Event,
    GoHome,
    Observation,
    Order,
    Query,
    Recharge,
    Rejected,
)
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.dialogue import HELP, Correct, Dialogue, Undo, number_in, parts_of
from fieldbo.vehicles.person import Person, Tasks, in_a_cell, reading_in, shown
from fieldbo.vehicles.typed_places import DEGREES_HELP, typed_places


class ByHand(Person):
    """Prints where to go, and reads position, value and cost from the keyboard.

    If the way bends, it prints the points to pass, from where you really are.

    In a factory cell, it prints which variables to set, which to keep or leave free, and which modules to
    run; then it asks for the values that the free variables took. It prints a setting to a few digits but
    keeps the exact number: Enter, or typing the printed digits, stands for that number, so that a module
    whose settings are kept counts as unchanged.

    Whatever you confirm is taken as true, as in `Observation`: it asks again about a number beyond the ends
    of its axis, and accepts it if you type it a second time; and it asks you to confirm a reading or a cost
    that is far from all others, and a reading that is far from earlier ones: those of the survey to which the
    world's field is fitted, and those with which the mission begins.

    You can mend a typing error at any question: 'undo' repeats the previous question, or asks for the last
    reading again, and 'correct N VALUE' corrects the reading of any order. A corrected reading is returned as
    a `Correction`.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    read : Callable
        Asks for a line, like the built-in ``input``.
    write : Callable
        Prints a line.
    clock : Clock, optional
        By default this machine's.

    Raises
    ------
    InputError
        The sensor reads on the way.
    """

    def __init__(
        self,
        mission: Mission,
        number: int = 0,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
        clock: Clock = MACHINE_CLOCK,
    ) -> None:
        super().__init__(mission, number, clock)
        self.world, self.spec = mission.world, mission.vehicles[number]
        self._cell = in_a_cell(mission.world)
        self._tasks = Tasks(mission, number)
        domain, below = self.world.domain, self.world.sensor.below
        helps = (
            [] if below is None else [f"    <{below:<16g}(as a reading) at or below the limit of detection"]
        )
        helps += [] if domain.georeference is None else [DEGREES_HELP]
        self._talk = Dialogue(read, write, "\n".join(helps))
        self._places, self._write = typed_places(domain, self._talk), write
        self._stopping = False
        self._write(HELP)

    def adopt(self, mission: Mission) -> None:
        super().adopt(mission)
        self.world = mission.world
        self._tasks.adopt(mission)

    def send(self, order: Order) -> None:
        """Print the order once those before it are settled.

        Raises
        ------
        KeyboardInterrupt
            You pressed Ctrl-C after typing the last value.
        """
        if self._stopping:
            raise KeyboardInterrupt
        if self.is_known(order):
            return
        self._orders.append(order)
        if len(self._orders) == 1:
            self._show_next()

    def _show_next(self) -> None:
        """Print what the next order asks for, if there is one."""
        if self._orders:
            text = self._tasks.text(self._orders[0], self.position, moved=bool(self._observed))
            self._write(f"\n{text}")

    def events(self, timeout_s: float) -> list[Event]:
        """Ask for the outcome of the outstanding order; waits for the keyboard, however long.

        A correction is returned at once; the next call continues with the question at which it was typed.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C, 'quit', or the end of the input.
        """
        if self._stopping:
            raise KeyboardInterrupt
        if not self._orders:
            return []
        order = self._orders[0]
        try:
            event = self._outcome(order)
        except EOFError:
            raise KeyboardInterrupt from None
        if isinstance(event, Correction):
            return [event]
        self._talk.forget()
        self._settle(event)
        self._show_next()
        return [event]

    def _outcome(self, order: Order) -> Observation | Rejected | Correction:
        """Return the outcome of an order, or a correction that was typed instead."""
        while True:
            try:
                match order:
                    case GoHome():
                        return self._home(order)
                    case Recharge():
                        return self._recharge(order)
                    case Query():
                        return self._visit(order)
            except Undo:
                correction = None if self._talk.take_back() else self._undone()
            except Correct as typed:
                correction = self._corrected(typed.order, typed.value)
            if correction is not None:
                return correction

    # -- corrections -----------------------------------------------------------------------------------

    def _undone(self) -> Correction | None:
        """Ask for the last reading again; None if there is none, or it stays as it is."""
        read = [observation for observation in self._observed if len(observation.values)]
        if not read:
            self._write("    there is no reading to undo")
            return None
        before = float(read[-1].values[-1])
        value = self._talk.ask_again(
            f"  {read[-1].order}: {self.world.quantity.label}",
            lambda text: self._reading(text, instead_of=read[-1]),
            "failed" if math.isnan(before) else f"{before:g}",
            before,
        )
        return self._correct(read[-1], len(read[-1].values) - 1, value)

    def _corrected(self, order: str, value: str) -> Correction | None:
        """Return the correction of the only reading of an order; None, and say why, if there can't be one."""
        number = order.rpartition("/")[2]
        read = [o for o in self._observed if o.order.rpartition("/")[2] == number and len(o.values)]
        try:
            if not read:
                raise InputError(
                    f"order {order} has no reading", fix="type the number of an order that has one"
                )
            if len(read) > 1 or len(read[0].values) > 1:
                raise InputError(f"order {order} has several readings", fix="use fieldbo correct --reading")
            return self._correct(read[0], 0, self._reading(value, instead_of=read[0]))
        except InputError as error:
            self._write(f"    {error.problem}; {error.fix or 'try again'}")
            return None

    def _reading(self, text: str, instead_of: Observation | None = None) -> float:
        """Return a reading, NaN for 'failed'; ask to confirm one that is far from all others."""
        number = reading_in(text, self.world.sensor)
        if math.isnan(number) or text.startswith("<"):
            return number
        return self._agreed(number, self._doubt_reading(number, instead_of))

    def _agreed(self, number: float, doubt: str) -> float:
        """Return a number; ask to confirm it first if it is doubted."""
        if doubt:
            self._talk.agree(doubt, f"{number:g}")
        return number

    # -- questions -------------------------------------------------------------------------------------

    def _visit(self, query: Query) -> Observation | Rejected:
        planned = query.expected_cost
        position = self._ask_settings(query) if self._cell else self._ask_position(query)
        if position is None:
            return Rejected(str(query.id), "skipped by hand")
        if planned is not None and not np.array_equal(position, query.site, equal_nan=True):
            planned = planned if self._cell else self._declared(query, position)
        value = self._talk.ask(f"  {self.world.quantity.label}", self._reading)
        if value is None:
            return Rejected(str(query.id), "skipped by hand")
        try:
            cost = self._ask_cost(planned)
        except (KeyboardInterrupt, EOFError):
            if planned is None:
                raise
            self._stopping, cost = True, planned  # keep the value that was typed, at the planned cost
        if cost is None:
            return Rejected(str(query.id), "skipped by hand")
        return self._read(query, value, position, cost)

    def _ask_position(self, query: Query) -> Array | None:
        """Ask for the position (d,); None for 'skip'."""
        planned = self._places.answer(query.site)
        return self._talk.ask("  position", partial(self._places.read, query.site), planned, query.site)

    def _ask_settings(self, query: Query) -> Array | None:
        """Ask what was set, then which value each free variable took (d,); None for 'skip'."""
        axes, free, site = self.world.domain.axes, np.isnan(query.site), query.site.copy()
        controlled = [k for k, is_free in enumerate(free) if not is_free]
        planned = ", ".join(shown(axes[k], site[k]) for k in controlled)
        actual = self._talk.ask(
            "  settings",
            lambda text: self._settings_in(text, query.site, controlled),
            planned,
            site[controlled],
        )
        if actual is None:
            return None
        site[controlled] = actual
        for k in np.flatnonzero(free):
            measured = self._talk.ask(f"  measured {axes[k].label}", partial(self._on, axes[k]))
            if measured is None:
                return None
            site[k] = measured
        return site

    def _settings_in(self, text: str, planned: Array, controlled: Sequence[int]) -> Array:
        """Return the settings (n,) of the controlled variables; printed digits stand for the exact number."""
        axes = self.world.domain.axes
        parts = parts_of(text, [axes[k].name for k in controlled], "settings")
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
        number = number_in(text)
        for exact in (*printed, axis.low, axis.high):
            if number == float(shown(axis, exact)):
                return exact
        if not axis.low <= number <= axis.high:
            ends = f"{shown(axis, axis.low)} to {shown(axis, axis.high)} {axis.unit}".rstrip()
            self._talk.doubt(f"{text} is outside the range of {axis.name}, {ends}")
        return number

    def _home(self, order: GoHome) -> Observation | Rejected:
        home = self.spec.home
        assert home is not None
        planned = float(self.world.cost.travel(self.position, home[None])[0])
        cost = self._ask_cost(planned)
        if cost is None:
            return Rejected(order.id, "skipped by hand")
        none = np.empty(0)
        return Observation(order.id, np.empty((0, len(home))), none, none, none, home, cost)

    def _recharge(self, order: Recharge) -> Observation | Rejected:
        if self._talk.ask("  changed? Enter once it is", self._is_changed, "yes", True) is None:
            return Rejected(order.id, "there is no other battery")
        return self._changed(order)

    @staticmethod
    def _is_changed(text: str) -> bool:
        if text.lower() not in ("y", "yes"):
            raise InputError(
                f"{text!r} was typed", fix="press Enter once it is changed, or type 'skip' if you have none"
            )
        return True

    def _ask_cost(self, planned: float | None) -> float | None:
        """Ask for the cost of an order; None for 'skip'."""
        shown = None if planned is None else f"{planned:g}"
        prompt = f"  cost ({self.world.cost_unit})"
        return self._talk.ask(prompt, partial(self._cost, planned), shown, planned)

    def _cost(self, planned: float | None, text: str) -> float:
        cost = number_in(text)
        return self._agreed(cost, self._doubt_cost(cost, planned))
