"""A robot at the other end of a link: watch for silence, give up in time, report each outcome once.

Orders leave one at a time. Each is settled once: by what the robot did, by its rejection, or as lost if the
robot falls silent or does not finish in time. If the robot of a lost order reports a result later, that is
passed on, too. All timeouts are by this machine's clock, or by one that a test moves.
"""

from __future__ import annotations

import logging
import math
import queue
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.words import place_text
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import (
    Correction,
    Event,
    GoHome,
    Lost,
    Observation,
    Order,
    Recharge,
    Rejected,
    Telemetry,
)
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.remote.arrival import ArrivalDetector
from fieldbo.vehicles.remote.goals import Goals
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Connection,
    Doubt,
    Goal,
    GoalRejected,
    GoalResult,
    Link,
    PositionReport,
    Reading,
    Reconnected,
    Report,
    Taken,
    Unreachable,
)
from fieldbo.vehicles.remote.on_the_way import OnTheWayCollector
from fieldbo.vehicles.remote.positions import PositionFilter
from fieldbo.vehicles.remote.reports import ReportFilter
from fieldbo.vehicles.remote.settings import VehicleFile
from fieldbo.vehicles.remote.usable import usable
from fieldbo.vehicles.remote.watchdog import Watchdog

_TELEMETRY_S = 5.0
"""Interval of telemetry events while an order is under way."""

_DOUBT_S = 2.0
"""How long a robot must report positions outside the domain before that is believed."""

_POLL_S = 0.05
"""Interval at which deadlines are checked."""

_HELD = 0.5
"""How long a result waits for positions, as a fraction of the time after which silence is a loss."""

_log = logging.getLogger(__name__)


@dataclass
class _UnderWay:
    """The order that the robot is carrying out; times on this machine's clock."""

    order: Order
    goal: Goal
    sent_s: float
    until_s: float
    given_up: str = ""
    broken: bool = False


