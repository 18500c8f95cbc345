"""The run loop: ask, record the orders, send them, receive events, record them, tell the agent."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from fieldbo.agent.agent import Agent
from fieldbo.errors import FieldboError, InputError
from fieldbo.messages import (
    Action,
    Answer,
    Command,
    Correction,
    EndReason,
    Event,
    Fitted,
    Lost,
    Observation,
    Order,
    Rejected,
    Telemetry,
    kind_of,
    settles,
)
from fieldbo.record.record import Record
from fieldbo.results.curve import Step
from fieldbo.results.result import Result
from fieldbo.runs.holds import Holds
from fieldbo.runs.signals import unbroken
from fieldbo.runs.state import Away, RunState
from fieldbo.runs.steer import Inbox
from fieldbo.vehicles.base import Vehicle

_WAIT_S = 0.2

_RECALL_S = 10.0
"""How long to ask vehicles what became of lost orders."""

_DONE_OR_NOT = "the robot may have done it before the restart, and the battery can't pay for it twice"

_log = logging.getLogger(__name__)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal like it, during a run; `result` is complete up to the last observation."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


class Stopped(Interrupted):
    """An operator stopped the run; it can be resumed."""


class _StopRun(Exception):  # noqa: N818 - an operator's wish, not an error
    """An operator's command to stop arrived."""


class BrokenOffError(FieldboError):
    """An error during a run; `result` is complete up to the error."""

    def __init__(self, cause: FieldboError, result: Result) -> None:
        super().__init__(str(cause))
        self.result = result


