"""The values of a simulated robot's channel, such as the wind, as time passes."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass

from fieldbo.errors import InputError, printable
from fieldbo.messages import LONGEST_CHANNEL


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
