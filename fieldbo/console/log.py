"""One line per row of a record, for people who watch a run."""

from __future__ import annotations

import math
from typing import Any

from fieldbo.messages import (
    Answer,
    Command,
    Correction,
    GoHome,
    Lost,
    Observation,
    Query,
    Recharge,
    Rejected,
    Telemetry,
    order_number,
)
from fieldbo.record.store import WITHOUT_MESSAGE, Row
from fieldbo.runs.explanation.words import command_line, place
from fieldbo.runs.state import RunState


def line_of(row: Row, state: RunState) -> dict[str, str] | None:
    """Return a row as a kind and a text; None for one that says nothing new to people.

    Parameters
    ----------
    row : Row
    state : RunState
        As it was before the row.
    """
    text = _without_message(row) if row.kind in WITHOUT_MESSAGE else _of_message(row.message, state)
    return None if text is None else {"kind": row.kind, "text": text}


def _without_message(row: Row) -> str | None:
    if row.kind in ("end", "stop"):
        return None if row.kind == "stop" else f"the run ended: {row.body['reason']}"
    if row.kind == "reopened":
        return "the run continues"
    return str(row.body["text"]) if row.kind == "note" else None


def _of_message(message: Any, state: RunState) -> str | None:  # noqa: PLR0911 - one for each kind
    world = state.mission.world
    match message:
        case Query():
            cost = (
                ""
                if message.expected_cost is None
                else f" (about {_amount(message.expected_cost)} {world.cost_unit})"
            )
            return f"order {order_number(message.id)}: go to {place(world.domain, message.site)}{cost}"
        case GoHome():
            return f"order {order_number(message.id)}: go home"
        case Recharge():
            return f"order {order_number(message.id)}: change to battery {message.battery}"
        case Observation():
            return f"order {order_number(message.order)}: {_read(message, state)}"
        case Rejected() | Lost():
            what = "rejected" if isinstance(message, Rejected) else "lost"
            return f"order {order_number(message.order)} {what}: {message.reason}"
        case Correction():
            values = ", ".join(
                "failed" if math.isnan(x) else world.quantity.amount(x) for x in message.values
            )
            return f"order {order_number(message.order)} corrected: {values}"
        case Command():
            return command_line(state.mission, message)
        case Answer():
            return f"order {message.order}: entry refused: {message.refused}" if message.refused else None
        case Telemetry():
            return "; ".join(message.doubts) or None
    return None


def _read(message: Observation, state: RunState) -> str:
    """Return what an observation reports in words."""
    quantity, unit = state.mission.world.quantity, state.mission.world.cost_unit
    values = [value for value in message.values.tolist() if math.isfinite(value)]
    if len(values) == 1:
        read = quantity.amount(values[0])
    elif values:
        read = f"{len(values)} readings, {min(values):.4g} to {quantity.amount(max(values))}"
    else:
        read = "reading failed" if len(message.values) else "done" if message.complete else "cut short"
    return f"{read}; took {_amount(message.cost)} {unit}"


def _amount(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"
