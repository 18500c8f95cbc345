"""What is left in a robot's battery for the mission, by its reports and by what its orders cost.

A robot reports what is left in its whole battery, of which the mission may use only a part; and some robots
count from full whenever they start. Reports therefore show only what is used from one to the next: a level
that rises by more than the reports' accuracy is not credited. When counting begins, what is left follows from
the costs so far. Only a battery that is changed on an order, a `Recharge`, begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fieldbo.messages import Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import BatteryReport, Doubt, OnReport
from fieldbo.vehicles.remote.settings import Battery
from fieldbo.vehicles.remote.usable import number

ROUNDING = 1e-6

_UNKNOWN = -1.0
"""What robots send that do not know the level."""

_OVER = 1.05
"""A full battery may be reported as a little more than full."""

_CHARGED = 0.95
"""Fraction of the mission's battery from which on a new battery counts as such."""


@dataclass(frozen=True)
class Mark:
    """The state of a `BatteryGauge` when an order, or a part of one, began.

    Attributes
    ----------
    remaining : float or None
        What was left by the reports; None if unknown.
    left : float
        What was left by reports and costs.
    charged : float
        Sum of all costs until then.
    counts : int
        How many times counting had begun.
    """

    remaining: float | None
    left: float
    charged: float
    counts: int


