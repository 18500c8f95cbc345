"""The run loop: ask, record the orders, send them, receive events, record them, tell the agent."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.errors import FieldboError, InputError
from fieldbo.messages import (
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
)
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.results.curve import Step
from fieldbo.results.result import Result
from fieldbo.runs.load import mission_of, record_file
from fieldbo.runs.record.record import Record
from fieldbo.runs.state import RunState
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.simulated import Simulated

_WAIT_S = 0.2

_RECALL_S = 10.0
"""How long to ask vehicles what became of lost orders."""

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that stop a run; Windows lacks the last one."""

_log = logging.getLogger(__name__)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal like it, during a run; `result` is complete up to the last observation."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


class BrokenOffError(FieldboError):
    """An error during a run; `result` is complete up to the error."""

    def __init__(self, cause: FieldboError, result: Result) -> None:
        super().__init__(str(cause))
        self.result = result


@contextmanager
def unbroken() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and SIGHUP until the block is done, so that no update stays half finished.

    Only signals that Python handles are delayed: others end the process at once, or are ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    handlers = {n: handler for n in numbers if callable(handler := signal.getsignal(n))}
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    try:
        with ExitStack() as restored:  # each one, even if a signal arrives in between
            for number, handler in handlers.items():
                restored.callback(signal.signal, number, handler)
                signal.signal(number, note)
            yield
    finally:
        for number in received:
            handlers[number](number, None)


