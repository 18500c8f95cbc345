"""How a simulated robot misbehaves, on demand: what a mission does about it can be tried out on a table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fieldbo.errors import InputError, UnknownNameError

KINDS = {
    "refuse": "errand N is refused",
    "stuck": "errand N is begun and never finished",
    "nan": "the reading of errand N is no number",
    "absurd": "the reading of errand N is 1e30",
    "astray": "errand N ends X units off its site, on the first axis",
    "drain": "from errand N on everything costs X times as much of the battery",
    "twice": "the result of errand N is sent two times",
    "late": "the result of errand N comes X seconds late",
    "clock": "at errand N the robot's clock jumps by X seconds",
    "silent": "from errand N on nothing is said for X seconds, though the robot goes on",
}
"""What can go wrong. Errands are counted from 0; X is a number where it is named."""


def form(kind: str) -> str:
    """Return how a fault of a kind is written: ``late:N:X``."""
    return f"{kind}:N:X" if " X " in KINDS[kind] else f"{kind}:N"


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, at one errand.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    errand : int
        At which errand, counted from 0.
    amount : float
        How much, where the kind has a number.
    """

    kind: str
    errand: int
    amount: float = math.nan

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Return the fault that a user wrote as ``KIND:N`` or ``KIND:N:X``.

        Raises
        ------
        InputError
            It is written otherwise.

        Examples
        --------
        >>> Fault.parse("late:3:2.5")
        Fault(kind='late', errand=3, amount=2.5)
        """
        kind, *numbers = text.split(":")
        if kind not in KINDS:
            raise UnknownNameError.of("fault", kind, KINDS, where="--fault")
        try:
            if len(numbers) != form(kind).count(":"):
                raise ValueError
            errand, amount = int(numbers[0]), float(numbers[1]) if len(numbers) > 1 else math.nan
            if errand < 0 or math.isinf(amount):
                raise ValueError
        except ValueError:
            raise InputError(
                f"fault {text!r}",
                expected=f"{form(kind)}: {KINDS[kind]}",
                where="--fault",
            ) from None
        return cls(kind, errand, amount)
