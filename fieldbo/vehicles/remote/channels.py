"""A robot's channels: the latest values, and whether a change of one matters to a hold of the mission."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from fieldbo.errors import InputError, printable
from fieldbo.messages import LONGEST_CHANNEL
from fieldbo.mission.rules import Hold, Zone
from fieldbo.vehicles.remote.link import ChannelReport

MOST_CHANNELS = 32
"""Number of channels that are kept, besides those that holds watch."""

_SILENT_S = 120.0
"""Time without a value of a watched channel after which a doubt says so."""

_AGAIN_S = 1.0
"""Least time between telemetry that shows an improvement and the telemetry before."""

_LARGEST = 1e100


def _with_names(sources: Mapping[str, str]) -> Mapping[str, str]:
    """Reject names that no channel can have."""
    for name in sources:
        if not 0 < len(name) <= LONGEST_CHANNEL or name != printable(name):
            raise InputError(
                f"a channel named {name!r}",
                expected=f"a printable name of 1 to {LONGEST_CHANNEL} characters",
                where="link.channels",
            )
    return sources


ChannelSources = Annotated[Mapping[str, str], Field(max_length=MOST_CHANNELS), AfterValidator(_with_names)]
"""Where to find the value of each channel, by its name."""


class Channels:
    """The channels of one robot.

    Parameters
    ----------
    holds : sequence of Hold
        The mission's holds.
    doubt : Callable
        ``doubt(kind, text)`` notes what is not believed, once of each kind.

    Examples
    --------
    >>> channels = Channels([Hold("wind", above=8)], doubt=lambda kind, text: print(text))
    >>> channels.take(ChannelReport("wind", 9.5), now_s=0.0)
    >>> channels.matter(now_s=0.0)
    True
    >>> channels.news(now_s=0.0), channels.news(now_s=5.0)
    ({'wind': 9.5}, None)
    """

    def __init__(self, holds: Sequence[Hold], doubt: Callable[[str, str], object]) -> None:
        self._holds, self._doubt = tuple(holds), doubt
        self._watched = {hold.channel for hold in holds}
        self._others: set[str] = set()
        self._values: dict[str, float] = {}
        self._new: set[str] = set()
        self._told: dict[str, Zone] = {}
        self._told_s = -math.inf
        self._heard_s: dict[str, float] = {}

    def take(self, report: ChannelReport, now_s: float) -> None:
        """Take a value; one that is not a finite number is not believed, and NaN is no value."""
        name, value = report.name, report.value
        if name not in self._watched and len(self._others) < MOST_CHANNELS:
            self._others.add(name)
        if name not in self._watched | self._others:
            self._doubt("channels", f"more than {MOST_CHANNELS} channels: others are ignored")
        elif math.isnan(value):
            return
        elif abs(value) > _LARGEST:
            self._doubt(f"channel {name}", f"the channel {name} has what is not a number, which is ignored")
        else:
            self._values[name] = value
            self._new.add(name)
            self._heard_s[name] = now_s

    def matter(self, now_s: float) -> bool:
        """Return True if a new value matters to a hold, so that telemetry is due at once.

        A change for the worse never waits.
        """
        changes = [zone - self._told.get(name, Zone.CLEAR) for name, zone in self._zones().items()]
        return any(change > 0 for change in changes) or (any(changes) and now_s >= self._told_s + _AGAIN_S)

    def _zones(self) -> dict[str, Zone]:
        """Return where the new values lie, by the name of the hold."""
        new = (hold for hold in self._holds if hold.channel in self._new)
        return {hold.name: hold.zone(self._values[hold.channel]) for hold in new}

    def news(self, now_s: float) -> dict[str, float] | None:
        """Return the latest value of each channel that was heard since the last call; None without any."""
        self._told |= self._zones()
        self._told_s = now_s
        self._check_silence(now_s)
        news = {name: self._values[name] for name in sorted(self._new)}
        self._new.clear()
        return news or None

    def repeat(self) -> None:
        """Have all values that were heard count as new: what was told of them is lost."""
        self._new, self._told = set(self._values), {}

    def _check_silence(self, now_s: float) -> None:
        for name in sorted(self._watched):
            silent_s = now_s - self._heard_s.setdefault(name, now_s)
            if silent_s > _SILENT_S:
                self._doubt(
                    f"silent {name}",
                    f"nothing was heard from the channel {name} for {silent_s:.0f} s: a hold can't act on it",
                )
