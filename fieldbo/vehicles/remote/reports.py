"""What a robot tells, taken for what it is worth: where it is, when, for how much, and what it read.

A robot's numbers may be anything. A position that is no place near the domain is a glitch, and the last
good one stands; a reading that is no number, or beyond what the vehicle file takes for possible, has
failed; a cost or a duration that the robot does not tell, or can't have had, is worked out here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Event, GoHome, Observation, Order, Query, Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import Charge, Done

if TYPE_CHECKING:
    from fieldbo.vehicles.remote.settings import VehicleFile


_ROUNDING = 1e-6


@dataclass
class _Way:
    """An order on its way: when it left, and where the part of it that was told last ended.

    Attributes
    ----------
    number : int
        How many orders left before it.
    began_s, since_s : float
        When the order left, and when its present part began; seconds since the start of the run.
    remaining : float or None
        What the battery held then.
    """

    number: int
    began_s: float
    since_s: float
    remaining: float | None


class ReportFilter:
    """Keeps a robot's place, clock and charge, and makes observations and telemetry of what it tells.

    Parameters
    ----------
    mission : Mission
    number : int
        Which of the mission's vehicles.
    settings : VehicleFile

    Attributes
    ----------
    position : (d,) array
        Where the last order that was carried out ended, or the start.
    """

    def __init__(self, mission: Mission, number: int, settings: VehicleFile) -> None:
        self.mission, self.number, self.settings = mission, number, settings
        self.crew, self.domain = mission.vehicles[number], mission.world.domain
        self.position: Array = self.crew.start
        self._reported: Array | None = None
        self._remaining: float | None = None
        self._left = self.crew.battery
        self._charged_s = -math.inf
        self._offset: float | None = None
        self._ways: dict[str, _Way] = {}
        self._newest = -1
        self._ahead_s = -time.monotonic()

    # -- the clock -------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the start of the run; never runs backwards."""
        return self._ahead_s + time.monotonic()

    def _put_forward(self, to_s: float) -> None:
        self._ahead_s += max(0.0, to_s - self.now_s)

    def _took_s(self, told: float, order: Order, way: _Way) -> float:
        """Return how long a part took: as told, if that can be, else as this machine's clock has it."""
        passed = max(0.0, self.now_s - way.since_s)
        return told if 0.0 <= told <= passed + self.allowed_s(order) else passed

    # -- orders ----------------------------------------------------------------------------------------

    def begin(self, order: Order) -> None:
        """Note that an order leaves now; one that is sent again leaves anew."""
        known, now_s = self._ways.get(str(order.id)), self.now_s
        number = len(self._ways) if known is None else known.number
        self._ways[str(order.id)] = _Way(number, now_s, now_s, self._fresh)

    def has_begun(self, order: str) -> bool:
        """Say whether an order has left."""
        return order in self._ways

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Take up an earlier run where it was: what left, and what was told of it."""
        numbers = {str(order.id): number for number, order in enumerate(orders)}
        for event in events:
            if isinstance(event, Observation):
                if numbers[event.order] >= self._newest:
                    self._newest, self.position = numbers[event.order], event.position
                self._put_forward(max([event.time_s or 0.0, *event.times_s]))
            elif isinstance(event, Telemetry):
                self._put_forward(event.time_s)
                self._left = self._left if event.remaining is None else event.remaining
        for order in orders:
            self.begin(order)

    def declared_s(self, order: Order) -> float:
        """Return how long an order is declared to take from here, in seconds; NaN where nothing is."""
        cost = self.mission.declared_cost
        if cost is None or order.site is None:
            return math.nan
        site = order.site[None]
        if isinstance(order, GoHome):
            return float(cost.travel_s(self.position, site)[0])
        return float(cost.duration_s(self.position, site, order.controls, order.level)[0])

    def allowed_s(self, order: Order) -> float:
        """Return how long an order may take before it is given up."""
        watch, declared = self.settings.watch, self.declared_s(order)
        return max(watch.least_s, watch.patience * declared) if math.isfinite(declared) else watch.least_s

    # -- reports ---------------------------------------------------------------------------------------

    def at(self, position: Array) -> None:
        """Take in where the robot is."""
        if self.is_place(position):
            self._reported = np.asarray(position, dtype=float)

    @property
    def _full(self) -> float:
        """What a full battery holds, in the cost unit."""
        return self.settings.battery.full or self.crew.battery

    def charge(self, signal: Charge) -> bool:
        """Take in what is left in the battery; say whether it was not known before.

        A battery that holds more than the mission may use is told by what was used of it.
        """
        before, amount = self._fresh, signal.amount
        if amount is None and signal.share is not None:
            amount = signal.share * self._full
        if amount is None or not 0.0 <= amount <= self._full * (1.0 + _ROUNDING):
            return False
        if self._offset is None:
            self._offset = max(0.0, amount - self._left) if self._full > self.crew.battery else 0.0
        self._remaining = min(amount, max(0.0, amount - self._offset), self.crew.battery)
        self._charged_s = time.monotonic()
        return before is None

    @property
    def _fresh(self) -> float | None:
        """What is left in the battery, unless that was told too long ago."""
        old = time.monotonic() > self._charged_s + self.settings.watch.silence_s
        return None if old else self._remaining

    def telemetry(self, target: Array | None = None) -> Telemetry:
        """Return where the robot is and what it has left; at `target`, or where it was last, if near that."""
        told, known = self.settings.battery.accuracy, self._reported
        at = self.position if target is None else target
        return Telemetry(
            vehicle=self.number,
            position=self.position if known is None else self._placed(known, at),
            remaining=self._fresh,
            time_s=self.now_s,
            accuracy=0.01 * self._full if told is None else told,
        )

    def observation(self, order: Order, done: Done) -> Observation:
        """Return what came of an order, or of a part of it."""
        way = self._ways[str(order.id)]
        known = self.is_place(done.position)
        position = self._placed(done.position, order.site) if known else self._last_known
        sites, values = self._readings(order, done, position)
        ended_s = way.since_s + self._took_s(_number(done.duration_s), order, way)
        level = order.level if isinstance(order, Query) else 0
        seen = Observation(
            order=str(order.id),
            sites=sites,
            values=values,
            noise_variances=self.mission.world.sensor.variance(sites, level) if len(sites) else np.empty(0),
            times_s=_between(way.began_s + _row(done.seconds, len(values)), way.since_s, ended_s),
            position=position,
            cost=self._cost(order, done, way, position),
            part=done.part,
            last=done.last,
            complete=done.complete and known and len(values) == np.size(done.values),
            channels={name: _row(read, len(values)) for name, read in (done.channels or {}).items()} or None,
            time_s=ended_s,
        )
        self._put_forward(ended_s)
        way.since_s, way.remaining = ended_s, self._fresh
        if way.number >= self._newest:  # what comes late says where it once was
            self._newest, self.position = way.number, position
            self._reported = np.asarray(done.position, dtype=float) if known else self._reported
        return seen

    @property
    def _last_known(self) -> Array:
        return self.position if self._reported is None else self._reported

    def is_place(self, position: Array) -> bool:
        """Say whether a position is one that the robot can have: no farther off than the domain is long."""
        try:
            told = np.asarray(position, dtype=float)
        except (TypeError, ValueError):
            return False
        if told.shape != (self.domain.dimension,) or not np.isfinite(told).all():
            return False
        extent, axes = self.domain.extent, self.domain.axes
        alike = len({axis.unit for axis in axes}) == 1
        reach = extent.max() if alike else np.where(extent > 0.0, extent, np.inf)
        return bool(((told >= self.domain.low - reach) & (told <= self.domain.high + reach)).all())

    def _placed(self, position: Array, target: Array | None) -> Array:
        """Return the site that was asked for if a report is within its accuracy of that; else the report."""
        told = np.asarray(position, dtype=float)
        if target is None:
            return told
        asked = np.where(np.isnan(target), told, target)
        near = np.abs(told - asked) <= np.asarray(self.settings.reports.accuracy)
        return np.asarray(asked) if near.all() else told

    def _readings(self, order: Order, done: Done, position: Array) -> tuple[Array, Array]:
        """Return where readings were taken (k, d) and the values (k,), NaN of those that are not believed.

        None where there are not as many sites as values.
        """
        reports, dimension = self.settings.reports, self.domain.dimension
        values = np.array(done.values, dtype=float).ravel()
        if np.size(done.sites) != len(values) * dimension:
            values = np.empty(0)
        sites = np.array(done.sites, dtype=float).ravel()[: len(values) * dimension].reshape(-1, dimension)
        for k, site in enumerate(sites):
            placed = self.is_place(site)
            sites[k] = self._placed(site, order.site) if placed else position
            if not (placed and reports.low <= values[k] <= reports.high and math.isfinite(values[k])):
                values[k] = math.nan
        return sites, values

    def _cost(self, order: Order, done: Done, way: _Way, position: Array) -> float:
        """Return what it cost: as told, if that can be; else as declared for the way, or by the battery."""
        cost = _number(done.cost)
        if 0.0 <= cost <= self.crew.battery:
            return cost
        declared, expected = self.mission.declared_cost, order.expected_cost or 0.0
        if declared is None:
            known = way.remaining is not None and self._fresh is not None
            return max(0.0, way.remaining - self._fresh) if known else expected  # type: ignore[operator]
        if way.number < self._newest:  # nobody knows any more where it came from
            return expected
        price = declared.travel(self.position, position[None])
        if isinstance(order, Query) and done.complete:
            price = declared.to(self.position, position[None], order.controls, order.level)
        return float(price[0]) if math.isfinite(price[0]) else expected


def _number(told: object) -> float:
    """Return what was told as a number; NaN where it is none."""
    try:
        return float(told)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _row(told: object, length: int) -> Array:
    """Return what was told of each reading (k,); NaN where there is not one of each."""
    try:
        row = np.array(told, dtype=float).ravel()
    except (TypeError, ValueError, OverflowError):
        row = np.empty(0)
    return row if len(row) == length else np.full(length, math.nan)


def _between(times_s: Array, low_s: float, high_s: float) -> Array:
    """Return times, the end where one is not between."""
    return np.where((times_s >= low_s) & (times_s <= high_s), times_s, high_s)
