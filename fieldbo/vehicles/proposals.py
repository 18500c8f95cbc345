"""What a world tells about the vehicle that is to work in it, for a new vehicle file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fieldbo.costs.travel import Boat, Flight
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground, ground_of
from fieldbo.vehicles.checks import widest
from fieldbo.vehicles.kinds import LINKS
from fieldbo.vehicles.remote.settings import Arrival
from fieldbo.world.world import World

_DIGITS = 2
"""Of what is rounded down to be written."""

_VEHICLES = {Boat: "boat", Flight: "copter"}
"""Types of vehicle by the model of their costs."""


def proposed(kind: str, world: World) -> dict[str, dict[str, Any]]:
    """Return the settings that a world determines, by table and key, for a kind of link.

    The tolerances are the usual ones, or narrower where sites are close or the clearance is small, so that
    the file fits the world. A world with a CRS knows no heights, so altitudes count from the home.

    Parameters
    ----------
    kind : str
        Kind of the link.
    world : World

    Raises
    ------
    UnknownNameError
        `kind` is not a valid kind of link.

    Examples
    --------
    >>> from fieldbo.mission.load import load_world
    >>> proposed("mavlink", load_world("crack-wall"))["arrival"]
    {'within': 0.15}
    """
    link, domain = LINKS.get(kind), world.domain
    known: dict[str, Any] = {
        "altitude": "relative" if domain.crs is not None else None,
        "speed": _rounded_down(implied_speed(ground_of(domain), world)),
        "vehicle": _VEHICLES.get(type(world.cost)),
    }
    settings = {"link": {key: value for key, value in known.items() if value and hasattr(link, key)}}
    if not link.reports:
        settings["arrival"] = {"within": _tolerance("within", world)}
        settings["reports"] = {"accuracy": _tolerance("accuracy", world)}  # it never stops exactly there
    return settings


def stands_upright(domain: Domain) -> bool:
    """Return True if a domain is a vertical plane that rises from its origin, such as a facade."""
    ground = ground_of(domain)
    return ground is not None and ground.towards.shape[1] == 2 and bool((ground.towards[2] > 0).any())


def _tolerance(key: str, world: World) -> float:
    """Return the usual tolerance, or the widest that the world allows; the usual one if it allows none."""
    limits = [limit for limit, _ in widest(key, world.domain) if limit > 0]
    return min([Arrival().within, *(_rounded_down(limit) or math.inf for limit in limits)])


def _rounded_down(number: float | None) -> float | None:
    """Return a positive number to a few digits, never more than it is; None for one that is not known.

    Examples
    --------
    >>> _rounded_down(0.15000000001), _rounded_down(1.5), _rounded_down(None), _rounded_down(math.inf)
    (0.15, 1.5, None, None)
    """
    if number is None or not math.isfinite(number):
        return None
    step = 10.0 ** (math.floor(math.log10(number)) + 1 - _DIGITS)
    return round(math.floor(number / step * (1.0 + 1e-9)) * step, 12)


def implied_speed(ground: Ground | None, world: World) -> float | None:
    """Return the horizontal speed in m/s that a world's costs imply; None if they imply none.

    The time for the second half of a long leg excludes accelerating and slowing down.
    """
    domain, cost = world.domain, world.cost
    flat = [] if ground is None else [j for j in range(domain.dimension) if ground.towards[2, j] == 0]
    if not flat or not cost.known:
        return None
    longest = max(flat, key=lambda j: float(domain.extent[j]))
    starts, ends = domain.low.copy(), domain.low.copy()
    ends[longest] = domain.high[longest]
    _, whole_s = cost.along(np.stack([starts, ends]))
    _, half_s = cost.along(np.stack([starts, (starts + ends) / 2.0]))
    took_s = whole_s - half_s
    return float(domain.extent[longest]) / 2.0 / took_s if math.isfinite(took_s) and took_s > 0 else None
