"""The only loop: ask, write the order, send it, read events, write them, tell them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.errors import FieldboError, InputError
from fieldbo.messages import Event, Fitted, Lost, Observation, Order, Rejected, Stop, Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.results.curve import Step
from fieldbo.results.result import Result
from fieldbo.runs.record.record import Record
from fieldbo.runs.state import RunState
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.simulated import Simulated

_WAIT_S = 0.2


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of a run; `result` holds everything up to the last observation."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


class BrokenOffError(FieldboError):
    """An error in the middle of a run; `result` holds everything up to it."""

    def __init__(self, cause: FieldboError, result: Result) -> None:
        super().__init__(str(cause))
        self.result = result


@contextmanager
def unbroken() -> Iterator[None]:
    """Put Ctrl-C off until the block is done, so that no belief is left half updated."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived:
            raise KeyboardInterrupt


def run(
    mission: Mission,
    vehicles: Sequence[Vehicle] | None = None,
    record: Record | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> Result:
    """Run a mission until its question is answered or its battery is spent.

    Parameters
    ----------
    mission : Mission
    vehicles : sequence of Vehicle, optional
        One for each of the mission's; by default the world is simulated.
    record : Record, optional
        Each order is written to it before it leaves, each event before it is told.
    on_step : Callable, optional
        Called with a `Step` after each settled order.
    on_event : Callable, optional
        Called with each event that is written, before it is told.

    Returns
    -------
    Result

    Raises
    ------
    Interrupted
        Ctrl-C; its `result` is complete up to the last observation.
    BrokenOffError
        An error of the model, a policy, a vehicle or the record, with the `result` up to it.
    InputError
        Real vehicles without a record, or not as many as the mission has.

    Examples
    --------
    >>> import fieldbo
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    >>> fieldbo.run(mission).cost <= 300
    True
    """
    if record is not None and not record.empty:
        raise InputError(
            f"{record.file} holds a run already",
            expected="a new record: a run never writes over another",
            fix=f"go on with that run: fieldbo resume {record.file.parent}",
        )
    if record is None and vehicles is not None:
        raise InputError("real vehicles without a record", expected="a record: nothing told may be lost")
    course = RunState(mission, mission.name if record is None else record.name)
    return _go(course, vehicles, record, on_step, on_event)


def resume(
    mission: Mission,
    record: Record,
    vehicles: Sequence[Vehicle] | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> Result:
    """Go on with a run from its record, as if it had never been broken off.

    The record is replayed: nothing is asked, read or paid for again. What was out when the run broke off is
    asked for again, or closed by what its vehicle says came of it.

    Parameters
    ----------
    mission : Mission
        The one that the record began with: `fieldbo.runs.load.mission_of` loads it.
    record : Record
    vehicles : sequence of Vehicle, optional
        One for each of the mission's, new; by default the world is simulated.
    on_step : Callable, optional
        Called with a `Step` once at the beginning, of how things stand, and after each order that is settled
        from then on.
    on_event : Callable, optional
        Called with each event that is written from now on, before it is told.

    Returns
    -------
    Result
        Of the whole run; of one that has ended, what came of it then.

    Raises
    ------
    Interrupted, BrokenOffError
        As for `run`.
    InputError
        It was begun with vehicles, and none are given; or not as many as the mission has.
    RecordError
        Another process is writing to the record.
    """
    ended = record.end_reason is not None
    if not ended and vehicles is None and record.description.get("vehicles"):
        raise InputError(
            f"{record.name} was begun with vehicles, and none are given",
            expected="those that go on with it: what a simulation reads is no reading of theirs",
        )
    if not ended:
        record.claim()
    course = RunState(mission, record.name)
    course.replay(record.rows())
    return course.result() if ended else _go(course, vehicles, record, on_step, on_event)


def _go(
    course: RunState,
    vehicles: Sequence[Vehicle] | None,
    record: Record | None,
    on_step: Callable[[Step], object] | None,
    on_event: Callable[[Event], object] | None,
) -> Result:
    """Run to the end from where a course stands."""
    mission = course.mission
    numbers = range(len(mission.vehicles))
    crew = [Simulated(mission, k) for k in numbers] if vehicles is None else list(vehicles)
    if len(crew) != len(mission.vehicles):
        raise InputError(f"{len(crew)} vehicles", expected=f"{len(mission.vehicles)}, as the mission has")
    with ExitStack() as stack:
        for vehicle in crew:
            stack.enter_context(vehicle)
        with one_blas_thread():
            return _Run(course, crew, record, on_step, on_event).go()


class _Run:
    """One execution: the course of the run, its vehicles and the record, in step."""

    def __init__(
        self,
        course: RunState,
        vehicles: Sequence[Vehicle],
        record: Record | None,
        on_step: Callable[[Step], object] | None,
        on_event: Callable[[Event], object] | None,
    ) -> None:
        self.course, self.vehicles, self.record = course, vehicles, record
        self.on_step, self.on_event = on_step, on_event
        self.recalled: dict[int, list[Event]] = {}
        self.silent_s: dict[int, float] = {}

    def go(self) -> Result:
        """Run to the end, or to an interrupt."""
        course = self.course
        try:
            if course.agent.issued:
                self._take_up()
            self._hear_idle()
            if course.listening:  # it broke off before all were heard
                self._listen()
            while course.idle or course.expected:
                for number in course.idle:
                    self._order(number)
                while course.expected and not course.idle:
                    self._listen()
        except (KeyboardInterrupt, Exception) as error:
            self._hold()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(course.result()) from None
            if isinstance(error, FieldboError):
                raise BrokenOffError(error, course.result()) from error
            raise
        course.end_reason = list(course.stops.values())[-1]
        if self.record is not None:
            self.record.end(course.end_reason)
        course.agent.surface.release()
        return course.result()

    def _hold(self) -> None:
        """Have every vehicle stay where it is, whatever becomes of the others, and of a second Ctrl-C."""
        with suppress(KeyboardInterrupt), unbroken():
            for vehicle in self.vehicles:
                with suppress(Exception):  # one whose link is down holds no other up
                    vehicle.hold()

    def _hear_idle(self) -> None:
        """Hear what vehicles that are at nothing have to say: where they are, and with how much left."""
        for number in self.course.idle:
            self._take_in(self.vehicles[number].events(0.0))

    def _take_up(self) -> None:
        """Tell new vehicles what the old ones did; send what is out, unless it is known what came of it."""
        agent = self.course.agent
        told = {_part(event) for event in agent.history if isinstance(event, Observation)}
        for number, vehicle in enumerate(self.vehicles):
            orders = [i.order for i in agent.issued.values() if i.order.vehicle == number]
            vehicle.resume(orders, [event for event in agent.history if _of(event, number, agent)])
        for order, number in self.course.waiting.items():
            events = self.vehicles[number].outcome(order)
            new = [event for event in events or [] if _part(event) not in told]
            self.recalled.setdefault(number, []).extend(new)
            if not any(_settles(event) for event in new):
                self.vehicles[number].send(agent.issued[order].order)
        self._show()

    def _order(self, number: int) -> None:
        """Ask for a vehicle's next orders, write them, send them; or take its Stop."""
        agent = self.course.agent
        with unbroken():
            fitted = agent.refit()
            if fitted is not None:
                self._tell(fitted)
            orders = agent.ask_batch(self.course.mission.batch, number)
            if orders:
                self._write(orders)
            else:
                self._stop(number)
        for order in orders:
            self.vehicles[number].send(order)

    def _write(self, orders: Sequence[Order]) -> None:
        """Write orders that are about to leave."""
        agent = self.course.agent
        if self.record is not None:
            issued = (agent.issued[str(order.id)] for order in orders)
            self.record.orders((i.order, i.memory, i.why) for i in issued)
        self.course.ordered(orders)

    def _stop(self, number: int) -> None:
        """Take a vehicle's Stop."""
        agent = self.course.agent
        stop = agent.ask(number)
        assert isinstance(stop, Stop)
        if self.record is not None:
            self.record.stop(number, stop.reason, agent.memory, agent.endings.get(number))
        self.course.stopped(number, stop.reason)

    def _listen(self) -> None:
        """Read the events of each vehicle that is to be heard of, once."""
        for number in self.course.expected:
            self._take_in(self.recalled.pop(number, []) or self.vehicles[number].events(_WAIT_S))
            self._look_after(number)

    def _take_in(self, events: Sequence[Event]) -> None:
        with unbroken():  # what was handed over is taken in whole
            for event in events:
                self._tell(event)

    def _look_after(self, number: int) -> None:
        """Have a vehicle that might not get home break off; give one up that was waited for long enough."""
        agent = self.course.agent
        if agent.at_risk(number):
            for order in [order for order, one in self.course.waiting.items() if one == number]:
                self.vehicles[number].cancel(order)
        if not agent.waits(number):
            self.silent_s.pop(number, None)
            return
        now_s, patience_s = time.monotonic(), self.course.mission.vehicles[number].when_lost.patience_s
        if now_s > self.silent_s.setdefault(number, now_s) + patience_s:
            agent.abandon(number)

    def _tell(self, event: Event) -> None:
        """Write an event, then tell it; of an order that this run never gave it is written only."""
        if self.record is not None:
            self.record.event(event)
        if self.on_event is not None:
            self.on_event(event)
        if self.course.told(event):
            self._show()

    def _show(self) -> None:
        """Say how things stand."""
        if self.on_step is not None and self.course.curve:
            self.on_step(self.course.curve[-1])


def _part(event: Event) -> tuple[str, int] | None:
    """Return the order and part of an observation; None of any other event."""
    return (event.order, event.part) if isinstance(event, Observation) else None


def _settles(event: Event) -> bool:
    """Say whether an event of an order is the last of it."""
    return isinstance(event, Rejected | Lost) or (isinstance(event, Observation) and event.last)


def _of(event: Event, vehicle: int, agent: Agent) -> bool:
    """Say whether an event came from a vehicle."""
    if isinstance(event, Telemetry):
        return event.vehicle == vehicle
    return not isinstance(event, Fitted) and agent.issued[event.order].order.vehicle == vehicle
