"""What a robot tells, taken for what it is worth: where it is, when, for how much, and what it read.

A robot's numbers may be anything. A position that is no place near the domain is a glitch, and the last
good one stands; a reading that is no number, or beyond what the vehicle file takes for possible, has
failed; a cost or a duration that the robot does not tell, or can't have had, is worked out here.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fieldbo.domain import Array
from fieldbo.exchange import GoHome, Observation, Order, Query, Telemetry
from fieldbo.mission import Mission
from fieldbo.vehicles.link import Charge, Done

if TYPE_CHECKING:
    from fieldbo.vehicles.settings import VehicleFile


@dataclass(frozen=True, eq=False)
class _Start:
    """How things stood when an order left."""

    time_s: float
    position: Array
    remaining: float | None


class Account:
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
        self.crew, self.domain = mission.crew[number], mission.world.domain
        self.position: Array = self.crew.start
        self._reported: Array | None = None
        self._remaining: float | None = None
        self._charged_s = -math.inf
        self._starts: dict[str, _Start] = {}
        self._ahead_s = -time.monotonic()

    # -- the clock -------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the start of the run; never runs backwards."""
        return self._ahead_s + time.monotonic()

    def _put_forward(self, to_s: float) -> None:
        self._ahead_s += max(0.0, to_s - self.now_s)

    def _took_s(self, told: float, order: Order, start: _Start) -> float:
        """Return how long it took: as told, if that can be, else as this machine's clock has it."""
        passed = max(0.0, self.now_s - start.time_s)
        return told if 0.0 <= told <= passed + self.allowed_s(order) else passed

    # -- orders ----------------------------------------------------------------------------------------

    def begin(self, order: Order) -> None:
        """Note that an order leaves now."""
        self._starts[str(order.id)] = _Start(self.now_s, self.position, self._fresh)

    def resume(self, position: Array, time_s: float) -> None:
        """Take up an earlier run where it was."""
        self.position = position
        self._put_forward(time_s)

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
        if self._is_place(position):
            self._reported = np.asarray(position, dtype=float)

    @property
    def _full(self) -> float:
        """What a full battery holds, in the cost unit."""
        return self.settings.battery.full or self.crew.battery

    def charge(self, signal: Charge) -> bool:
        """Take in what is left in the battery; say whether it was not known before."""
        before = self._fresh
        amount = signal.amount
        if amount is None and signal.share is not None:
            amount = signal.share * self._full if signal.share <= 1.0 else math.nan
        if amount is not None and math.isfinite(amount) and amount >= 0.0:
            self._remaining, self._charged_s = amount, time.monotonic()
        return before is None and self._remaining is not None

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
        start = self._starts[str(order.id)]
        known = self._is_place(done.position)
        position = self._placed(done.position, order.site) if known else self._last_known
        sites, values = self._readings(order, done, position)
        took_s = self._took_s(done.duration_s, order, start)
        told_s = np.asarray(done.seconds, dtype=float)
        level = order.level if isinstance(order, Query) else 0
        seen = Observation(
            order=str(order.id),
            sites=sites,
            values=values,
            noise_variances=self.mission.world.sensor.variance(sites, level) if len(sites) else np.empty(0),
            times_s=start.time_s + np.where((told_s >= 0.0) & (told_s <= took_s), told_s, took_s),
            position=position,
            cost=self._cost(order, done, start, position),
            part=done.part,
            last=done.last,
            complete=done.complete and known,
            channels=done.channels,
            time_s=start.time_s + took_s,
        )
        self._put_forward(start.time_s + took_s)
        if str(order.id) == next(reversed(self._starts)):  # what comes late says where it once was
            self.position = position
            self._reported = np.asarray(done.position, dtype=float) if known else self._reported
        return seen

    @property
    def _last_known(self) -> Array:
        return self.position if self._reported is None else self._reported

    def _is_place(self, position: Array) -> bool:
        """Say whether a position is one that the robot can have: no farther off than the domain is long."""
        told = np.asarray(position, dtype=float)
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
        """Return where readings were taken (k, d) and the values (k,), NaN of those that are not believed."""
        reports, values = self.settings.reports, np.array(done.values, dtype=float)
        sites = np.empty((len(values), self.domain.dimension))
        for k, site in enumerate(np.reshape(done.sites, sites.shape)):
            placed = self._is_place(site)
            sites[k] = self._placed(site, order.site) if placed else position
            if not (placed and reports.low <= values[k] <= reports.high and math.isfinite(values[k])):
                values[k] = math.nan
        return sites, values

    def _cost(self, order: Order, done: Done, start: _Start, position: Array) -> float:
        """Return what it cost: as told, else as declared for the way made, else by the battery."""
        if math.isfinite(done.cost) and done.cost >= 0.0:
            return done.cost
        declared, expected = self.mission.declared_cost, order.expected_cost
        if declared is not None:
            way = position[None]
            price = declared.travel(start.position, way)
            if isinstance(order, Query) and len(done.values):
                price = declared.to(start.position, way, order.controls, order.level)
            if math.isfinite(price[0]):
                return float(price[0])
        elif start.remaining is not None and self._fresh is not None:
            return max(0.0, start.remaining - self._fresh)
        return expected or 0.0
