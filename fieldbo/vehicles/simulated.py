"""A punctual vehicle in a simulated world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.messages import Event, GoHome, Observation, Order, Query
from fieldbo.mission.checks import check_simulated
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle


class Simulated(Vehicle):
    """Goes where it is told, at the cost that the world's conditions make of the declared one, and reads.

    Parameters
    ----------
    mission : Mission
        Its world, seed and start.
    number : int
        Which of the mission's vehicles.

    Raises
    ------
    InputError
        The world is live: there is nothing to simulate.
    """

    def __init__(self, mission: Mission, number: int = 0) -> None:
        check_simulated(mission)
        self.mission, self.crew = mission, mission.vehicles[number]
        self.position: Array = self.crew.start
        self.time_s = 0.0
        self._outcomes: dict[str, list[Event]] = {}
        self._waiting: list[Event] = []

    def send(self, order: Order) -> None:
        """Carry the order out at once."""
        assert order.id is not None
        if order.id in self._outcomes:
            return
        event = self._go_home(order) if isinstance(order, GoHome) else self._visit(order)
        self._be_at(event)
        self._outcomes[order.id] = [event]
        self._waiting.append(event)

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Go to where the latest observation was, at its time; what was not observed was not done."""
        for event in events:
            if isinstance(event, Observation):
                self._be_at(event)
                if event.last:
                    self._outcomes[event.order] = [event]

    def _be_at(self, event: Observation) -> None:
        self.position = event.position
        self.time_s = float(event.times_s[-1]) if event.time_s is None else event.time_s

    def _visit(self, query: Query) -> Observation:
        world, seed, ask = self.mission.world, self.mission.seed, self._ask(query)
        streams = {"rng": stream(seed, "sensor", ask)}
        if world.conditions is not None or world.domain.controls is not None:
            streams["luck"] = self._luck(query)
        if query.controls is not None:
            streams["chance"] = stream(seed, "chance", ask)
        return world.evaluate(query, self.position, self.time_s, **streams)

    def _go_home(self, order: GoHome) -> Observation:
        assert self.crew.home is not None
        way = replace(order, site=self.crew.home)
        paid, took_s = self.mission.world.takes(way, self.position, self.time_s, self._luck(order))
        return replace(way.observed(cost=paid), time_s=self.time_s + took_s)

    def _luck(self, order: Order) -> np.random.Generator:
        """Return the noise on costs."""
        return stream(self.mission.seed, "cost", self._ask(order))

    @staticmethod
    def _ask(order: Order) -> int:
        """Return the number of the ask that an order answers, which keys its streams."""
        return int(str(order.id).rsplit("/", 1)[1])

    def events(self, timeout_s: float) -> list[Event]:
        """Return what happened since the last call; never waits."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def outcome(self, order: str) -> list[Event] | None:
        """Return the events of an order that was carried out."""
        return self._outcomes.get(order)
