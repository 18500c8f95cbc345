"""Where a robot is: reported positions are believed only if they agree with each other.

One report may be wrong: a receiver resets, a message arrives late. A route from there may lead through an
obstacle, and a reading be taken for one of another place. A report is therefore believed at once only if the
robot can have come there from its last known position, and at most one report since then contradicts it.
Otherwise, several reports must agree, and few may contradict them (`Track`).

A robot that is to hold where it is can't wait for that: it is held at the newest report with which most of
the latest ones agree (`Fixes`).
"""

from __future__ import annotations

import math
from collections import deque
from typing import Generic, TypeVar

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.mission.mission import Mission

Place = TypeVar("Place")

DRIFT = 0.02
"""Positions agree within this fraction of the domain's extent: robots drift."""

_FASTER = 3.0
"""A robot may be this many times as fast as declared, or as it usually moves."""

_UNDECLARED = 0.02
"""Extents per second, where the costs say nothing about the speed."""

_AGREEING, _AGREEING_S = 3, 0.2
"""How many reports of an unexpected position must agree, over how many seconds."""

_CONTRADICTING = 0.5
"""Fewer reports than this fraction of those that agree may contradict them."""

_GAP_S = 2.0
"""The longest travel after which a report is believed at once: after a longer gap, several must agree."""

_KEPT = 200
"""How many reports that are not believed are kept."""

_REACH = 1.0
"""A position may lie this far outside of the domain, as a fraction of its extent; others are glitches."""

BESIDE = 0.05
"""How far outside the domain a robot may start, as a fraction of its extent: at a jetty, for example."""

_BESIDE_S = 2.0
"""How long a robot must report positions outside the domain before that is believed."""

_FIXES_KEPT = 60
"""How many fixes are kept: a burst of bad ones must stay in the minority."""

_FIX_BESIDE = 0.1
"""A fix may lie this far outside of the domain, as a fraction of its extent: vehicles drift."""

_NEAR = 4
"""A fix must also agree with most of this many before and after it."""

_USUAL = 0.8
"""The quantile of the speeds between fixes that counts as usual."""


