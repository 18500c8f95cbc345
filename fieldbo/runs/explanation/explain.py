"""Explain the next query of a run, or an earlier order, from its record.

The agent is rebuilt by replaying the record, so an explanation shows what the agent knew at that point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Order, Query, Recharge, Stop, order_number
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS, record_file
from fieldbo.runs.explanation.words import because, best_of, details, heading, place
from fieldbo.runs.load import mission_of
from fieldbo.runs.state import RunState


@dataclass(frozen=True)
class Explanation:
    """An order, and why the agent chose it.

    Attributes
    ----------
    run : str
        Name of the run.
    order : Query, GoHome, Recharge or Stop
        The explained order; a Stop if there is nothing more to ask.
    best : tuple of dict
        The best candidates for a query, the chosen one first: ``site``, ``value`` (score of the policy; None
        without one), ``cost`` (travel and sampling), ``left`` (what remains for later queries, the trip home
        set aside) and, for a sensor with several levels, ``level``. None in a site marks a free variable.
        Where costs are unknown, ``cost`` is the agent's estimate, or None.
    why : mapping or None
        The reasons recorded by the policy; None for an initial reading.
    text : str
        The explanation as text of a few lines.
    """

    run: str
    order: Order | Stop
    best: tuple[Mapping[str, Any], ...]
    why: Mapping[str, Any] | None
    text: str

    def __str__(self) -> str:
        return self.text


def explain(run: Path | str, order: int | None = None) -> Explanation:
    """Explain what a run would query next; for a run that has ended, explain its last query.

    Reading never changes a record. You can explain a run while another process is writing it.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    order : int, optional
        Explain the order with this number instead, counted from 0.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        There is no such run or order, or the mission has changed since the run began.
    RecordError
        The record is damaged.
    """
    file = record_file(run)
    with Record(file) as record:
        rows, end, name = record.rows(), record.end_reason, record.name
        state = RunState(mission_of(record), name, scored=False)
    row_of = {order_number(row.order): k for k, row in enumerate(rows) if row.kind in ORDERS}
    queries = [number for number, k in row_of.items() if rows[k].kind == "query"]
    count = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    home = [row.body["why"] or {} for row in rows if row.kind == "go-home"]
    reason = "time is up" if home and home[-1].get("limit") == "time" else end and end.value
    status = f"{name}: {count}, not ended" if end is None else f"{name}: {count}, ended: {reason}"
    if order is None and end is not None and queries:
        order = queries[-1]
    if order is None:
        state.replay(rows)
        return _next(state.agent, status)
    if order not in row_of:
        raise InputError(
            f"{name} has no order {order}",
            expected=f"a number from 0 to {max(row_of)}" if row_of else "a run that has issued orders",
            where=str(file),
        )
    state.replay(rows[: row_of[order]])
    row = rows[row_of[order]]
    message = row.message
    assert isinstance(message, Order)
    title = f"{row.kind.replace('-', ' ')} {order}"
    return _explained(state.agent, status, message, row.body["why"], title)


def _next(agent: Agent, status: str) -> Explanation:
    """Ask a replayed agent for its next order, and explain it."""
    vehicle, domain = agent.vehicles[0], agent.domain
    outstanding = [
        f"{order_number(o.id)} to {place(domain, o.site)}" for o in vehicle.queue if isinstance(o, Query)
    ]
    if outstanding:
        status += f"\noutstanding, and taken as read: {'; '.join(outstanding)}"
    orders = agent.ask_batch(agent.mission.batch)
    if not orders:
        assert vehicle.reason is not None
        why = agent.endings.get(0, {"end_reason": vehicle.reason})
        text = f"{status}\n{heading(agent, 'next')}: nothing, because {because(why)}"
        return Explanation(agent.run, Stop(vehicle.reason), (), why, text)
    for order in orders:
        vehicle.settle(str(order.id))  # explain from what was known before they were issued
    first, *others = orders
    batch = "; ".join(place(domain, o.site) for o in others if isinstance(o, Query))
    reasons = agent.issued[str(first.id)].why
    return _explained(agent, status, first, reasons, "next", {"batch": batch} if batch else {})


def _explained(
    agent: Agent,
    status: str,
    order: Order,
    why: Mapping[str, Any] | None,
    title: str,
    extra: Mapping[str, str] | None = None,
) -> Explanation:
    """Explain an order by an agent that has not issued it yet."""
    head = f"{status}\n{heading(agent, title)}"
    if isinstance(order, GoHome):
        return Explanation(agent.run, order, (), why, f"{head}: home, because {because(why or {})}")
    if isinstance(order, Recharge):
        text = f"{head}: change the battery, because {because(why or {})}"
        return Explanation(agent.run, order, (), why, text)
    best = best_of(agent, order, why)
    text = f"{head}: {place(agent.domain, order.site)}\n\n{details(agent, order, why, best, extra or {})}"
    return Explanation(agent.run, order, tuple(best), why, text)
