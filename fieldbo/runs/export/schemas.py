"""JSON Schemas of the log's messages that no well-known schema covers.

Each field has one type, and one that is not known is left out of a message: viewers want it so.
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
        The domain's.
    channels : sequence of str
        Other quantities that were read.
    """
    coordinates = {axis.name: _NUMBER | {"description": axis.label} for axis in axes}
    site = _table("Coordinates, by axis", **coordinates)
    read = _table("Other quantities read at the same site", **dict.fromkeys(channels, _NUMBER))
    return {
        "/goal": _schema(
            "Order",
            "An order as it left",
            order=_TEXT,
            kind=_TEXT,
            vehicle=_COUNT,
            site=site,
            level=_COUNT,
            expected_cost=_NUMBER,
            expected_time_s=_NUMBER,
        ),
        "/reading": _schema(
            "Reading",
            "A reading, where it was really taken",
            order=_TEXT,
            site=site,
            value=_NUMBER,
            unit=_TEXT,
            noise_sd=_NUMBER,
            time_s=_NUMBER,
            channels=read,
        ),
        "/setting": _schema("Setting", "What the variables were set to, or turned out to be", setting=site),
        "/battery": _schema(
            "Battery",
            "What is left and what was spent, as the agent's books have it, and what the vehicle reported",
            vehicle=_COUNT,
            remaining=_NUMBER,
            spent=_NUMBER,
            reported=_NUMBER,
            unit=_TEXT,
        ),
        "/event": _schema(
            "Event",
            "A row of the record that is no order",
            seq=_COUNT,
            time_utc=_TEXT,
            kind=_TEXT,
            order=_TEXT,
            body=_table("What it says"),
        ),
    }


def _table(description: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": fields}


def _schema(name: str, description: str, **fields: Any) -> dict[str, Any]:
    return {"title": f"fieldbo.{name}", **_table(description, **fields)}