class BatteryGauge:
    """Works out what is left of a mission's battery.

    All times are of this machine's clock, in seconds; all amounts are in the world's cost unit.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    settings : Battery
    silence_s : float
        Age in seconds beyond which a report says nothing about the present.
    doubt : Callable
        Takes the kind of a doubt, and the doubt.

    Attributes
    ----------
    accuracy : float
        Accuracy of the reports.
    pack : float or None
        What is left in the whole battery, as last reported.
    left : float
        What is left of the mission's battery at least, by reports and costs.
    measured_s : float
        When the latest report arrived.
    settled_s : float
        When the latest result of an order arrived.
    settled_pack : float or None
        What was left in the whole battery then, as reported.
    """

    def __init__(
        self,
        mission: Mission,
        number: int,
        settings: Battery,
        silence_s: float,
        doubt: Callable[[str, str], object],
    ) -> None:
        self._battery, self._unit = mission.vehicles[number].battery, mission.world.cost_unit
        self._full = float(settings.full or self._battery)
        self.accuracy = 0.01 * self._full if settings.accuracy is None else float(settings.accuracy)
        self._delay_s, self._silence_s, self._doubt = settings.delay_s, silence_s, doubt
        self.pack: float | None = None
        self.left = self._battery
        self.measured_s = self.settled_s = -math.inf
        self.settled_pack: float | None = None
        self._lowest: float | None = None
        self._higher: float | None = None
        self._offset = self._charged = self._written_off = 0.0
        self._counts = 0
        self._is_wrong = False
        self._charged_to: float | None = None

    # -- what is left ----------------------------------------------------------------------------------

    def remaining(self, now_s: float) -> float | None:
        """Return what is left by the reports; None if the latest one is too old."""
        if self.pack is None or now_s > self.measured_s + self._silence_s:
            return None
        return min(max(0.0, self.pack - self._offset), self._battery)

    @property
    def is_fresh(self) -> bool:
        """Whether the latest report was measured after the latest result arrived."""
        return self.measured_s - self._delay_s > self.settled_s

    def mark(self, now_s: float) -> Mark:
        """Return the present state."""
        return Mark(self.remaining(now_s), self.left, self._charged, self._counts)

    # -- costs -----------------------------------------------------------------------------------------

    def charge(self, cost: float, since: Mark | None, unknown: float) -> None:
        """Take in what a part of an order cost at most.

        Parameters
        ----------
        cost : float
        since : Mark or None
            The state when the part began; None if the robot has done something else since.
        unknown : float
            What other orders, of unknown cost, may have taken.
        """
        settled = max(0.0, self._written_off - unknown)
        self._written_off -= settled
        if since is None:
            cost = max(0.0, cost - settled)  # the rest was written off
        self._charged += cost
        if since is None:
            self.left -= cost
            return
        self.left = min(self.left, since.left - (self._charged - since.charged))
        self.lose(since, unknown)

    def lose(self, since: Mark, unknown: float) -> None:
        """Begin to count anew if counting began during a part: what it took before was not counted."""
        if self._counts != since.counts and self.pack is not None:
            self._count_from(self.pack, unknown)

    # -- another battery -------------------------------------------------------------------------------

    @property
    def reports(self) -> bool:
        """Whether what is left in the battery was ever reported, and reports are still believed."""
        return self.pack is not None and not self._is_wrong

    def renew(self, report: BatteryReport, now_s: float, *, waited: bool) -> bool:
        """Take a report while the battery is being changed; return True once it is of a charged one.

        Two reports in a row must show that the level has risen since the vehicle came home. A full battery
        that was hardly used can't show it, nor can a gauge that stands still: what is full counts as changed
        once the time for it is over (`waited`), as without reports.
        """
        amount, tolerance = self._amount(report), self.accuracy + ROUNDING * self._full
        charged, self._charged_to = self._charged_to, None
        if amount is None or amount < _CHARGED * self._battery - tolerance:
            return False
        before = self.pack if self.settled_pack is None else self.settled_pack
        if before is None or amount > before + tolerance:
            self._charged_to = amount
            if charged is None or amount < charged - tolerance:
                return False
        elif not waited or amount < _CHARGED * self._full - tolerance:
            return False
        self.replace()
        self._offset = max(0.0, amount - self._battery) if self._full > self._battery else 0.0
        self.pack = self._lowest = amount
        self.measured_s = now_s
        self.left = min(amount - self._offset, self._battery)
        return True

    def replace(self) -> None:
        """Begin with a new battery, of which nothing was reported yet."""
        self.pack = self._lowest = self._higher = None
        self.left, self._offset, self._written_off = self._battery, 0.0, 0.0
        self.measured_s = -math.inf

    # -- reports ---------------------------------------------------------------------------------------

    def take(self, report: BatteryReport, now_s: float, unknown: float) -> bool:
        """Take what is left in the whole battery; return True if that was unknown before.

        A level that rises beyond the reports' accuracy is believed once the next report confirms it.
        """
        before, amount = self.remaining(now_s), self._amount(report)
        self._written_off = min(self._written_off, unknown)
        if amount is None or not self._is_believed(amount, unknown):
            return False
        self.pack, self.measured_s = amount, now_s
        remaining = min(max(0.0, amount - self._offset), self._battery)
        self.left = remaining if self.is_fresh else min(self.left, remaining)
        return before is None

    def recall(self, telemetry: Telemetry, *, fresh: bool) -> None:
        """Take in telemetry of before a restart; records of old versions lack what the whole battery held."""
        remaining, pack = telemetry.remaining, telemetry.pack
        if remaining is None:
            return
        self.left = remaining if fresh else min(self.left, remaining)
        if pack is None and self._full <= self._battery:
            pack = remaining
        if pack is not None:
            self.pack = self._lowest = pack
            self._offset = max(self._offset, pack - remaining)

    def _is_believed(self, amount: float, unknown: float) -> bool:
        """Return True unless a level is higher than before, and this is the first report of it."""
        lowest, higher, tolerance = self._lowest, self._higher, self.accuracy + ROUNDING * self._full
        self._higher = None
        if lowest is not None and amount <= lowest + tolerance:
            self._lowest = min(lowest, amount)
            return True
        if lowest is not None:
            self._doubt(
                "rise",
                f"the battery level rose from {lowest:.6g} to {amount:.6g} {self._unit} by itself; "
                "the rise is not credited",
            )
            if higher is None or amount > higher + tolerance:
                self._higher = amount
                return False
        if lowest is not None or self._full > self._battery:
            self._count_from(amount, unknown)
        self._lowest = amount
        return True

    def _count_from(self, amount: float, unknown: float) -> None:
        """Count what is used from now on, where `amount` is left in the whole battery.

        What orders of unknown cost may have taken is written off once, however often counting begins: it is
        charged until their costs are known.
        """
        more = max(0.0, unknown - self._written_off)
        self._written_off += more
        self._charged += more
        self.left -= more
        self._offset = max(self._offset, amount - self.left)
        self._counts += 1

    def _amount(self, report: BatteryReport) -> float | None:
        """Return what is left in the whole battery; None if the report does not say, or is not believed.

        One level beyond the battery shows that the gauge, or what fieldbo knows of it, is wrong: below it, a
        level on another scale looks like any other.
        """
        share, amount = number(report.share), number(report.amount)
        if math.isinf(share) or math.isinf(amount):
            self._doubt("number", "a battery level that is not a number was ignored")
        in_percent = not math.isfinite(amount) or amount == _UNKNOWN
        if in_percent:
            amount = share * self._full
        unknown = in_percent and share == _UNKNOWN
        if self._is_wrong or unknown or not math.isfinite(amount):
            return None
        if 0.0 <= amount <= self._full * _OVER:
            return min(amount, self._full)
        self._is_wrong = True
        level = f"{100.0 * share:.6g}%" if in_percent else f"{amount:.6g} {self._unit}"
        self._doubt(
            "level",
            f"a battery level of {level} is impossible for a battery of {self._full:.6g} {self._unit}: no "
            "level is believed any more, and costs alone count; state what a full battery holds (full in "
            "[battery] of the vehicle file), or mend the gauge",
        )
        return None