class Loop:
    """The loop of one process: it keeps state, vehicles and record in step."""

    def __init__(
        self,
        state: RunState,
        vehicles: Sequence[Vehicle],
        record: Record | None,
        on_step: Callable[[Step], object] | None,
        on_event: Callable[[Event], object] | None,
        away: Away | None = None,
    ) -> None:
        self.state, self.vehicles, self.record, self.away = state, vehicles, record, away
        self.clock = vehicles[0].clock
        self.on_step, self.on_event = on_step, on_event
        self.inbox = None if record is None else Inbox(record)
        self.holds = Holds(state.agent)
        self.cancelled: set[str] = set()
        self.recalled: dict[int, list[Event]] = {}
        self.silent_since_s: dict[int, float] = {}

    def run(self) -> Result:
        """Run to the end, an error or an interrupt."""
        state = self.state
        try:
            self._begin()
            while state.idle or state.awaited or state.paused:
                for number in state.idle:
                    self._order(number)
                while (state.awaited or state.paused) and not state.idle:
                    self._listen()
                    self._obey()
            self._recall_lost()
            reason = list(state.stops.values())[-1]
            if self.record is not None:
                self.record.end(reason)
        except (KeyboardInterrupt, Exception) as error:
            self._hold()
            if isinstance(error, KeyboardInterrupt | _StopRun):
                raise (Stopped if isinstance(error, _StopRun) else Interrupted)(state.result()) from None
            if isinstance(error, FieldboError):
                raise BrokenOffError(error, state.result()) from error
            raise
        state.end_reason = reason
        state.agent.surface.release()
        return state.result()

    def _begin(self) -> None:
        state = self.state
        if state.agent.mission.world.no_go:  # closed before this process began
            self._adopt()
        if state.end_reason is not None:
            self._reopen(state.end_reason)
        self._repeat_fits()
        if state.agent.issued:
            self._reconnect()
        for number in state.idle:  # an idle vehicle may report its position and battery
            self._receive(self.vehicles[number].events(0.0))
        if state.news_pending:  # the run stopped before every vehicle had reported
            self._listen()
        self._obey()

    def _hold(self) -> None:
        """Tell every vehicle to hold its position, even if others fail or a second Ctrl-C arrives."""
        asked = [vehicle.ask_to_hold for vehicle in self.vehicles]
        held = [vehicle.hold for vehicle in self.vehicles]
        with suppress(KeyboardInterrupt), unbroken():
            for hold in (*asked, *held) if len(held) > 1 else held:
                try:
                    hold()
                except Exception as error:  # at once: closing the vehicles may take a while
                    _log.critical("%s", error)

    def _reconnect(self) -> None:
        """Give new vehicles their history; send outstanding orders again unless their outcome is known."""
        agent = self.state.agent
        received = {_part(event) for event in agent.history if isinstance(event, Observation)}
        for number, vehicle in enumerate(self.vehicles):
            orders = [i.order for i in agent.issued.values() if i.order.vehicle == number]
            vehicle.resume(orders, [event for event in agent.history if _is_from(event, number, agent)])
            if self.away is not None:
                vehicle.catch_up(self.away.now_s(number))
        for order, number in list(self.state.outstanding.items()):
            events = self.vehicles[number].outcome(order)
            new = [event for event in events or [] if _part(event) not in received]
            if not any(settles(event) for event in new):
                given, vehicle = agent.issued[order].order, self.vehicles[number]
                if vehicle.may_repeat(order) and not agent.vehicles[number].can_repeat(given):
                    # On record before the next order leads the vehicle away, where nobody would know why.
                    self._receive([*new, Lost(order, _DONE_OR_NOT)])
                    new = []
                else:
                    vehicle.send(given)
            self.recalled.setdefault(number, []).extend(new)
        for answer in self.state.entered:  # the process died before they had an outcome
            vehicle = self.vehicles[agent.issued[answer.order].order.vehicle]
            with suppress(InputError):
                vehicle.take(replace(answer, confirmed=True))
            self._receive(vehicle.events(0.0))
        self._take_back()
        self._recall_lost()
        self._report_step()

    def _reopen(self, reason: EndReason) -> None:
        """Continue a run that had ended: its vehicles were lost, or a correction undid its answer."""
        with unbroken():
            if self.record is not None:
                self.record.reopen(reason)
            self.state.reopen(reason)

    def _recall_lost(self) -> None:
        """Ask the vehicles what became of lost orders, and for parts that are missing, for a while."""
        agent, end_s = self.state.agent, self.clock.now_s() + _RECALL_S
        outcomes = (event for event in agent.history if isinstance(event, Observation | Rejected))
        settled = {event.order for event in outcomes if settles(event)}
        lost = {event.order for event in agent.history if isinstance(event, Lost)} - settled
        parts = dict[str, set[int]]()
        for event in agent.history:
            if isinstance(event, Observation):
                parts.setdefault(event.order, set()).add(event.part)
        lacking = {order for order, known in parts.items() if max(known) >= len(known)}
        lacking -= self.state.outstanding.keys()  # what they brought is on its way
        received = {(order, part) for order, known in parts.items() for part in known}
        for order in [order for order in agent.issued if order in lost | lacking]:
            if self.clock.now_s() > end_s:
                return
            vehicle = self.vehicles[agent.issued[order].order.vehicle]
            events = [event for event in vehicle.outcome(order) or [] if not isinstance(event, Lost)]
            self._receive([event for event in events if _part(event) is None or _part(event) not in received])

    def _order(self, number: int) -> None:
        state, agent = self.state, self.state.agent
        with unbroken():
            while (fitted := agent.refit()) is not None:
                self._tell(fitted)
            orders = agent.ask_batch(state.mission.batch, number)
            if orders:
                self._record_orders(orders)
                state.issue(orders)
            else:
                reason = agent.vehicles[number].reason
                assert reason is not None
                if self.record is not None:
                    self.record.stop(number, reason, agent.memory, agent.endings.get(number))
                state.stop(number, reason)
        for order in orders:
            self.vehicles[number].send(order)

    def _record_orders(self, orders: Sequence[Order]) -> None:
        if self.record is not None:
            issued = (self.state.agent.issued[str(order.id)] for order in orders)
            self.record.orders(
                ((i.order, i.memory, i.why, i.origin.value) for i in issued), self.state.new_scores()
            )

    def _obey(self) -> None:
        for entry in [] if self.inbox is None else self.inbox.new():
            if isinstance(entry, Answer):
                self._answer(entry)
            else:
                self._command(entry)

    def _answer(self, answer: Answer) -> None:
        """Record a person's answer, and give it to the vehicle of its order, which may refuse it.

        What it amounts to is taken at once: nobody listens to a vehicle whose part is over.
        """
        issued = self.state.agent.issued.get(answer.order)
        try:
            if issued is None:
                raise InputError(f"there is no order {answer.order}")
            self.vehicles[issued.order.vehicle].take(answer)
        except InputError as error:
            fix = f"; {error.fix}" if error.fix else ""
            answer = replace(answer, refused=f"{error.problem}{fix}")
        self._receive([answer])
        if issued is not None and not answer.refused:
            self._receive(self.vehicles[issued.order.vehicle].events(0.0))

    def _command(self, command: Command) -> None:
        for named in self.holds.named(command):
            self._give(named)

    def _give(self, command: Command) -> None:
        """Record a command that names its hold, if any, and obey it unless it can't be obeyed."""
        with unbroken():
            command = self.state.agent.completed(command)
            self._tell(command)
        if command.refused:
            return
        self._take_back()  # first of all: the vehicle may be on its way into the area
        if command.action is Action.NO_GO:
            self._adopt()
        if command.action is Action.STOP:
            raise _StopRun

    def _adopt(self) -> None:
        """Have the vehicles keep out of the areas that were closed."""
        for vehicle in self.vehicles:
            vehicle.adopt(self.state.agent.mission)

    def _take_back(self) -> None:
        """Cancel the orders that commands took back; the last first, so that none begins meanwhile."""
        for order, number in reversed(list(self.state.outstanding.items())):
            if order in self.state.agent.withdrawn and order not in self.cancelled:
                self.cancelled.add(order)
                self.vehicles[number].cancel(order)

    def _listen(self) -> None:
        """Receive the events of each awaited or paused vehicle once; wait a little if there are none.

        A vehicle whose part is over may still report, or correct, what its orders brought.
        """
        began_s, waits = self.clock.now_s(), not self.state.awaited
        for number in self.state.awaited:
            self._receive(self.recalled.pop(number, []) or self.vehicles[number].events(_WAIT_S))
            self._supervise(number)
        for number in [number for number in self.state.paused if number not in self.state.awaited]:
            self._receive(self.vehicles[number].events(_WAIT_S))
            self._bring_home(number)
        for number in sorted(self.state.stops.keys() - set(self.state.awaited)):
            self._receive(_of_orders(self.vehicles[number].events(0.0)))
        if waits:  # some vehicles return at once
            self.clock.sleep(began_s + _WAIT_S - self.clock.now_s())

    def _bring_home(self, number: int) -> None:
        """End the pause of a vehicle whose battery, or time, is just enough for the trip home."""
        if self.state.agent.vehicles[number].must_return:
            by = "fieldbo: what is left is just enough for the trip home"
            self._command(Command(uuid.uuid4().hex, Action.HOME, vehicle=number, by=by))

    def _receive(self, events: Sequence[Event]) -> None:
        with unbroken():
            for event in events:
                self._tell(event)

    def _supervise(self, number: int) -> None:
        """Cancel the orders of a vehicle that might not get home; give up one that stays silent too long."""
        agent = self.state.agent
        if agent.at_risk(number):
            for order in [order for order, vehicle in self.state.outstanding.items() if vehicle == number]:
                self.vehicles[number].cancel(order)
        if not agent.waits(number):
            self.silent_since_s.pop(number, None)
            return
        now_s, patience_s = self.clock.now_s(), self.state.mission.vehicles[number].when_lost.patience_s
        if now_s > self.silent_since_s.setdefault(number, now_s) + patience_s:
            agent.abandon(number)

    def _tell(self, event: Event) -> None:
        if (usable := self._usable(event)) is None:
            return
        event = usable
        if self.record is not None:
            self.record.event(event)
        if self.on_event is not None:
            self.on_event(event)
        settled = self.state.tell(event, checked=True)
        if isinstance(event, Telemetry):
            for command in self.holds.take(event):
                self._give(command)
        if isinstance(event, Correction):
            self._repeat_fits()
        if settled or isinstance(event, Correction):
            self._report_step()

    def _repeat_fits(self) -> None:
        """Repeat the fits that had seen a reading which was corrected since."""
        with unbroken():
            while self.state.agent.online_model.to_repeat and (fitted := self.state.agent.refit()):
                self._tell(fitted)

    def _usable(self, event: Event) -> Event | None:
        """Return an event that the agent can take in; note others, which must not be replayed for ever.

        If such an event settles an order, the order is lost: something happened, and nobody knows what.
        """
        agent, order = self.state.agent, getattr(event, "order", None)
        try:
            agent.check(event)
            return event
        except InputError as error:
            problem = str(error)
        if self.record is not None:
            self.record.note(f"a {kind_of(event)} was ignored: {problem}", order)
        if order in self.state.outstanding and settles(event):
            return Lost(order, f"its {kind_of(event)} can't be used: {problem.splitlines()[0]}")
        return None

    def _report_step(self) -> None:
        if self.on_step is not None and self.state.curve:
            self.on_step(self.state.curve[-1])


def _of_orders(events: Sequence[Event]) -> list[Event]:
    """Return what events say about orders, without telemetry."""
    return [event for event in events if not isinstance(event, Telemetry)]


def _part(event: Event) -> tuple[str, int] | None:
    """Return the order and part of an observation; None for any other event."""
    return (event.order, event.part) if isinstance(event, Observation) else None


def _is_from(event: Event, vehicle: int, agent: Agent) -> bool:
    """Return True if an event came from this vehicle."""
    if isinstance(event, Command | Answer):
        return False
    if isinstance(event, Telemetry):
        return event.vehicle == vehicle
    return not isinstance(event, Fitted) and agent.issued[event.order].order.vehicle == vehicle
