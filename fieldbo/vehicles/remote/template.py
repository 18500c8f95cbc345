"""Write a vehicle file that lists and explains every setting, with its default value."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from pydantic import TypeAdapter

from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import example, ground_of
from fieldbo.vehicles.kinds import LINKS
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, Watch

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
