"""A robot in a simulated world: drives, reads, runs its battery down, and misbehaves on demand.

It knows nothing of links. A program for one kind of link gives it errands, calls `tick` often, and sends on
what comes back: the same signals that arrive at the other end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.messages import GoHome, Query
from fieldbo.vehicles.remote.link import At, Charge, Done, Goal, Refused, Signal
from fieldbo.vehicles.simulators.faults import Fault
from fieldbo.world.world import World

_SAYS_S = 0.1
"""Where it is, and what it has left, is said so often, by this machine's clock."""


@dataclass
class _Leg:
    """An errand under way; times on the robot's clock."""

    errand: Goal
    number: int
    path: Array
    began_s: float
    ends_s: float
    cost: float
    goal: Array
    paid: float = 0.0


class Robot:
    """Carries errands out in a world, one at a time; a new one takes the place of the one it is at.

    Parameters
    ----------
    world : World
        With a field.
    seed : int
        Of a mission: then its readings are those of the mission's own simulation.
    start : (d,) array
    battery : float
        In the world's cost unit.
    speedup : float
        Its clock runs so many times faster than this machine's.
    faults : sequence of Fault
    """

    def __init__(
        self,
        world: World,
        *,
        seed: int = 0,
        start: Array | None = None,
        battery: float = math.inf,
        speedup: float = 1.0,
        faults: Sequence[Fault] = (),
    ) -> None:
        self.world, self.seed, self.speedup = world, seed, speedup
        at = world.start if start is None else start
        assert at is not None
        self.position: Array = np.asarray(at, dtype=float)
        self.battery = self.remaining = battery
        self.reading = math.nan
        self._faults = {(fault.kind, fault.errand): fault for fault in faults}
        self._rate = 1.0  # of the battery's drain
        self._leg: _Leg | None = None
        self._count = 0
        self._known: dict[str, list[Signal]] = {}
        self._later: list[tuple[float, Signal]] = []
        self._jumped_s, self._silent_until = 0.0, -math.inf
        self._began = time.monotonic()
        self._said = -math.inf
        self._news: list[Signal] = []

    @property
    def clock_s(self) -> float:
        """Seconds since it was switched on, by its own clock, which may have jumped."""
        return self._time_s + self._jumped_s

    @property
    def _time_s(self) -> float:
        return self.speedup * (time.monotonic() - self._began)

    # -- what a link asks of it ------------------------------------------------------------------------

    def go(self, errand: Goal) -> None:
        """Begin an errand; one that is known is answered as before, one under way goes on."""
        if self._leg is not None and self._leg.errand.id == errand.id:
            return
        if errand.id in self._known:
            self._news += self._known[errand.id]
            return
        number, self._count = self._count, self._count + 1
        if (drain := self._fault("drain", number)) is not None:
            self._rate = drain.amount
        if (jump := self._fault("clock", number)) is not None:
            self._jumped_s += jump.amount
        if (gap := self._fault("silent", number)) is not None:
            self._silent_until = time.monotonic() + gap.amount
        on_demand = self._fault("refuse", number) is not None
        if (problem := "refused on demand" if on_demand else self._problem(errand)) is not None:
            self._answer(number, Refused(errand.id, problem))
            return
        self.hold()
        self._set_out(errand, number)

    def cancel(self, errand: str) -> None:
        """Give an errand up: what was done of it is told; of one that is not known, nothing was."""
        if self._leg is not None and self._leg.errand.id == errand:
            self.hold()
        elif errand not in self._known:
            self._answer(-1, self._cut_short(errand, 0.0, 0.0))

    def hold(self) -> None:
        """Stay here; the errand under way is cut short."""
        leg, self._leg = self._leg, None
        if leg is not None:
            self._move(leg, self._time_s)
            self._answer(leg.number, self._cut_short(leg.errand.id, leg.paid, self._time_s - leg.began_s))

    def ask(self, errand: str) -> None:
        """Tell once more what came of an errand, if that is known."""
        self._news += self._known.get(errand, [])

    def knows(self, errand: str) -> bool:
        """Say whether an errand was settled or is under way."""
        return errand in self._known or (self._leg is not None and self._leg.errand.id == errand)

    def tick(self) -> list[Signal]:
        """Go on, and return what there is to say; call it often."""
        leg, now = self._leg, time.monotonic()
        if leg is not None:
            now_s = self._time_s
            self._move(leg, now_s)
            if now_s >= leg.ends_s and self._fault("stuck", leg.number) is None:
                self._leg = None
                self._arrive(leg)
        due = [signal for at, signal in self._later if now >= at]
        self._later = [(at, signal) for at, signal in self._later if now < at]
        news, self._news = [*self._news, *due], []
        if now < self._silent_until:
            self._later += [(self._silent_until, signal) for signal in news]
            return []
        if now >= self._said + _SAYS_S or news:
            self._said = now
            news = [self._charge(), At(self.position), *news]  # what is left on arrival is known by then
        return news

    # -- driving ---------------------------------------------------------------------------------------

    def _fault(self, kind: str, number: int) -> Fault | None:
        return self._faults.get((kind, number))

    def _set(self, errand: Goal) -> Array:
        """Return the site of an errand, with what is left free in the middle."""
        return np.where(np.isnan(errand.site), self.world.domain.middle, errand.site)

    def _problem(self, errand: Goal) -> str | None:
        """Return why an errand can't be carried out here; None if it can."""
        world, axes = self.world, self.world.domain.axes
        here = f"this robot is in {world.name}, with {', '.join(axis.name for axis in axes)}"
        if errand.site.shape != (len(axes),):
            return f"a site of {errand.site.size} numbers: {here}"
        free, sets = np.isnan(errand.site), world.domain.controls
        if free.any() and (errand.home or sets is None or sets.index_of(errand.controls) is None):
            missing = ", ".join(axis.name for axis, left in zip(axes, free, strict=True) if left)
            return f"nothing is said of {missing}: {here}"
        if errand.level not in range(world.sensor.settings):
            return f"there is no setting {errand.level} of its sensor"
        if not world.domain.contains(self._set(errand)[None])[0]:
            return f"outside of where it can go: {here}"
        return None

    def _order(self, errand: Goal) -> Query | GoHome:
        if errand.home:
            return GoHome(0, errand.id, errand.site)
        return Query(errand.site, errand.controls, errand.level, id=errand.id)

    def _set_out(self, errand: Goal, number: int) -> None:
        world, ask, now_s = self.world, self._ask(errand, number), self._time_s
        cost, seconds = world.takes(self._order(errand), self.position, now_s, stream(self.seed, "cost", ask))
        goal = self._set(errand)
        path = world.cost.path(self.position, goal)
        self._leg = _Leg(errand, number, path, now_s, now_s + seconds, self._rate * cost, goal)
        self.reading = math.nan

    def _ask(self, errand: Goal, number: int) -> int:
        """Return the number of the ask, which keys the random streams: the id's, or how many came before."""
        tail = errand.id.rpartition("#")[0].rpartition("/")[2]
        return int(tail) if tail.isdecimal() else number

    def _move(self, leg: _Leg, now_s: float) -> None:
        """Go along the path, and pay for it, as time passes."""
        whole = leg.ends_s - leg.began_s
        share = 1.0 if whole <= 0 else min(1.0, (now_s - leg.began_s) / whole)
        self.position = _along(leg.path, share)
        paid = share * leg.cost
        self.remaining = max(0.0, self.remaining - (paid - leg.paid))
        leg.paid = paid

    def _arrive(self, leg: _Leg) -> None:
        """Read, unless it is home, and answer."""
        errand, number, took_s = leg.errand, leg.number, leg.ends_s - leg.began_s
        if (jump := self._fault("clock", number)) is not None:
            took_s += jump.amount
        if errand.home:
            done = self._done(errand.id, leg.paid, took_s)
        else:
            self.position, self.reading = self._seen(leg)
            done = replace(
                self._done(errand.id, leg.paid, took_s),
                sites=self.position[None],
                values=np.array([self.reading]),
                seconds=np.array([took_s]),
            )
        self._answer(number, done)

    def _seen(self, leg: _Leg) -> tuple[Array, float]:
        """Return where a reading was taken (d,), and its value."""
        errand, ask = leg.errand, self._ask(leg.errand, leg.number)
        query = Query(errand.site, errand.controls, errand.level, id=errand.id)
        if (astray := self._fault("astray", leg.number)) is not None:
            off = leg.goal + astray.amount * np.eye(len(leg.goal))[0]
            query = replace(query, site=self.world.domain.clipped(off), controls=None)
        seen = self.world.evaluate(
            query,
            self.position,
            leg.ends_s,
            stream(self.seed, "sensor", ask),
            chance=stream(self.seed, "chance", ask),
        )
        value = float(seen.values[-1])
        if self._fault("nan", leg.number) is not None:
            value = math.nan
        if self._fault("absurd", leg.number) is not None:
            value = 1e30
        return seen.position if astray is None else off, value

    def _done(self, errand: str, cost: float, seconds: float) -> Done:
        none = np.empty(0)
        return Done(
            errand, self.position, np.empty((0, len(self.position))), none, none, cost, duration_s=seconds
        )

    def _cut_short(self, errand: str, cost: float, seconds: float) -> Done:
        return replace(self._done(errand, cost, seconds), complete=False)

    # -- talking ---------------------------------------------------------------------------------------

    def _charge(self) -> Charge:
        share = self.remaining / self.battery if math.isfinite(self.battery) else None
        return Charge(share, self.remaining if share is not None else None)

    def _answer(self, number: int, answer: Done | Refused) -> None:
        """Say what came of an errand: at once, late, or two times; and remember it."""
        self._known[answer.errand] = [answer]
        copies = 2 if self._fault("twice", number) is not None else 1
        if (late := self._fault("late", number)) is not None:
            self._later += [(time.monotonic() + late.amount, answer)] * copies
        else:
            self._news += [answer] * copies


def _along(path: Array, share: float) -> Array:
    """Return the point (d,) after a share of a path (k, d)."""
    if share >= 1.0:
        return np.asarray(path[-1])
    lengths = [float(np.linalg.norm(b - a)) for a, b in pairwise(path)]
    left = share * math.fsum(lengths)
    for (a, b), length in zip(pairwise(path), lengths, strict=True):
        if left <= length and length > 0:
            return np.asarray(a + left / length * (b - a))
        left -= length
    return np.asarray(path[-1])
