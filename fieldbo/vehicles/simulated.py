"""A punctual vehicle in a simulated world."""

from __future__ import annotations

import numpy as np

from fieldbo.domain import Array
from fieldbo.errors import InputError
from fieldbo.exchange import Event, GoHome, Observation, Order
from fieldbo.mission import Mission
from fieldbo.streams import stream
from fieldbo.vehicles.base import Vehicle


class Simulated(Vehicle):
    """Goes where it is told, at the declared cost, and reads the world's field with its sensor.

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
        if mission.world.live:
            raise InputError(
                f"a simulation of {mission.world.name}, which has no [field]",
                expected="a world with a field, or a vehicle that goes there",
                mend="carry the orders out yourself: fieldbo run MISSION --by-hand",
            )
        self.mission, self.crew = mission, mission.crew[number]
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
        self.position = event.position
        if len(event.times_s):
            self.time_s = float(event.times_s[-1])
        self._outcomes[order.id] = [event]
        self._waiting.append(event)

    def _visit(self, query: Order) -> Observation:
        assert not isinstance(query, GoHome)
        ask = int(str(query.id).rsplit("/", 1)[1])
        rng = stream(self.mission.seed, "sensor", ask)
        return self.mission.world.evaluate(query, self.position, self.time_s, rng)

    def _go_home(self, order: GoHome) -> Observation:
        home = self.crew.home
        assert home is not None
        none = np.empty(0)
        cost = float(self.mission.world.cost.travel(self.position, home[None], self.time_s)[0])
        return Observation(order.id, np.empty((0, len(home))), none, none, none, home, cost)

    def events(self, timeout_s: float) -> list[Event]:
        """Return what happened since the last call; never waits."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def outcome(self, order: str) -> list[Event] | None:
        """Return the events of an order that was carried out."""
        return self._outcomes.get(order)
