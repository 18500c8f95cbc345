"""Explain the next query of a run, or an earlier order, from its record.

The agent is rebuilt by replaying the record, so an explanation shows what the agent knew at that point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Order, Query, Recharge, Stop, order_number
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS, record_file
from fieldbo.results.words import aligned, number, place
from fieldbo.runs.reasons import because, best_bound, best_of, is_table, reasons_for, understood, value_of
from fieldbo.runs.replay import mission_of
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
        text = f"{status}\n{_heading(agent, 'next')}: nothing, because {because(why)}"
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
    head = f"{status}\n{_heading(agent, title)}"
    if isinstance(order, GoHome):
        return Explanation(agent.run, order, (), why, f"{head}: home, because {because(why or {})}")
    if isinstance(order, Recharge):
        text = f"{head}: change the battery, because {because(why or {})}"
        return Explanation(agent.run, order, (), why, text)
    best = best_of(agent, order, why)
    text = f"{head}: {place(agent.domain, order.site)}\n\n{details(agent, order, why, best, extra or {})}"
    return Explanation(agent.run, order, tuple(best), why, text)


# -- the text ------------------------------------------------------------------------------------------------


def _heading(agent: Agent, title: str) -> str:
    """Return the title of an order with the battery and time that are left before it."""
    vehicle, unit = agent.vehicles[0], agent.mission.world.cost_unit
    left = f"{number(vehicle.ledger.available)} of {number(vehicle.spec.battery)} {unit}"
    if vehicle.spec.batteries > 1:
        left += f" in battery {vehicle.battery_number} of {vehicle.spec.batteries}"
    if vehicle.spec.time_limit_s is not None:
        left += f" and {number(vehicle.time_ledger.available)} of {number(vehicle.spec.time_limit_s)} s"
    return f"{title}, with {left} left"


def details(
    agent: Agent,
    query: Query,
    why: Mapping[str, Any] | None,
    best: Sequence[Mapping[str, Any]],
    extra: Mapping[str, str],
) -> str:
    """Return the table of the best candidates, the reasons, and one table per list in `why`.

    Parameters
    ----------
    agent : Agent
        As it was before it issued the query.
    query : Query
    why : mapping or None
        The reasons recorded by the policy; None for an initial reading.
    best : sequence of mapping
        From `best_of`.
    extra : mapping of str to str
        Further reasons by label.
    """
    why = understood(agent, why)
    reasons = {**reasons_for(agent, query, why, best), **extra}
    width = max(map(len, reasons))
    parts = [_best_table(agent, best), "\n".join(f"  {k:<{width}}  {text}" for k, text in reasons.items())]
    for key, rows in (why or {}).items():
        if key == "sets" and why is not None and "worst" in why:
            parts.append(_sets_table(agent, why))
        elif key != "best" and is_table(rows):
            parts.append(_table_of(agent.domain, rows))
    return "\n\n".join(parts)


def _best_table(agent: Agent, best: Sequence[Mapping[str, Any]]) -> str:
    """Return the best candidates as an aligned table."""
    world = agent.mission.world
    unit, levels = world.cost_unit, ["level"] if world.sensor.settings > 1 else []
    columns = {"value": "value", "cost": f"cost ({unit})", "left": f"left after ({unit})"}
    if any("left_s" in candidate for candidate in best):
        columns["left_s"] = "left after (s)"
    rows = [
        [
            str(rank),
            *_coordinates(world.domain, candidate["site"]),
            *(str(candidate[key]) for key in levels),
            *(number(candidate.get(key)) for key in columns),
        ]
        for rank, candidate in enumerate(best, 1)
    ]
    return _table([["", *_axes(world.domain), *levels, *columns.values()], *rows])


def _axes(domain: Domain) -> list[str]:
    """Return the heads of the columns of `_coordinates`."""
    if domain.georeference is None:
        return [axis.label for axis in domain.axes]
    others = [axis.label for j, axis in enumerate(domain.axes) if j not in domain.georeference.axes]
    return ["latitude", "longitude", *others]


def _coordinates(domain: Domain, site: Sequence[float | None]) -> list[str]:
    """Return a site's coordinates or, with a CRS, its latitude, longitude and other coordinates."""
    if domain.georeference is None:
        return [number(x) for x in site]
    others = [number(x) for j, x in enumerate(site) if j not in domain.georeference.axes]
    return [*domain.georeference.text(site).split(", "), *others]  # type: ignore[arg-type]


def _table_of(domain: Domain, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of mappings as an aligned table, one column per key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))

    def text(key: str, value: object) -> str:
        if key == "set" and isinstance(value, int) and 0 <= value < len(domain.control_sets):
            return domain.control_sets[value].name
        if isinstance(value, list | tuple):
            return ", ".join(map(number, value))
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else number(value)

    heads = [key.replace("_", " ") for key in keys]
    return _table([heads, *([text(key, row.get(key)) for key in keys] for row in rows)])


def _sets_table(agent: Agent, why: Mapping[str, Any]) -> str:
    """Return bounds, costs and plays of each control set as an aligned table, with notes on the columns."""
    world, rows, minimises = agent.mission.world, why["sets"], agent.mission.question.sign < 0
    unit, value_unit = world.cost_unit, world.quantity.unit
    heads = ["control set", "best case" + ("" if value_unit in ("", "1") else f" ({value_unit})")]
    heads += [f"mean cost ({unit})", f"cost at least ({unit})", "plays", "plausible"]
    plausible = {True: "yes", False: "no", None: "exploring"}
    table = [
        [
            agent.domain.control_sets[row["set"]].name,
            "unknown" if row["ucb"] is None else number(value_of(agent, why["worst"], row["ucb"])),
            *(number(row[key]) for key in ("cost", "cost_low", "plays")),
            plausible[row["plausible"]],
        ]
        for row in rows
    ]
    notes = [
        f"best case: {'lower' if minimises else 'upper'} confidence bound of the best average value over the "
        f"free variables; {getattr(agent.mission.policy, 'bounds_are', '')}"
    ]
    if any(row["plausible"] is None for row in rows):
        notes.append("exploring: no set is ruled out before exploration has ended")
    elif (bound := best_bound(agent, why)) is not None:
        fraction = 1.0 - why["alpha"]
        limit = why["worst"] + fraction * (bound - why["worst"])
        notes.append(
            f"plausible: {world.quantity.amount(limit)} or {'less' if minimises else 'more'}, which is "
            f"{number(100.0 * fraction)}% of the step from the worst value to the best so far"
        )
    return "\n".join([_table([heads, *table]), "", *(f"  {note}" for note in notes)])


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(aligned(rows, right=True))
