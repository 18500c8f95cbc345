"""A vehicle in a simulated world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.messages import Event, GoHome, Observation, Order, Query, Recharge, order_number
from fieldbo.mission.mission import Mission, check_simulated
from fieldbo.vehicles.base import Vehicle


class Simulated(Vehicle):
    """Visits each site at once and samples the world's field there.

    The cost of a move is the declared one with the world's disturbances applied. Random streams are keyed by
    the mission's seed and the order's number, so a resumed run continues as if it had never stopped.

    Parameters
    ----------
    mission : Mission
        Provides the world, the seed and the start.
    number : int
        Index of the vehicle in the mission.

    Raises
    ------
    InputError
        The world is live: it has no field to simulate.
    """

    def __init__(self, mission: Mission, number: int = 0) -> None:
        check_simulated(mission)
        self.mission, self.spec = mission, mission.vehicles[number]
        self.position: Array = self.spec.start
        self.time_s = 0.0
        self._outcomes: dict[str, list[Event]] = {}
        self._waiting: list[Event] = []

    def send(self, order: Order) -> None:
        """Carry out the order at once."""
        assert order.id is not None
        if order.id in self._outcomes:
            return
        match order:
            case GoHome():
                event = self._go_home(order)
            case Recharge():
                event = self._recharge(order)
            case Query():
                event = self._visit(order)
        self._move_to(event)
        self._outcomes[order.id] = [event]
        self._waiting.append(event)

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue from the place and time of the latest observation."""
        for event in events:
            if isinstance(event, Observation):
                self._move_to(event)
                if event.last:
                    self._outcomes[event.order] = [event]

    def _move_to(self, event: Observation) -> None:
        self.position = event.position
        self.time_s = float(event.times_s[-1]) if event.time_s is None else event.time_s

    def _visit(self, query: Query) -> Observation:
        world, seed, number = self.mission.world, self.mission.seed, order_number(query.id)
        streams = {"rng": stream(seed, "sensor", number)}
        if world.disturbances is not None or world.domain.controls is not None:
            streams["luck"] = self._luck(query)
        if query.controls is not None:
            streams["chance"] = stream(seed, "chance", number)
        if world.sensor.along is not None:
            streams["along"] = stream(seed, "along", number)
        return world.evaluate(query, self.position, self.time_s, **streams)

    def _go_home(self, order: GoHome) -> Observation:
        assert self.spec.home is not None
        trip = replace(order, site=self.spec.home)
        along = stream(self.mission.seed, "along", order_number(order.id))
        return self.mission.world.go_home(trip, self.position, self.time_s, self._luck(order), along)

    def _recharge(self, order: Recharge) -> Observation:
        """Wait where the vehicle is until the battery is changed."""
        assert self.spec.recharge is not None
        waits = replace(order, site=self.position)
        return replace(waits.observed(), time_s=self.time_s + self.spec.recharge.takes_s)

    def _luck(self, order: Order) -> np.random.Generator:
        """Return the random stream of an order's cost."""
        return stream(self.mission.seed, "cost", order_number(order.id))

    def events(self, timeout_s: float) -> list[Event]:
        """Return the events since the last call; never waits."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def adopt(self, mission: Mission) -> None:
        self.mission = mission

    def outcome(self, order: str) -> list[Event] | None:
        """Return the events of a completed order; None if it is unknown."""
        return self._outcomes.get(order)