def run(
    mission: Mission | Path | str,
    vehicles: Sequence[Vehicle] | None = None,
    record: Record | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> Result:
    """Run a mission until its question is answered or its battery is spent.

    Parameters
    ----------
    mission : Mission, Path or str
        A mission, or the name or TOML file of one.
    vehicles : sequence of Vehicle, optional
        One per vehicle of the mission. By default, the world is simulated.
    record : Record, optional
        An empty record. Each order is written before it is sent, each event before the agent gets it.
    on_step : Callable, optional
        Called with a `Step` after each settled order.
    on_event : Callable, optional
        Called with each event once it is recorded.

    Returns
    -------
    Result

    Raises
    ------
    Interrupted
        On Ctrl-C; its `result` is complete up to the last observation.
    BrokenOffError
        On an error of the model, a policy, a vehicle or the record, with the `result` up to there.
    InputError
        Vehicles come without a record, or their number differs from the mission's.

    Examples
    --------
    >>> import fieldbo
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    >>> fieldbo.run(mission).cost <= 300
    True
    """
    mission = _mission(mission)
    if record is not None and not record.empty:
        raise InputError(
            f"{record.file} already holds a run",
            expected="a new record: a run never overwrites another one",
            fix=f"resume that run: fieldbo resume {record.file.parent}",
        )
    if record is None and vehicles is not None:
        raise InputError(
            "vehicles without a record",
            expected="a record, so that no reading of a real vehicle can be lost",
            fix="make one with fieldbo.Record.create(file, name, {}) and pass it as record",
        )
    state = RunState(mission, mission.name if record is None else record.name)
    return _finish(state, vehicles, record, on_step, on_event)


def resume(
    mission: Mission | Path | str,
    record: Record | None = None,
    vehicles: Sequence[Vehicle] | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> Result:
    """Resume a run from its record, as if it had never been interrupted.

    The record is replayed: no query is repeated and no reading or cost is counted twice. Outstanding orders
    are sent again, unless their vehicle reports how they ended.

    Parameters
    ----------
    mission : Mission, Path or str
        The mission that the record began with, or the name or TOML file of it. Without `record`, the name or
        path of a run folder, which holds both.
    record : Record, optional
    vehicles : sequence of Vehicle, optional
        New vehicles, one per vehicle of the mission. By default, the world is simulated.
    on_step : Callable, optional
        Called with a `Step` once for the replayed part, and after each order that is settled from then on.
    on_event : Callable, optional
        Called with each new event once it is recorded.

    Returns
    -------
    Result
        The result of the whole run. If the run has ended already, nothing is run, unless it ended because its
        vehicles were lost and you pass vehicles: then it continues.

    Raises
    ------
    Interrupted, BrokenOffError
        As for `run`.
    InputError
        The run began with vehicles and none are given, or their number differs from the mission's.
    RecordError
        Another process is writing to the record.
    """
    if record is None:
        if not isinstance(mission, str | Path):
            raise InputError(
                f"a {type(mission).__name__} without a record",
                expected="a mission and its record, or the name or path of a run folder",
                fix="pass the record as well, or only the folder: fieldbo.resume('runs/lake-level-set-1')",
            )
        with Record(record_file(mission)) as opened:
            return resume(mission_of(opened), opened, vehicles, on_step, on_event)
    mission = _mission(mission)
    reopened = vehicles is not None and record.end_reason is EndReason.VEHICLE_LOST
    ended = record.end_reason is not None and not reopened
    if not ended and vehicles is None and record.description.get("vehicles"):
        raise InputError(
            f"{record.name} began with vehicles, and none are given",
            expected="vehicles: simulated readings must not follow real ones",
            fix="pass vehicles, or resume it from the command line: fieldbo resume",
        )
    if not ended:
        record.claim()
    state = RunState(mission, record.name)
    state.replay(record.rows())
    if not ended:
        return _finish(state, vehicles, record, on_step, on_event)
    if repeated := state.repeat_fits():  # the process that corrected a reading died before them
        record.events(repeated)
    return state.result()


def _mission(mission: object) -> Mission:
    """Return a mission, loaded if it is given by name or path."""
    if isinstance(mission, str | Path):
        return load_mission(mission)
    if isinstance(mission, Mission):
        return mission
    raise InputError(
        f"mission = {mission!r}",
        expected="a fieldbo.Mission, or the name or TOML file of one",
        fix="pass a name from fieldbo.list_missions(), or load a file with fieldbo.load_mission(file)",
    )


def _finish(
    state: RunState,
    vehicles: Sequence[Vehicle] | None,
    record: Record | None,
    on_step: Callable[[Step], object] | None,
    on_event: Callable[[Event], object] | None,
) -> Result:
    """Run a mission to its end from the given state."""
    count = len(state.mission.vehicles)
    if vehicles is None:
        vehicles = [Simulated(state.mission, number) for number in range(count)]
    if len(vehicles) != count:
        raise InputError(f"{len(vehicles)} vehicles", expected=f"{count}, as in the mission")
    with ExitStack() as stack:
        for vehicle in vehicles:
            stack.enter_context(vehicle)
        with one_blas_thread():
            return _Loop(state, vehicles, record, on_step, on_event).run()


class _Loop:
    """The loop of one process: it keeps state, vehicles and record in step."""

    def __init__(
        self,
        state: RunState,
        vehicles: Sequence[Vehicle],
        record: Record | None,
        on_step: Callable[[Step], object] | None,
        on_event: Callable[[Event], object] | None,
    ) -> None:
        self.state, self.vehicles, self.record = state, vehicles, record
        self.on_step, self.on_event = on_step, on_event
        self.recalled: dict[int, list[Event]] = {}
        self.silent_since_s: dict[int, float] = {}

    def run(self) -> Result:
        """Run to the end, an error or an interrupt."""
        state = self.state
        try:
            if state.end_reason is not None:
                self._reopen()
            self._repeat_fits()
            if state.agent.issued:
                self._reconnect()
            for number in state.idle:  # an idle vehicle may report its position and battery
                self._receive(self.vehicles[number].events(0.0))
            if state.news_pending:  # the run stopped before every vehicle had reported
                self._listen()
            while state.idle or state.awaited:
                for number in state.idle:
                    self._order(number)
                while state.awaited and not state.idle:
                    self._listen()
            self._recall_lost()
        except (KeyboardInterrupt, Exception) as error:
            self._hold()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(state.result()) from None
            if isinstance(error, FieldboError):
                raise BrokenOffError(error, state.result()) from error
            raise
        state.end_reason = list(state.stops.values())[-1]
        if self.record is not None:
            self.record.end(state.end_reason)
        state.agent.surface.release()
        return state.result()

    def _hold(self) -> None:
        """Tell every vehicle to hold its position, even if others fail or a second Ctrl-C arrives."""
        with suppress(KeyboardInterrupt), unbroken():
            for vehicle in self.vehicles:
                try:
                    vehicle.hold()
                except Exception as error:  # at once: closing the vehicles may take a while
                    _log.critical("%s", error)

    def _reconnect(self) -> None:
        """Give new vehicles their history; send outstanding orders again unless their outcome is known."""
        agent = self.state.agent
        received = {_part(event) for event in agent.history if isinstance(event, Observation)}
        for number, vehicle in enumerate(self.vehicles):
            orders = [i.order for i in agent.issued.values() if i.order.vehicle == number]
            vehicle.resume(orders, [event for event in agent.history if _is_from(event, number, agent)])
            if self.record is not None:
                vehicle.catch_up(_wall_s(self.record, agent, number))
        for order, number in self.state.outstanding.items():
            events = self.vehicles[number].outcome(order)
            new = [event for event in events or [] if _part(event) not in received]
            self.recalled.setdefault(number, []).extend(new)
            if not any(_settles(event) for event in new):
                self.vehicles[number].send(agent.issued[order].order)
        self._recall_lost()
        self._report_step()

    def _reopen(self) -> None:
        """Continue a run that had ended because its vehicles were lost."""
        with unbroken():
            if self.record is not None:
                self.record.reopen()
            self.state.reopen()

    def _recall_lost(self) -> None:
        """Ask the vehicles what became of the orders that were lost, for a while."""
        agent, end_s = self.state.agent, time.monotonic() + _RECALL_S
        outcomes = (event for event in agent.history if isinstance(event, Observation | Rejected))
        settled = {event.order for event in outcomes if _settles(event)}
        lost = {event.order for event in agent.history if isinstance(event, Lost)} - settled
        received = {_part(event) for event in agent.history if isinstance(event, Observation)}
        for order in [order for order in agent.issued if order in lost]:
            if time.monotonic() > end_s:
                return
            vehicle = self.vehicles[agent.issued[order].order.vehicle]
            events = [event for event in vehicle.outcome(order) or [] if not isinstance(event, Lost)]
            self._receive([event for event in events if _part(event) is None or _part(event) not in received])

    def _order(self, number: int) -> None:
        """Ask for the next orders of a vehicle, record and send them; or record why it stops."""
        state, agent = self.state, self.state.agent
        with unbroken():
            while (fitted := agent.refit()) is not None:
                self._tell(fitted)
            orders = agent.ask_batch(state.mission.batch, number)
            if orders:
                self._record_orders(orders)
                state.issue(orders)
            else:
                reason = agent.vehicles[number].ended
                assert reason is not None
                if self.record is not None:
                    self.record.stop(number, reason, agent.memory, agent.endings.get(number))
                state.stop(number, reason)
        for order in orders:
            self.vehicles[number].send(order)

    def _record_orders(self, orders: Sequence[Order]) -> None:
        if self.record is not None:
            issued = (self.state.agent.issued[str(order.id)] for order in orders)
            self.record.orders((i.order, i.memory, i.why) for i in issued)

    def _listen(self) -> None:
        """Receive the events of each awaited vehicle once."""
        for number in self.state.awaited:
            self._receive(self.recalled.pop(number, []) or self.vehicles[number].events(_WAIT_S))
            self._supervise(number)

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
        now_s, patience_s = time.monotonic(), self.state.mission.vehicles[number].when_lost.patience_s
        if now_s > self.silent_since_s.setdefault(number, now_s) + patience_s:
            agent.abandon(number)

    def _tell(self, event: Event) -> None:
        """Record an event, then pass it to the agent."""
        if (usable := self._usable(event)) is None:
            return
        event = usable
        if self.record is not None:
            self.record.event(event)
        if self.on_event is not None:
            self.on_event(event)
        settled = self.state.tell(event)
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
        if order in self.state.outstanding and _settles(event):
            return Lost(order, f"its {kind_of(event)} can't be used: {problem.splitlines()[0]}")
        return None

    def _report_step(self) -> None:
        if self.on_step is not None and self.state.curve:
            self.on_step(self.state.curve[-1])


def _part(event: Event) -> tuple[str, int] | None:
    """Return the order and part of an observation; None for any other event."""
    return (event.order, event.part) if isinstance(event, Observation) else None


def _wall_s(record: Record, agent: Agent, vehicle: int) -> float:
    """Return the present time of a vehicle's clock, which the wall clock continues while no planner runs."""
    time_s, written = 0.0, record.begun_utc
    for row in record.rows():
        message = row.body.get("message", {})
        if row.kind == "observation" and row.order in agent.issued:
            number = agent.issued[row.order].order.vehicle
        elif row.kind == "telemetry":
            number = message["vehicle"]
        else:
            continue
        if number == vehicle:
            times = [message.get("time_s"), *message.get("times_s", ())]
            time_s, written = max([time_s, *(t for t in times if t is not None)]), row.time_utc
    passed_s = (datetime.now(UTC) - datetime.fromisoformat(written)).total_seconds()
    return time_s + max(0.0, passed_s)


def _settles(event: Event) -> bool:
    """Return True if this is the last event of an order."""
    return isinstance(event, Rejected | Lost) or (isinstance(event, Observation) and event.last)


def _is_from(event: Event, vehicle: int, agent: Agent) -> bool:
    """Return True if an event came from this vehicle."""
    if isinstance(event, Telemetry):
        return event.vehicle == vehicle
    return not isinstance(event, Fitted) and agent.issued[event.order].order.vehicle == vehicle
