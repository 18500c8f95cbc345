"""New vehicle files: every setting, explained, with what a world tells about it or its default."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from fieldbo.costs.travel import Boat, Flight
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground, example, ground_of
from fieldbo.vehicles.base import LINKS
from fieldbo.vehicles.load import widest
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, Watch
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


_WIDTH = 100


def template(
    kind: str, domain: Domain, title: str = "", known: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """Return the text of a vehicle file for a domain.

    Parameters
    ----------
    kind : str
        Kind of the link.
    domain : Domain
    title : str
    known : mapping, optional
        Settings that are not to have their defaults, by table and key.

    Raises
    ------
    UnknownNameError
        `kind` is not a valid kind of link.
    """
    link, values = LINKS.get(kind), known or {}
    parts = [
        f"format = 1\ntitle = {json.dumps(title)}",
        _table("link", "how to reach the robot", link, f'kind = "{kind}"', **values.get("link", {})),
        *_frame(domain),
        _table("watch", "how long to wait for the robot", Watch),
        _table("battery", "how to interpret its battery reports", Battery),
        _table("reports", "which of its reports to believe", Reports, **values.get("reports", {})),
        *(
            []
            if link.reports
            else [_table("arrival", "when it has arrived", Arrival, **values.get("arrival", {}))]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(name: str, purpose: str, settings: type, *first: str, **instead: Any) -> str:
    """Return a table of settings, each below its description: at its default, or at a value of `instead`."""
    descriptions = _descriptions(settings)
    lines = [f"[{name}]   # {purpose}", *first]
    for field in fields(settings):
        default: Any = instead.get(field.name, None if field.default is MISSING else field.default)
        text = descriptions.get(field.name, "")
        lines += textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
        writable = isinstance(default, str | bool | int) or (
            isinstance(default, float) and math.isfinite(default)
        )
        lines.append(f"{field.name} = {json.dumps(default)}" if writable else f"# {field.name} =")
    return "\n".join(lines)


def _descriptions(settings: type) -> dict[str, str]:
    """Return the description of each setting, as TOML's comments quote values."""
    properties = TypeAdapter(settings).json_schema()["properties"]
    return {
        name: " ".join(of.get("description", "").split()).replace("``", '"')
        for name, of in properties.items()
    }


def _frame(domain: Domain) -> list[str]:
    """Return the table for how the axes lie, as far as the world tells; none if they are not places."""
    ground = ground_of(domain)
    if ground is None:
        return []
    if ground.origin is not None:  # the world has a CRS
        latitude, longitude = round(ground.origin.latitude, 7), round(ground.origin.longitude, 7)
        lines = [
            "[frame]   # where the world lies on the ground: its CRS places its axes",
            "# Zero of the robot's own map: degrees on WGS 84, and metres. A robot that receives degrees",
            "# needs only its altitude: of the start, above where the robot is armed.",
            f"origin = {{ latitude = {latitude}, longitude = {longitude}, altitude = 0 }}",
        ]
        return ["\n".join(lines)]
    table, origin, *rest = example(domain.axes).splitlines()
    lines = [
        f"{table}   # how the world lies on the ground",
        "# Origin of the axes: degrees on WGS 84, and metres. A robot outdoors needs it.",
        f"# {origin}",
        '# Direction of the axis named under "along", in degrees clockwise from north.',
        *rest,
    ]
    return ["\n".join(lines)]
