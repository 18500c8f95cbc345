"""The state of a run, live or replayed from its record.

A replay chooses, fits and reads nothing. It takes orders with the policy's memory, fits with their
hyperparameters, and readings with their values from the record, and recomputes everything else by the same
steps in the same order. The replayed agent therefore equals the original one to the last bit. What no later
decision needs is not computed: the belief between two orders, and scores that the record has.

`Away` tells for how long a run stood still: a vehicle's time goes on while no planner runs. `time_limit_s`
limits the vehicle's time, at sea for example, so the time away counts. Only the clock of the computer tells
how long it was, and that clock may have been set since: many small computers do not know the time until a
network tells them. Time away that would take more than half of what is left of a limit, or a clock that is
behind the record, is therefore not believed until somebody confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.agent.state import Origin
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.clock import Clock
from fieldbo.errors import InputError
from fieldbo.messages import (
    Answer,
    Command,
    Correction,
    EndReason,
    Event,
    Fitted,
    Observation,
    Order,
    Rejected,
    settles,
)
from fieldbo.mission.mission import Mission
from fieldbo.record.record import Record
from fieldbo.record.store import WITHOUT_MESSAGE, Row
from fieldbo.results.curve import Scorer, Step
from fieldbo.results.result import Result

_MUCH = 0.5
"""Time away that takes more than this fraction of what is left of a time limit needs to be confirmed."""

_BRIEF_S = 60.0
"""Time away up to this, and a clock that is behind by no more, need not be."""


@dataclass(frozen=True)
class Away:
    """How long the vehicles of a run were without a planner.

    Attributes
    ----------
    known_s : tuple of float
        What each vehicle's clock showed, as last recorded.
    written : tuple of datetime
        When that was recorded, by the computer's clock.
    last : datetime
        When the last row of the record was written.
    clock : Clock
        Counts on from now.
    begun_s : float
        What it showed when the run was resumed.
    stated_s : float or None
        How long the run stood still, as somebody stated it; None for what the computer's clock tells.
    """

    known_s: tuple[float, ...]
    written: tuple[datetime, ...]
    last: datetime
    clock: Clock
    begun_s: float
    stated_s: float | None = None

    @classmethod
    def of(cls, record: Record, agent: Agent, clock: Clock, stated_s: float | None = None) -> Away:
        """Return the time since a record was written, whose rows the agent knows."""
        rows = record.rows()
        known_s, written = [0.0] * len(agent.vehicles), [record.begun_utc] * len(agent.vehicles)
        for row in rows:
            message = row.body.get("message", {})
            if row.kind == "observation" and row.order in agent.issued:
                number = agent.issued[row.order].order.vehicle
            elif row.kind == "telemetry":
                number = message["vehicle"]
            else:
                continue
            times = [message.get("time_s"), *message.get("times_s", ())]
            known_s[number] = max([known_s[number], *(t for t in times if t is not None)])
            written[number] = row.time_utc
        last = rows[-1].time_utc if rows else record.begun_utc
        at = tuple(datetime.fromisoformat(text) for text in written)
        return cls(tuple(known_s), at, datetime.fromisoformat(last), clock, clock.boot_s(), stated_s)

    def now_s(self, vehicle: int) -> float:
        """Return the present time of a vehicle's clock, in seconds since the start of the run."""
        return self.known_s[vehicle] + max(0.0, self._passed_s(vehicle))

    def _passed_s(self, vehicle: int) -> float:
        """Return what passed since a vehicle's clock was known; less than 0 if a clock was set back."""
        if self.stated_s is None:
            return (datetime.now(UTC) - self.written[vehicle]).total_seconds()
        before_s = (self.last - self.written[vehicle]).total_seconds()
        return max(0.0, before_s) + self.stated_s + self.clock.boot_s() - self.begun_s

    def check(self, vehicles: Sequence[VehicleState]) -> None:
        """Raise an error if the time away is doubtful, and would count towards a time limit.

        Raises
        ------
        InputError
            It names the time away of each vehicle whose limit it concerns.
        """
        doubts = [] if self.stated_s is not None else list(self._doubts(vehicles))
        if not doubts:
            return
        away_s = max(0.0, (datetime.now(UTC) - self.last).total_seconds())
        raise InputError(
            "; ".join(doubts),
            expected="the time that really passed: it counts towards time_limit_s, and a clock that was set "
            "since would end the run",
            where="this computer's clock",
            fix=f"if the clock is right, confirm it: fieldbo resume RUN --away {math.ceil(away_s)}; if not, "
            'say how long the run stood still, such as --away "20 min" (away_s in Python)',
        )

    def _doubts(self, vehicles: Sequence[VehicleState]) -> list[str]:
        doubts = list[str]()
        for number, vehicle in enumerate(vehicles):
            passed_s, left_s = self._passed_s(number), vehicle.time_ledger.left
            if vehicle.spec.time_limit_s is None or left_s <= 0:
                continue
            whose = f"vehicle {number}: " if len(vehicles) > 1 else ""
            if passed_s < -_BRIEF_S:
                doubts.append(f"{whose}the clock is {-passed_s:,.0f} s behind the end of the record")
            elif passed_s > max(_BRIEF_S, _MUCH * left_s):
                doubts.append(
                    f"{whose}{passed_s:,.0f} s have passed since the run was stopped, and {left_s:,.0f} s of "
                    f"the time limit of {vehicle.spec.time_limit_s:,.0f} s were left"
                )
        return doubts