class Track:
    """Where a robot is, by those of its reports that are believed.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission, at whose start the robot is expected.
    clock : Clock, optional
        By default this machine's.

    Attributes
    ----------
    known : bool
        Whether the robot's position is known, so that a route from there can be trusted.
    heard : bool
        Whether the robot has reported any position.
    reported : (d,) array or None
        The latest position that is believed; None before the first.
    reported_s : float
        When that was reported, by the clock that goes on while this machine sleeps.
    beside : (d,) array or None
        Where the robot reports to be, if that is far outside the domain.

    Examples
    --------
    >>> from fieldbo.testing import small_mission
    >>> track = Track(small_mission())
    >>> [track.take(np.array([x, 0.0]), now_s) for now_s, x in enumerate([0.0, 0.1, 90.0, 0.2])]
    [True, True, False, True]
    """

    def __init__(self, mission: Mission, number: int = 0, clock: Clock = MACHINE_CLOCK) -> None:
        self._domain, self._passable, self._clock = mission.world.domain, mission.world.passable, clock
        alike = len({axis.unit for axis in self._domain.axes}) == 1
        extent = self._domain.extent
        extent = np.full(self._domain.dimension, extent.max()) if alike else extent
        self._scale = np.where(extent > 0.0, extent, np.inf)
        self._speed = _FASTER * top_speed(mission, self._scale)
        self.known = self.heard = False
        self.reported: Array | None = None
        self.reported_s = 0.0
        self.beside: Array | None = None
        self._beside_s = -math.inf
        self._last: tuple[float, Array] | None = (math.inf, mission.vehicles[number].start)
        self._doubtful: deque[tuple[float, Array]] = deque(maxlen=_KEPT)

    def adopt(self, mission: Mission) -> None:
        """Go on in the part of a mission's domain that vehicles may enter."""
        self._passable = mission.world.passable

    # -- reports ---------------------------------------------------------------------------------------

    def take(self, position: Array, now_s: float) -> bool:
        """Take a report (d,) that arrived at `now_s`; return True if it is believed."""
        self._check_beside(position, now_s)
        if not self.is_plausible(position):
            return False
        self.heard, here = True, (now_s, np.asarray(position, dtype=float))
        followed = self._last is not None and self._reaches(self._last, here, _GAP_S)
        if not (followed and len(self._doubtful) <= 1):
            self._doubtful.append(here)
            if not self._is_supported(here, followed):
                return False
        self.expect(position, now_s)
        self.report(position)
        return True

    def report(self, position: Array) -> None:
        """Take a place (d,) for the latest that the robot has reported."""
        self.reported, self.reported_s = np.asarray(position, dtype=float), self._clock.boot_s()

    def expect(self, position: Array, now_s: float) -> None:
        """Take a place (d,) at which the robot is known to be."""
        self._last, self.known = (now_s, np.asarray(position, dtype=float)), True
        self._doubtful.clear()

    def lose(self) -> None:
        """Forget where the robot is."""
        self._last, self.known = None, False
        self._doubtful.clear()

    # -- questions -------------------------------------------------------------------------------------

    @property
    def in_doubt(self) -> bool:
        """Whether the robot's latest report was not believed."""
        return bool(self._doubtful)

    @property
    def newest(self) -> Array | None:
        """The robot's latest plausible position (d,), whether it is believed yet or not; None before any."""
        return self._doubtful[-1][1] if self._doubtful else self.reported

    def is_away(self, place: Array, by: float = BESIDE) -> bool:
        """Return True if the robot is seen farther from a place (d,) than this fraction of the extent."""
        if self.reported is None or not self.heard:
            return False
        return bool(np.linalg.norm((self.reported - place) / self._scale) > by)

    def agrees(self, position: Array, since_s: float, now_s: float) -> bool | None:
        """Return whether a result's place (d,), of `since_s`, agrees with where the robot was seen.

        None while only positions from before it contradict it: a rehearsal may run faster than declared.
        """
        if not self.heard or self._last is None or not self.is_plausible(position):
            return True
        there = since_s, np.asarray(position, dtype=float)
        if self._last[0] > since_s:
            return self._reaches(there, self._last)
        return self._reaches(self._last, (now_s, there[1])) or None

    def is_plausible(self, position: Array) -> bool:
        """Return True if a position lies no farther from the domain than the domain is long."""
        try:
            site = np.asarray(position, dtype=float)
        except (TypeError, ValueError):
            return False
        return site.shape == (self._domain.dimension,) and bool(self.are_plausible(site[None])[0])

    def are_plausible(self, sites: Array) -> Mask:
        """Return True for each position (n, d) that `is_plausible`."""
        return self._domain.around(sites, _REACH)

    def is_settled(self, now_s: float) -> bool:
        """Return True unless the robot has begun to report, just now, that it is outside the domain."""
        return self.beside is None or now_s > self._beside_s + _BESIDE_S

    def _check_beside(self, position: Array, now_s: float) -> None:
        """Remember a position far outside the domain, until a plausible one arrives."""
        if self._is_beside(position):
            self._beside_s = now_s if self.beside is None else self._beside_s
            self.beside = position
        elif self.is_plausible(position):
            self.beside = None

    def _is_beside(self, position: Array) -> bool:
        """Return True if a reported place lies far outside of the domain: no route from there is safe."""
        domain, outline = self._passable, self._passable.outline
        is_numeric = np.issubdtype(np.asarray(position).dtype, np.number)
        if np.shape(position) != (domain.dimension,) or not is_numeric:
            return False
        if outline is None:
            return not domain.around(position, BESIDE)[0]
        return bool(shapely.distance(outline, shapely.Point(position)) > BESIDE * domain.extent.max())

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
        return bool(apart <= DRIFT + self._speed * passed_s)


