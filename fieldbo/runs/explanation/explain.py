"""Why there? What an agent would ask for next, or why a run's order is what it is, told from its record.

The agent is rebuilt by replaying the record, so that what it says is what it said, or would say, on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Order, Query, Stop
from fieldbo.runs.explanation.words import because, best_of, in_words, place, standing
from fieldbo.runs.load import mission_of, record_file
from fieldbo.runs.record.record import ORDERS, Record
from fieldbo.runs.state import RunState


@dataclass(frozen=True)
class Explanation:
    """An order, and why it is that one.

    Attributes
    ----------
    run : str
        Its name.
    order : Query, GoHome or Stop
        What is explained; a Stop where nothing is to be asked for any more.
    best : tuple of dict
        Of a query, the best that could be had, the chosen one first: ``site``, ``value`` (the policy's
        score, None without one), ``cost`` (of going there and sampling), ``left`` (what could still be
        spent on queries after it, the way home set aside) and, where there are several, ``level``. In a site,
        None is a variable left free; of costs that are not known there is what the agent expects, or None.
    why : mapping or None
        All that the policy said; None for an initial reading.
    text : str
        The same in words, a few lines.
    """

    run: str
    order: Order | Stop
    best: tuple[Mapping[str, Any], ...]
    why: Mapping[str, Any] | None
    text: str

    def __str__(self) -> str:
        return self.text


def explain(run: Path | str, order: int | None = None) -> Explanation:
    """Say what the agent of a run would ask for next, and why; of a run that ended, why its last query.

    The record is only read; another process may be writing to it.

    Parameters
    ----------
    run : Path or str
        A run folder, or the ``run.sqlite`` in it.
    order : int, optional
        Explain the order of that number instead, the first one being 0.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        There is no such run or order, or its mission was changed since.
    RecordError
        The record is damaged.
    """
    file = record_file(run)
    with Record(file) as record:
        rows, end, name = record.rows(), record.end_reason, record.name
        course = RunState(mission_of(record), name)
    agent = course.agent
    given = {_number(row.order): k for k, row in enumerate(rows) if row.kind in ORDERS}
    queries = [n for n, k in given.items() if rows[k].kind == "query"]
    asked = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    home = [row.body["why"] or {} for row in rows if row.kind == "go-home"]
    ending = "time is up" if home and home[-1].get("limit") == "time" else end and end.value
    state = f"{name}: not ended, {asked} so far" if end is None else f"{name}: ended, {ending}; {asked}"
    if order is None and end is not None and queries:
        order = queries[-1]
    if order is None:
        course.replay(rows)
        return _next(agent, state)
    if order not in given:
        raise InputError(
            f"order {order} of {name}",
            expected=f"0 to {max(given)}, the orders that it gave" if given else "a run that gave orders",
            where=str(file),
        )
    course.replay(rows[: given[order]])
    row = rows[given[order]]
    message = row.message
    assert isinstance(message, Query | GoHome)
    return _explained(agent, state, message, row.body["why"], f"{row.kind.replace('-', ' ')} {order}")


def _number(order: str | None) -> int:
    """Return the number in an order's id."""
    return int(str(order).rsplit("/", 1)[1])


# -- orders ----------------------------------------------------------------------------------------------


def _next(agent: Agent, state: str) -> Explanation:
    """Ask a rebuilt agent for its next order, and explain it."""
    craft, domain = agent.vehicles[0], agent.domain
    out = [f"{_number(o.id)} to {place(domain, o.site)}" for o in craft.queue if isinstance(o, Query)]
    if out:
        state += f"\nstill out, and counted as read: {'; '.join(out)}"
    orders = agent.ask_batch(agent.mission.batch)
    if not orders:
        stop = agent.ask()
        assert isinstance(stop, Stop)
        why = agent.endings.get(0, {"end_reason": stop.reason})
        told = f"{state}\n{standing(agent, 'next')}: nothing, as {because(why)}"
        return Explanation(agent.run, stop, (), why, told)
    for order in orders:
        craft.settle(str(order.id))  # what is told is told from before it leaves
    first, *others = orders
    also = [place(domain, o.site) for o in others if isinstance(o, Query)]
    extra = {"batch": "with it " + "; ".join(also)} if also else {}
    return _explained(agent, state, first, agent.issued[str(first.id)].why, "next", extra)


def _explained(
    agent: Agent,
    state: str,
    order: Order,
    why: Mapping[str, Any] | None,
    name: str,
    extra: Mapping[str, str] | None = None,
) -> Explanation:
    """Explain an order from what its agent knew before it left."""
    head = f"{state}\n{standing(agent, name)}"
    if isinstance(order, GoHome):
        return Explanation(agent.run, order, (), why, f"{head}: home, as {because(why or {})}")
    best = best_of(agent, order, why)
    told = in_words(agent, order, why, best, extra or {})
    text = f"{head}: {place(agent.domain, order.site)}\n\n{told}"
    return Explanation(agent.run, order, tuple(best), why, text)
