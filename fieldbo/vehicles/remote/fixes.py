"""Where a vehicle plausibly is, when one of its latest positions may be wrong."""

from __future__ import annotations

import time
from collections import deque
from typing import Generic, TypeVar

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.mission.mission import Mission

Place = TypeVar("Place")

_KEPT, _EVERY_S = 20, 0.4
"""How many fixes are kept, and how far apart in time: a burst of bad ones must stay in the minority."""

_BESIDE = 0.1
"""A fix may lie this far outside of the domain, as a fraction of its extent: vehicles drift."""

_FASTER, _SLACK = 3.0, 0.02
"""A vehicle may be this many times as fast as declared; positions scatter by this fraction of the extent."""

_UNDECLARED = 0.02
"""Extents per second, where the costs say nothing about the speed."""


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
        domain = mission.world.domain
        extent, alike = domain.extent, len({axis.unit for axis in domain.axes}) == 1
        beside = _BESIDE * (extent.max() if alike else np.where(extent > 0.0, extent, np.inf))
        self._low, self._high = domain.low - beside, domain.high + beside
        self._scale = np.where(extent > 0.0, extent, np.inf)
        self._speed = _FASTER * _top_speed(mission, self._scale)
        self._fixes: deque[tuple[float, Array, Place]] = deque(maxlen=_KEPT)

    def take(self, site: Array, place: Place, now_s: float | None = None) -> None:
        """Take a fix at a site (d,), unless it lies far outside of the domain.

        Parameters
        ----------
        site : (d,) array
        place : object
            The same in the form in which the vehicle is sent there.
        now_s : float, optional
            By default the monotonic clock.
        """
        if not ((site >= self._low) & (site <= self._high)).all():  # NaN neither
            return
        now_s = time.monotonic() if now_s is None else now_s
        if len(self._fixes) < 2 or now_s >= self._fixes[-2][0] + _EVERY_S:
            self._fixes.append((now_s, site / self._scale, place))
        else:
            self._fixes[-1] = now_s, site / self._scale, place

    def plausible(self) -> Place | None:
        """Return the place of the newest fix with which most fixes agree; None if there is none."""
        if not self._fixes:
            return None
        times, sites = np.array([fix[0] for fix in self._fixes]), np.array([fix[1] for fix in self._fixes])
        apart = np.linalg.norm(sites[:, None] - sites[None], axis=2)
        agree = apart <= _SLACK + self._speed * np.abs(times[:, None] - times[None])
        trusted = np.flatnonzero(agree.mean(axis=1) > 0.5)
        return self._fixes[int(trusted[-1])][2] if len(trusted) else None


def _top_speed(mission: Mission, scale: Array) -> float:
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
