"""Faults that a simulated robot shows on demand, to try out what a mission does about them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fieldbo.errors import InputError, UnknownNameError

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
