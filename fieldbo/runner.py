"""The only loop: ask, write the order, send it, read events, write them, tell them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType

from fieldbo.agent import Agent
from fieldbo.errors import FieldboError, InputError
from fieldbo.exchange import EndReason, Event, Observation, Stop
from fieldbo.mission import Mission
from fieldbo.record import Record
from fieldbo.result import Result, Scorer, Step
from fieldbo.threads import one_blas_thread
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
    simulated = vehicles is None
    crew = [Simulated(mission, k) for k in range(len(mission.crew))] if vehicles is None else list(vehicles)
    if len(crew) != len(mission.crew):
        raise InputError(f"{len(crew)} vehicles", expected=f"{len(mission.crew)}, as the mission has")
    if record is not None and not record.empty:
        raise InputError(
            f"{record.file} holds a run already", expected="a new record: a run never writes over another"
        )
    if record is None and not simulated:
        raise InputError("real vehicles without a record", expected="a record: nothing told may be lost")
    with ExitStack() as stack:
        for vehicle in crew:
            stack.enter_context(vehicle)
        with one_blas_thread():
            return _Run(mission, crew, record, on_step).go()


class _Run:
    """One execution: the agent, its vehicles and the record, in step."""

    def __init__(
        self,
        mission: Mission,
        vehicles: list[Vehicle] | list[Simulated],
        record: Record | None,
        on_step: Callable[[Step], object] | None,
    ) -> None:
        self.mission, self.vehicles, self.record, self.on_step = mission, vehicles, record, on_step
        self.agent = Agent(mission, record.name if record is not None else mission.name)
        self.scorer = Scorer(mission)
        self.curve: list[Step] = []
        self.waiting: dict[str, int] = {}
        self.reasons: list[EndReason] = []

    def go(self) -> Result:
        """Run to the end, or to an interrupt."""
        idle = set(range(len(self.vehicles)))
        try:
            while idle or self.waiting:
                for number in sorted(idle):
                    self._order(number)
                idle = self._listen()
        except (KeyboardInterrupt, FieldboError) as error:
            for vehicle in self.vehicles:
                vehicle.hold()
            result = Result.of(self.agent, self.curve)
            if isinstance(error, FieldboError):
                raise BrokenOffError(error, result) from error
            raise Interrupted(result) from None
        reason = self.reasons[-1]
        if self.record is not None:
            self.record.end(reason)
        self.agent.surface.release()
        return Result.of(self.agent, self.curve, reason)

    def _order(self, number: int) -> None:
        """Ask for a vehicle's next orders, write them, send them; or take its Stop."""
        agent = self.agent
        with unbroken():
            fitted = agent.refit()
            if fitted is not None:
                self._tell(fitted)
            orders = agent.ask_batch(self.mission.batch, number)
            if not orders:
                stop = agent.ask(number)
                assert isinstance(stop, Stop)
                self.reasons.append(stop.reason)
                if self.record is not None:
                    self.record.stop(number, stop.reason)
                return
            for order in orders:
                assert order.id is not None
                if self.record is not None:
                    self.record.order(order, agent.memories[order.id], agent.whys[order.id])
                self.waiting[order.id] = number
        for order in orders:
            self.vehicles[number].send(order)

    def _listen(self) -> set[int]:
        """Read events until some vehicle has nothing left to do; return those that have not."""
        idle: set[int] = set()
        while self.waiting and not idle:
            for number in sorted(set(self.waiting.values())):
                events = self.vehicles[number].events(_WAIT_S)
                with unbroken():  # what was handed over is taken in whole
                    for event in events:
                        self._tell(event)
                        order = getattr(event, "order", None)
                        settled = not isinstance(event, Observation) or event.last
                        if order in self.waiting and settled:
                            del self.waiting[order]
                            self._score()
                            if number not in self.waiting.values():
                                idle.add(number)
        return idle

    def _tell(self, event: Event) -> None:
        """Write an event, then tell it; of an order that this run never gave it is written only."""
        if self.record is not None:
            self.record.event(event)
        if self.agent.knows(event):
            self.agent.tell(event)

    def _score(self) -> None:
        step = self.scorer.step(self.agent)
        self.curve.append(step)
        if self.on_step is not None:
            self.on_step(step)
