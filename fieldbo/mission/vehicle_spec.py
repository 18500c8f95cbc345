"""One vehicle of a mission: its battery, start and home, and what to do when it is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.errors import InputError


@dataclass(frozen=True)
class WhenLost:
    """What to do when orders are lost in a row: the vehicle is not heard of, or does not finish any.

    Parameters
    ----------
    orders : int
        After so many.
    then : {"home", "wait"}
        Send it home, where it has one, and end; or give no order until it is heard of again,
    patience_s : float
        for so many seconds at most.

    Raises
    ------
    InputError
        `orders` is below 1, or `patience_s` not above 0.
    """

    orders: int = 3
    then: Literal["home", "wait"] = "home"
    patience_s: float = 600.0

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise InputError(f"orders = {self.orders}", expected="at least 1", where="agent.when_lost.orders")
        if not (np.isfinite(self.patience_s) and self.patience_s > 0):
            raise InputError(
                f"patience_s = {self.patience_s}",
                expected="a finite number of seconds above 0",
                where="agent.when_lost.patience_s",
            )


@dataclass(frozen=True, eq=False)
class VehicleSpec:
    """One vehicle of a mission.

    Parameters
    ----------
    battery : float
        In the world's cost unit; above 0.
    start : (d,) array
    home : (d,) array, optional
        Where it must be able to return; None: it may end anywhere.
    reserve : float
        Never spent on purpose, in the cost unit.
    margin : float
        Share by which a move may turn out dearer than declared.
    time_limit_s : float, optional
    when_lost : WhenLost
    """

    battery: float
    start: Array
    home: Array | None = None
    reserve: float = 0.0
    margin: float = 0.0
    time_limit_s: float | None = None
    when_lost: WhenLost = WhenLost()

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", frozen_array(self.start))
        if self.home is not None:
            object.__setattr__(self, "home", frozen_array(self.home))
        for name, good, expected in (
            ("battery", self.battery > 0, "a finite number above 0"),
            (
                "reserve",
                0 <= self.reserve < self.battery,
                f"at least 0, and less than the battery of {self.battery:g}",
            ),
            ("margin", self.margin >= 0, "a finite number of at least 0"),
            ("time_limit_s", self.time_limit_s is None or self.time_limit_s > 0, "seconds above 0"),
        ):
            value = getattr(self, name)
            if not (good and (value is None or np.isfinite(value))):
                raise InputError(f"{name} = {value}", expected=expected, where=f"agent.{name}")
