"""Where a vehicle plausibly is, when one of its latest positions may be wrong."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.mission.mission import Mission

Place = TypeVar("Place")

_KEPT = 60
"""How many fixes are kept: a burst of bad ones must stay in the minority."""

_BESIDE = 0.1
"""A fix may lie this far outside of the domain, as a fraction of its extent: vehicles drift."""

_NEAR = 4
"""A fix must also agree with most of this many before and after it."""

_FASTER, _SLACK = 3.0, 0.02
"""A vehicle may be this many times as fast as declared, or as it usually moves; positions scatter by this
fraction of the extent."""

_USUAL = 0.8
"""The quantile of the speeds between fixes that counts as usual."""

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
        self._domain = mission.world.domain
        self._scale = np.where(self._domain.extent > 0.0, self._domain.extent, np.inf)
        self._speed = _FASTER * top_speed(mission, self._scale)
        self._fixes: deque[tuple[float, Array, Place]] = deque(maxlen=_KEPT)

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
        if not self._domain.around(site, _BESIDE)[0]:
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
        agree = apart <= _SLACK + speed * np.abs(times[:, None] - times[None])
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
