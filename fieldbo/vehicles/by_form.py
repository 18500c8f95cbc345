"""People are the vehicle: they see each order in the console, and enter the outcome in its form."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.by_hand import check_by_hand
from fieldbo.vehicles.person import check_cost, doubt_about_cost, doubt_about_reading, earlier_values
from fieldbo.vehicles.typed_places import typed_places

_FURTHEST = 0.5
"""How far outside the domain a position can be confirmed, as a fraction of its extent."""


class ByForm(Vehicle):
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
        check_by_hand(mission)
        self.mission, self.number = mission, number
        self.position: Array = mission.vehicles[number].start
        self._places = typed_places(mission.world.domain)
        self._earlier = earlier_values(mission)
        self.clock, self._began = clock, clock.now_s()
        self._orders: list[Order] = []
        self._observed: dict[str, Observation] = {}
        self._settled: set[str] = set()
        self._events: list[Event] = []

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue from the place and time of the latest observation."""
        for event in events:
            if isinstance(event, Observation):
                self._observed[event.order] = event
                self.position = event.position
                if len(event.times_s):
                    self._began = self.clock.now_s() - float(event.times_s[-1])
            if isinstance(event, Observation | Rejected):
                self._settled.add(event.order)

    def catch_up(self, time_s: float) -> None:
        """Continue at the time of the wall clock."""
        self._began = min(self._began, self.clock.now_s() - time_s)

    def adopt(self, mission: Mission) -> None:
        self.mission = mission

    def send(self, order: Order) -> None:
        """Let the form ask for the outcome, after those of earlier orders."""
        if order.id not in self._settled and all(order.id != other.id for other in self._orders):
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
            self._settle(Rejected(order, "taken back"))

    def take(self, answer: Answer) -> None:
        """Accept an answer.

        Raises
        ------
        InputError
            It is about another order than the one that is outstanding or done, it can't be true, or it is
            unlikely and not confirmed.
        """
        if answer.corrects:
            self._events.append(self._correction(answer))
            return
        if answer.order in self._settled:
            raise InputError(f"{answer.order} was answered already")
        if not self._orders or answer.order != self._orders[0].id:
            other = f"; the present one is {self._orders[0].id}" if self._orders else ""
            raise InputError(f"{answer.order} is not to be answered{other}")
        order = self._orders[0]
        if answer.skipped:
            self._settle(Rejected(answer.order, "skipped by hand"))
            return
        if isinstance(order, GoHome):
            home = replace(order, site=self.mission.vehicles[self.number].home)
            _refuse_unless_confirmed(answer, *self._doubts_about_cost(answer, home.expected_cost))
            observed = home.observed(cost=answer.cost)
            self._settle(replace(observed, time_s=self.clock.now_s() - self._began))
            return
        if isinstance(order, Recharge):
            changed = replace(order, site=self.position).observed()
            self._settle(replace(changed, time_s=self.clock.now_s() - self._began))
            return
        self._settle(self._observation(order, answer))

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
        known = [x for o in self._observed.values() for x in o.values.tolist()]
        _refuse_unless_confirmed(answer, *doubts, self._doubt(answer, known))
        if planned is None and answer.cost is None:
            raise InputError("the cost is not known there", fix="type what it really cost")
        return query.observed(
            math.nan if answer.value is None else answer.value,
            noise_variance=float(self.mission.world.sensor.variance(position[None], query.level)[0]),
            time_s=self.clock.now_s() - self._began,
            cost=planned if answer.cost is None else answer.cost,
            position=position,
        )

    def _planned(self, query: Query, position: Array) -> float | None:
        """Return the declared cost of a query that was carried out at `position`; None if it is unknown."""
        planned, world = query.expected_cost, self.mission.world
        if planned is None or world.domain.controls is not None or np.array_equal(position, query.site):
            return planned
        price = float(world.cost.to(self.position, position[None], query.controls, query.level)[0])
        return price if math.isfinite(price) else None

    def _far_off(self, query: Query, position: Array) -> str:
        unlikely = "" if np.isnan(query.site).any() else self._places.unlikely(position, query.site)
        return f"that is {unlikely}" if unlikely else ""

    def _doubt(self, answer: Answer, known: Sequence[float]) -> str:
        """Return a question about an unlikely reading; one that failed, or lies below a limit, is not."""
        world, value = self.mission.world, math.nan if answer.value is None else answer.value
        if math.isnan(value) or (world.sensor.below is not None and value <= world.sensor.below):
            return ""
        return doubt_about_reading(value, world, known, self._earlier)

    def _doubts_about_cost(self, answer: Answer, planned: float | None) -> list[str]:
        """Return what is unlikely about a cost; raise an `InputError` if it is impossible."""
        if answer.cost is None:
            return []
        check_cost(answer.cost, self.mission, self.number)
        paid = [observation.cost for observation in self._observed.values()]
        return [doubt_about_cost(answer.cost, planned, paid)]

    def _correction(self, answer: Answer) -> Correction:
        """Return the correction of the last reading of an order that is done."""
        before = self._observed.get(answer.order)
        if before is None or not len(before.values):
            raise InputError(f"{answer.order} has no reading to correct")
        others = [x for k, o in self._observed.items() if k != answer.order for x in o.values.tolist()]
        _refuse_unless_confirmed(answer, self._doubt(answer, others))
        values = before.values.copy()
        values[-1] = math.nan if answer.value is None else answer.value
        if np.array_equal(values, before.values, equal_nan=True):
            raise InputError(f"the reading of {answer.order} is {values[-1]:g} already")
        self._observed[answer.order] = replace(before, values=values)
        return Correction(before.order, before.part, values)

    def _settle(self, event: Observation | Rejected) -> None:
        self._settled.add(event.order)
        self._orders = [order for order in self._orders if order.id != event.order]
        if isinstance(event, Observation):
            self._observed[event.order] = event
            self.position = event.position
        self._events.append(event)


def _refuse_unless_confirmed(answer: Answer, *doubts: str) -> None:
    """Raise an `InputError` with all doubts about an answer, unless it confirms them."""
    if not answer.confirmed and any(doubts):
        raise InputError("; ".join(filter(None, doubts)), fix="confirm it, or correct it")
