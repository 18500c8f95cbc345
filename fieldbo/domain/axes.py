"""The named axes of a domain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fieldbo.errors import InputError

_NAMES = {name: name for name in ("east", "north", "west", "south")} | {
    "easting": "east",
    "northing": "north",
    "x e": "east",
    "y n": "north",
    "x n": "north",
    "y e": "east",
}
"""Words of an axis' name, or its first two words, and the direction that they stand for."""


@dataclass(frozen=True)
class Axis:
    """One axis of a domain.

    Parameters
    ----------
    name : str
        For example ``"along"``.
    unit : str
        For example ``"m"``.
    low, high : float
        Ends of the axis, in its unit.
    positive : {"up", "down"}
        Direction in which plots draw the axis; a depth points down.
    """

    name: str
    unit: str
    low: float
    high: float
    positive: Literal["up", "down"] = "up"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise InputError(
                f"axis {self.name!r} runs from {self.low} to {self.high}",
                expected="two finite numbers, with low below high",
            )

    @property
    def extent(self) -> float:
        """Length of the axis, in its unit."""
        return self.high - self.low

    @property
    def label(self) -> str:
        """Name and unit, as on the axis of a plot."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def is_depth(name: str) -> bool:
    """Return True if an axis of that name is a depth, which by default points down.

    Examples
    --------
    >>> is_depth("depth"), is_depth("Depth_m"), is_depth("north")
    (True, True, False)
    """
    return name.strip().lower().startswith("depth")


def is_height(name: str) -> bool:
    """Return True if an axis of that name is a height above a reference.

    Examples
    --------
    >>> is_height("height"), is_height("Altitude (m)"), is_height("along")
    (True, True, False)
    """
    return name.strip().lower().startswith(("height", "altitude"))


def compass_name(axis: str) -> str | None:
    """Return the direction after which an axis is named; None if it is named after none.

    Examples
    --------
    >>> compass_name("Easting_m"), compass_name("x_n"), compass_name("eastside")
    ('east', 'north', None)
    """
    words = [word for word in re.split(r"[\W_]+", axis.lower()) if word]
    return next((_NAMES[part] for part in (*words, " ".join(words[:2])) if part in _NAMES), None)
