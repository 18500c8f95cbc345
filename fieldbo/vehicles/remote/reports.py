"""Check what a robot reports, and turn it into observations and telemetry.

A robot's numbers may be anything. A position far from the domain is a glitch: the last plausible one stands.
A reading that is not a number, or outside the bounds in the vehicle file, has failed. A cost or a duration
that is missing or impossible is computed here instead: a cost as the larger of the declared one and what the
battery lost. Costs and battery levels that are not believed are reported as doubts, with the next event.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Event, GoHome, Observation, Order, Query, Rejected, Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import BatteryReport, GoalResult
from fieldbo.vehicles.remote.settings import VehicleFile

_ROUNDING = 1e-6


@dataclass
class _Leg:
    """An order that was sent.

    Attributes
    ----------
    number : int
        How many orders were sent before it.
    began_s, since_s : float
        When the order was sent, and when its current part began, in seconds since the start of the run.
    remaining : float or None
        Battery at `since_s`.
    site : (d,) array or None
        Where the order ends.
    """

    number: int
    began_s: float
    since_s: float
    remaining: float | None
    site: Array | None


def clock_s() -> float:
    """Return the seconds of a clock that never goes back.

    It runs on while the computer is suspended, where the system has such a clock.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class ReportFilter:
    """Tracks a robot's position, clock and battery, and turns its reports into observations and telemetry.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    settings : VehicleFile

    Attributes
    ----------
    position : (d,) array
        Where the newest completed order ended, or the start.
    """

    def __init__(self, mission: Mission, number: int, settings: VehicleFile) -> None:
        self.mission, self.number, self.settings = mission, number, settings
        self.spec, self.domain = mission.vehicles[number], mission.world.domain
        self.position: Array = self.spec.start
        self._reported: Array | None = None
        self._reported_s = 0.0
        self._pack: float | None = None
        self._higher: float | None = None
        self._left = self.spec.battery
        self._battery_s = -math.inf
        self._offset: float | None = None
        self._legs: dict[str, _Leg] = {}
        self._newest = -1
        self._ahead_s = -clock_s()
        self._doubts: list[str] = []
        self._doubted: set[str] = set()

    # -- the clock -------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the start of the run; never decreases."""
        return self._ahead_s + clock_s()

    def catch_up(self, to_s: float) -> None:
        """Advance the clock to a time that has passed, unless it is ahead of it."""
        self._ahead_s += max(0.0, to_s - self.now_s)

    def _took_s(self, reported: float, order: Order, leg: _Leg) -> float:
        """Return how long a part took: as reported if plausible, else by this machine's clock."""
        passed = max(0.0, self.now_s - leg.since_s)
        return reported if 0.0 <= reported <= passed + self.allowed_s(order) else passed

    # -- orders ----------------------------------------------------------------------------------------

    def begin(self, order: Order) -> None:
        """Note that an order is sent now; sending it again restarts its clock."""
        known, now_s = self._legs.get(str(order.id)), self.now_s
        number = len(self._legs) if known is None else known.number
        self._legs[str(order.id)] = _Leg(number, now_s, now_s, self._remaining_now, order.site)

    def drop(self, order: str) -> None:
        """Note that an order was rejected: the robot did not go there."""
        if order in self._legs:
            self._legs[order].site = None

    def has_begun(self, order: str) -> bool:
        """Return True if the order was sent."""
        return order in self._legs

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue a run, given all its orders and events."""
        numbers = {str(order.id): number for number, order in enumerate(orders)}
        for event in events:
            if isinstance(event, Observation):
                if numbers[event.order] >= self._newest:
                    self._newest, self.position = numbers[event.order], event.position
                self.catch_up(max([event.time_s or 0.0, *event.times_s]))
            elif isinstance(event, Telemetry):
                self.catch_up(event.time_s)
                if event.remaining is not None:
                    self._left = event.remaining
                    if event.pack is not None and self._offset is None:
                        self._offset = max(0.0, event.pack - event.remaining)
        for order in orders:
            self.begin(order)
        for event in events:
            if isinstance(event, Rejected):
                self.drop(event.order)

    def declared_s(self, order: Order) -> float:
        """Return the declared duration of an order from here, in seconds; NaN if none is declared."""
        cost = self.mission.declared_cost
        if cost is None or order.site is None:
            return math.nan
        site = order.site[None]
        if isinstance(order, GoHome):
            return float(cost.travel_s(self.position, site)[0])
        return float(cost.duration_s(self.position, site, order.controls, order.level)[0])

    def allowed_s(self, order: Order) -> float:
        """Return after how many seconds to give up an order."""
        watch, declared = self.settings.watch, self.declared_s(order)
        return max(watch.least_s, watch.patience * declared) if math.isfinite(declared) else watch.least_s

    # -- reports ---------------------------------------------------------------------------------------

    def take_position(self, position: Array) -> None:
        """Take the robot's position if it is plausible."""
        if self.is_plausible(position):
            self._reported, self._reported_s = np.asarray(position, dtype=float), clock_s()

    @property
    def _full(self) -> float:
        """What a full battery holds, in the world's cost unit."""
        return float(self.settings.battery.full or self.spec.battery)

    @property
    def _accuracy(self) -> float:
        """The accuracy of the battery reports, in the world's cost unit."""
        accuracy = self.settings.battery.accuracy
        return 0.01 * self._full if accuracy is None else float(accuracy)

    def take_battery(self, report: BatteryReport) -> bool:
        """Take what is left in the battery; return True if that was unknown before.

        If the battery holds more than the mission may use, only what was used of it counts. A level that
        rises beyond the reports' accuracy is believed once the next report confirms it.
        """
        before, amount = self._remaining_now, self._amount(report)
        if amount is None or not self._is_believed(amount):
            return False
        if self._offset is None:
            self._offset = max(0.0, amount - self._left) if self._full > self.spec.battery else 0.0
        self._pack, self._battery_s = amount, clock_s()
        return before is None

    def _amount(self, report: BatteryReport) -> float | None:
        """Return what is left in the whole battery; None if the report does not say, or is impossible."""
        share, amount = _number(report.share), _number(report.amount)
        if math.isnan(amount):
            amount = share * self._full
        if math.isnan(amount):
            return None
        if 0.0 <= amount <= self._full * (1.0 + _ROUNDING):
            return amount
        level = f"{amount:.6g} {self.mission.world.cost_unit}"
        if math.isnan(_number(report.amount)):
            level = f"{100.0 * share:.6g}%"
        self._doubt("level", f"a battery level of {level} is impossible and was ignored")
        return None

    def _is_believed(self, amount: float) -> bool:
        """Return True unless a level is higher than the last one, and this is the first report of it."""
        last, higher, tolerance = self._pack, self._higher, self._accuracy + _ROUNDING * self._full
        self._higher = None
        if last is None or amount <= last + tolerance:
            return True
        if higher is not None and abs(amount - higher) <= tolerance:
            return True
        self._higher = amount
        unit = self.mission.world.cost_unit
        self._doubt("rise", f"the battery level rose from {last:.6g} to {amount:.6g} {unit} by itself")
        return False

    @property
    def _remaining_now(self) -> float | None:
        """What is left for the mission; None if the last report is too old."""
        if self._pack is None or clock_s() > self._battery_s + self.settings.watch.silence_s:
            return None
        return min(self._pack, max(0.0, self._pack - (self._offset or 0.0)), self.spec.battery)

    def telemetry(self, target: Array | None = None) -> Telemetry:
        """Return the robot's position and battery.

        A position within the reports' accuracy of `target`, by default the last position, counts as it.
        """
        known, remaining, now_s = self._reported, self._remaining_now, self.now_s
        at = self.position if target is None else target
        return Telemetry(
            vehicle=self.number,
            position=self.position if known is None else self._snapped(known, at),
            remaining=remaining,
            time_s=now_s,
            accuracy=self._accuracy,
            located_s=0.0 if known is None else min(now_s, self._ahead_s + self._reported_s),
            measured_s=None
            if remaining is None
            else self._ahead_s + self._battery_s - self.settings.battery.delay_s,
            pack=None if remaining is None else self._pack,
            doubts=self._new_doubts(),
        )

    def _doubt(self, kind: str, doubt: str) -> None:
        """Note what is not believed, once of each kind."""
        if kind not in self._doubted:
            self._doubted.add(kind)
            self._doubts.append(doubt)

    def _new_doubts(self) -> tuple[str, ...]:
        """Return the doubts since the last event."""
        doubts, self._doubts = tuple(self._doubts), []
        return doubts

    def observation(self, order: Order, result: GoalResult) -> Observation:
        """Return the observation that a result of an order, or of a part of it, amounts to."""
        leg = self._legs[str(order.id)]
        known = self.is_plausible(result.position)
        position = self._snapped(result.position, order.site) if known else self.last_known
        sites, values = self._readings(order, result, position)
        ended_s = leg.since_s + self._took_s(_number(result.duration_s), order, leg)
        level = order.level if isinstance(order, Query) else 0
        cost, estimated = self._cost(order, result, leg, position)
        observation = Observation(
            order=str(order.id),
            sites=sites,
            values=values,
            noise_variances=self._noise_variances(sites, level, result),
            times_s=_between(leg.began_s + _row(result.seconds, len(values)), leg.since_s, ended_s),
            position=position,
            cost=cost,
            part=result.part,
            last=result.last,
            complete=result.complete and known and len(values) == np.size(result.values),
            channels={name: _row(read, len(values)) for name, read in (result.channels or {}).items()}
            or None,
            time_s=ended_s,
            estimated=estimated,
            doubts=self._new_doubts(),
        )
        self.catch_up(ended_s)
        leg.since_s, leg.remaining = ended_s, self._remaining_now
        if leg.number >= self._newest:  # a late result reports a position of the past
            self._newest, self.position = leg.number, position
            if known:
                self._reported, self._reported_s = np.asarray(result.position, dtype=float), clock_s()
        return observation

    def _noise_variances(self, sites: Array, level: int, result: GoalResult) -> Array:
        """Return the variance of each reading's noise (k,): the sensor's, or the reported one if larger."""
        if not len(sites):
            return np.empty(0)
        variances = self.mission.world.sensor.variance(sites, level)
        if result.noise_variances is None:
            return variances
        reported = _row(result.noise_variances, len(sites))
        return np.where(np.isfinite(reported), np.maximum(variances, reported), variances)

    @property
    def reports_positions(self) -> bool:
        """Whether the robot has ever reported where it is."""
        return self._reported is not None

    @property
    def last_known(self) -> Array:
        """Where the robot is (d,), as it last reported, else where its latest order ended."""
        return self.position if self._reported is None else self._reported

    def is_plausible(self, position: Array) -> bool:
        """Return True if a position lies no farther from the domain than the domain is long."""
        try:
            site = np.asarray(position, dtype=float)
        except (TypeError, ValueError):
            return False
        if site.shape != (self.domain.dimension,) or not np.isfinite(site).all():
            return False
        extent, axes = self.domain.extent, self.domain.axes
        alike = len({axis.unit for axis in axes}) == 1
        reach = extent.max() if alike else np.where(extent > 0.0, extent, np.inf)
        return bool(((site >= self.domain.low - reach) & (site <= self.domain.high + reach)).all())

    def _snapped(self, position: Array, target: Array | None) -> Array:
        """Return the target if the position is within the reports' accuracy of it, else the position."""
        site = np.asarray(position, dtype=float)
        if target is None:
            return site
        requested = np.where(np.isnan(target), site, target)
        near = np.abs(site - requested) <= np.asarray(self.settings.reports.accuracy)
        return np.asarray(requested) if near.all() else site

    def _readings(self, order: Order, result: GoalResult, position: Array) -> tuple[Array, Array]:
        """Return where readings were taken (k, d) and their values (k,), NaN where a reading is implausible.

        k = 0 if the numbers of sites and values differ.
        """
        reports, dimension = self.settings.reports, self.domain.dimension
        values = np.array(result.values, dtype=float).ravel()
        if np.size(result.sites) != len(values) * dimension:
            values = np.empty(0)
        sites = np.array(result.sites, dtype=float).ravel()[: len(values) * dimension].reshape(-1, dimension)
        for k, site in enumerate(sites):
            plausible = self.is_plausible(site)
            sites[k] = self._snapped(site, order.site) if plausible else position
            if not (plausible and reports.low <= values[k] <= reports.high and math.isfinite(values[k])):
                values[k] = math.nan
        return sites, values

    def believable(self, values: Array) -> Array:
        """Return reported readings (k,), NaN where one is implausible."""
        reports, read = self.settings.reports, np.array(values, dtype=float).ravel()
        plausible = np.isfinite(read) & (read >= reports.low) & (read <= reports.high)
        return np.where(plausible, read, math.nan)

    def _cost(self, order: Order, result: GoalResult, leg: _Leg, position: Array) -> tuple[float, bool]:
        """Return the cost, and whether it is an estimate.

        As reported if plausible; otherwise the larger of the declared cost and what the battery lost.
        """
        cost, before, now = _number(result.cost), leg.remaining, self._remaining_now
        if 0.0 <= cost <= self.spec.battery:
            return cost, False
        drained = math.nan if before is None or now is None else max(0.0, before - now)
        declared = self._declared(order, result, leg, position)
        if not math.isnan(cost):
            estimate = max(declared, 0.0 if math.isnan(drained) else drained)
            unit = self.mission.world.cost_unit
            self._doubts.append(
                f"{order.id}: a cost of {cost:.6g} {unit} is impossible; {estimate:.6g} {unit} were charged"
            )
            return estimate, True
        if self.mission.declared_cost is None and not math.isnan(drained):
            return drained, True
        return declared, True

    def _declared(self, order: Order, result: GoalResult, leg: _Leg, position: Array) -> float:
        """Return the declared cost of a part, from the worst of the places where the robot may have begun."""
        cost, expected = self.mission.declared_cost, order.expected_cost or 0.0
        if cost is None or leg.number < self._newest:  # where the robot came from is no longer known
            return expected
        lost = (other.site for other in self._legs.values() if self._newest < other.number < leg.number)
        starts = [self.position, *(site for site in lost if site is not None and np.isfinite(site).all())]
        prices = list[float]()
        for start in starts:
            if isinstance(order, Query) and result.complete:
                prices.append(float(cost.to(start, position[None], order.controls, order.level)[0]))
            else:
                prices.append(float(cost.travel(start, position[None])[0]))
        return max(prices) if np.isfinite(prices).all() else expected


def _number(reported: object) -> float:
    """Return a reported number; NaN if it is not a number."""
    try:
        return float(reported)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


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
