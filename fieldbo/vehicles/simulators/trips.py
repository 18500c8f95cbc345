"""A simulated robot's trips, and what it meets on them: faults on demand, and channels such as the wind."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, UnknownNameError, printable
from fieldbo.messages import LONGEST_CHANNEL
from fieldbo.vehicles.remote.link import Goal, GoalResult, Reading
from fieldbo.world.world import ReadOnTheWay

KINDS = {
    "refuse": "reject goal N",
    "stuck": "start goal N and never finish it",
    "nan": "report NaN as the reading of goal N",
    "absurd": "report 1e30 as the reading of goal N",
    "astray": "finish goal N X units away from its site along the first axis",
    "glitch": "from goal N to the next, report every fourth position X units away along the first axis",
    "drain": "from goal N on, drain the battery X times as fast",
    "uncharged": "from goal N on, report no battery",
    "gauge": "from goal N on, report the battery level of that moment",
    "fix": "from goal N on, report the position of that moment",
    "sensor": "from goal N on, report the reading of goal N",
    "twice": "send the result of goal N twice",
    "late": "send the result of goal N X seconds late",
    "clock": "at goal N, make the robot's clock jump by X seconds",
    "silent": "from goal N on, send nothing for X seconds while the robot keeps working",
}
"""What each kind of fault does. Goals are counted from 0; X is a number, where a kind has one."""


def form(kind: str) -> str:
    """Return how to write a fault of a kind: ``late:N:X``."""
    return f"{kind}:N:X" if " X " in KINDS[kind] else f"{kind}:N"


@dataclass(frozen=True)
class Fault:
    """A fault at one goal.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    goal : int
        Number of the goal, counted from 0.
    amount : float
        The number X, if the kind has one.
    """

    kind: str
    goal: int
    amount: float = math.nan

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Return the fault written as ``KIND:N`` or ``KIND:N:X``.

        Raises
        ------
        InputError
            The text does not have this form.

        Examples
        --------
        >>> Fault.parse("late:3:2.5")
        Fault(kind='late', goal=3, amount=2.5)
        """
        kind, *numbers = text.split(":")
        if kind not in KINDS:
            raise UnknownNameError.of("fault", kind, KINDS, where="--fault")
        try:
            if len(numbers) != form(kind).count(":"):
                raise ValueError
            goal, amount = int(numbers[0]), float(numbers[1]) if len(numbers) > 1 else math.nan
            if goal < 0 or math.isinf(amount):
                raise ValueError
        except ValueError:
            raise InputError(
                f"{text!r} is not a valid fault",
                expected=f"{form(kind)}: {KINDS[kind]}",
                where="--fault",
            ) from None
        return cls(kind, goal, amount)


