"""JSON Schemas of the log's messages that no well-known schema covers.

Each field has a single type, and unknown fields are omitted from a message, as viewers require.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldbo.domain.axes import Axis

_TEXT, _NUMBER, _COUNT = ({"type": kind} for kind in ("string", "number", "integer"))


def schemas(axes: Sequence[Axis], channels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the schemas by topic.

    Parameters
    ----------
    axes : sequence of Axis
        Axes of the domain.
    channels : sequence of str
        Names of further measured quantities.
    """
    coordinates = {axis.name: _NUMBER | {"description": axis.label} for axis in axes}
    site = _table("Coordinates by axis", **coordinates)
    read = _table("Further quantities measured at the same site", **dict.fromkeys(channels, _NUMBER))
    return {
        "/goal": _schema(
            "Order",
            "An order as it was issued",
            order=_TEXT,
            kind=_TEXT,
            vehicle=_COUNT,
            site=site,
            level=_COUNT,
            expected_cost=_NUMBER,
            expected_time_s=_NUMBER,
            route={"type": "array", "description": "Points to pass; empty if straight", "items": site},
        ),
        "/reading": _schema(
            "Reading",
            "A reading at its actual site",
            order=_TEXT,
            site=site,
            value=_NUMBER,
            unit=_TEXT,
            noise_sd=_NUMBER,
            time_s=_NUMBER,
            channels=read,
        ),
        "/setting": _schema("Setting", "Values of the variables, set or observed", setting=site),
        "/battery": _schema(
            "Battery",
            "Battery left and spent by the agent's ledger, and the level reported by the vehicle",
            vehicle=_COUNT,
            battery=_COUNT,
            remaining=_NUMBER,
            spent=_NUMBER,
            reported=_NUMBER,
            unit=_TEXT,
        ),
        "/event": _schema(
            "Event",
            "A row of the record other than an order",
            seq=_COUNT,
            time_utc=_TEXT,
            kind=_TEXT,
            order=_TEXT,
            body=_table("Content of the row"),
        ),
    }


def _table(description: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": fields}


def _schema(name: str, description: str, **fields: Any) -> dict[str, Any]:
    return {"title": f"fieldbo.{name}", **_table(description, **fields)}