class Remote(Vehicle):
    """A vehicle that carries out orders through a link to a robot.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    link : Link
    settings : VehicleFile
    session : str
        Identifies the run, since a robot may remember goals of other runs with the same name.
    clock : Clock, optional
        By default this machine's.

    Attributes
    ----------
    unheld : str
        Why the robot could not be told to hold; empty if it was, or never had to be.

    Raises
    ------
    InputError
        The frame does not fit the domain, or the vehicle is to go home but has no home.
    """

    def __init__(
        self,
        mission: Mission,
        number: int,
        link: Link,
        settings: VehicleFile,
        session: str,
        clock: Clock = MACHINE_CLOCK,
    ) -> None:
        self.mission, self.link, self.session, self.clock = mission, link, session, clock
        self.spec, self.watch = mission.vehicles[number], settings.watch
        self.ground = settings.ground(mission.world.domain)
        self._filter = ReportFilter(mission, number, settings, clock)
        self._goals = Goals(mission, number, session, settings.watch, settings.arrival)
        self._positions = PositionFilter(mission, number)
        self._collector = None if mission.world.sensor.along is None else OnTheWayCollector()
        detector = ArrivalDetector(
            settings.arrival, link.follows_routes, self._goals.is_free, self._collector
        )
        self._detector = None if link.reports else detector
        self._reports: queue.SimpleQueue[tuple[float, Report]] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._orders: dict[str, Order] = {}
        self._outcomes: dict[str, list[Event]] = {}
        self._newest, self._connected_s = "", math.inf
        self._held: list[tuple[float, GoalResult]] = []
        self._charge: BatteryReport | None = None
        self._settled: set[str] = set()
        self._events: list[Event] = []
        self._queue: deque[Order] = deque()
        self._under_way: _UnderWay | None = None
        self._recharge: Recharge | None = None
        self._recharge_s = -math.inf
        self._heard_s = self._telemetry_s = -math.inf
        self._watchdog = Watchdog(settings.watch.silence_s)
        self._is_back = False
        self._unreachable = ""
        self._misread: dict[str, Doubt] = {}
        self._waits_since_s, self._asked_s, self._resend = math.inf, -math.inf, False
        self._taken: Taken | None = None
        self._beside: Array | None = None
        self._beside_s = -math.inf
        self.unheld, self._hold_s = "", -math.inf

    # -- the link ------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where to find the robot."""
        return self.link.address

    def connect(self) -> None:
        """Open the link and wait for the robot's first sign of life and, if it streams, its position.

        Raises
        ------
        VehicleError
            The middleware is not available, no robot answers, its position is unknown or far outside the
            domain, or another planner has claimed it.
        """
        if self._connection is not None:
            return
        self._taken, self._connected_s = None, self.clock.now_s()
        self._connection = self.link.open(self.mission, self.ground, self._hear)
        try:
            self._connection.claim(self.session, self.mission.name)
            end = self.clock.now_s() + self.watch.connect_s
            while self._taken is None and not self._is_ready and self.clock.now_s() < end:
                self._listen(_POLL_S)
        except BaseException:
            self.close()
            raise
        if problem := self._refusal():
            self.close()
            raise VehicleError(problem)

    @property
    def _is_ready(self) -> bool:
        """Whether the robot answers, is claimed, and has reported all that it has to."""
        assert self._connection is not None
        return self._heard_s >= 0 and self._connection.claimed and self._place_is_plain and not self._missing

    @property
    def _missing(self) -> str:
        """What the robot has not reported, but has to."""
        acts = self.watch.when_planner_silent == "home"
        if not self._filter.reports_positions and (acts or not self.link.reports):
            return "position"
        return "battery" if acts and self._charge is None else ""

    def _refusal(self) -> str:
        """Return why no order can leave, and what to do about it; empty if one can."""
        assert self._connection is not None
        address = self.link.address
        if self._taken is not None:
            return f"{self._taken.why}\n  fix:      {self._taken.fix}"
        if self._heard_s < 0:
            return (
                f"no robot answers at {address}: no sign of life in {self.watch.connect_s:g} s"
                + (f"; {self._unreachable}" if self._unreachable else "")
                + "\n  fix:      start the robot's program, or a simulated one: fieldbo robot --help"
            )
        if not self._connection.claimed:
            return (
                f"the robot at {address} is in use: {self._unreachable or 'another planner has it'}"
                "\n  fix:      wait until the other planner ends; if it has crashed, try again in a minute"
            )
        if self._beside is not None:
            domain = self.mission.world.domain
            place = (
                place_text(domain, self._beside)
                if domain.crs is not None
                else ", ".join(
                    f"{axis.name} {x:.6g} {axis.unit}".rstrip()
                    for axis, x in zip(domain.axes, self._beside.tolist(), strict=True)
                )
            )
            check = "check origin and bearing in [frame], or " if domain.crs is None else ""
            return (
                f"the robot at {address} reports its position as {place}, far outside the domain\n"
                f"  fix:      {check}bring the robot to the start"
            )
        return self._demand(self._missing) if self._missing else ""

    def _demand(self, missing: str) -> str:
        """Return what has to be reported, and what to do about it."""
        within = f"within {self.watch.connect_s:g} s"
        what = f"the robot at {self.link.address} has not reported its {missing} {within}{self._but(missing)}"
        fixes = [doubt.fix for doubt in self._misread.values() if doubt.about == missing]
        if fixes:
            return f"{what}\n  fix:      {'; '.join(fixes)}"
        if self.watch.when_planner_silent == "home":
            return (
                f"{what}: a robot that goes home by itself has to\n"
                f'  fix:      have it report its {missing}, or set when_planner_silent = "hold"'
            )
        return f"{what}\n  fix:      wait for a position fix, or check the names in [link]"

    def _but(self, missing: str) -> str:
        """Return what came instead of what is missing; empty if nothing did."""
        came = [doubt.why for doubt in self._misread.values() if doubt.about == missing]
        return f": {'; '.join(came)}" if came else ""

    @property
    def _place_is_plain(self) -> bool:
        """Whether the robot does not report to be outside the domain, or does for long enough."""
        return self._beside is None or self.clock.now_s() > self._beside_s + _DOUBT_S

    def __enter__(self) -> Remote:
        self.connect()
        return self

    def close(self) -> None:
        """Close the link; leave the robot as it is.

        If a hold has not been sent, wait for the robot first, for as long as when connecting. Ctrl-C ends
        the wait.
        """
        if self._connection is None:
            return
        try:
            if self.unheld and not self._wait_for_hold(self.watch.connect_s):
                _log.warning("the robot at %s was told to hold after all", self.address)
        except KeyboardInterrupt:
            _log.warning("gave up telling the robot at %s to hold", self.address)
        finally:
            self._connection.close()
            self._connection = None

    def ask_to_hold(self) -> None:
        """Request that the robot stays in place."""
        if self._connection is not None:
            self._connection.hold()

    def hold(self) -> None:
        """Have the robot stay in place.

        Raises
        ------
        VehicleError
            The request has not left for the robot; `close` waits for that.
        """
        if self._connection is None:
            return
        self.ask_to_hold()
        self._listen(0.0)  # what came before is no sign that the hold has arrived
        self._hold_s = self.clock.now_s()
        if why := self._wait_for_hold(self._connection.delivery_s):
            raise VehicleError(
                f"the robot at {self.address} was NOT told to hold: {why}\n"
                f"  fix:      stop it by hand; fieldbo keeps trying for {self.watch.connect_s:g} s, "
                "or until Ctrl-C"
            )

    def _wait_for_hold(self, seconds: float) -> str:
        """Wait until a hold was sent and the robot was heard since; return what is missing, if anything."""
        assert self._connection is not None
        end = self.clock.now_s() + seconds
        while True:
            self.unheld = self._connection.unsent()
            if not self.unheld and self._heard_s <= self._hold_s:
                silent_s = self.clock.now_s() - self._heard_s
                self.unheld = f"no sign of life from it for {silent_s:.1f} s"
            if not self.unheld or self.clock.now_s() > end:
                return self.unheld
            self._listen(_POLL_S)

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue a run, given all its orders and events; ask the robot about orders that were lost."""
        if orders:
            self._positions.lose()
            self._newest = str(orders[-1].id)
        for order in orders:
            self._orders[str(order.id)] = self._with_home(order)
        for event in events:
            if isinstance(event, Observation | Rejected | Lost | Correction) and event.order in self._orders:
                self._note(event)
        self._filter.resume(orders, events)
        # What was heard since the link opened is newer than the record, but was told by another clock.
        self._events = [event for event in self._events if not isinstance(event, Telemetry)]
        self._filter.channels.repeat()
        changing = orders and isinstance(orders[-1], Recharge) and orders[-1].id not in self._settled
        if self._charge is not None and not changing:
            self._filter.take_battery(self._charge)
        self._release_held()
        if self._connection is not None:
            for order_id in (order_id for order_id in self._outcomes if order_id not in self._settled):
                self._connection.ask(self._goals.id_of(order_id))

    def catch_up(self, time_s: float) -> None:
        """Continue at the time of the wall clock, and report it."""
        self._filter.catch_up(time_s)
        self._add_telemetry()

    # -- orders --------------------------------------------------------------------------------------

    def send(self, order: Order) -> None:
        """Queue an order behind those that are outstanding; ignore an id that was sent before."""
        order_id = str(order.id)
        if order_id in self._settled or order_id in {str(other.id) for other in self._unsettled}:
            return
        self._orders[order_id] = self._with_home(order)
        self._queue.append(self._orders[order_id])
        self._send_next()

    @property
    def _unsettled(self) -> list[Order]:
        """The order under way, or the recharge that is waited for, and those queued behind it."""
        first = self._recharge if self._under_way is None else self._under_way.order
        return [*([] if first is None else [first]), *self._queue]

    def _with_home(self, order: Order) -> Order:
        """Return the order with the vehicle's home as its site if it leads, or keeps it, there."""
        return replace(order, site=self.spec.home) if isinstance(order, GoHome | Recharge) else order

    def _send_next(self) -> None:
        """Send the next order unless one is under way, or the way there is not known to be free.

        What the previous one brought has to be collected first: it is recorded before the robot moves on.
        """
        if self._under_way is not None or self._recharge is not None:
            return
        if not self._queue or self._connection is None:
            return
        if any(isinstance(event, Observation) for event in self._events):
            return
        now_s = self.clock.now_s()
        if isinstance(first := self._queue[0], Recharge):
            self._queue.popleft()
            self._await_battery(first, now_s)
            return
        if not self._route_is_known:
            if math.isinf(self._waits_since_s):
                self._waits_since_s = now_s
                self._watchdog.reset(now_s)
            return
        self._waits_since_s = math.inf
        order = self._queue.popleft()
        try:
            goal = self._goal_of(order)
        except InputError as error:
            self._settle(Lost(str(order.id), f"no safe route from where the robot is: {error.problem}"))
            return
        self._under_way = _UnderWay(order, goal, now_s, now_s + self._filter.allowed_s(order))
        self._newest = str(order.id)
        self._filter.begin(order)
        self._follow(goal)
        if self._detector is not None:
            route = np.vstack([self._filter.last_known, goal.route])
            spacing_m, parts = self._goals.spacing_m(route), len(self._parts_known(str(order.id)))
            self._detector.begin(goal, now_s, self._goals.dwell_s(order), spacing_m, parts)
        self._telemetry_s = now_s
        self._watchdog.reset(now_s)
        self._go_on()

    # -- another battery -----------------------------------------------------------------------------

    def _await_battery(self, order: Recharge, now_s: float) -> None:
        """Wait until the battery was changed: the robot receives no goal, and may be switched off."""
        self._recharge, self._recharge_s, self._newest = order, now_s, order.id
        self._filter.begin(order)
        _log.warning(
            "%s: change the battery of the robot at %s (%s of %s comes next)",
            order.id,
            self.address,
            order.battery,
            self.spec.batteries,
        )
        if self._charge is not None:
            self._check_battery(self._charge)

    def _check_battery(self, report: BatteryReport | None) -> None:
        """Settle the recharge if a report shows that it is done, or if no report is to be expected."""
        order, settings = self._recharge, self.spec.recharge
        if order is None or settings is None:
            return
        if report is None:
            too_early = self.clock.now_s() < self._recharge_s + settings.takes_s
            if self._filter.reports_battery or too_early:
                return
        if not self._filter.take_new_battery(report):
            return
        self._recharge = None
        observation = self._filter.recharged(order)
        self._positions.expect(observation.position, self.clock.now_s())  # it may have been switched off
        self._settle(observation)

    def _go_on(self) -> None:
        """Send the goal under way or, to a robot that does not follow routes, the next point of its route."""
        assert self._connection is not None
        assert self._under_way is not None
        goal = self._under_way.goal
        if not self.link.follows_routes and self._detector is not None:
            remaining = self._detector.remaining
            goal = replace(goal, site=remaining[0], route=remaining)
        self._connection.go(goal)
        if self._detector is not None:
            self._detector.note_sent(self.clock.now_s())

    def _send_again_if_due(self) -> None:
        """Send the goal under way to a robot that may have forgotten it, on a route from where it is."""
        if not (self._resend and self._route_is_known):
            return
        self._resend, under_way = False, self._under_way
        if under_way is None or under_way.given_up:
            return
        try:
            under_way.goal = self._goal_of(under_way.order)
        except InputError as error:
            self._give_up(under_way, f"no safe route from where the robot is: {error.problem}")
            return
        self._follow(under_way.goal)
        if self._detector is not None:
            self._detector.reroute(under_way.goal)
        self._go_on()

    @property
    def _route_is_known(self) -> bool:
        """Whether a safe route is known: unless all routes are straight, only from a known position."""
        return self._positions.known or self._goals.straight

    def _goal_of(self, order: Order) -> Goal:
        return self._goals.goal(order, self._filter.last_known, self._filter.declared_s(order))

    def _follow(self, goal: Goal) -> None:
        """Note the route of a goal, along which the robot may read."""
        if len(goal.route) and (order_id := self._order_id(goal.id)) is not None:
            self._filter.follow(order_id, np.vstack([self._filter.last_known, goal.route]))

    def _order_id(self, goal_id: str) -> str | None:
        """Return the id of the order behind a goal; None if the goal is not of this run."""
        order_id = self._goals.order_of(goal_id)
        return order_id if order_id in self._orders else None

    def cancel(self, order: str) -> None:
        """Have the robot abandon an order; if it does not answer, the order is lost."""
        if self._under_way is not None and self._under_way.order.id == order:
            self._give_up(self._under_way, "cancelled")
        if self._recharge is not None and self._recharge.id == order:
            self._recharge = None
            self._settle(Rejected(order, "cancelled before the battery was changed"))
        for queued in [queued for queued in self._queue if queued.id == order]:
            self._queue.remove(queued)
            self._settle(Rejected(order, "cancelled before it was sent"))

    def adopt(self, mission: Mission) -> None:
        self.mission = self._filter.mission = mission
        self._goals.adopt(mission)

    def _give_up(self, under_way: _UnderWay, why: str) -> None:
        """Cancel the order under way; wait for the robot's answer for as long as for any sign of life."""
        if under_way.given_up or self._connection is None:
            return
        under_way.given_up, under_way.until_s = why, self.clock.now_s() + self.watch.silence_s
        self._connection.cancel(under_way.goal.id)
        if self._detector is not None:
            self._detector.abandon()

    def outcome(self, order: str) -> list[Event] | None:
        """Return the events of an order; None if neither this vehicle nor the robot remembers them."""
        goal_id, connection = self._goals.id_of(order), self._connection
        if isinstance(self._orders.get(order), Recharge) and order not in self._settled:
            return None  # the robot has no goal for it
        if order not in self._settled and connection is not None and connection.ask(goal_id):
            end = self.clock.now_s() + self.watch.silence_s
            while order not in self._settled and self.clock.now_s() < end:
                self._listen(_POLL_S)
        if order not in self._settled:
            return None
        outcome = self._outcomes[order]
        self._events = [event for event in self._events if event not in outcome]
        return list(outcome)

    # -- events --------------------------------------------------------------------------------------

    def events(self, timeout_s: float) -> list[Event]:
        """Return the events since the last call; wait up to `timeout_s` for the first."""
        end = self.clock.now_s() + timeout_s
        while True:
            left_s = end - self.clock.now_s()
            self._send_next()
            self._listen(min(_POLL_S, max(0.0, left_s)))
            self._check_deadlines()
            if self._events or left_s <= 0:
                events, self._events = self._events, []
                return events

    def _hear(self, report: Report) -> None:
        """Keep a report until it is processed; called from the link's thread."""
        self._reports.put((self.clock.now_s(), report))

    def _listen(self, wait_s: float) -> None:
        """Process the reports that have arrived; wait for the first."""
        try:
            heard = self.clock.get(self._reports, wait_s)
            while True:
                self._process(*heard)
                heard = self._reports.get_nowait()
        except queue.Empty:
            self._release_held()

    def _process(self, now_s: float, report: Report) -> None:
        """Process a report that arrived at `now_s`."""
        if isinstance(report, ChannelReport):
            self._take_channel(report, now_s)
            return
        if isinstance(report, Unreachable):
            self._unreachable = report.why
            self._taken = report if isinstance(report, Taken) else self._taken
            if self._under_way is not None:
                self._settle(Lost(str(self._under_way.order.id), report.why))
            return
        if isinstance(report, Doubt):
            self._misread[report.why] = report
            self._filter.doubt(report.why, f"{report.why}; {report.fix}")
            return
        if isinstance(report, Reconnected):
            self._positions.lose()
            self._resend = True
            if self._under_way is not None:
                self._under_way.broken = True
            self._send_again_if_due()
            return
        if math.isfinite(self._heard_s) and now_s > self._heard_s + self.watch.silence_s:
            self._is_back = True
            if self._positions.heard:
                self._positions.lose()  # it may have acted by itself
        self._heard_s = now_s
        self._watchdog.reset(now_s)
        usable_report, problem = usable(report, self.mission.world.domain.dimension)
        if problem:
            self._filter.doubt(problem, f"the robot sent what can't be used: {problem}")
        if usable_report is not None and self._is_believed(usable_report, now_s):
            self._detect(usable_report, now_s)

    def _take_channel(self, report: ChannelReport, now_s: float) -> None:
        """Keep a channel's value; add telemetry if it matters to a hold, and the robot is in touch."""
        usable_report, problem = usable(report, self.mission.world.domain.dimension)
        if problem:
            self._filter.doubt(problem, problem)
        if isinstance(usable_report, ChannelReport):
            self._filter.channels.take(usable_report, now_s)
            if now_s <= self._heard_s + self.watch.silence_s and self._filter.channels.matter(now_s):
                self._add_telemetry()

    def _is_believed(self, report: Report, now_s: float) -> bool:
        """Return False for a position that does not agree with others, and for readings until one does."""
        if isinstance(report, Reading):
            return not self._positions.in_doubt
        if not isinstance(report, PositionReport):
            return True
        self._check_place(report.position, now_s)
        return self._filter.is_plausible(report.position) and self._positions.take(report.position, now_s)

    def _detect(self, report: Report, now_s: float) -> None:
        """Take a report, or the result that it amounts to; add telemetry if that is due."""
        if self._detector is not None:
            target = self._detector.target
            report = self._detector.process(report, now_s)
            if self._detector.target is not target and not isinstance(report, GoalResult):
                self._go_on()
        self._is_back |= self._take(report)
        due = self._is_back or now_s >= self._telemetry_s + _TELEMETRY_S
        if due or self._filter.channels.matter(now_s):
            self._add_telemetry()

    def _check_place(self, position: Array, now_s: float) -> None:
        """Remember a position far outside the domain, until a plausible one arrives."""
        if self._goals.is_beside_domain(position):
            self._beside_s = now_s if self._beside is None else self._beside_s
            self._beside = position
        elif self._filter.is_plausible(position):
            self._beside = None

    def _take(self, report: Report) -> bool:
        """Take a plausible report; return True if it makes the battery known again."""
        match report:
            case PositionReport():
                self._filter.take_position(report.position)
                self._release_held()
                self._send_again_if_due()
            case BatteryReport():
                self._charge = report
                if self._recharge is not None:
                    self._check_battery(report)
                    return False
                return self._filter.take_battery(report)
            case GoalRejected():
                order_id = self._order_id(report.goal)
                if order_id is not None and self._is_pending(order_id):
                    self._take_rejection(order_id, report.reason)
            case GoalResult():
                self._take_result(report)
        return False

    def _take_rejection(self, order_id: str, reason: str) -> None:
        """Settle a rejected order; one whose route was begun is cut short instead, since something moved."""
        under_way = self._under_way
        begun = self._detector is not None and self._detector.on_its_way
        if begun and under_way is not None and under_way.order.id == order_id:
            self._give_up(under_way, f"rejected on the way: {reason}")
        else:
            self._settle(Rejected(order_id, reason))

    def _is_pending(self, order_id: str) -> bool:
        """Return True if the order was sent and is not settled yet."""
        return order_id not in self._settled and self._filter.has_begun(order_id)

    def _take_result(self, result: GoalResult, since_s: float | None = None) -> None:
        """Report each part of a result once, even of an order that was lost; `since_s` is when it arrived."""
        order_id = self._order_id(result.goal)
        since_s = self.clock.now_s() if since_s is None else since_s
        if order_id is None and self._goals.order_of(result.goal) is not None and not self._orders:
            self._hold_back(result, since_s)  # it arrived before `resume`
        if order_id is not None and result.corrects:
            self._correct(order_id, result)
            return
        if order_id is None or not self._filter.has_begun(order_id):
            return
        overdue = self.clock.now_s() > since_s + _HELD * self.watch.silence_s
        is_there = self._is_there(order_id, overdue)
        if order_id == self._newest and not (is_there or self._positions.known or overdue):
            self._hold_back(result, since_s)
            return
        known = self._parts_known(order_id)
        if is_there and order_id == self._newest:
            self._locate(result.position)
        if result.part in known or (order_id in self._settled and not known):
            return  # a repetition, or of an order that was rejected
        self._settle(self._filter.observation(self._orders[order_id], result, is_there=is_there))

    def _parts_known(self, order_id: str) -> set[int]:
        """Return the numbers of an order's parts that were reported."""
        return {event.part for event in self._outcomes.get(order_id, []) if isinstance(event, Observation)}

    def _is_there(self, order_id: str, overdue: bool) -> bool:
        """Return True if the robot has not moved on since it finished an order, as far as is known.

        After a break, a robot repeats an answer that may be old: it may have gone home by itself since. If it
        reports positions, these say where it is. A detector's results are always current.
        """
        under_way = self._under_way
        current = self._detector is not None or (under_way is not None and not under_way.broken)
        if under_way is not None and under_way.order.id == order_id and current:
            return True
        listened_s = self.clock.now_s() - self._connected_s
        return not self._positions.heard and (overdue or listened_s > self.watch.silence_s)

    def _locate(self, position: Array) -> None:
        """Take where a result says that the robot is."""
        if self._filter.is_plausible(position):
            self._positions.expect(position, self.clock.now_s())
        else:
            self._positions.lose()

    def _hold_back(self, result: GoalResult, since_s: float) -> None:
        """Keep a result, once, until positions tell whether the robot is still there."""
        if all((result.goal, result.part) != (held.goal, held.part) for _, held in self._held):
            self._held.append((since_s, result))

    def _release_held(self) -> None:
        """Take the results that were held back, if that is possible now."""
        held, self._held = self._held, []
        for since_s, result in held:
            self._take_result(result, since_s)

    def _correct(self, order_id: str, result: GoalResult) -> None:
        """Report the right readings of a part that was reported before, unless they are known."""
        known = [
            event.values
            for event in self._outcomes.get(order_id, [])
            if isinstance(event, Observation | Correction) and event.part == result.part
        ]
        values = self._filter.believable(result.values)
        if not known or not len(values) or len(values) != len(known[-1]):
            return  # it corrects nothing
        if not np.array_equal(values, known[-1], equal_nan=True):
            correction = Correction(order_id, result.part, values)
            self._note(correction)
            self._events.append(correction)

    def _check_deadlines(self) -> None:
        """Give up an order that takes too long; report it as lost if the robot is silent."""
        under_way, now_s = self._under_way, self.clock.now_s()
        self._watchdog.check(now_s)
        self._check_battery(None)
        if under_way is None:
            self._check_waiting(now_s)
            return
        if self._detector is not None:
            self._take_part(now_s)
            if (result := self._detector.finished(now_s)) is not None:
                self._take_result(result)
                return
        if self._watchdog.expired:
            self._settle(Lost(str(under_way.order.id), self._silence))
        elif now_s > under_way.until_s and under_way.given_up:
            self._settle(Lost(str(under_way.order.id), under_way.given_up))
        elif now_s > under_way.until_s:
            self._give_up(under_way, f"not done in {now_s - under_way.sent_s:.0f} s")

    def _take_part(self, now_s: float, *, at_once: bool = False) -> None:
        """Take the readings on the way that were collected, if that is due, or there are any."""
        if self._detector is None or (part := self._detector.part(now_s, at_once=at_once)) is None:
            return
        if self._collector is not None and self._collector.unplaced:
            self._filter.doubt(
                "unplaced",
                "readings on the way arrived without positions before and after, and were left out: have the "
                "robot send positions more often than every 2 s",
            )
        self._take_result(part)

    def _check_waiting(self, now_s: float) -> None:
        """Report the next order as lost if the robot's position, and so a safe route, stays unknown.

        A robot that sends no positions says where it is with the outcome of a goal. Before its first one, it
        is where the mission starts.
        """
        if not self._queue or self._route_is_known:
            return
        waited_s = now_s - self._waits_since_s
        never_located = self._beside is None and not (self._newest or self._positions.heard)
        if never_located and self.link.reports and waited_s > self.watch.silence_s:
            self._locate(self.spec.start)
            return
        if not self._watchdog.expired and now_s >= self._asked_s + self.watch.silence_s / 2:
            self._asked_s = now_s
            if self._newest and self._connection is not None:
                self._connection.ask(self._goals.id_of(self._newest))
        if self._watchdog.expired:
            why = self._silence
        elif waited_s > self.watch.least_s:
            why = f"the robot has not reported its position for {waited_s:.0f} s, so no safe route is known"
            why += self._but("position")
        else:
            return
        self._waits_since_s = math.inf
        self._settle(Lost(str(self._queue.popleft().id), why))

    @property
    def _silence(self) -> str:
        """For how long the robot has been silent, in words, and why if the link knows."""
        why = "" if self._connection is None else self._connection.unsent()
        silent_s = self._watchdog.silent_s
        return f"no sign of life from the robot for {silent_s:.1f} s" + (f": {why}" if why else "")

    def _settle(self, event: Observation | Rejected | Lost) -> None:
        """Report the outcome of an order, followed by telemetry if the robot carried it out."""
        under_way = self._under_way
        if isinstance(event, Lost):
            if under_way is not None and under_way.order.id == event.order:
                self._take_part(self.clock.now_s(), at_once=True)
            self._positions.lose()
        self._note(event)
        self._events.append(event)
        if isinstance(event, Observation) and not event.last:
            return
        if under_way is not None and under_way.order.id == event.order:
            if isinstance(event, Lost) and not under_way.given_up and self._connection is not None:
                self._connection.cancel(under_way.goal.id)  # in case the robot is still working on it
            self._under_way = None
            if self._detector is not None:
                self._detector.begin(None, self.clock.now_s())
        if isinstance(event, Observation) and self._under_way is None:
            self._add_telemetry(event.position)

    def _note(self, event: Observation | Rejected | Lost | Correction) -> None:
        """Keep the outcome of an order; a lost order may still get a result."""
        self._outcomes.setdefault(event.order, []).append(event)
        if isinstance(event, Rejected) or (isinstance(event, Observation) and event.last):
            self._settled.add(event.order)
        if isinstance(event, Rejected):
            self._filter.drop(event.order)
        elif isinstance(event, Lost):
            self._filter.lose(event.order)

    def _add_telemetry(self, target: Array | None = None) -> None:
        self._telemetry_s, self._is_back = self.clock.now_s(), False
        self._events.append(self._filter.telemetry(target))
