"""How a run stands, and a record replayed: the agent is taken through what it asked and what it was told.

A replay chooses, fits and reads nothing: orders are taken over with what the policy remembered, fits with
their hyperparameters, readings with their values. What is kept in no row is worked out again by the same
steps in the same order, so that the agent is the one that it was, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable

from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Event, Fitted, GoHome, Observation, Order, Query
from fieldbo.mission.mission import Mission
from fieldbo.results.curve import Scorer, Step
from fieldbo.results.result import Result
from fieldbo.runs.record.record import Row


class RunState:
    """How a run stands: what its agent knows, the scores after each order, and who has something out.

    Parameters
    ----------
    mission : Mission
    name : str
        The run's, which its orders' ids begin with.

    Attributes
    ----------
    agent : Agent
    curve : list of Step
        How things stood after each settled order.
    waiting : dict of str to int
        Orders that are out, in the order in which they were given, and their vehicles.
    stops : dict of int to EndReason
        Vehicles that get no further orders, in the order in which they were told so.
    listening : bool
        Whether the latest that happened was news of a vehicle, and not an order, a stop or a fit.
    end_reason : EndReason or None
        Why the run ended; None before.
    """

    def __init__(self, mission: Mission, name: str) -> None:
        self.mission = mission
        self.agent = Agent(mission, name)
        self.curve: list[Step] = []
        self.waiting: dict[str, int] = {}
        self.stops: dict[int, EndReason] = {}
        self.listening = False
        self.end_reason: EndReason | None = None
        self._scorer = Scorer(mission)

    @property
    def idle(self) -> list[int]:
        """Vehicles that have nothing out and may get orders, by number."""
        busy = {*self.expected, *self.stops}
        return [number for number in range(len(self.mission.vehicles)) if number not in busy]

    @property
    def expected(self) -> list[int]:
        """Vehicles that are to be heard of, by number: they have something out, or were lost on the way."""
        lost = (number for number in range(len(self.mission.vehicles)) if self.agent.waits(number))
        return sorted({*self.waiting.values(), *lost})

    def ordered(self, orders: Iterable[Order]) -> None:
        """Note orders that the agent let out."""
        self.waiting |= {str(order.id): order.vehicle for order in orders}
        self.listening = False

    def stopped(self, vehicle: int, reason: EndReason) -> None:
        """Note that a vehicle gets no further orders."""
        self.stops[vehicle] = reason
        self.listening = False

    def told(self, event: Event) -> bool:
        """Tell the agent an event, but not of an order that it never gave; say whether it settles one."""
        if self.agent.knows(event):
            self.agent.tell(event)
        self.listening = not isinstance(event, Fitted)
        order = getattr(event, "order", None)
        if order not in self.waiting or (isinstance(event, Observation) and not event.last):
            return False
        del self.waiting[order]
        self.curve.append(self._scorer.step(self.agent))
        return True

    @on_one_blas_thread
    def replay(self, rows: Iterable[Row]) -> None:
        """Go on by what a record says came next."""
        for row in rows:
            if row.kind == "end":
                self.end_reason = EndReason(row.body["reason"])
            elif row.kind == "stop":
                vehicle, reason = row.body["vehicle"], EndReason(row.body["reason"])
                self.agent.replay_stop(vehicle, reason, row.body["memory"], row.body["why"])
                self.stopped(vehicle, reason)
            else:
                self._replay_message(row)

    def _replay_message(self, row: Row) -> None:
        message = row.message
        if isinstance(message, Query | GoHome):
            self.agent.replay(message, row.body["memory"], row.body["why"])
            self.ordered([message])
            return
        try:
            self.told(message)
        except InputError:
            self.listening = True  # the agent refused it when it came, too, and took nothing in

    def result(self) -> Result:
        """Return what has come of the run so far."""
        return Result.of(self.agent, self.curve, self.end_reason)
