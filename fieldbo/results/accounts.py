"""Accounts of a run: planned and real cost of each order, in battery and in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import Entry
from fieldbo.agent.vehicle_state import Pause, Statement
from fieldbo.messages import Observation, Order


@dataclass(frozen=True, eq=False)
class Account:
    """The account of one vehicle.

    Attributes
    ----------
    lines : tuple of (Order, Entry, Entry)
        Each order in turn with its entry in the battery's ledger (cost unit) and in the time ledger (s).
    spent, left : float
        What all batteries spent, and what is left in the present one, in the cost unit.
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
    statements : tuple of Statement
        What people said is left in the battery, in order.
    battery_of : mapping of str to int
        Number of the battery with which each order was issued, counted from 1, by its id.
    batteries_used : int
    unexplained : mapping of int to (float, float)
        What reports took from each battery beyond its orders and pauses, if anything, and what was left.
    taken_back : set of str
        Ids of the orders that a command or a hold took back before they were done.
    """

    lines: tuple[tuple[Order, Entry, Entry], ...]
    spent: float
    left: float
    time_s: float
    left_s: float
    home: bool | None
    limit: str | None
    pauses: tuple[Pause, ...] = ()
    statements: tuple[Statement, ...] = ()
    battery_of: Mapping[str, int] = field(default_factory=dict)
    batteries_used: int = 1
    unexplained: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    taken_back: Set[str] = frozenset()

    @classmethod
    def of(cls, agent: Agent, vehicle: int) -> Account:
        """Return the present account of an agent's vehicle."""
        state = agent.vehicles[vehicle]
        time, home = state.time_ledger.entries, state.spec.home
        done = {e.order for e in agent.history if isinstance(e, Observation) and e.last and e.complete}
        batteries = [(n, k, e) for n, b in enumerate(state.ledgers, start=1) for k, e in b.entries.items()]
        return cls(
            lines=tuple((agent.issued[k].order, entry, time[k]) for _, k, entry in batteries),
            spent=state.spent,
            left=state.ledger.left,
            time_s=state.time_s,
            left_s=state.time_ledger.left,
            home=None if home is None else np.array_equal(state.position, home),
            limit=agent.endings.get(vehicle, {}).get("limit"),
            pauses=tuple(replace(pause) for pause in state.pauses),
            statements=tuple(state.statements),
            battery_of={k: number for number, k, _ in batteries},
            batteries_used=state.battery_number,
            unexplained={
                n: (math.fsum(b.unexplained), b.left) for n, b in enumerate(state.ledgers, 1) if b.unexplained
            },
            taken_back=agent.withdrawn - done,
        )

    @property
    def planned(self) -> float:
        """Declared cost of the orders whose real cost is known, in the cost unit.

        Orders without a declared cost count as 0, and those in `taken_back` as what they cost.
        """
        return math.fsum(
            self._expected(o, e) for o, e, _ in self.lines if not math.isnan(e.spent + e.planned)
        )

    @property
    def planned_s(self) -> float:
        """Declared duration of the orders whose real duration is known, in seconds; see `planned`."""
        return math.fsum(self._expected(o, e) for o, _, e in self.lines if not math.isnan(e.spent))

    def _expected(self, order: Order, entry: Entry) -> float:
        return entry.spent if str(order.id) in self.taken_back else entry.planned
