"""A named axis of a domain, with its unit, ends and direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fieldbo.errors import InputError


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
        The ends of the axis, in its unit.
    positive : {"up", "down"}
        Which way the axis points when drawn; depth points down.
    """

    name: str
    unit: str
    low: float
    high: float
    positive: Literal["up", "down"] = "up"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise InputError(
                f"axis {self.name!r} goes from {self.low} to {self.high}",
                expected="two finite numbers, low below high",
            )

    @property
    def extent(self) -> float:
        """Length of the axis, in its unit."""
        return self.high - self.low

    @property
    def label(self) -> str:
        """Name and unit, as on a picture's axis."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def is_depth(name: str) -> bool:
    """Say whether an axis of that name is a depth, which points down unless it says otherwise.

    Examples
    --------
    >>> is_depth("depth"), is_depth("Depth_m"), is_depth("north")
    (True, True, False)
    """
    return name.strip().lower().startswith("depth")
