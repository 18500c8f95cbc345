"""A robot's orders: the goals that it receives for them, and what they cost.

A goal has an id of its own, and a route from where the robot really is.

An order costs what was reported where that can be, else what was declared, or what the battery shows. A
robot may leave out a cost, state an impossible one, or have forgotten what it did. What is charged then
follows from the declared cost of a move from where the robot was, or may have been, to where it came.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import Clock
from fieldbo.costs.base import CostModel
from fieldbo.costs.on_the_way import spacing_m
from fieldbo.costs.travel import Legs
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Order, Query, Recharge
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.gauge import ROUNDING, BatteryGauge
from fieldbo.vehicles.remote.link import Goal, GoalResult
from fieldbo.vehicles.remote.progress import Entry, Leg, OrderBook, Progress
from fieldbo.vehicles.remote.settings import Arrival, Watch
from fieldbo.vehicles.remote.track import Track
from fieldbo.vehicles.remote.usable import number


class Goals:
    """Turns a vehicle's orders into goals.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    session : str
        Identifies the run, since a robot may remember goals of other runs with the same name.
    watch : Watch
    arrival : Arrival

    Attributes
    ----------
    straight : bool
        Whether all routes are straight, so that they are safe from anywhere.

    Raises
    ------
    InputError
        The vehicle is to go home by itself but has no home.
    """

    def __init__(
        self,
        mission: Mission,
        number: int = 0,
        session: str = "",
        watch: Watch = Watch(),  # noqa: B008 - frozen
        arrival: Arrival = Arrival(),  # noqa: B008 - frozen
    ) -> None:
        self.adopt(mission)
        self._along = mission.world.sensor.along
        self._home, self._session = mission.vehicles[number].home, session
        self._watch, self._arrival = watch, arrival
        if watch.when_planner_silent == "home" and self._home is None:
            raise InputError(
                'when_planner_silent = "home", but the vehicle has no home in this mission',
                expected='a home, or when_planner_silent = "hold"',
                where="watch.when_planner_silent",
                fix="set home in [agent] of the mission",
            )

    def adopt(self, mission: Mission) -> None:
        """Plan routes in the part of a mission's domain that vehicles may enter."""
        self._domain, self._cost = mission.world.passable, mission.world.cost
        self.straight = self._domain.clear and type(self._cost).path in (CostModel.path, Legs.path)

    # -- ids -------------------------------------------------------------------------------------------

    def id_of(self, order_id: str) -> str:
        """Return the id of an order's goal."""
        return f"{order_id}#{self._session}"

    def order_of(self, goal_id: str) -> str | None:
        """Return the id of a goal's order; None if the goal is of another run."""
        order_id, _, session = goal_id.rpartition("#")
        return order_id if session == self._session else None

    # -- goals -----------------------------------------------------------------------------------------

    def goal(self, order: Order, here: Array, seconds: float) -> Goal:
        """Return the goal of an order.

        Parameters
        ----------
        order : Query or GoHome
            With its site.
        here : (d,) array
            Where the robot is.
        seconds : float
            Declared duration; NaN if unknown.

        Raises
        ------
        InputError
            There is no safe route from here.
        """
        assert order.site is not None
        goal = Goal(
            self.id_of(str(order.id)),
            order.site,
            home=not isinstance(order, Query),
            seconds=seconds,
            route=self.points(order, here),
            planner_silence_s=self._watch.planner_silence_s,
            return_route=self._return_route(order.site),
        )
        return replace(goal, controls=order.controls, level=order.level) if isinstance(order, Query) else goal

    def dwell_s(self, order: Order) -> float:
        """Return for how many seconds to average the readings at an order's site."""
        if self._arrival.dwell_s is not None or not isinstance(order, Query):
            return self._arrival.dwell_s or 0.0
        sampling_s = float(self._cost.sampling_s(order.site[None], order.level)[0])
        return max(0.0, sampling_s - self._arrival.settle_s) if math.isfinite(sampling_s) else 0.0

    def spacing_m(self, route: Array) -> float:
        """Return how far apart readings on the way are on a route (k, d), in metres; 0 if there are none."""
        if self._along is None:
            return 0.0
        spacing = spacing_m(self._cost, self._along, route)
        return spacing if math.isfinite(spacing) else 0.0

    # -- routes ----------------------------------------------------------------------------------------

    def points(self, order: Order, here: Array) -> Array:
        """Return the points (k, d) to pass from `here` (d,) to an order's site, which is the last one.

        The order's own route if that begins here, else the cheapest one from here; (0, d) if variables are
        left free.

        Raises
        ------
        InputError
            There is no safe route from here.
        """
        assert order.site is not None
        site = order.site
        if np.isnan(site).any():
            return np.empty((0, len(site)))
        if len(order.route) and np.array_equal(here, order.route[0]):
            return order.route[1:]
        if self.straight:
            return site[None]
        route = self._cost.path(here, site)
        self._check_way_in(*route[:2])
        return route[1:]

    def _check_way_in(self, here: Array, point: Array) -> None:
        """Raise an `InputError` if an obstacle lies between a robot outside the domain and a point."""
        if self._domain.contains(here[None])[0]:
            return
        for obstacle in self._domain.solid:
            if obstacle.crosses(here, point) and not obstacle.holds(here)[0]:
                raise InputError(f"{obstacle.name} lies between the robot and the domain")

    def is_free(self, a: Array, b: Array) -> bool:
        """Return True if the straight leg from `a` to `b` (d,) is free."""
        if self._domain.clear:
            return True
        try:
            return len(self._cost.path(a, b)) == 2
        except InputError:
            return False  # there is no route at all

    def is_blocked(self, here: Array, point: Array) -> bool:
        """Return True if the way from a robot to a point (d,) leads round something.

        Robots stop beside corners, and positions are rounded: one within the tolerance of arrivals is passed.
        """
        if self._domain.clear:
            return False
        try:
            corners = self._cost.path(here, point)[1:-1]
        except InputError:
            return True  # there is no route at all
        return bool((np.abs(corners - here) > self._arrival.within).any())

    def _return_route(self, site: Array) -> Array:
        """Return the points (k, d) that the robot passes from a site if it is to go home by itself."""
        if self._watch.when_planner_silent != "home":
            return np.empty((0, len(site)))
        assert self._home is not None
        return self._home[None] if np.isnan(site).any() else self._cost.path(site, self._home)[1:]