class Fixes(Generic[Place]):
    """The latest positions of a vehicle, which agree with each other as far as it can have travelled.

    Parameters
    ----------
    mission : Mission

    Examples
    --------
    >>> from fieldbo.testing import small_mission
    >>> fixes = Fixes(small_mission())
    >>> for k, site in enumerate([[0, 0], [0.2, 0], [0.4, 0], [3, 3], [900, 0]]):
    ...     fixes.take(np.array(site, dtype=float), k, now_s=0.5 * k)
    >>> fixes.plausible()
    2
    """

    def __init__(self, mission: Mission) -> None:
        self._domain = mission.world.domain
        self._scale = np.where(self._domain.extent > 0.0, self._domain.extent, np.inf)
        self._speed = _FASTER * top_speed(mission, self._scale)
        self._fixes: deque[tuple[float, Array, Place]] = deque(maxlen=_FIXES_KEPT)

    def take(self, site: Array, place: Place, now_s: float) -> None:
        """Take a fix at a site (d,), unless it lies far outside of the domain.

        Parameters
        ----------
        site : (d,) array
        place : object
            The same in the form in which the vehicle is sent there.
        now_s : float
            When it arrived.
        """
        if not self._domain.around(site, _FIX_BESIDE)[0]:
            return
        self._fixes.append((now_s, site / self._scale, place))

    def plausible(self) -> Place | None:
        """Return the place of the newest fix with which most fixes agree, or else of the best supported one.

        None if no two fixes agree.
        """
        newest = self.newest_plausible()
        return None if newest is None else newest[1]

    def newest_plausible(self) -> tuple[float, Place] | None:
        """Return when the fix of `plausible` arrived, in seconds of the caller's clock, and its place."""
        if not self._fixes:
            return None
        times, sites = np.array([fix[0] for fix in self._fixes]), np.array([fix[1] for fix in self._fixes])
        apart = np.linalg.norm(sites[:, None] - sites[None], axis=2)
        speed = max(self._speed, _FASTER * _usual_speed(times, sites))
        agree = apart <= DRIFT + speed * np.abs(times[:, None] - times[None])
        rows = np.arange(len(times))
        near = np.abs(rows[:, None] - rows) <= _NEAR
        trusted = (agree.mean(axis=1) > 0.5) & (2 * (agree & near).sum(axis=1) > near.sum(axis=1))
        votes = agree.sum(axis=1)
        if votes.max() < min(2, len(votes)):
            return None
        chosen = np.flatnonzero(trusted if trusted.any() else votes == votes.max())
        arrived_s, _, place = self._fixes[int(chosen[-1])]
        return arrived_s, place


def _usual_speed(times: Array, sites: Array) -> float:
    """Return how fast a vehicle usually moves, without single fixes that jump; rehearsals run fast."""
    if len(times) < 4:
        return 0.0
    smooth = np.median(np.stack([sites[:-2], sites[1:-1], sites[2:]]), axis=0)
    steps, seconds = np.linalg.norm(np.diff(smooth, axis=0), axis=1), np.diff(times[1:-1])
    return float(np.quantile(steps / np.maximum(seconds, 1e-3), _USUAL))


def top_speed(mission: Mission, scale: Array) -> float:
    """Return the highest declared speed, in extents per second."""
    cost, domain = mission.declared_cost, mission.world.domain
    if cost is None:
        return _UNDECLARED
    start = mission.vehicles[0].start
    sites = np.stack([domain.low, domain.high]) if domain.continuous else domain.sites
    seconds = cost.travel_s(start, sites)
    gone = np.linalg.norm((sites - start) / scale, axis=1)
    known = np.isfinite(seconds) & (seconds > 0.0) & (gone > 0.0)
    return float((gone[known] / seconds[known]).max()) if known.any() else _UNDECLARED
