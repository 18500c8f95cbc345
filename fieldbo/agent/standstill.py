"""What stands still although its vehicle works: a battery gauge, a position, a clock or a sensor.

A gauge that shows 100 % for an hour, a receiver that repeats its last fix and a sensor that repeats its last
reading all look healthy, report by report. `Standstill` compares them with the work that was done since each
last changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Observation, Order, Query, Telemetry

_GAUGE = "battery gauge"

_SHARE, _ACCURACIES = 0.05, 3.0
"""A gauge must change before orders declared at this share of the battery, and at this many times its
accuracy, are done."""

_ORDERS = 3
"""A position or a clock may stay the same while this many orders are carried out elsewhere, but no longer."""

_READINGS = 6
"""How many equal readings in a row, at different sites, are too many."""


@dataclass
class Standstill:
    """Notices what stands still.

    Parameters
    ----------
    battery : float
        What the vehicle may use, in the world's cost unit.
    unit : str
        The cost unit.
    limit : float or None
        The sensor's limit of detection, which readings may well repeat.

    Attributes
    ----------
    now : dict of str to str
        What stands still at present, and since when in words.
    found : dict of str to str
        The same for all that ever did.

    Examples
    --------
    >>> still = Standstill(60.0, "s")
    >>> for k in range(1, 4):
    ...     order = Query([float(k), 0.0], expected_cost=2.0, id=f"run/{k}")
    ...     still.done(order, order.observed(0.5, noise_variance=0.01), 2.0)
    ...     still.heard(Telemetry(0, [float(k), 0.0], 60.0, 2.0 * k))
    >>> still.now["battery gauge"]
    'it has shown 60 s while orders declared at 4 s were carried out'
    """

    battery: float
    unit: str
    limit: float | None = None
    now: dict[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    _level: float = math.nan
    _worked: float = 0.0
    _place: Array | None = None
    _orders: int = 0
    _time_s: float = -math.inf
    _ticks: int = 0
    _reading: float = math.nan
    _sites: set[tuple[float, ...]] = field(default_factory=set)

    @property
    def gauge(self) -> bool:
        """Whether the battery gauge stands still."""
        return _GAUGE in self.now

    def renew(self) -> None:
        """Begin with another battery."""
        self._level, self._worked = math.nan, 0.0
        self.now.pop(_GAUGE, None)

    def heard(self, telemetry: Telemetry) -> None:
        """Take the level of the battery."""
        if (level := telemetry.remaining) is None:
            return
        if level != self._level:
            self._level, self._worked = level, 0.0
        worked = self._worked > max(_SHARE * self.battery, _ACCURACIES * telemetry.accuracy)
        done = f"orders declared at {self._worked:.4g} {self.unit} were carried out"
        self._note(_GAUGE, worked, f"it has shown {level:.4g} {self.unit} while {done}")

    def done(self, order: Order, event: Observation, declared: float) -> None:
        """Take an order that was carried out, and what it should have taken of the battery."""
        if not math.isnan(declared):
            self._worked += declared
        if not isinstance(order, Query) or not event.complete:
            return
        site = tuple(np.asarray(order.site).tolist())
        self._take_place(order, event)
        self._take_time(event)
        self._take_reading(site, event)

    def _take_place(self, order: Query, event: Observation) -> None:
        if np.isnan(order.site).any():
            return
        stays = self._place is not None and np.array_equal(event.position, self._place)
        self._place = event.position
        elsewhere = not np.array_equal(order.site, event.position)
        self._orders = self._orders + 1 if stays and elsewhere else 0
        text = f"it has stayed the same through {self._orders} orders to other sites"
        self._note("position", self._orders >= _ORDERS, text)

    def _take_time(self, event: Observation) -> None:
        times = [*event.times_s, *([] if event.time_s is None else [event.time_s])]
        known = [time_s for time_s in times if math.isfinite(time_s) and time_s > 0.0]
        if not known:  # a vehicle need not have a clock
            return
        self._ticks = self._ticks + 1 if max(known) <= self._time_s else 0
        self._time_s = max(known)
        text = f"it has shown {self._time_s:.4g} s through {self._ticks} orders"
        self._note("clock", self._ticks >= _ORDERS, text)

    def _take_reading(self, site: tuple[float, ...], event: Observation) -> None:
        if not len(event.values) or not event.noise_variances[-1] > 0.0:
            return
        value = float(event.values[-1])
        if value != self._reading or value in (0.0, self.limit):  # a count may well stay at 0
            self._sites.clear()
        self._reading = value
        self._sites.add(site)
        text = f"it has read {value:.6g} at {len(self._sites)} sites in a row"
        self._note("sensor", len(self._sites) >= _READINGS, text)

    def _note(self, what: str, stands_still: bool, text: str) -> None:
        if stands_still:
            self.now[what] = self.found[what] = text
        else:
            self.now.pop(what, None)
