"""Flies errands with a robot that only streams: finds out when it is there, and what it reads there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError
from fieldbo.vehicles.remote.link import At, Done, Goal, Read, Signal


@dataclass(frozen=True)
class Arrival:
    """When a robot that streams is there, and which of its readings count.

    Parameters
    ----------
    within : float
        So near a site on every axis, in the axis' unit, it has arrived.
    settle_s : float
        Readings count from so long after that: a probe takes its time.
    reading_s : float
        So long a reading is waited for; then it counts as failed.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    within: float = 1.0
    settle_s: float = 0.0
    reading_s: float = 10.0

    def __post_init__(self) -> None:
        for name, least in (("within", "above 0"), ("settle_s", "at least 0"), ("reading_s", "above 0")):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (least == "above 0" and value == 0):
                raise InputError(
                    f"{name} = {value}", expected=f"a finite number {least}", where=f"arrival.{name}"
                )


class ArrivalDetector:
    """Turns what a robot streams into what came of the errand that is out.

    Parameters
    ----------
    arrival : Arrival
    """

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival
        self._errand: Goal | None = None
        self._began_s = 0.0
        self._there_s: float | None = None
        self._position: Array | None = None

    def begin(self, errand: Goal | None, now_s: float) -> None:
        """Take an errand on, or none; `now_s` is on the clock of all calls."""
        self._errand, self._began_s, self._there_s = errand, now_s, None

    def heard(self, signal: Signal, now_s: float) -> Signal:
        """Return a signal as it came, or the `Done` that it amounts to."""
        errand = self._errand
        if isinstance(signal, At):
            self._position = signal.position
            if errand is not None and self._there_s is None and self._is_there(errand):
                self._there_s = now_s
                if errand.home:
                    return self._done(errand, [], now_s)
        if isinstance(signal, Read) and errand is not None and self._there_s is not None:
            if now_s < self._there_s + self.arrival.settle_s:
                return signal
            return self._done(errand, [signal.value], now_s)
        return signal

    def waited(self, now_s: float) -> Done | None:
        """Return that no reading came, if it was waited for long enough."""
        errand, arrival = self._errand, self.arrival
        if errand is None or self._there_s is None:
            return None
        if now_s < self._there_s + arrival.settle_s + arrival.reading_s:
            return None
        return self._done(errand, [math.nan], now_s)

    def given_up(self, now_s: float) -> Done | None:
        """Return that the errand was cut short where the robot is, if that is known."""
        if self._errand is None or self._position is None:
            return None
        return replace(self._done(self._errand, [], now_s), complete=False)

    def _is_there(self, errand: Goal) -> bool:
        gap = np.abs(np.asarray(self._position) - errand.site)
        return bool((gap <= self.arrival.within).all())

    def _done(self, errand: Goal, values: list[float], now_s: float) -> Done:
        assert self._position is not None
        took_s = now_s - self._began_s
        self._errand = None
        return Done(
            errand=errand.id,
            position=self._position,
            sites=np.repeat(self._position[None], len(values), axis=0),
            values=np.array(values),
            seconds=np.full(len(values), took_s),
            duration_s=took_s,
        )
