"""What a robot's orders cost: as reported where that can be, else as declared, or as the battery shows.

A robot may leave out a cost, state an impossible one, or have forgotten what it did. What is charged then
follows from the declared cost of a move from where the robot was, or may have been, to where it came.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import Clock
from fieldbo.messages import GoHome, Order, Query, Recharge
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.gauge import ROUNDING, BatteryGauge
from fieldbo.vehicles.remote.link import GoalResult
from fieldbo.vehicles.remote.progress import Entry, Leg, OrderBook, Progress
from fieldbo.vehicles.remote.settings import Watch
from fieldbo.vehicles.remote.track import Track
from fieldbo.vehicles.remote.usable import number


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
