"""People are the vehicle: they read orders in a terminal or in the console, and enter the outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.axes import Axis
from fieldbo.errors import InputError
from fieldbo.messages import (
    Answer,
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
                correction = None if self._talk.take_back() else self._undo_reading()
            except Correct as typed:
                correction = self._correct_order(typed.order, typed.value)
            if correction is not None:
                return correction

    # -- corrections -----------------------------------------------------------------------------------

    def _undo_reading(self) -> Correction | None:
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

    def _correct_order(self, order: str, value: str) -> Correction | None:
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
        return self._agree(number, self._doubt_reading(number, instead_of))

    def _agree(self, number: float, doubt: str) -> float:
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
        return self._agree(cost, self._doubt_cost(cost, planned))


_FURTHEST = 0.5
"""How far outside the domain a position can be confirmed, as a fraction of its extent."""


class ByForm(Person):
    """Waits for the answers that people enter in the form of ``fieldbo console``.

    Several people may have the form open: the first answer to an order counts, and later ones are refused.
    An answer that corrects replaces the reading of an order that is done. Numbers far from all others are
    refused until they are confirmed, as in `ByHand`.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    clock : Clock, optional
        By default this machine's.

    Raises
    ------
    InputError
        The sensor reads on the way.
    """

    def __init__(self, mission: Mission, number: int = 0, clock: Clock = MACHINE_CLOCK) -> None:
        super().__init__(mission, number, clock)
        self._places = typed_places(mission.world.domain)
        self._events: list[Event] = []

    def send(self, order: Order) -> None:
        """Let the form ask for the outcome, after those of earlier orders."""
        if not self.is_known(order):
            self._orders.append(order)

    def events(self, timeout_s: float) -> list[Event]:
        """Return what the answers since the last call amount to."""
        if not self._events:
            self.clock.sleep(timeout_s)  # answers come with the commands, between two calls
        events, self._events = self._events, []
        return events

    def cancel(self, order: str) -> None:
        """Take back an order whose outcome was not entered yet."""
        if any(order == other.id for other in self._orders):
            self._report(Rejected(order, "taken back"))

    def take(self, answer: Answer) -> None:
        """Accept an answer.

        Raises
        ------
        InputError
            It is about another order than the one that is outstanding or done, it can't be true, or it is
            unlikely and not confirmed.
        """
        if answer.corrects:
            self._events.append(self._correct_answered(answer))
            return
        if answer.order in self._settled:
            raise InputError(f"{answer.order} was answered already")
        if not self._orders or answer.order != self._orders[0].id:
            other = f"; the present one is {self._orders[0].id}" if self._orders else ""
            raise InputError(f"{answer.order} is not to be answered{other}")
        order = self._orders[0]
        if answer.skipped:
            self._report(Rejected(answer.order, "skipped by hand"))
            return
        if isinstance(order, GoHome):
            home = replace(order, site=self.mission.vehicles[self.number].home)
            _refuse_unless_confirmed(answer, *self._doubts_about_cost(answer, home.expected_cost))
            self._report(replace(home.observed(cost=answer.cost), time_s=self._time_s))
            return
        self._report(
            self._changed(order) if isinstance(order, Recharge) else self._observation(order, answer)
        )

    def _observation(self, query: Query, answer: Answer) -> Observation:
        position = query.site if answer.position is None else answer.position
        if position.shape != query.site.shape or np.isnan(position).any():
            names = ", ".join(axis.name for axis in self.mission.world.domain.axes)
            raise InputError("the position is not complete", expected=f"numbers for {names}")
        outside = self._places.outside(position)
        if outside and not self.mission.world.domain.around(position, _FURTHEST)[0]:
            raise InputError(outside, fix="correct the position")  # no typing error that may be right
        planned = self._plan_cost(query, position)
        doubts = [outside or self._far_off(query, position), *self._doubts_about_cost(answer, planned)]
        _refuse_unless_confirmed(answer, *doubts, self._doubt(answer))
        if planned is None and answer.cost is None:
            raise InputError("the cost is not known there", fix="type what it really cost")
        value = math.nan if answer.value is None else answer.value
        return self._read(query, value, position, planned if answer.cost is None else answer.cost)

    def _plan_cost(self, query: Query, position: Array) -> float | None:
        """Return the declared cost of a query that was carried out at `position`; None if it is unknown."""
        planned, controls = query.expected_cost, self.mission.world.domain.controls
        if planned is None or controls is not None or np.array_equal(position, query.site):
            return planned
        return self._declared(query, position)

    def _far_off(self, query: Query, position: Array) -> str:
        unlikely = "" if np.isnan(query.site).any() else self._places.unlikely(position, query.site)
        return f"that is {unlikely}" if unlikely else ""

    def _doubt(self, answer: Answer, instead_of: Observation | None = None) -> str:
        """Return a question about an unlikely reading; one that failed, or lies below a limit, is not."""
        world, value = self.mission.world, math.nan if answer.value is None else answer.value
        if math.isnan(value) or (world.sensor.below is not None and value <= world.sensor.below):
            return ""
        return self._doubt_reading(value, instead_of)

    def _doubts_about_cost(self, answer: Answer, planned: float | None) -> list[str]:
        """Return what is unlikely about a cost; raise an `InputError` if it is impossible."""
        return [] if answer.cost is None else [self._doubt_cost(answer.cost, planned)]

    def _correct_answered(self, answer: Answer) -> Correction:
        """Return the correction of the last reading of an order that is done."""
        before = next((o for o in reversed(self._observed) if o.order == answer.order), None)
        if before is None or not len(before.values):
            raise InputError(f"{answer.order} has no reading to correct")
        _refuse_unless_confirmed(answer, self._doubt(answer, before))
        value = math.nan if answer.value is None else answer.value
        correction = self._correct(before, len(before.values) - 1, value)
        if correction is None:
            raise InputError(f"the reading of {answer.order} is {value:g} already")
        return correction

    def _report(self, event: Observation | Rejected) -> None:
        self._settle(event)
        self._events.append(event)


def _refuse_unless_confirmed(answer: Answer, *doubts: str) -> None:
    """Raise an `InputError` with all doubts about an answer, unless it confirms them."""
    if not answer.confirmed and any(doubts):
        raise InputError("; ".join(filter(None, doubts)), fix="confirm it, or correct it")
