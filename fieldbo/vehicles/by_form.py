"""People are the vehicle: they see each order in the console, and enter the outcome in its form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock
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
from fieldbo.vehicles.person import Person
from fieldbo.vehicles.typed_places import typed_places

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
            self._events.append(self._corrected(answer))
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
        planned = self._planned(query, position)
        doubts = [outside or self._far_off(query, position), *self._doubts_about_cost(answer, planned)]
        _refuse_unless_confirmed(answer, *doubts, self._doubt(answer))
        if planned is None and answer.cost is None:
            raise InputError("the cost is not known there", fix="type what it really cost")
        value = math.nan if answer.value is None else answer.value
        return self._read(query, value, position, planned if answer.cost is None else answer.cost)

    def _planned(self, query: Query, position: Array) -> float | None:
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

    def _corrected(self, answer: Answer) -> Correction:
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
