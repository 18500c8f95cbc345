"""Collect the readings on the way of a robot that streams, each at the place where the robot was.

A streamed reading carries no place. It was taken between the positions that arrived before and after it, on
the straight line between them. Its place is therefore off by the difference of the two messages' delays,
times the robot's speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array

_GAP_S = 2.0
"""A reading between positions that arrived further apart has no known place."""

_PART, _PART_S = 100, 10.0
"""A part is due after this many readings, or this many seconds after the previous one."""

_NEAREST = 0.5
"""A reading this close to the previous one, as a fraction of the declared spacing, repeats it."""


class Collected(NamedTuple):
    """Readings on the way: `sites` (k, d), `values` (k,), and when they arrived, `times_s` (k,)."""

    sites: Array
    values: Array
    times_s: Array


class OnTheWayCollector:
    """The readings of one order since the last part that was delivered.

    Readings count once the robot has moved by half the declared spacing since the last that counted. So a
    robot that waits adds none, and neither does a sensor that repeats its value, nor a message that arrives
    twice. All times are in seconds on one clock, the caller's.

    Attributes
    ----------
    parts : int
        Number of parts of the order so far, those before a restart included.
    unplaced : int
        Number of readings that arrived while the robot's position was not known.

    Examples
    --------
    >>> collector = OnTheWayCollector()
    >>> collector.take_position(np.array([0.0, 0.0]), 0.0)
    >>> collector.begin(spacing_m=1.0, now_s=0.0)
    >>> for now_s in (1.0, 1.1, 2.0):
    ...     collector.take_reading(5.0, now_s)
    >>> collector.take_position(np.array([4.0, 0.0]), 2.0)
    >>> collector.collect(2.0).sites.tolist()
    [[2.0, 0.0], [4.0, 0.0]]
    """

    def __init__(self) -> None:
        self._here: tuple[float, Array] | None = None
        self._waiting: list[tuple[float, float]] = []
        self._sites: list[Array] = []
        self._values: list[float] = []
        self._times_s: list[float] = []
        self._last: Array | None = None
        self._spacing_m, self._part_s = 0.0, 0.0
        self.parts = self.unplaced = 0

    def begin(self, spacing_m: float, now_s: float, parts: int = 0) -> None:
        """Begin with an order whose readings are `spacing_m` apart, and which has reported some parts."""
        self._spacing_m, self.parts, self._part_s = spacing_m, parts, now_s
        self._waiting, self._last = [], None if self._here is None else self._here[1]
        self._drop()

    def take_reading(self, value: float, now_s: float) -> None:
        """Take a reading; its place is known once the next position arrives."""
        self._waiting.append((now_s, value))

    def take_position(self, position: Array, now_s: float) -> None:
        """Take a position (d,) that is believed, and place the readings since the previous one."""
        before, self._here = self._here, (now_s, position)
        waiting, self._waiting = self._waiting, []
        for read_s, value in waiting:
            if before is None or now_s - before[0] > _GAP_S:
                self.unplaced += 1
                continue
            passed_s = now_s - before[0]
            share = (read_s - before[0]) / passed_s if passed_s > 0 else 1.0
            self._count(before[1] + share * (position - before[1]), value, read_s)

    def _count(self, site: Array, value: float, read_s: float) -> None:
        """Count a reading unless it is too close to the last one that counted."""
        if self._last is not None and np.linalg.norm(site - self._last) < _NEAREST * self._spacing_m:
            return
        self._last = site
        self._sites.append(site)
        self._values.append(value)
        self._times_s.append(read_s)

    @property
    def has_read(self) -> bool:
        """Whether anything of this order was read on the way."""
        return bool(self.parts or self._values)

    @property
    def has_new(self) -> bool:
        """Whether anything was read since the previous part."""
        return bool(self._values)

    def part_is_due(self, now_s: float) -> bool:
        """Return True if there are enough readings for a part, or some have waited for long enough."""
        return len(self._values) >= _PART or (bool(self._values) and now_s >= self._part_s + _PART_S)

    def collect(self, now_s: float) -> Collected:
        """Return the readings since the previous part, which ends now."""
        collected = Collected(*(np.array(rows) for rows in (self._sites, self._values, self._times_s)))
        self.parts, self._part_s = self.parts + 1, now_s
        self._drop()
        return collected

    def _drop(self) -> None:
        self._sites, self._values, self._times_s = [], [], []