class RunState:
    """What the agent of a run knows, the scores so far, and which orders are outstanding.

    Parameters
    ----------
    mission : Mission
    name : str
        Name of the run; the ids of its orders begin with it.
    scored : bool
        Whether to score each step; without, the curve stays empty. A replay takes the scores of all steps but
        the last ones from the record, except from old ones.

    Attributes
    ----------
    agent : Agent
    curve : list of Step
        One entry per settled order. A correction changes the scores of the latest one; those before it
        stay as they were.
    outstanding : dict of str to int
        Vehicle of each outstanding order by order id, in the order of issue.
    stops : dict of int to EndReason
        Vehicles that get no further orders, in the order in which they stopped.
    news_pending : bool
        True if the latest entry is an event from a vehicle, so that other vehicles may have news, too;
        False after an order, a stop or a fit.
    end_reason : EndReason or None
        Why the run ended; None if it has not ended.
    entered : list of Answer
        Accepted answers whose outcome has not arrived yet, in order.
    corrected : bool
        Whether a reading was corrected after the question had been answered.
    """

    def __init__(self, mission: Mission, name: str, *, scored: bool = True) -> None:
        self.mission = mission
        self.agent = Agent(mission, name)
        self.curve: list[Step] = []
        self.outstanding: dict[str, int] = {}
        self.stops: dict[int, EndReason] = {}
        self.news_pending = False
        self.end_reason: EndReason | None = None
        self.corrected = False
        self.entered: list[Answer] = []
        self._scorer = Scorer(mission) if scored else None
        self._known: dict[int, Step] = {}  # scores that the record has, by their place in the curve
        self._written = 0  # how many of the curve it has

    @property
    def idle(self) -> list[int]:
        """Numbers of the vehicles that are ready for orders."""
        busy = {*self.awaited, *self.paused, *self.stops}
        return [number for number in range(len(self.mission.vehicles)) if number not in busy]

    @property
    def paused(self) -> list[int]:
        """Numbers of the vehicles that get no orders until their pause, or a hold, ends."""
        states = enumerate(self.agent.vehicles)
        return [number for number, state in states if state.paused_by and number not in self.stops]

    @property
    def awaited(self) -> list[int]:
        """Numbers of the vehicles that are to report: they have an outstanding order, or were lost."""
        lost = (number for number in range(len(self.mission.vehicles)) if self.agent.waits(number))
        return sorted({*self.outstanding.values(), *lost})

    def issue(self, orders: Iterable[Order]) -> None:
        """Add orders that the agent issued."""
        self.outstanding |= {str(order.id): order.vehicle for order in orders}
        self.news_pending = False

    def stop(self, vehicle: int, reason: EndReason) -> None:
        """Give a vehicle no further orders."""
        self.stops[vehicle] = reason
        self.news_pending = False

    @property
    def unanswered(self) -> bool:
        """True if the question was answered, and no longer is after a correction."""
        if self.end_reason is not EndReason.QUESTION_ANSWERED or not self.corrected:
            return False
        answered = (number for number, why in self.stops.items() if why is EndReason.QUESTION_ANSWERED)
        return not any(self.agent.answered(number) for number in answered)

    def reopen(self, reason: EndReason) -> None:
        """Continue after the end: vehicles that stopped for this reason go on; others come home."""
        again = self.unanswered or reason in (EndReason.VEHICLE_LOST, EndReason.STOPPED_BY_OPERATOR)
        for vehicle, why in list(self.stops.items()):
            if again and why is reason:
                self.agent.reopen(vehicle)
            elif self.agent.vehicles[vehicle].stranded:
                self.agent.vehicles[vehicle].try_home_again()
            else:
                continue
            del self.stops[vehicle]
        self.end_reason, self.corrected = None, False
        self.news_pending = False

    def tell(self, event: Event, *, checked: bool = False) -> bool:
        """Pass an event to the agent, which may have `checked` it; return True if it settles an order.

        The agent does not get events of orders that it never issued.
        """
        corrects = isinstance(event, Correction) or bool(self.agent.online_model.to_repeat)
        if self.agent.knows(event):
            (self.agent.take if checked else self.agent.tell)(event)
        if isinstance(event, Answer) and not event.refused:
            self.entered.append(event)
        if isinstance(event, Command | Answer):
            return False
        if isinstance(event, Observation | Rejected | Correction):
            kind = event.order, isinstance(event, Correction)
            self.entered = [a for a in self.entered if (a.order, a.corrects) != kind]
        if isinstance(event, Correction):
            ended = [vehicle.reason for vehicle in self.agent.vehicles]
            self.corrected |= EndReason.QUESTION_ANSWERED in ended
        if corrects and isinstance(event, Correction | Fitted):
            if self._scorer is not None and self.curve:
                self.curve[-1] = self._scorer.again(self.curve[-1], self.agent)
            return False
        self.news_pending = not isinstance(event, Fitted)
        order = getattr(event, "order", None)
        if order not in self.outstanding or not settles(event):
            return False
        del self.outstanding[order]
        if self._scorer is not None:
            known = self._known.pop(len(self.curve), None)
            self.curve.append(self._scorer.step(self.agent) if known is None else known)
        return True

    @on_one_blas_thread
    def repeat_fits(self) -> list[Fitted]:
        """Repeat the fits that had seen a reading which was corrected since; return them."""
        repeated = list[Fitted]()
        while self.agent.online_model.to_repeat and (fitted := self.agent.refit()) is not None:
            self.tell(fitted)
            repeated.append(fitted)
        return repeated

    def new_scores(self) -> dict[str, Any]:
        """Return the scores that the record does not have yet, by their place in the curve, to be written."""
        first, self._written = self._written, len(self.curve)
        return {str(n): self.curve[n].to_plain() for n in range(first, self._written)}

    @on_one_blas_thread
    def replay(self, rows: Sequence[Row]) -> None:
        """Apply the next rows of a record."""
        for row in rows:
            scores = {int(place): plain for place, plain in row.body.get("scores", {}).items()}
            self._known |= {n: Step.from_plain(p) for n, p in scores.items() if n >= len(self.curve)}
            self._written = max([self._written, *(n + 1 for n in scores)])
        for row in rows:
            if row.kind == "end":
                self.end_reason = EndReason(row.body["reason"])
            elif row.kind == "reopened":
                self.reopen(EndReason(row.body.get("reason", EndReason.VEHICLE_LOST)))
            elif row.kind == "stop":
                vehicle, reason = row.body["vehicle"], EndReason(row.body["reason"])
                self.agent.replay_stop(vehicle, reason, row.body["memory"], row.body["why"])
                self.stop(vehicle, reason)
            elif row.kind not in WITHOUT_MESSAGE:
                self._replay_message(row)

    def _replay_message(self, row: Row) -> None:
        message = row.message
        if isinstance(message, Order):
            origin = row.body.get("origin")
            known = None if origin is None else Origin(origin)
            self.agent.replay(message, row.body["memory"], row.body["why"], known)
            self.issue([message])
            return
        try:
            self.tell(message)
        except InputError:
            self.news_pending = True  # the live agent rejected it, too

    def result(self) -> Result:
        """Return the result so far; a run whose answer was undone by a correction has not ended."""
        return Result.of(self.agent, self.curve, None if self.unanswered else self.end_reason)
