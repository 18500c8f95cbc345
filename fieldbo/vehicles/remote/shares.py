"""The scale on which a robot reports its battery: shares from 0 to 1, or percent from 0 to 100.

The conventions of ROS 2 and of fieldbo's MQTT protocol are shares, but drivers exist that send percent, and
below 1 the two look alike. Read as a share, the last percent of a battery would count as a full one. Unless
the vehicle file states the scale, the first level above 1 therefore shows it: after that, 0.7 is 0.7 %, for
as long as the link is open. After a restart, until a level shows the scale again, the record protects the
battery: one that rises is not credited (see `fieldbo.vehicles.remote.gauge`).
"""

from __future__ import annotations

import math
from typing import Literal

from fieldbo.vehicles.remote.link import Doubt, OnReport
from fieldbo.vehicles.remote.usable import number

Scale = Literal[1, 100]
"""What a full battery is reported as."""

_UNKNOWN = (-1.0, -0.01)
"""What drivers send that do not know the level: MAVLink's -1, and what MAVROS makes of it."""

_OVER = 1.05
"""A full battery may be reported as a little more than full."""

_FIX = "mend the gauge or its driver, or state its scale in [link]: battery_scale = 1 or 100"


class ShareReader:
    """Turns the levels that a robot reports into shares of a full battery.

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
        if not self._is_believed or math.isnan(given) or given in _UNKNOWN:
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
