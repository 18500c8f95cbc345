"""Where a robot is: reported positions are believed only if they agree with each other.

One report may be wrong: a receiver resets, a message arrives late. A route from there may lead through an
obstacle, and a reading be taken for one of another place. A report is therefore believed at once only if the
robot can have come there from its last known position, and at most one report since then contradicts it.
Otherwise, several reports must agree, and few may contradict them.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.fixes import top_speed

_SLACK = 0.02
"""Positions agree within this fraction of the domain's extent: robots drift."""

_FASTER = 3.0
"""A robot may be this many times as fast as declared."""

_AGREEING, _AGREEING_S = 3, 0.2
"""How many reports of an unexpected position must agree, over how many seconds."""

_CONTRADICTING = 0.5
"""Fewer reports than this fraction of those that agree may contradict them."""

_GAP_S = 2.0
"""The longest travel after which a report is believed at once: after a longer gap, several must agree."""

_KEPT = 200
"""How many reports that are not believed are kept."""


class PositionFilter:
    """Tells which of a robot's reported positions to believe.

    All times are in seconds on one clock, the caller's.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission, at whose start the robot is expected.

    Attributes
    ----------
    known : bool
        Whether the robot's position is known, so that a route from there can be trusted.
    in_doubt : bool
        Whether its latest report was not believed.
    heard : bool
        Whether the robot has reported any position.

    Examples
    --------
    >>> from fieldbo.testing import small_mission
    >>> positions = PositionFilter(small_mission())
    >>> [positions.take(np.array([x, 0.0]), now_s) for now_s, x in enumerate([0.0, 0.1, 90.0, 0.2])]
    [True, True, False, True]
    """

    def __init__(self, mission: Mission, number: int = 0) -> None:
        domain = mission.world.domain
        alike = len({axis.unit for axis in domain.axes}) == 1
        extent = np.full(domain.dimension, domain.extent.max()) if alike else domain.extent
        self._scale = np.where(extent > 0.0, extent, np.inf)
        self._speed = _FASTER * top_speed(mission, self._scale)
        self.known = self.heard = False
        self._last: tuple[float, Array] | None = (math.inf, mission.vehicles[number].start)
        self._doubtful: deque[tuple[float, Array]] = deque(maxlen=_KEPT)

    def take(self, position: Array, now_s: float) -> bool:
        """Take a report (d,) that arrived at `now_s`; return True if it is believed."""
        self.heard, here = True, (now_s, np.asarray(position, dtype=float))
        followed = self._last is not None and self._reaches(self._last, here, _GAP_S)
        if not (followed and len(self._doubtful) <= 1):
            self._doubtful.append(here)
            if not self._is_supported(here, followed):
                return False
        self.expect(position, now_s)
        return True

    @property
    def in_doubt(self) -> bool:
        return bool(self._doubtful)

    def expect(self, position: Array, now_s: float) -> None:
        """Take a place (d,) at which the robot is known to be."""
        self._last, self.known = (now_s, np.asarray(position, dtype=float)), True
        self._doubtful.clear()

    def lose(self) -> None:
        """Forget where the robot is."""
        self._last, self.known = None, False
        self._doubtful.clear()

    def _is_supported(self, here: tuple[float, Array], followed: bool) -> bool:
        """Return True if the latest reports agree with a new one, which is the last of them."""
        agreeing, contradicting = int(followed), 0
        for report in reversed(self._doubtful):
            if not self._reaches(report, here):
                contradicting += 1
                continue
            agreeing += 1
            lasted_s = here[0] - report[0]
            if agreeing >= _AGREEING and lasted_s >= _AGREEING_S:
                return contradicting < _CONTRADICTING * agreeing
        return False

    def _reaches(
        self, before: tuple[float, Array], after: tuple[float, Array], within_s: float = math.inf
    ) -> bool:
        """Return True if a robot can have come from one position to another in the time between them."""
        apart = np.linalg.norm((after[1] - before[1]) / self._scale)
        passed_s = min(within_s, max(0.0, after[0] - before[0]))
        return bool(apart <= _SLACK + self._speed * passed_s)