Scale = Literal[1, 100]
"""What a full battery is reported as."""

_UNKNOWN_SHARES = (-1.0, -0.01)
"""What drivers send that do not know the level: MAVLink's -1, and what MAVROS makes of it."""

_FIX = "mend the gauge or its driver, or state its scale in [link]: battery_scale = 1 or 100"


class ShareReader:
    """Turns the levels that a robot reports into shares of a full battery: from 0 to 1, or in percent.

    The conventions of ROS 2 and of fieldbo's MQTT protocol are shares, but drivers exist that send percent,
    and below 1 the two look alike. Read as a share, the last percent of a battery would count as a full one.
    Unless the vehicle file states the scale, the first level above 1 therefore shows it: after that, 0.7 is
    0.7 %, for as long as the link is open. After a restart, until a level shows the scale again, the record
    protects the battery: one that rises is not credited.

    A level beyond the scale shows that the gauge, or what fieldbo knows about it, is wrong: no later level is
    believed.

    Parameters
    ----------
    source : str
        What sends the levels, for messages.
    scale : {1, 100}, optional
        What a full battery is reported as; by default, 100 once a level is above 1.
    on_report : Callable
        Takes a `Doubt` once the scale shows, and one if a level is impossible.
    fix : str, optional
        What to do about impossible levels.

    Examples
    --------
    >>> reader = ShareReader("battery_state", None, lambda doubt: print(doubt.why))
    >>> reader.read(1.2)
    battery_state reported a level of 1.2, so its scale is taken to be 0 to 100: 1.2 %
    0.012
    >>> reader.read(0.5)
    0.005
    """

    def __init__(self, source: str, scale: Scale | None, on_report: OnReport, fix: str = _FIX) -> None:
        self._source, self._report, self._fix = source, on_report, fix
        self._is_stated, self._scale = scale is not None, scale or 1
        self._is_believed = True

    def read(self, level: object) -> float:
        """Return a level as a share: NaN if it is unknown or not believed, infinity for what is no number."""
        given = number(level)
        if not self._is_believed or math.isnan(given) or given in _UNKNOWN_SHARES:
            return math.nan
        if math.isinf(given):
            return given
        if given > 1.0 and not self._is_stated and self._scale == 1 and given <= 100.0 * _OVER:
            self._recognise(given)
        if not 0.0 <= given <= self._scale * _OVER:
            self._stop_believing(given)
            return math.nan
        return min(given / self._scale, 1.0)

    def _recognise(self, level: float) -> None:
        self._scale = 100
        self._report(
            Doubt(
                "battery",
                f"{self._source} reported a level of {level:.6g}, so its scale is taken to be 0 to 100: "
                f"{level:.6g} %",
                "state battery_scale = 100 in [link], or 1 if a full battery is 1",
            )
        )

    def _stop_believing(self, level: float) -> None:
        self._is_believed = False
        scale = f"0 to {self._scale}" if self._is_stated or self._scale == 100 else "0 to 1 or 0 to 100"
        self._report(
            Doubt(
                "battery",
                f"{self._source} reported a level of {level:.6g}, which is impossible on a scale of {scale}: "
                "its battery levels are not believed any more, and costs alone count",
                self._fix,
            )
        )
