"""Check what a robot reports, and turn it into observations and telemetry.

A robot's numbers may be anything. A reading that is not a number, or outside the bounds in the vehicle file,
has failed. A cost or a duration that is missing or impossible is computed here instead: a cost as declared,
or as what the battery lost if that is clearly more. What is not believed is reported as a doubt, with the
next event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.sensor import off_route_m
from fieldbo.messages import (
    Correction,
    Event,
    Lost,
    Observation,
    Order,
    Query,
    Recharge,
    Rejected,
    Telemetry,
)
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.gauge import BatteryGauge
from fieldbo.vehicles.remote.link import BatteryReport, GoalResult
from fieldbo.vehicles.remote.orders import Prices
from fieldbo.vehicles.remote.progress import Entry, Leg, OrderBook, Progress
from fieldbo.vehicles.remote.settings import VehicleFile
from fieldbo.vehicles.remote.track import Track
from fieldbo.vehicles.remote.usable import Channels, believable_on_the_way, number

_HURRIED = 0.1
"""A duration of less than this fraction of the time that passed is not believed."""


class ReportFilter:
    """Tracks a robot's position, clock and battery, and turns its reports into observations and telemetry.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    settings : VehicleFile
    book : OrderBook
        The robot's orders.
    track : Track
        Where it is.
    clock : Clock, optional
        By default this machine's.

    Attributes
    ----------
    prices : Prices
        What its orders cost, and where they have brought it.
    channels : Channels
        Other quantities that the robot, or something beside it, reports.
    """

    def __init__(
        self,
        mission: Mission,
        number: int,
        settings: VehicleFile,
        book: OrderBook,
        track: Track,
        clock: Clock = MACHINE_CLOCK,
    ) -> None:
        self.mission, self.number, self.settings, self.clock = mission, number, settings, clock
        self._book, self._track = book, track
        self.spec, self.domain = mission.vehicles[number], mission.world.domain
        self._gauge = BatteryGauge(mission, number, settings.battery, settings.watch.silence_s, self.doubt)
        self._doubts: list[str] = []
        self._doubted: set[str] = set()
        self.prices = Prices(
            mission, number, settings.watch, book, track, self._gauge, clock, self._doubts.append
        )
        self.channels = Channels(mission.holds, self.doubt)
        self._ahead_s = -self.clock.boot_s()
        self._settled_s = self._renewed_s = -math.inf

    # -- the clock -------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the start of the run; never decreases."""
        return self._ahead_s + self.clock.boot_s()

    def catch_up(self, to_s: float) -> None:
        """Advance the clock to a time that has passed, unless it is ahead of it."""
        self._ahead_s += max(0.0, to_s - self.now_s)

    def _took_s(self, entry: Entry, result: GoalResult, leg: Leg) -> float:
        """Return how long a part took: as reported if plausible, else by this machine's clock."""
        passed, reported = max(0.0, self.now_s - leg.since_s), number(result.duration_s)
        if not 0.0 <= reported <= passed + self.prices.allowed_s(entry):
            return passed
        late_s = passed - reported
        hurried = reported < _HURRIED * passed and late_s > self.settings.watch.silence_s
        lost = entry.progress is Progress.LOST  # its answer may come at any time
        if hurried and result.complete and not lost:
            self._doubts.append(
                f"{entry.id}: the robot reported a duration of {reported:.6g} s, but {passed:.6g} s passed"
            )
            return passed
        return reported

    # -- orders ----------------------------------------------------------------------------------------

    def begin(self, entry: Entry, *, again: bool = False) -> None:
        """Note that an order is sent now; sending it again restarts its clock.

        If it is sent `again` to a robot that may have done it, that may sample twice.
        """
        self.prices.look_how_far()
        known, now_s = entry.leg, self.now_s
        located = known is None and self._track.known  # one that is sent again may have begun elsewhere
        entry.leg = leg = Leg(
            began_s=now_s,
            since_s=now_s,
            battery=self._gauge.mark(self.clock.boot_s()),
            start=self._snap(self.prices.last_known, self.prices.position) if located else None,
            charged=0.0 if known is None else known.charged,
            again=int(again) if known is None else known.again + again,
            resumed=known is not None and known.resumed,
        )
        leg.at_most = (1.0 + self.spec.margin) * self.prices.price(entry, entry.order.site, whole=True)

    def lose(self, entry: Entry) -> None:
        """Note that an order was lost: its result may come at any time, or never."""
        if entry.leg is not None:
            self._gauge.lose(entry.leg.battery, self.prices.unknown())

    @property
    def _latest(self) -> Leg | None:
        """The leg since which the battery's reports count: that of the latest order, unless it was lost."""
        latest = self._book.latest
        unknown = latest is None or latest.progress in (Progress.LOST, Progress.EARLIER)
        return None if latest is None or unknown else latest.leg

    def resume(self, events: Sequence[Event]) -> None:
        """Continue a run, given all its events; its orders are in the book."""
        changed = -1  # number of the latest recharge: orders before it took from another battery
        for event in events:
            if isinstance(event, Observation) and (entry := self._book.get(event.order)) is not None:
                if entry.number >= self.prices.newest:
                    self.prices.newest, self.prices.position = entry.number, event.position
                self._settled_s = max([self._settled_s, event.time_s or 0.0, *event.times_s])
                self.catch_up(self._settled_s)
                from_this = entry.number > changed
                self._gauge.charge(self._at_most(event) * from_this, None, 0.0)
                if isinstance(entry.order, Recharge) and event.last:
                    self._gauge.replace()
                    self._renewed_s, changed = self._settled_s, entry.number
            elif isinstance(event, Telemetry):
                self.catch_up(event.time_s)
                measured_s = event.time_s if event.measured_s is None else event.measured_s
                if measured_s >= self._renewed_s:
                    self._gauge.recall(event, fresh=measured_s > self._settled_s)
        self._gauge.settled_pack = self._gauge.pack
        for entry in self._book:
            self.begin(entry)
            assert entry.leg is not None
            entry.leg.resumed, entry.leg.counted = True, entry.number < changed
        for event in events:
            if not isinstance(event, Observation | Rejected | Lost | Correction):
                continue
            if (entry := self._book.get(event.order)) is None:
                continue
            self._book.take(event)
            if isinstance(event, Lost):
                self.lose(entry)
            elif isinstance(event, Observation) and entry.leg is not None:
                entry.leg.charged += event.cost

    # -- reports ---------------------------------------------------------------------------------------

    def take_battery(self, report: BatteryReport) -> bool:
        """Take what is left in the battery; return True if that was unknown before."""
        leg, unknown = self._latest, self.prices.unknown(self._latest)
        news = self._gauge.take(report, self.clock.boot_s(), unknown)
        if news and leg is not None and leg.battery.remaining is None:
            leg.battery = replace(leg.battery, remaining=self._gauge.remaining(self.clock.boot_s()))
        if self._gauge.is_fresh:
            for other in self._book:
                if other.leg is not None:
                    other.leg.counted |= other.number < self.prices.newest
        return news

    @property
    def reports_battery(self) -> bool:
        """Whether the robot has ever reported what is left in its battery, and is still believed."""
        return self._gauge.reports

    def take_new_battery(self, report: BatteryReport | None, *, waited: bool) -> bool:
        """Take a report while the battery is being changed; return True once it is of a charged one.

        Without a report, the battery is taken for a charged one once the time for the change is over.
        """
        if report is None:
            if not waited:
                return False
            self._gauge.replace()
        elif not self._gauge.renew(report, self.clock.boot_s(), waited=waited):
            return False
        for entry in self._book:  # whatever they took, they took from the old one
            if entry.leg is not None:
                entry.leg.counted = True
        return True

    def recharged(self, entry: Entry) -> Observation:
        """Return the observation that the battery was changed, where the robot is."""
        order, now_s = entry.order, self.now_s
        assert isinstance(order, Recharge)
        changed = replace(order, site=self._snap(self.prices.last_known, order.site)).observed()
        observation = replace(changed, time_s=now_s, doubts=self._new_doubts())
        self._pass(entry, observation, reported=None)
        self._renewed_s = now_s
        return observation

    def telemetry(self, target: Array | None = None) -> Telemetry:
        """Return the robot's position and battery.

        A position within the reports' accuracy of `target`, by default the last position, counts as it.
        """
        known, remaining, now_s = self._track.reported, self._gauge.remaining(self.clock.boot_s()), self.now_s
        at = self.prices.position if target is None else target
        return Telemetry(
            vehicle=self.number,
            position=self.prices.position if known is None else self._snap(known, at),
            remaining=remaining,
            time_s=now_s,
            accuracy=self._gauge.accuracy,
            located_s=0.0 if known is None else min(now_s, self._ahead_s + self._track.reported_s),
            measured_s=None if remaining is None else self._measured_s,
            pack=None if remaining is None else self._gauge.pack,
            channels=self.channels.news(self.clock.now_s()),
            doubts=self._new_doubts(),
            at_least=self.settings.battery.share_charged,
        )

    @property
    def _measured_s(self) -> float:
        """When the battery was measured at the latest, in seconds since the start of the run.

        Whether that was after the latest result is for this machine's clock to say: the robot's times are
        as good as its clock.
        """
        measured_s = self._ahead_s + self._gauge.measured_s - self.settings.battery.delay_s
        measured_s = measured_s if self._gauge.is_fresh else min(measured_s, self._settled_s)
        return max(measured_s, self._renewed_s)  # no report of the battery before is remembered

    def doubt(self, kind: str, doubt: str) -> bool:
        """Note what is not believed, once of each kind; return True if it is new."""
        if kind in self._doubted:
            return False
        self._doubted.add(kind)
        self._doubts.append(doubt)
        return True

    def _new_doubts(self) -> tuple[str, ...]:
        """Return the doubts since the last event."""
        doubts = tuple(self._doubts)
        self._doubts.clear()
        return doubts

    def observation(self, entry: Entry, result: GoalResult, *, is_there: bool = True) -> Observation:
        """Return the observation that a result of an order, or of a part of it, amounts to.

        A part that arrives after the last one belongs to the past, and settles nothing. A robot that is not
        there any more is where it last reported to be.
        """
        order, leg = entry.order, entry.leg
        assert leg is not None
        late, known = entry.progress.settled, self._track.is_plausible(result.position)
        position = self._snap(result.position, order.site) if known else self.prices.last_known
        sites, values = self._readings(order, result, position)
        ended_s = leg.since_s + (0.0 if late else self._took_s(entry, result, leg))
        level = order.level if isinstance(order, Query) else 0
        times_s = _between(
            leg.began_s + _row(result.seconds, len(values)), leg.began_s if late else leg.since_s, ended_s
        )
        if self.mission.world.sensor.along is not None:
            values, times_s = self._on_the_way(order, result, leg, sites, values, ended_s)
        cost, estimated = self.prices.charge(entry, result, leg, position, is_there=is_there)
        observation = Observation(
            order=entry.id,
            sites=sites,
            values=values,
            noise_variances=self._noise_variances(sites, level, result),
            times_s=times_s,
            position=position if is_there else self._elsewhere(entry, position),
            cost=cost,
            part=result.part,
            last=result.last and not late,
            complete=result.complete and known and len(values) == np.size(result.values),
            channels={name: _row(read, len(values)) for name, read in (result.channels or {}).items()}
            or None,
            time_s=ended_s,
            estimated=estimated,
            doubts=self._new_doubts(),
        )
        since = leg.battery if leg is self._latest and not late else None
        leg.charged += observation.cost
        leg.reached = position if known and entry.is_newest(result.part) else leg.reached
        if late or not leg.counted:  # else the battery has shown what the lost order took
            unknown = self.prices.unknown(self._latest, leg if result.last else None)
            self._gauge.charge(self._at_most(observation), since, unknown)
        if not late:
            self._pass(entry, observation, reported=result.position if known and is_there else None)
        return observation

    def _at_most(self, observation: Observation) -> float:
        """Return what a part cost at most: an estimate knows of no overrun."""
        return observation.cost * (1.0 + self.spec.margin * observation.estimated)

    def _pass(self, entry: Entry, observation: Observation, reported: Array | None) -> None:
        """Move on to the end of a part, in time and place; a late result reports a place of the past."""
        leg = entry.leg
        assert leg is not None
        assert observation.time_s is not None
        self.catch_up(observation.time_s)
        leg.since_s, leg.battery = observation.time_s, self._gauge.mark(self.clock.boot_s())
        if observation.last:
            self._settled_s = max(self._settled_s, observation.time_s)
            self._gauge.settled_s, self._gauge.settled_pack = self.clock.boot_s(), self._gauge.pack
        if entry.number >= self.prices.newest and entry.is_newest(observation.part):
            self.prices.newest, self.prices.position = entry.number, observation.position
            if reported is not None:
                self._track.report(reported)

    def _noise_variances(self, sites: Array, level: int, result: GoalResult) -> Array:
        """Return the variance of each reading's noise (k,): the sensor's, or the reported one if larger."""
        if not len(sites):
            return np.empty(0)
        variances = self.mission.world.sensor.variance(sites, level)
        if result.noise_variances is None:
            return variances
        reported = _row(result.noise_variances, len(sites))
        return np.where(np.isfinite(reported), np.maximum(variances, reported), variances)

    def _elsewhere(self, entry: Entry, ended: Array) -> Array:
        """Return where the robot probably is (d,) that may have moved on from where an order `ended` (d,).

        That is its newest position, believed or not; after its latest order, one of since the link broke.
        """
        if self._track.known:
            return self.prices.last_known
        if entry is self._book.latest and not self._track.in_doubt:
            return ended
        return self.prices.last_known if self._track.newest is None else self._track.newest

    def _snap(self, positions: Array, target: Array | None) -> Array:
        """Return positions (..., d), or the target for those within the reports' accuracy of it."""
        sites = np.asarray(positions, dtype=float)
        if target is None:
            return sites
        requested = np.where(np.isnan(target), sites, target)
        near = np.abs(sites - requested) <= np.asarray(self.settings.reports.accuracy)
        return np.where(near.all(axis=-1, keepdims=True), requested, sites)

    def _readings(self, order: Order, result: GoalResult, position: Array) -> tuple[Array, Array]:
        """Return where readings were taken (k, d) and their values (k,), NaN where a reading is implausible.

        k = 0 if the numbers of sites and values differ.
        """
        dimension, values = self.domain.dimension, self.believable(result.values)
        if np.size(result.sites) != len(values) * dimension:
            values = np.empty(0)
        sites = np.array(result.sites, dtype=float).ravel()[: len(values) * dimension].reshape(-1, dimension)
        plausible = self._track.are_plausible(sites)
        sites = np.where(plausible[:, None], self._snap(sites, order.site), position)
        return sites, np.where(plausible, values, math.nan)

    def _on_the_way(
        self, order: Order, result: GoalResult, leg: Leg, sites: Array, values: Array, ended_s: float
    ) -> tuple[Array, Array]:
        """Return readings (k,) and their times (k,), for a sensor that reads on the way.

        Those that can't come from the move are NaN, and the reasons are noted as doubts. A part may arrive
        after the next one, so it may begin as early as the order.
        """
        seconds, began_s = _row(result.seconds, len(values)), leg.began_s
        if leg.resumed and np.isfinite(seconds).any():  # when the robot began is not known
            began_s = min(began_s, max(0.0, self._settled_s, ended_s - float(np.nanmax(seconds))))
        at_site = isinstance(order, Query) and result.last and result.complete
        read = np.flatnonzero(np.isfinite(values))
        read = read[read < len(values) - at_site]
        limit = self.settings.reports.off_route_m or off_route_m(self.domain)
        good, problems = believable_on_the_way(
            sites[read], seconds[read], ended_s - began_s, leg.routes, limit
        )
        for problem in problems:
            self._doubts.append(
                f"{order.id}, part {result.part}: of {len(read)} readings on the way, {problem}"
            )
        believed = values.copy()
        believed[read[~good]] = math.nan
        times_s = np.clip(began_s + np.nan_to_num(seconds, nan=math.inf), min(began_s, ended_s), ended_s)
        if at_site and good.any():
            times_s[-1] = max(times_s[-1], times_s[read[good][-1]])
        return believed, times_s

    def believable(self, values: Array) -> Array:
        """Return reported readings (k,), NaN where one is implausible."""
        reports, read = self.settings.reports, np.array(values, dtype=float).ravel()
        plausible = np.isfinite(read) & (read >= reports.low) & (read <= reports.high)
        return np.where(plausible, read, math.nan)


def _row(reported: object, length: int) -> Array:
    """Return reported numbers, one per reading (k,); NaN throughout if there are more or fewer."""
    try:
        row = np.array(reported, dtype=float).ravel()
    except (TypeError, ValueError, OverflowError):
        row = np.empty(0)
    return row if len(row) == length else np.full(length, math.nan)


def _between(times_s: Array, low_s: float, high_s: float) -> Array:
    """Return the times, replaced by the end where they are not between the bounds."""
    return np.where((times_s >= low_s) & (times_s <= high_s), times_s, high_s)