@dataclass(frozen=True)
class Schedule:
    """A channel whose value changes at given times.

    Parameters
    ----------
    name : str
        Name of the channel.
    steps : tuple of (float, float)
        From how many seconds after the robot's first goal, and which value; the first from 0 s on.
    """

    name: str
    steps: tuple[tuple[float, float], ...]

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Return the schedule written as ``NAME=X,T:X,...``: a value, and others from T seconds on.

        Raises
        ------
        InputError
            The text does not have this form.

        Examples
        --------
        >>> Schedule.parse("wind=5,30:9.5").steps
        ((0.0, 5.0), (30.0, 9.5))
        """
        name, _, values = text.partition("=")
        first, *later = values.split(",")
        try:
            steps = ((0.0, float(first)), *(_step(part) for part in later))
        except ValueError:
            steps = ((0.0, math.nan),)
        times, numbers = [at_s for at_s, _ in steps], [value for _, value in steps]
        named = 0 < len(name) <= LONGEST_CHANNEL and name == printable(name)
        if not (named and all(map(math.isfinite, [*times, *numbers])) and times == sorted(set(times))):
            raise InputError(
                f"{text!r} is not a valid channel",
                expected="NAME=X,T:X,...: a value, and others from T seconds on, such as wind=5,30:9,60:5",
                where="--channel",
            )
        return cls(name, steps)

    def at(self, seconds: float) -> float:
        """Return the value so many seconds after the robot's first goal.

        Examples
        --------
        >>> [Schedule("wind", ((0, 5), (30, 9))).at(seconds) for seconds in (0, 29, 30, 900)]
        [5, 5, 9, 9]
        """
        return self.steps[bisect([at_s for at_s, _ in self.steps], seconds) - 1][1]


def _step(text: str) -> tuple[float, float]:
    at_s, _, value = text.partition(":")
    return float(at_s), float(value)


@dataclass
class Trip:
    """A goal under way: first the robot travels, then it samples. Times are on the robot's clock.

    `reported` readings on the way were sent already: as parts with their cost and time, or one by one by a
    robot that `streams`.
    """

    goal: Goal
    number: int
    path: Array
    began_s: float
    travel_s: float
    sampling_s: float
    travel: float
    sampling: float
    end: Array
    pause_s: float
    on_the_way: ReadOnTheWay
    streams: bool
    paid: float = 0.0
    passed: int = 0
    parts: int = 0
    reported: int = 0
    reported_cost: float = 0.0
    reported_s: float = 0.0

    @property
    def ends_s(self) -> float:
        """When it ends."""
        return self.began_s + self.travel_s + self.pause_s + self.sampling_s

    def advance(self, now_s: float) -> tuple[Array, Array, float]:
        """Return where the robot is now (d,), and what it has passed (k, d) and spent since the last call."""
        passed_s = now_s - self.began_s
        travelled = _fraction(passed_s, self.travel_s)
        position, passed = _along(self.path, travelled)
        new = self.path[self.passed : passed]
        self.passed = max(self.passed, passed)
        sampled = _fraction(passed_s - self.travel_s - self.pause_s, self.sampling_s)
        paid = travelled * self.travel + sampled * self.sampling
        spent, self.paid = paid - self.paid, paid
        return position, new, spent

    def taken(self, now_s: float) -> int:
        """Return how many readings on the way were taken."""
        return int(np.searchsorted(self.on_the_way.seconds, now_s - self.began_s, side="right"))

    def new_readings(self, now_s: float) -> list[Reading]:
        """Return the readings on the way since the last call, which then count as reported."""
        since, self.reported = self.reported, self.taken(now_s)
        return [Reading(float(value)) for value in self.on_the_way.values[since : self.reported]]

    def part(self, whole: GoalResult, now_s: float) -> GoalResult:
        """Return the part of the result so far that was not reported yet, which then counts as reported."""
        part = replace(self.remainder(whole, now_s), last=False)
        self.parts, self.reported = self.parts + 1, self.taken(now_s)
        self.reported_cost, self.reported_s = self.paid, now_s - self.began_s
        return part

    def remainder(self, whole: GoalResult, now_s: float) -> GoalResult:
        """Return the part of the whole result that was not reported yet."""
        taken = self.reported if self.streams else self.taken(now_s)
        new, read = slice(self.reported, taken), self.on_the_way
        return replace(
            whole,
            sites=np.concatenate([read.sites[new], whole.sites]),
            values=np.concatenate([read.values[new], whole.values]),
            seconds=np.concatenate([read.seconds[new], whole.seconds]),
            cost=whole.cost - self.reported_cost,
            duration_s=whole.duration_s - self.reported_s,
            part=self.parts,
        )


def _fraction(passed_s: float, whole_s: float) -> float:
    """Return how much of something is done after some time, 0 to 1."""
    return float(passed_s >= 0.0) if whole_s <= 0 else min(1.0, max(0.0, passed_s / whole_s))


def _along(path: Array, fraction: float) -> tuple[Array, int]:
    """Return the point (d,) after a fraction of a path (k, d), and how many of its points lie behind it."""
    if fraction >= 1.0:
        return np.asarray(path[-1]), len(path)
    lengths = [float(np.linalg.norm(b - a)) for a, b in pairwise(path)]
    left = fraction * math.fsum(lengths)
    for k, ((a, b), length) in enumerate(zip(pairwise(path), lengths, strict=True), start=1):
        if left <= length and length > 0:
            return np.asarray(a + left / length * (b - a)), k
        left -= length
    return np.asarray(path[-1]), len(path)
