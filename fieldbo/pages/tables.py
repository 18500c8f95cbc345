"""Tables and facts of a run in words, as a page shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldbo.messages import (
    Correction,
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Recharge,
    Rejected,
    order_number,
)
from fieldbo.pages.course import Course, Frame
from fieldbo.results.answers import LevelSetAnswer
from fieldbo.results.words import detected, extreme, place, rounded, spent_of
from fieldbo.runs.steer import command_text

MOST_ROWS = 500
"""Rows of a table; a longer one would make the page slow."""

_POLICY = "policy"  # the reason that orders share
_DEGREES = ("latitude", "longitude")


@dataclass(frozen=True)
class Table:
    """The rows of a table that are shown.

    Attributes
    ----------
    rows : list
    total : int
        Number of all rows.
    """

    rows: list[Any]
    total: int

    @classmethod
    def of(cls, rows: list[Any]) -> Table:
        """Return the first rows."""
        return cls(rows[:MOST_ROWS], len(rows))


def outcomes(course: Course) -> dict[str, list[Any]]:
    """Return the observations, rejections and losses of each order, by its id."""
    found: dict[str, list[Any]] = {}
    for event in course.agent.history:
        if isinstance(event, Observation | Rejected | Lost):
            found.setdefault(event.order, []).append(event)
    return found


def result_of(course: Course, order: Order, events: list[Any]) -> str:
    """Return what came of an order in words."""
    quantity = course.result.mission.world.quantity
    if not events:
        return "outstanding"
    values = [value for e in events if isinstance(e, Observation) for value in e.values]
    if len(values) == 1:
        return _value(values[0], quantity)
    if values:
        known = [value for value in values if math.isfinite(value)]
        ends = f", {min(known):.4g} to {quantity.amount(max(known))}" if known else ""
        return f"{len(values)} readings{ends}"
    last = events[-1]
    if str(order.id) in course.result.accounts[order.vehicle].taken_back:
        return "taken back by a command or a hold"
    return _without_reading(order, last)


def _without_reading(order: Order, last: Observation | Rejected | Lost) -> str:
    """Return how an order ended that brought no reading, from its last event."""
    if isinstance(last, Observation):
        return "no reading" if isinstance(order, Query) else "done" if last.complete else "cut short"
    return f"{'lost' if isinstance(last, Lost) else 'rejected'}: {last.reason}"


def _value(value: float, quantity: Any) -> str:
    return quantity.amount(value) if math.isfinite(value) else "reading failed"


def destination(course: Course, order: Order) -> str:
    """Return where an order leads in words."""
    domain = course.result.mission.world.domain
    if isinstance(order, GoHome):
        return "home"
    if isinstance(order, Recharge):
        return f"at home, for battery {order.battery}"
    return place(domain, order.site)


# -- facts of a step -----------------------------------------------------------------------------------------


def title(course: Course, frame: Frame, battery: float, unit: str) -> str:
    """Return a step in a few words, for a screen reader."""
    if frame.step is None:
        return "before the first reading"
    total = len(course.result.curve)
    return f"step {frame.number} of {total}, cost {rounded(frame.step.cost, battery)} {unit}"


def facts(course: Course, frame: Frame, came: Mapping[str, list[Any]]) -> list[tuple[str, str]]:
    """Return labels and values of what was known at a step.

    Parameters
    ----------
    course : Course
    frame : Frame
    came : mapping
        From `outcomes`.
    """
    mission, answer = course.result.mission, course.result.answer
    unit, battery = mission.world.cost_unit, sum(spec.battery for spec in mission.vehicles)
    step = frame.step
    if step is None:
        known = len(mission.earlier.values)
        start = f"{known} earlier readings" if known else "nothing read yet"
        return [("step", f"0 of {len(course.result.curve)}"), ("known", start)]
    shown = [("step", f"{frame.number} of {len(course.result.curve)}")]
    if frame.order is not None:
        order = course.agent.issued[frame.order].order
        shown.append(("sent to", destination(course, order)))
        shown.append(("result", result_of(course, order, came.get(frame.order, []))))
    batteries = mission.vehicles[0].batteries
    shown.append(("cost", spent_of(step.cost, battery, unit, step.battery, batteries)))
    shown.append(("battery left", f"{rounded(step.remaining, battery)} {unit}"))
    if isinstance(answer, LevelSetAnswer):
        shown.append(("expected F1", _score(step.expected_f1)))
        if not math.isnan(step.f1):
            shown.append(("F1 against the truth", _score(step.f1)))
        shown.append(("undecided", f"{100 * step.unclassified:.0f}% of the sites"))
    else:
        value = detected(step.reported_value, mission.world.sensor.below, mission.world.quantity)
        shown.append((f"{extreme(mission.question)} value", value))
        if not math.isnan(step.regret):
            shown.append(("regret against the truth", f"{step.regret:.3g}"))
    return shown


def _score(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.3f}"


# -- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrderRow:
    """An order: where it led, what was read, its costs, and why it was chosen.

    Attributes
    ----------
    number : int
    vehicle : int
        Counted from 1.
    to, result : str
    planned, spent, left : str
        Costs in words.
    planned_share, spent_share : float
        Percentages of the largest cost of all orders; 0 if unknown.
    why : dict
        Labels and words.
    """

    number: int
    vehicle: int
    to: str
    result: str
    planned: str
    spent: str
    left: str
    planned_share: float
    spent_share: float
    why: dict[str, str]


def orders(course: Course, came: Mapping[str, list[Any]]) -> Table:
    """Return an `OrderRow` per order, in the order of their numbers."""
    battery = sum(spec.battery for spec in course.result.mission.vehicles)
    lines = [
        (order_number(order.id), number, order, entry)
        for number, account in enumerate(course.result.accounts, 1)
        for order, entry, _ in account.lines
    ]
    lines.sort(key=lambda line: line[0])
    costs = [cost for *_, entry in lines for cost in (entry.planned, entry.spent) if math.isfinite(cost)]
    largest = max(costs, default=0.0) or 1.0
    rows = [
        OrderRow(
            number=number,
            vehicle=vehicle,
            to=destination(course, order),
            result=result_of(course, order, came.get(str(order.id), [])),
            planned=_cost(entry.planned, largest),
            spent=_cost(entry.spent, largest),
            left=_cost(entry.left, battery),
            planned_share=_share(entry.planned, largest),
            spent_share=_share(entry.spent, largest),
            why={k: v for k, v in course.reasons.get(str(order.id), {}).items() if k != _POLICY},
        )
        for number, vehicle, order, entry in lines
    ]
    return Table.of(rows)


def policies(course: Course) -> list[str]:
    """Return the policies that chose the orders, with their settings, in words."""
    return list(dict.fromkeys(why[_POLICY] for why in course.reasons.values() if _POLICY in why))


def _cost(value: float, whole: float) -> str:
    return rounded(value, whole) if math.isfinite(value) else "not known"


def _share(value: float, whole: float) -> float:
    return round(100.0 * value / whole, 2) if math.isfinite(value) else 0.0


def readings(course: Course) -> tuple[list[str], Table]:
    """Return the header and the rows of the table of readings."""
    header, rows = course.result.readings()
    lengths = {axis.name: axis.high - axis.low for axis in course.result.mission.world.domain.axes}
    shown = [
        [_cell(name, value, lengths.get(name, 0.0)) for name, value in zip(header, row, strict=True)]
        for row in rows[:MOST_ROWS]
    ]
    return [name.replace("_", " ") for name in header], Table(shown, len(rows))


def _cell(name: str, value: Any, length: float) -> str:
    """Return a value of a column in words; one along an axis to a ten-thousandth of its length."""
    if name == "order":
        return str(order_number(value))
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return ""
        if name in _DEGREES:
            return f"{value:.6f}"
        return rounded(float(value), length, digits=5) if length else f"{value:.5g}"
    return "" if value is None else str(value)


def reading_words(course: Course) -> list[str]:
    """Return each reading in words, with its number, for the map."""
    quantity = course.result.mission.world.quantity
    return [f"reading {k}: {_value(value, quantity)}" for k, value in enumerate(course.result.values, 1)]


def commands(course: Course) -> Table:
    """Return what an operator, or a hold, had the run do, and what was refused."""
    rows = [
        {
            "after": command.after,
            "what": command_text(course.result.mission, command),
            "by": command.by,
            "outcome": f"refused: {command.refused}" if command.refused else "obeyed",
        }
        for command in course.result.commands
    ]
    return Table.of(rows)


def undone(course: Course) -> Table:
    """Return the rejected and lost orders, with their reasons."""
    rows = []
    for event in course.agent.history:
        if isinstance(event, Rejected | Lost):
            order = course.agent.issued[event.order].order
            rows.append(
                {
                    "number": order_number(event.order),
                    "to": destination(course, order),
                    "what": "rejected" if isinstance(event, Rejected) else "lost",
                    "reason": event.reason,
                }
            )
    return Table.of(rows)


def corrections(course: Course) -> list[str]:
    """Return the orders whose readings were corrected afterwards."""
    return [str(order_number(event.order)) for event in course.agent.history if isinstance(event, Correction)]
