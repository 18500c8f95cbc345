"""A robot at the other end of a link: watched for silence, given up in time, told of once.

Orders go out one at a time. Each is settled once: by what the robot did, by its refusal, or as lost when
the robot falls silent or does not finish in time. What the robot of a lost order tells later is passed on
all the same. All waiting is done by a monotonic clock of this machine.
"""

from __future__ import annotations

import math
import queue
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fieldbo._numerics.arrays import Array
from fieldbo.errors import VehicleError
from fieldbo.messages import Event, GoHome, Lost, Observation, Order, Query, Rejected
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.remote.arrival import ArrivalDetector
from fieldbo.vehicles.remote.link import At, Charge, Connection, Done, Down, Goal, Link, Refused, Signal
from fieldbo.vehicles.remote.reports import ReportFilter
from fieldbo.vehicles.remote.settings import VehicleFile

_TELEMETRY_S = 5.0
"""While an order is out, telemetry is told so often."""

_LISTEN_S = 0.05
"""Deadlines are looked at so often."""


@dataclass
class _Out:
    """The order that the robot is at; times on this machine's clock."""

    order: Order
    errand: Goal
    left_s: float
    until_s: float
    given_up: str = ""


class Remote(Vehicle):
    """Carries orders out through a link to a robot.

    Parameters
    ----------
    mission : Mission
    number : int
        Which of the mission's vehicles.
    link : Link
    settings : VehicleFile
    session : str
        Belongs to the run alone: a robot may remember errands of other runs of the same name.

    Raises
    ------
    InputError
        The frame does not fit the domain.
    """

    def __init__(
        self, mission: Mission, number: int, link: Link, settings: VehicleFile, session: str
    ) -> None:
        self.mission, self.link, self.session = mission, link, session
        self.crew, self.watch = mission.vehicles[number], settings.watch
        self.ground = settings.ground(mission.world.domain.axes)
        self._account = ReportFilter(mission, number, settings)
        self._pilot = None if link.reports else ArrivalDetector(settings.arrival)
        self._signals: queue.SimpleQueue[Signal] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._orders: dict[str, Order] = {}
        self._outcomes: dict[str, list[Event]] = {}
        self._settled: set[str] = set()
        self._events: list[Event] = []
        self._queue: deque[Order] = deque()
        self._out: _Out | None = None
        self._heard_s = self._told_s = -math.inf
        self._down = ""

    # -- the link ------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the robot is to be found."""
        return self.link.address

    def connect(self) -> None:
        """Open the link, and wait for the robot's first sign of life.

        Raises
        ------
        VehicleError
            The middleware is not there, or no robot answers.
        """
        if self._connection is not None:
            return
        self._connection = self.link.open(self.mission, self.ground, self._signals.put)
        try:
            end = time.monotonic() + self.watch.connect_s
            while self._heard_s < 0 and time.monotonic() < end:
                self._listen(_LISTEN_S)
        except BaseException:
            self.close()
            raise
        if self._heard_s < 0:
            self.close()
            raise VehicleError(
                f"no robot answers at {self.link.address}: no sign of life in {self.watch.connect_s:g} s"
                + (f"; {self._down}" if self._down else "")
                + "\n  fix:      start the robot's program, or a simulated one: fieldbo robot --help"
            )

    def __enter__(self) -> Remote:
        self.connect()
        return self

    def close(self) -> None:
        """Close the link; the robot is left as it is."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def hold(self) -> None:
        """Have the robot stay where it is."""
        if self._connection is not None:
            self._connection.hold()

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Take a run up: all its orders, and what came of them."""
        for order in orders:
            self._orders[str(order.id)] = self._homed(order)
        for event in events:
            if isinstance(event, Observation | Rejected | Lost) and event.order in self._orders:
                self._note(event)
        self._account.resume(orders, events)
        if self._connection is not None:  # what became of lost ones may be known by now
            for name in (name for name in self._outcomes if name not in self._settled):
                self._connection.ask(f"{name}#{self.session}")

    # -- orders --------------------------------------------------------------------------------------

    def send(self, order: Order) -> None:
        """Put an order behind those that are out; one that was given before is not carried out again."""
        name = str(order.id)
        if name in self._settled or name in {str(one.id) for one in self._unsettled}:
            return
        self._orders[name] = self._homed(order)
        self._queue.append(self._orders[name])
        self._go_on()

    @property
    def _unsettled(self) -> list[Order]:
        """The order that the robot is at, and those behind it."""
        return [*([self._out.order] if self._out is not None else []), *self._queue]

    def _homed(self, order: Order) -> Order:
        """Return the way home with the place of home."""
        return replace(order, site=self.crew.home) if isinstance(order, GoHome) else order

    def _go_on(self) -> None:
        """Let the next order leave if the robot is at none."""
        if self._out is not None or not self._queue or self._connection is None:
            return
        order = self._queue.popleft()
        now_s, errand = time.monotonic(), self._errand(order)
        self._out = _Out(order, errand, now_s, now_s + self._account.allowed_s(order))
        self._account.begin(order)
        if self._pilot is not None:
            self._pilot.begin(errand, now_s)
        self._told_s = now_s
        self._connection.go(errand)

    def _errand(self, order: Order) -> Goal:
        wire, seconds = f"{order.id}#{self.session}", self._account.declared_s(order)
        if isinstance(order, Query):
            return Goal(wire, order.site, order.controls, order.level, seconds=seconds)
        assert order.site is not None
        return Goal(wire, order.site, home=True, seconds=seconds)

    def _order_of(self, errand: str) -> str | None:
        """Return the order of this run that an errand is; None if it is another run's."""
        order, _, session = errand.rpartition("#")
        return order if session == self.session and order in self._orders else None

    def cancel(self, order: str) -> None:
        """Have an order given up; if the robot says nothing to that, it is lost."""
        if self._out is not None and self._out.order.id == order:
            self._give_up(self._out, "cancelled")
        for one in [one for one in self._queue if one.id == order]:
            self._queue.remove(one)
            self._tell(Rejected(order, "cancelled before it left"))

    def _give_up(self, out: _Out, why: str) -> None:
        """Cancel what is out; wait as long as for any sign of life for what the robot says to that."""
        if out.given_up or self._connection is None:
            return
        out.given_up, out.until_s = why, time.monotonic() + self.watch.silence_s
        self._connection.cancel(out.errand.id)
        if self._pilot is not None and (cut := self._pilot.given_up(time.monotonic())) is not None:
            self._done(cut)

    def outcome(self, order: str) -> list[Event] | None:
        """Return what came of an order, or None where neither this end nor the robot remembers it."""
        name = f"{order}#{self.session}"
        if order not in self._settled and self._connection is not None and self._connection.ask(name):
            end = time.monotonic() + self.watch.silence_s
            while order not in self._settled and time.monotonic() < end:
                self._listen(_LISTEN_S)
        if order not in self._settled:
            return None
        told = self._outcomes[order]
        self._events = [event for event in self._events if event not in told]
        return list(told)

    # -- events --------------------------------------------------------------------------------------

    def events(self, timeout_s: float) -> list[Event]:
        """Return what was reported since the last call; wait up to `timeout_s` for something."""
        end = time.monotonic() + timeout_s
        while True:
            left_s = end - time.monotonic()
            self._listen(min(_LISTEN_S, max(0.0, left_s)))
            self._look_at_the_clock()
            self._go_on()
            if self._events or left_s <= 0:
                told, self._events = self._events, []
                return told

    def _listen(self, wait_s: float) -> None:
        """Take in the signals that have come; wait for the first."""
        try:
            signal = self._signals.get(timeout=wait_s) if wait_s > 0 else self._signals.get_nowait()
            while True:
                self._take(signal)
                signal = self._signals.get_nowait()
        except queue.Empty:
            return

    def _take(self, signal: Signal) -> None:
        now_s = time.monotonic()
        if isinstance(signal, Down):
            self._down = signal.why
            if self._out is not None:
                self._tell(Lost(str(self._out.order.id), signal.why))
            return
        back = math.isfinite(self._heard_s) and now_s > self._heard_s + self.watch.silence_s
        self._heard_s = now_s
        if isinstance(signal, At) and not self._account.is_place(signal.position):
            return  # a glitch
        if self._pilot is not None:
            signal = self._pilot.heard(signal, now_s)
        match signal:
            case At():
                self._account.at(signal.position)
            case Charge():
                back |= self._account.charge(signal)
            case Refused():
                order = self._order_of(signal.errand)
                if order is not None and order not in self._settled and self._account.has_begun(order):
                    self._tell(Rejected(order, signal.reason))
            case Done():
                self._done(signal)
        if back or now_s >= self._told_s + _TELEMETRY_S:
            self._tell_where()

    def _done(self, done: Done) -> None:
        """Tell what was done, each part once; also of an order that was taken for lost."""
        order = self._order_of(done.errand)
        if order is None or order in self._settled or not self._account.has_begun(order):
            return
        told = {event.part for event in self._outcomes.get(order, []) if isinstance(event, Observation)}
        if done.part not in told:
            self._tell(self._account.observation(self._orders[order], done))

    def _look_at_the_clock(self) -> None:
        """Give an order up that takes too long; tell one for lost of which nothing more is heard."""
        out, now_s = self._out, time.monotonic()
        if out is None:
            return
        if self._pilot is not None and (failed := self._pilot.waited(now_s)) is not None:
            self._done(failed)
            return
        silent_s = now_s - max(self._heard_s, out.left_s)
        if silent_s > self.watch.silence_s:
            self._tell(Lost(str(out.order.id), f"nothing was heard of the robot for {silent_s:.1f} s"))
        elif now_s > out.until_s and out.given_up:
            self._tell(Lost(str(out.order.id), out.given_up))
        elif now_s > out.until_s:
            self._give_up(out, f"not done in {now_s - out.left_s:.0f} s")

    def _tell(self, event: Observation | Rejected | Lost) -> None:
        """Tell what came of an order; where the robot is, and what it has left, right behind it."""
        out = self._out
        self._note(event)
        self._events.append(event)
        if isinstance(event, Observation) and not event.last:
            return
        if out is not None and out.order.id == event.order:
            if isinstance(event, Lost) and not out.given_up and self._connection is not None:
                self._connection.cancel(out.errand.id)  # should it be at it yet
            self._out = None
            if self._pilot is not None:
                self._pilot.begin(None, time.monotonic())
        if isinstance(event, Observation) and self._out is None:
            self._tell_where(event.position)

    def _note(self, event: Observation | Rejected | Lost) -> None:
        """Keep what came of an order; what is only lost may still come."""
        self._outcomes.setdefault(event.order, []).append(event)
        if isinstance(event, Rejected) or (isinstance(event, Observation) and event.last):
            self._settled.add(event.order)

    def _tell_where(self, target: Array | None = None) -> None:
        self._told_s = time.monotonic()
        self._events.append(self._account.telemetry(target))
