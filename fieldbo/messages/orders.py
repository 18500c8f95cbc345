"""Orders: what a vehicle is to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError
from fieldbo.messages.events import Observation
from fieldbo.messages.names import EndReason
from fieldbo.messages.numbers import freeze, route_in, row_in


@dataclass(frozen=True, eq=False)
class Query:
    """Go to `site` and sample there.

    Parameters
    ----------
    site : (d,) array
        In the domain's axes and units; NaN where a variable is left free.
    controls : (d,) bool array, optional
        The variables to set; None sets all of them.
    level : int
        The sensor's level, counted from 0.
    vehicle : int
        Number of the vehicle.
    expected_cost : float, optional
        Cost that the agent expects, in the world's cost unit.
    id : str, optional
        ``<run>/<n>``, assigned by the agent; n counts orders.
    expected_time_s : float, optional
        Time at which the agent expects it done, in seconds since the start.
    route : (k, d) array, optional
        The points to pass, in straight legs, from where the vehicle will be to the site, both included, as
        priced. Empty if the route is straight.
    """

    site: Array
    controls: Mask | None = None
    level: int = 0
    vehicle: int = 0
    expected_cost: float | None = None
    id: str | None = None
    expected_time_s: float | None = None
    route: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def __post_init__(self) -> None:
        where = "a query" if self.id is None else f"query {self.id}"
        object.__setattr__(self, "site", row_in("site", self.site, where))
        if self.controls is not None:
            freeze(self, "controls", np.ravel(self.controls), bool)
            if len(self.controls) != len(self.site):
                raise InputError(
                    f"controls has {len(self.controls)} entries",
                    expected=f"{len(self.site)}, one for each variable",
                    where=where,
                )
            freeze(self, "site", np.where(self.controls, self.site, np.nan))
        object.__setattr__(self, "route", route_in(self.route, len(self.site), where))

    def observed(
        self,
        value: float,
        *,
        noise_variance: float,
        time_s: float | None = None,
        cost: float | None = None,
        position: ArrayLike | None = None,
    ) -> Observation:
        """Return the observation of one reading that answers this query.

        Parameters
        ----------
        value : float
            The reading in the user's unit; NaN or None if it failed.
        noise_variance : float
            Variance of the reading's noise.
        time_s : float, optional
            Seconds since the start of the run; by default the expected time.
        cost : float, optional
            Real cost; by default the expected one. Required where costs are unknown.
        position : (d,) array, optional
            Where the reading was taken; by default the query's site. Required where variables were left
            free: it contains their values.

        Raises
        ------
        InputError
            The position or the cost is required and missing.

        Examples
        --------
        >>> query = Query([3.0, 4.0], expected_cost=7.0, id="run/0")
        >>> query.observed(1.5, noise_variance=0.01).cost
        7.0
        """
        if position is None and np.isnan(self.site).any():
            raise InputError(
                f"no position for {self.id}, which left variables free",
                expected="the values of all variables when the reading was taken",
                where="position",
                fix="pass position=[...], one number per variable",
            )
        if cost is None and self.expected_cost is None and self.id is not None:
            raise InputError(
                f"no cost for {self.id}, whose cost was unknown",
                expected="its real cost",
                where="cost",
                fix="pass cost=...",
            )
        at = self.site if position is None else row_in("position", position, f"observation of {self.id}")
        paid = self.expected_cost if cost is None else cost
        reading: dict[str, Any] = {
            "values": [value],
            "noise_variances": [noise_variance],
            "times_s": [(self.expected_time_s or 0.0) if time_s is None else time_s],
        }
        return Observation(
            order=str(self.id), sites=at[None], position=at, cost=0.0 if paid is None else paid, **reading
        )


@dataclass(frozen=True)
class GoHome:
    """Return to the vehicle's home, without sampling.

    Parameters
    ----------
    vehicle : int
    id : str
    site : (d,) array, optional
        The home position.
    expected_cost : float, optional
    expected_time_s : float, optional
        Time at which the agent expects it there, in seconds since the start.
    route : (k, d) array, optional
        The points to pass, in straight legs, from where the vehicle will be to its home, both included, as
        priced. Empty if the route is straight.
    """

    vehicle: int
    id: str
    site: Array | None = field(default=None, compare=False)
    expected_cost: float | None = field(default=None, compare=False)
    expected_time_s: float | None = field(default=None, compare=False)
    route: Array = field(default_factory=lambda: np.empty((0, 0)), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.site is not None:
            freeze(self, "site", self.site)
        d = 0 if self.site is None else len(self.site)
        object.__setattr__(self, "route", route_in(self.route, d, f"order {self.id}"))

    def observed(self, *, cost: float | None = None) -> Observation:
        """Return the observation that the vehicle is home; `cost` is by default the expected one."""
        return _arrived(self, self.expected_cost if cost is None else cost)


@dataclass(frozen=True)
class Recharge:
    """Wait at home until the battery is changed or charged. The observation that settles it begins a new one.

    Parameters
    ----------
    vehicle : int
    id : str
    battery : int
        Number of the battery with which the vehicle goes on, counted from 1.
    site : (d,) array, optional
        The home position.
    expected_cost : float, optional
    expected_time_s : float, optional
        Time at which the agent expects it done, in seconds since the start.

    Examples
    --------
    >>> Recharge(0, "run/7", 2, site=[0.0, 0.0], expected_time_s=3600.0).observed().time_s
    3600.0
    """

    vehicle: int
    id: str
    battery: int
    site: Array | None = field(default=None, compare=False)
    expected_cost: float | None = field(default=0.0, compare=False)
    expected_time_s: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.site is not None:
            freeze(self, "site", self.site)

    @property
    def route(self) -> Array:
        """No points (0, 0): the vehicle stays where it is."""
        return np.empty((0, 0))

    def observed(self, *, cost: float | None = None) -> Observation:
        """Return the observation that the battery was changed; `cost` is by default the expected one, 0."""
        return _arrived(self, self.expected_cost if cost is None else cost)


def _arrived(order: GoHome | Recharge, cost: float | None) -> Observation:
    assert order.site is not None
    none = np.empty(0)
    return Observation(
        order=order.id,
        sites=np.empty((0, len(order.site))),
        values=none,
        noise_variances=none,
        times_s=none,
        position=order.site,
        cost=0.0 if cost is None else cost,
        time_s=order.expected_time_s,
    )


@dataclass(frozen=True)
class Stop:
    """The end of a vehicle's part: no further orders, and why."""

    reason: EndReason


Order = Query | GoHome | Recharge


def order_number(order: str | None) -> int:
    """Return the number in the id of an order: 3 in ``"run/3"``."""
    return int(str(order).rpartition("/")[2])
