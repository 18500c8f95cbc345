"""A robot at the other end of a link: watch for silence, give up in time, report each outcome once.

Orders leave one at a time. Each is settled once: by what the robot did, by its rejection, or as lost if the
robot falls silent or does not finish in time. If the robot of a lost order reports a result later, that is
passed on, too. `Progress` has the states of an order. All timeouts are by this machine's clock, or by one
that a test moves.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.places import place_text
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import (
    Correction,
    Event,
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Recharge,
    Rejected,
    Telemetry,
)
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.remote.arrival import ArrivalDetector, OnTheWayCollector
from fieldbo.vehicles.remote.contact import POLL_S, Contact, Readiness
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Doubt,
    Goal,
    GoalRejected,
    GoalResult,
    Link,
    PositionReport,
    Reading,
    Reconnected,
    Report,
    Unreachable,
)
from fieldbo.vehicles.remote.orders import Goals
from fieldbo.vehicles.remote.progress import Entry, OrderBook, Progress
from fieldbo.vehicles.remote.reports import ReportFilter
from fieldbo.vehicles.remote.settings import VehicleFile
from fieldbo.vehicles.remote.track import DRIFT, Track
from fieldbo.vehicles.remote.usable import usable

_TELEMETRY_S = 5.0
"""Interval of telemetry events while an order is under way."""

_HELD_BACK = 0.5
"""How long a result waits for positions, as a fraction of the time after which silence is a loss."""

_log = logging.getLogger(__name__)


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
        self._book = OrderBook()
        self._track = Track(mission, number, clock)
        self._filter = ReportFilter(mission, number, settings, self._book, self._track, clock)
        self._goals = Goals(mission, number, session, settings.watch, settings.arrival)
        self._collector = None if mission.world.sensor.along is None else OnTheWayCollector()
        detector = ArrivalDetector(
            settings.arrival, link.follows_routes, self._goals.is_free, self._collector
        )
        self._detector = None if link.reports else detector
        self._contact = Contact(link, settings.watch, clock, self._listen)
        self._readiness = Readiness(mission.world.domain, link, settings.watch, self._track)
        self._events: list[Event] = []
        self._held_back: list[tuple[float, GoalResult]] = []
        self._telemetry_s = self._asked_s = -math.inf
        self._is_back = self._blocked = False

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
        if self._contact.connection is not None:
            return
        self._contact.open(self.mission, self.ground, self.session, self._readiness.is_given)
        if problem := self._contact.refusal() or self._readiness.refusal():
            self.close()
            raise VehicleError(problem)

    def __enter__(self) -> Remote:
        self.connect()
        return self

    def close(self) -> None:
        """Close the link; leave the robot as it is. If a hold has not been sent, wait for that first."""
        self._contact.close()

    @property
    def unheld(self) -> str:
        """Why the robot could not be told to hold; empty if it was, or never had to be."""
        return self._contact.unheld

    def ask_to_hold(self) -> None:
        """Request that the robot stays in place."""
        self._contact.ask_to_hold()

    def hold(self) -> None:
        """Have the robot stay in place.

        Raises
        ------
        VehicleError
            The request has not left for the robot; `close` waits for that.
        """
        self._contact.hold()

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue a run, given all its orders and events; ask the robot about orders that were lost."""
        if orders:
            self._track.lose()
        for order in orders:
            self._book.latest = self._book.add(self._with_home(order), Progress.EARLIER)
        self._filter.resume(events)
        # Orders behind the first one without an outcome were never sent.
        under_way = (entry for entry in self._book if entry.progress is Progress.EARLIER)
        self._book.latest = next(under_way, self._book.latest)
        for entry in self._book:
            if not self._book.was_sent(entry):
                entry.leg = None
        # What was heard since the link opened is newer than the record, but was told by another clock.
        self._events = [event for event in self._events if not isinstance(event, Telemetry)]
        self._filter.channels.repeat()
        latest = self._book.latest
        changing = latest is not None and isinstance(latest.order, Recharge) and latest.pending
        if self._readiness.battery is not None and not changing:
            self._filter.take_battery(self._readiness.battery)
        self._release_held_back()
        if self._contact.connection is not None:
            for entry in self._book:
                if entry.events and entry.is_open:
                    self._contact.connection.ask(self._goals.id_of(entry.id))

    def catch_up(self, time_s: float) -> None:
        """Continue at the time of the wall clock, and report it."""
        self._filter.catch_up(time_s)
        self._add_telemetry()

    # -- orders --------------------------------------------------------------------------------------

    def send(self, order: Order) -> None:
        """Queue an order behind those that are outstanding; ignore an id that was sent before."""
        entry = self._book.get(str(order.id))
        if entry is None:
            self._book.add(self._with_home(order))
        elif entry.progress is Progress.EARLIER:
            self._book.advance(entry, Progress.QUEUED)
        else:
            return
        self._send_next()

    def _with_home(self, order: Order) -> Order:
        """Return the order with the vehicle's home as its site if it leads, or keeps it, there."""
        return replace(order, site=self.spec.home) if isinstance(order, GoHome | Recharge) else order

    def _send_next(self) -> None:
        """Send the next order unless one is under way, or the way there is not known to be free.

        What the previous one brought has to be collected first: it is recorded before the robot moves on.
        """
        entry = self._book.next
        if entry is None or self._book.current is not None or self._contact.connection is None:
            return
        if any(isinstance(event, Observation) for event in self._events):
            return
        now_s = self.clock.now_s()
        if isinstance(entry.order, Recharge):
            self._await_battery(entry, now_s)
            return
        if not self._route_is_known:
            if entry.progress is Progress.QUEUED:
                self._book.advance(entry, Progress.HELD)
                entry.since_s = now_s
                self._contact.watchdog.reset(now_s)
            return
        try:
            goal = self._goal_of(entry)
        except InputError as error:
            why = f"no safe route from where the robot is: {error.problem}"
            self._settle(Lost(entry.id, why, self._book.was_sent(entry)))
            return
        again = entry.leg is not None and self.may_repeat(entry.id)
        self._book.advance(entry, Progress.SENT)
        entry.goal, entry.since_s = goal, now_s
        entry.until_s = now_s + self._filter.prices.allowed_s(entry)
        self._filter.begin(entry, again=again)
        self._follow(entry)
        if self._detector is not None:
            route = np.vstack([self._filter.prices.last_known, goal.route])
            spacing_m = self._goals.spacing_m(route)
            dwell_s = self._goals.dwell_s(entry.order)
            self._detector.begin(goal, now_s, dwell_s, spacing_m, len(entry.parts))
        self._telemetry_s = now_s
        self._contact.watchdog.reset(now_s)
        self._go_on(goal)

    # -- another battery -----------------------------------------------------------------------------

    def _await_battery(self, entry: Entry, now_s: float) -> None:
        """Wait until the battery was changed: the robot receives no goal, and may be switched off."""
        order = entry.order
        assert isinstance(order, Recharge)
        self._book.advance(entry, Progress.SENT)
        entry.since_s = now_s
        self._filter.begin(entry)
        _log.warning(
            "%s: change the battery of the robot at %s (%s of %s comes next)",
            order.id,
            self.address,
            order.battery,
            self.spec.batteries,
        )
        if self._readiness.battery is not None:
            self._check_battery(self._readiness.battery)

    @property
    def _recharge(self) -> Entry | None:
        """The recharge that is waited for."""
        current = self._book.current
        return current if current is not None and isinstance(current.order, Recharge) else None

    def _check_battery(self, report: BatteryReport | None) -> None:
        """Settle the recharge if a report shows that it is done, or if no report is to be expected."""
        entry, settings = self._recharge, self.spec.recharge
        if entry is None or settings is None:
            return
        waited = self.clock.now_s() >= entry.since_s + settings.takes_s
        if report is None and (self._filter.reports_battery or not waited or self._is_away(entry)):
            return
        if not self._filter.take_new_battery(report, waited=waited):
            return
        observation = self._filter.recharged(entry)
        self._track.expect(observation.position, self.clock.now_s())  # it may have been switched off
        self._settle(observation)

    def _is_away(self, entry: Entry) -> bool:
        """Return True, and say so, if the robot is elsewhere than where its battery is changed."""
        home = entry.order.site
        assert home is not None
        if not self._track.is_away(home):
            return False
        place = place_text(self.mission.world.domain, self._filter.prices.last_known)
        if self._filter.doubt(
            f"away for {entry.id}",
            f"{entry.id}: the robot reports to be at {place}, so its battery does not count as changed: "
            "bring it home, or have it report its battery",
        ):
            self._add_telemetry()
        return True

    # -- the order under way -------------------------------------------------------------------------

    @property
    def _under_way(self) -> Entry | None:
        """The order that the robot is carrying out."""
        current = self._book.current
        return None if current is None or isinstance(current.order, Recharge) else current

    def _go_on(self, goal: Goal) -> None:
        """Send the goal under way or, to a robot that does not follow routes, the next point of its route."""
        assert self._contact.connection is not None
        if not self.link.follows_routes and self._detector is not None:
            remaining = self._detector.remaining
            goal = replace(goal, site=remaining[0], route=remaining)
        self._contact.connection.go(goal)
        if self._detector is not None:
            self._detector.note_sent(self.clock.now_s())

    def _check_way(self, position: Array) -> None:
        """Have a robot sent anew that goes from point to point, if the way to its next one is not free.

        Wind or somebody else may have moved it. One position near a corner shows nothing.
        """
        entry, detector = self._under_way, self._detector
        if entry is None or detector is None or self.link.follows_routes or detector.target is None:
            return
        blocked = self._goals.is_blocked(position, detector.target)
        entry.forgotten |= blocked and self._blocked
        self._blocked = blocked and not entry.forgotten

    def _send_again_if_due(self) -> None:
        """Send the goal under way to a robot that may have forgotten it, on a route from where it is."""
        entry = self._under_way
        # One that streams may be at its site, which its next position tells.
        known = self._route_is_known if self._detector is None else self._track.known
        if entry is None or not (entry.forgotten and known):
            return
        entry.forgotten = False
        if entry.progress is Progress.CANCELLING or self._has_arrived(entry):
            return
        try:
            entry.goal = goal = self._goal_of(entry)
        except InputError as error:
            self._give_up(entry, f"no safe route from where the robot is: {error.problem}")
            return
        self._follow(entry)
        if self._detector is not None:
            self._detector.reroute(goal)
        self._go_on(goal)

    def _has_arrived(self, entry: Entry) -> bool:
        """Return True if a robot that streams is at its last point, where it may be sampling."""
        ends = self._detector is not None and len(self._detector.remaining) == 1
        return ends and self.may_repeat(entry.id)

    @property
    def _route_is_known(self) -> bool:
        """Whether a safe route is known: unless all routes are straight, only from a known position."""
        return self._track.known or self._goals.straight

    def _goal_of(self, entry: Entry) -> Goal:
        order = entry.order
        return self._goals.goal(order, self._filter.prices.last_known, self._filter.prices.declared_s(order))

    def _follow(self, entry: Entry) -> None:
        """Note the route on which the robot is sent, along which it may read."""
        assert entry.goal is not None
        assert entry.leg is not None
        if len(entry.goal.route):
            entry.leg.routes.append(np.vstack([self._filter.prices.last_known, entry.goal.route]))

    def _entry_of(self, goal_id: str) -> Entry | None:
        """Return the order behind a goal; None if the goal is not of this run."""
        order_id = self._goals.order_of(goal_id)
        return None if order_id is None else self._book.get(order_id)

    def cancel(self, order: str) -> None:
        """Have the robot abandon an order; if it does not answer, the order is lost."""
        entry = self._book.get(order)
        if entry is None:
            return
        if isinstance(entry.order, Recharge) and not entry.progress.settled:
            self._settle(Rejected(order, "cancelled before the battery was changed"))
        elif entry.progress.waits and not self._book.was_sent(entry):
            self._settle(Rejected(order, "cancelled before it was sent"))
        elif entry.progress.waits or entry.progress is Progress.SENT:
            self._give_up(entry, "cancelled")

    def may_repeat(self, order: str) -> bool:
        """Return True if a robot that streams is, or may be, where an order has it sample."""
        entry, reported = self._book.get(order), self._track.reported
        if self._detector is None or entry is None or not isinstance(entry.order, Query):
            return False
        if not self._book.was_sent(entry):
            return False  # one behind it may lead to the same place
        site = entry.order.site
        within = self._filter.settings.arrival.within
        return reported is None or not (np.abs(reported - site) > within).any()

    def adopt(self, mission: Mission) -> None:
        self.mission = self._filter.mission = self._filter.prices.mission = mission
        self._goals.adopt(mission)
        self._track.adopt(mission)

    def _give_up(self, entry: Entry, why: str) -> None:
        """Cancel the order under way; wait for the robot's answer for as long as for any sign of life."""
        connection = self._contact.connection
        if entry.progress is Progress.CANCELLING or connection is None:
            return
        self._book.advance(entry, Progress.CANCELLING)
        entry.why, entry.until_s = why, self.clock.now_s() + self.watch.silence_s
        connection.cancel(self._goals.id_of(entry.id))
        if self._detector is not None and entry.goal is not None:
            self._detector.abandon()

    def outcome(self, order: str) -> list[Event] | None:
        """Return the events of an order; None if neither this vehicle nor the robot remembers them."""
        entry, connection = self._book.get(order), self._contact.connection
        if entry is None:
            return None
        if isinstance(entry.order, Recharge) and not entry.progress.settled:
            return None  # the robot has no goal for it
        if entry.is_open and connection is not None and connection.ask(self._goals.id_of(order)):
            end = self.clock.now_s() + self.watch.silence_s
            while entry.is_open and self.clock.now_s() < end:
                self._listen(POLL_S)
        if not entry.progress.settled:
            return None
        self._events = [event for event in self._events if event not in entry.events]
        return list(entry.events)

    # -- events --------------------------------------------------------------------------------------

    def events(self, timeout_s: float) -> list[Event]:
        """Return the events since the last call; wait up to `timeout_s` for the first."""
        end = self.clock.now_s() + timeout_s
        while True:
            left_s = end - self.clock.now_s()
            self._send_next()
            self._listen(min(POLL_S, max(0.0, left_s)))
            self._check_deadlines()
            if self._events or left_s <= 0:
                events, self._events = self._events, []
                return events

    def _listen(self, wait_s: float) -> None:
        """Process the reports that have arrived; wait for the first."""
        for heard_s, report in self._contact.reports(wait_s):
            self._process(heard_s, report)
        self._release_held_back()

    def _process(self, now_s: float, report: Report) -> None:
        if isinstance(report, ChannelReport):
            self._take_channel(report, now_s)
            return
        under_way = self._under_way
        if isinstance(report, Unreachable):
            self._contact.lose(report)
            if under_way is not None:
                self._settle(Lost(under_way.id, report.why))
            return
        if isinstance(report, Doubt):
            self._readiness.doubts[report.why] = report
            self._filter.doubt(report.why, f"{report.why}; {report.fix}")
            return
        if isinstance(report, Reconnected):
            self._track.lose()
            if under_way is not None:
                under_way.broken = under_way.forgotten = True
            self._send_again_if_due()
            return
        if self._contact.note(now_s):
            self._is_back = True
            if self._track.heard:
                self._track.lose()  # it may have acted by itself
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
            if self._contact.is_in_touch(now_s) and self._filter.channels.matter(now_s):
                self._add_telemetry()

    def _is_believed(self, report: Report, now_s: float) -> bool:
        """Return False for a position that does not agree with others, and for readings until one does."""
        if isinstance(report, Reading):
            return not self._track.in_doubt
        if not isinstance(report, PositionReport):
            return True
        return self._track.take(report.position, now_s)

    def _detect(self, report: Report, now_s: float) -> None:
        """Take a report, or the result that it amounts to; add telemetry if that is due."""
        if self._detector is not None:
            target = self._detector.target
            report = self._detector.process(report, now_s)
            under_way, done = self._under_way, isinstance(report, GoalResult)
            if self._detector.target is not target and not done:
                assert under_way is not None
                assert under_way.goal is not None
                self._go_on(under_way.goal)
        self._is_back |= self._take(report)
        due = self._is_back or now_s >= self._telemetry_s + _TELEMETRY_S
        if due or self._filter.channels.matter(now_s):
            self._add_telemetry()

    def _take(self, report: Report) -> bool:
        """Take a plausible report; return True if it makes the battery known again."""
        match report:
            case PositionReport():
                self._release_held_back()
                self._check_way(report.position)
                self._send_again_if_due()
            case BatteryReport():
                self._readiness.battery = report
                if self._recharge is not None:
                    self._check_battery(report)
                    return False
                return self._filter.take_battery(report)
            case GoalRejected():
                entry = self._entry_of(report.goal)
                if entry is not None and entry.pending:
                    self._take_rejection(entry, report.reason)
            case GoalResult():
                self._take_result(report)
        return False

    def _take_rejection(self, entry: Entry, reason: str) -> None:
        """Settle a rejected order; one whose route was begun is cut short instead, since something moved."""
        begun = bool(entry.parts) or (self._detector is not None and self._detector.on_its_way)
        start = None if entry.leg is None else entry.leg.start
        begun |= start is not None and self._track.is_away(start, DRIFT)
        if begun and entry is self._under_way:
            self._give_up(entry, f"rejected on the way: {reason}")
        else:
            self._settle(Rejected(entry.id, reason))

    def _take_result(self, result: GoalResult, since_s: float | None = None) -> None:
        """Report each part of a result once, even of an order that was lost; `since_s` is when it arrived."""
        entry = self._entry_of(result.goal)
        since_s = self.clock.now_s() if since_s is None else since_s
        if entry is None and self._goals.order_of(result.goal) is not None and not len(self._book):
            self._hold_back(result, since_s)  # it arrived before `resume`
        if entry is not None and result.corrects:
            self._correct(entry, result)
            return
        if entry is None or entry.leg is None:
            return
        overdue = self.clock.now_s() > since_s + _HELD_BACK * self.watch.silence_s
        is_there, is_latest = self._is_there(entry, overdue), entry is self._book.latest
        if is_latest and not (is_there or self._track.known or overdue):
            self._hold_back(result, since_s)
            return
        if is_latest and is_there and result.last and not overdue and self._detector is None:
            agrees = self._track.agrees(result.position, since_s, self.clock.now_s())
            if agrees is None:
                self._hold_back(result, since_s)
                return
            is_there = agrees
        known = entry.parts
        # A robot that tells of a part of a lost order may still be carrying it out.
        is_end = result.last or entry.progress is not Progress.LOST
        if is_there and is_latest and is_end and entry.is_newest(result.part):
            self._locate(result.position)
        if result.part in known or (entry.progress.settled and not known):
            return  # a repetition, or of an order that was rejected
        self._settle(self._filter.observation(entry, result, is_there=is_there))
        connection = self._contact.connection
        if result.last and entry.lacks_parts and self._detector is None and connection is not None:
            connection.ask(result.goal)

    def _is_there(self, entry: Entry, overdue: bool) -> bool:
        """Return True if the robot has not moved on since it finished an order, as far as is known.

        After a break, a robot repeats an answer that may be old: it may have gone home by itself since. If it
        reports positions, these say where it is. A detector's results are always current.
        """
        if entry is self._under_way and (self._detector is not None or not entry.broken):
            return True
        listened_s = self.clock.now_s() - self._contact.connected_s
        return not self._track.heard and (overdue or listened_s > self.watch.silence_s)

    def _locate(self, position: Array) -> None:
        """Take where a result says that the robot is."""
        if self._track.is_plausible(position):
            self._track.expect(position, self.clock.now_s())
        else:
            self._track.lose()

    def _hold_back(self, result: GoalResult, since_s: float) -> None:
        """Keep a result, once, until positions tell whether the robot is still there."""
        if all((result.goal, result.part) != (held.goal, held.part) for _, held in self._held_back):
            self._held_back.append((since_s, result))

    def _release_held_back(self) -> None:
        """Take the results that were held back, if that is possible now."""
        held_back, self._held_back = self._held_back, []
        for since_s, result in held_back:
            self._take_result(result, since_s)

    def _correct(self, entry: Entry, result: GoalResult) -> None:
        """Report the right readings of a part that was reported before, unless they are known."""
        known = [
            event.values
            for event in entry.events
            if isinstance(event, Observation | Correction) and event.part == result.part
        ]
        values = self._filter.believable(result.values)
        if not known or not len(values) or len(values) != len(known[-1]):
            return  # it corrects nothing
        if not np.array_equal(values, known[-1], equal_nan=True):
            correction = Correction(entry.id, result.part, values)
            self._book.take(correction)
            self._events.append(correction)

    def _check_deadlines(self) -> None:
        """Give up an order that takes too long; report it as lost if the robot is silent."""
        under_way, now_s = self._under_way, self.clock.now_s()
        watchdog = self._contact.watchdog
        watchdog.check(now_s)
        self._check_battery(None)
        if under_way is None:
            self._check_held(now_s)
            return
        if self._detector is not None:
            if self._contact.unsent:
                self._detector.note_unsent(now_s)
            self._take_part(now_s)
            if (result := self._detector.finished(now_s)) is not None:
                self._take_result(result)
                return
        if watchdog.expired:
            self._settle(Lost(under_way.id, self._contact.silence))
        elif now_s > under_way.until_s and under_way.progress is Progress.CANCELLING:
            self._settle(Lost(under_way.id, under_way.why))
        elif now_s > under_way.until_s:
            self._give_up(under_way, f"not done in {now_s - under_way.since_s:.0f} s")

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

    def _check_held(self, now_s: float) -> None:
        """Report the next order as lost if the robot's position, and so a safe route, stays unknown.

        A robot that sends no positions says where it is with the outcome of a goal. Before its first one, it
        is where the mission starts.
        """
        entry, latest, connection = self._book.next, self._book.latest, self._contact.connection
        if entry is None or entry.progress is not Progress.HELD or self._route_is_known:
            return
        waited_s, watchdog = now_s - entry.since_s, self._contact.watchdog
        never_located = self._track.beside is None and latest is None and not self._track.heard
        if never_located and self.link.reports and waited_s > self.watch.silence_s:
            self._locate(self.spec.start)
            return
        if not watchdog.expired and now_s >= self._asked_s + self.watch.silence_s / 2:
            self._asked_s = now_s
            if latest is not None and connection is not None:
                connection.ask(self._goals.id_of(latest.id))
                if latest.progress is Progress.LOST and not self._track.heard:
                    # One that it never received has no outcome, but when cancelled it says where it is.
                    connection.cancel(self._goals.id_of(latest.id))
        sent = self._book.was_sent(entry)
        if watchdog.expired:
            self._settle(Lost(entry.id, self._contact.silence, sent))
        elif waited_s > self.watch.least_s:
            why = f"the robot has not reported its position for {waited_s:.0f} s, so no safe route is known"
            self._settle(Lost(entry.id, why + self._readiness.but("position"), sent))

    def _settle(self, event: Observation | Rejected | Lost) -> None:
        """Report the outcome of an order, followed by telemetry if the robot carried it out."""
        entry = self._book.get(event.order)
        assert entry is not None
        was_under_way, given_up = entry is self._under_way, entry.progress is Progress.CANCELLING
        if isinstance(event, Lost):
            event = replace(event, time_s=self._filter.now_s)
            if was_under_way:
                self._take_part(self.clock.now_s(), at_once=True)
            self._track.lose()
        self._book.take(event)
        if isinstance(event, Lost):
            self._filter.lose(entry)
        self._events.append(event)
        if isinstance(event, Observation) and not event.last:
            return
        if was_under_way:
            ends = isinstance(event, Lost) and not given_up and not isinstance(entry.order, GoHome)
            if ends and self._contact.connection is not None:  # in case it still works on it
                self._contact.connection.cancel(self._goals.id_of(entry.id))
            if self._detector is not None:
                self._detector.begin(None, self.clock.now_s())
        if isinstance(event, Observation) and self._under_way is None:
            self._add_telemetry(event.position)

    def _add_telemetry(self, target: Array | None = None) -> None:
        self._telemetry_s, self._is_back = self.clock.now_s(), False
        self._events.append(self._filter.telemetry(target))
