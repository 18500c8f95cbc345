"""Accounts of a run: planned and real cost of each order, in battery and in time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import Entry
from fieldbo.agent.vehicle_state import Pause
from fieldbo.messages import Order


@dataclass(frozen=True, eq=False)
class Account:
    """The account of one vehicle.

    Attributes
    ----------
    lines : tuple of (Order, Entry, Entry)
        Each order in turn with its entry in the battery's ledger (cost unit) and in the time ledger (s).
    spent, left : float
        Totals, in the cost unit.
    time_s : float
        When the last order was done.
    left_s : float
        What remains of the time limit; infinite without one.
    home : bool or None
        True if the vehicle is at home; None if it has no home.
    limit : str or None
        The limit that did not allow another site, ``"battery"`` or ``"time"``; None if the vehicle stopped
        for another reason.
    pauses : tuple of Pause
        What the vehicle's pauses took, in order.
    """

    lines: tuple[tuple[Order, Entry, Entry], ...]
    spent: float
    left: float
    time_s: float
    left_s: float
    home: bool | None
    limit: str | None
    pauses: tuple[Pause, ...] = ()

    @classmethod
    def of(cls, agent: Agent, vehicle: int) -> Account:
        """Return the present account of an agent's vehicle."""
        state = agent.vehicles[vehicle]
        battery, time, home = state.ledger.entries, state.time_ledger.entries, state.spec.home
        return cls(
            lines=tuple((agent.issued[k].order, battery[k], time[k]) for k in battery),
            spent=state.ledger.spent,
            left=state.ledger.left,
            time_s=state.time_s,
            left_s=state.time_ledger.left,
            home=None if home is None else np.array_equal(state.position, home),
            limit=agent.endings.get(vehicle, {}).get("limit"),
            pauses=tuple(replace(pause) for pause in state.pauses),
        )

    @property
    def planned(self) -> float:
        """Declared cost of the orders whose real cost is known, in the cost unit.

        Orders without a declared cost count as 0.
        """
        return math.fsum(e.planned for _, e, _ in self.lines if not math.isnan(e.spent + e.planned))

    @property
    def planned_s(self) -> float:
        """Declared duration of the orders whose real duration is known, in seconds."""
        return math.fsum(e.planned for _, _, e in self.lines if not math.isnan(e.spent))