class Prices:
    """Prices the orders of a robot, and the parts of orders that it reports.

    Parameters
    ----------
    mission : Mission
    vehicle : int
        Index of the vehicle in the mission.
    watch : Watch
    book : OrderBook
        The robot's orders.
    track : Track
        Where it is.
    gauge : BatteryGauge
    clock : Clock
    doubt : Callable
        Takes what is not believed.

    Attributes
    ----------
    position : (d,) array
        Where the newest completed order ended, or the start.
    newest : int
        Number of that order; -1 at the start.
    """

    def __init__(
        self,
        mission: Mission,
        vehicle: int,
        watch: Watch,
        book: OrderBook,
        track: Track,
        gauge: BatteryGauge,
        clock: Clock,
        doubt: Callable[[str], object],
    ) -> None:
        self.mission, self._watch, self._clock, self._doubt = mission, watch, clock, doubt
        self._spec, self._book, self._track, self._gauge = mission.vehicles[vehicle], book, track, gauge
        self.position: Array = self._spec.start
        self.newest = -1

    @property
    def last_known(self) -> Array:
        """Where the robot is (d,), as it last reported, else where its latest order ended."""
        return self.position if self._track.reported is None else self._track.reported

    def declared_s(self, order: Order, start: Array | None = None) -> float:
        """Return the declared duration of an order from `start` (d,), by default from here, in seconds.

        NaN if none is declared.
        """
        cost, start = self.mission.declared_cost, self.last_known if start is None else start
        if cost is None or order.site is None:
            return math.nan
        site = order.site[None]
        if isinstance(order, GoHome):
            return float(cost.travel_s(start, site)[0])
        if isinstance(order, Recharge):
            return 0.0 if self._spec.recharge is None else self._spec.recharge.takes_s
        return float(cost.duration_s(start, site, order.controls, order.level)[0])

    def allowed_s(self, entry: Entry) -> float:
        """Return after how many seconds to give up an order, wherever the robot has begun."""
        starts = [self.last_known, self.position, *self._ends_between(self.newest, entry.number)]
        declared = [self.declared_s(entry.order, start) for start in starts]
        longest = max((seconds for seconds in declared if math.isfinite(seconds)), default=0.0)
        return max(self._watch.least_s, self._watch.patience * longest)

    def price(self, entry: Entry, end: Array | None, *, whole: bool, start: Array | None = None) -> float:
        """Return the declared cost of an order up to `end`, with its sample if `whole`.

        It counts from `start`, by default from where the robot was, else from the worst of the places where
        it may have begun.
        """
        order, cost, leg = entry.order, self.mission.declared_cost, entry.leg
        expected = order.expected_cost or 0.0
        if cost is None or end is None or not np.isfinite(end).all():
            return expected
        if entry.number < self.newest:  # where it came from is no longer known
            return expected
        if start is not None:
            starts = [start]
        elif leg is not None and leg.reached is not None:
            starts = [leg.reached]
        elif leg is None or leg.start is None or entry.number == self.newest:
            starts = [self.position, *self._ends_between(self.newest, entry.number)]
        else:
            starts = [leg.start]
        prices, again = list[float](), 0 if leg is None else leg.again
        for begin in starts:
            if isinstance(order, Query) and whole:
                once = float(cost.to(begin, end[None], order.controls, order.level)[0])
                prices.append(once + again * self._sample(order, end))
            else:
                prices.append(float(cost.travel(begin, end[None])[0]))
        return max(prices) if np.isfinite(prices).all() else expected

    def _sample(self, order: Order, at: Array) -> float:
        """Return the declared cost of sampling once more at a place; 0 if that is not possible there."""
        cost = self.mission.declared_cost
        if cost is None or not isinstance(order, Query) or not self._track.is_plausible(at):
            return 0.0
        price = float(cost.to(at, at[None], order.controls, order.level)[0])
        return price if math.isfinite(price) else 0.0

    def _ends_between(self, first: int, last: int) -> list[Array]:
        """Return where the orders between two may have led the robot."""
        went = (
            entry.order.site
            for entry in self._book
            if first < entry.number < last and entry.leg is not None
            if entry.progress is not Progress.REJECTED
        )
        return [site for site in went if site is not None and np.isfinite(site).all()]

    def unknown(self, *known: Leg | None) -> float:
        """Return what all orders may have taken whose cost is not known, but those that count otherwise."""
        legs = [entry.leg for entry in self._book if entry.leg is not None]
        return math.fsum(leg.may_take for leg in legs if all(leg is not other for other in known))

    def charge(
        self, entry: Entry, result: GoalResult, leg: Leg, position: Array, *, is_there: bool
    ) -> tuple[float, bool]:
        """Return the cost, and whether it is an estimate.

        As reported if plausible; otherwise the declared cost, or what the battery lost if clearly more.
        """
        cost = number(result.cost)
        if 0.0 <= cost <= self._spec.battery:
            least = max(self._least(entry, result, is_there=is_there), self._missing(entry, result))
            estimated = cost < least - ROUNDING * self._spec.battery
            due = least if estimated else cost
            charged = max(0.0, due - leg.ahead)
            leg.ahead = max(0.0, leg.ahead - due) + (due - self._own(entry, result, cost, due))
            return charged, estimated
        estimate = self._estimate(entry, result, leg, position)
        if not math.isnan(cost):
            unit = self.mission.world.cost_unit
            problem = (
                f"a cost of {cost:.6g} {unit} is impossible"
                if math.isfinite(cost)
                else "its cost is not a number"
            )
            self._doubt(f"{entry.id}: {problem}; {estimate:.6g} {unit} was charged instead")
        return estimate, True

    def _least(self, entry: Entry, result: GoalResult, *, is_there: bool) -> float:
        """Return what a part cost at least, whatever the robot says: it may have restarted, and forgotten it.

        Its positions, and the one in the result unless they contradict it, show how far it came. They count
        if the order was lost or cancelled, if the link broke, or if an earlier program sent the order.
        """
        leg = entry.leg
        assert leg is not None
        doubtful = entry.progress in (Progress.LOST, Progress.CANCELLING) or entry.broken
        if not leg.resumed and (leg.start is None or not doubtful):
            return 0.0
        least = leg.seen - leg.charged
        if leg.seen and result.complete:
            least += self._sample(entry.order, result.position)
        if entry is not self._book.latest or entry.progress.settled:
            return least
        ends = [self.last_known] if self._track.known and self._track.heard else []
        if (is_there or not ends) and self._track.is_plausible(result.position):
            ends.append(result.position)
        # From where the part before this one ended, if there was one.
        return max([least, *(self.price(entry, end, whole=result.complete) for end in ends)])

    def _missing(self, entry: Entry, result: GoalResult) -> float:
        """Return what the last part cost at least, if parts before it are missing: as declared for all."""
        leg, known = entry.leg, entry.parts
        assert leg is not None
        if not result.last or entry.progress.settled or result.part <= len(known):
            return 0.0
        if leg.start is not None and self._track.is_plausible(result.position):
            whole = self.price(entry, result.position, whole=result.complete, start=leg.start)
        else:
            whole = (entry.order.expected_cost or 0.0) if result.complete else 0.0
        return whole - leg.charged

    def _own(self, entry: Entry, result: GoalResult, cost: float, due: float) -> float:
        """Return what of the charge for a part is its own; other parts will report the rest, if they come."""
        if result.part != len(entry.parts):  # parts before it are missing, or it is one of those
            return min(cost, due)
        if result.last or not self._track.is_plausible(result.position):
            return due
        return min(due, max(cost, self.price(entry, result.position, whole=False)))

    def _estimate(self, entry: Entry, result: GoalResult, leg: Leg, position: Array) -> float:
        """Return what a part cost: as declared, or what the battery lost if that is clearly more."""
        if entry.progress is Progress.DONE:  # a part that came after the last one
            return max(0.0, leg.at_most / (1.0 + self._spec.margin) - leg.charged)
        before, now = leg.battery.remaining, self._gauge.remaining(self._clock.boot_s())
        drained = math.nan if before is None or now is None else max(0.0, before - now)
        if self.mission.declared_cost is None and not math.isnan(drained):
            return drained
        whole = isinstance(entry.order, Query) and result.complete
        declared = self.price(entry, position, whole=whole)
        # A difference within the accuracy of the reports shows nothing.
        return drained if drained > declared + self._gauge.accuracy else declared

    def look_how_far(self) -> None:
        """Note how far the latest lost order has brought the robot, before it is sent elsewhere."""
        if not (self._track.known and self._track.heard):
            return
        lost = (e for e in self._book if e.progress is Progress.LOST and e.number > self.newest)
        latest = max(lost, key=lambda entry: entry.number, default=None)
        if latest is not None and latest.leg is not None and latest.leg.start is not None:
            price = self.price(latest, self.last_known, whole=False)
            latest.leg.seen = max(latest.leg.seen, price)
