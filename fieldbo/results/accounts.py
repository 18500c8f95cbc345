"""What each order was planned to take, and what it really took: of the battery, and of the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import Entry
from fieldbo.messages import Order, kind_of
from fieldbo.results.tables import table


@dataclass(frozen=True, eq=False)
class Account:
    """One vehicle's.

    Attributes
    ----------
    lines : tuple of (Order, Entry, Entry)
        Each order in turn: its entry in the battery's books (cost unit), and in those of the time (s).
    spent, left : float
        In all, in the cost unit.
    time_s : float
        When the last order was done.
    left_s : float
        What is left of the time limit; infinite without one.
    home : bool or None
        Whether the vehicle is at home; None where it has none.
    limit : str or None
        What paid for no further site: ``"battery"`` or ``"time"``; None where it ended otherwise.
    """

    lines: tuple[tuple[Order, Entry, Entry], ...]
    spent: float
    left: float
    time_s: float
    left_s: float
    home: bool | None
    limit: str | None

    @classmethod
    def of(cls, agent: Agent, vehicle: int) -> Account:
        """Return the books of an agent's vehicle, as they stand."""
        craft = agent.vehicles[vehicle]
        battery, hours, home = craft.ledger.entries, craft.time_ledger.entries, craft.spec.home
        return cls(
            lines=tuple((agent.issued[k].order, battery[k], hours[k]) for k in battery),
            spent=craft.ledger.spent,
            left=craft.ledger.left,
            time_s=craft.time_s,
            left_s=craft.time_ledger.left,
            home=None if home is None else np.array_equal(craft.position, home),
            limit=agent.endings.get(vehicle, {}).get("limit"),
        )

    @property
    def planned(self) -> float:
        """What the orders of which the cost is known were declared to take, in the cost unit.

        Those of which nothing was known before count nothing.
        """
        return math.fsum(e.planned for _, e, _ in self.lines if not math.isnan(e.spent + e.planned))

    @property
    def planned_s(self) -> float:
        """What the orders of which the time is known were declared to take, in seconds."""
        return math.fsum(e.planned for _, _, e in self.lines if not math.isnan(e.spent))


def ledger_table(books: Sequence[Account]) -> bytes:
    """Return ``ledger.csv``: a row an order, with what was planned, spent and then left.

    Nothing is spent of an order that was turned down; what is not known is empty.
    """
    columns = ["vehicle", "order", "kind", "planned", "spent", "left", "planned_s", "spent_s", "left_s"]
    rows = [
        [number, order.id, kind_of(order)]
        + [amount if math.isfinite(amount) else math.nan for e in entries for amount in _amounts(e)]
        for number, one in enumerate(books)
        for order, *entries in one.lines
    ]
    if len(books) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return table(columns, rows)


def _amounts(entry: Entry) -> tuple[float, float, float]:
    return entry.planned, entry.spent, entry.left
