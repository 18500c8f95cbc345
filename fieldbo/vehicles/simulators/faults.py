"""What a simulated robot meets: faults on demand, to try out a mission, and channels such as the wind."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass

from fieldbo.errors import InputError, UnknownNameError, printable
from fieldbo.messages import LONGEST_CHANNEL

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
