"""Why there? What an agent would ask for next, or why a run's order is what it is, told from its record.

The agent is rebuilt by replaying the record, so that what it says is what it said, or would say, on its way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fieldbo.agent import Agent
from fieldbo.catalogue import load_mission
from fieldbo.domain import Array, Domain
from fieldbo.errors import InputError, RecordError
from fieldbo.exchange import EndReason, GoHome, Order, Query, Stop
from fieldbo.folder import RECORD, digests
from fieldbo.metrics import MIDDLE90
from fieldbo.mission import Mission
from fieldbo.policies.base import LEFT
from fieldbo.record import Record, Row
from fieldbo.result import amount

_ORDERS = ("query", "go-home")

_BECAUSE = {
    EndReason.QUESTION_ANSWERED: "the question is answered",
    EndReason.BATTERY_SPENT: "the battery pays for no further query",
    EndReason.STEP_LIMIT: "the limit of steps is reached",
    EndReason.STOPPED_BY_POLICY: "the policy proposes nothing more",
    EndReason.STOPPED_BY_OPERATOR: "the operator stopped it",
    EndReason.VEHICLE_LOST: "the vehicle is lost",
}

_OWN = {"score", "site", "level", "best", "end_reason", "limit", "incumbent"}
"""What of a policy's `why` has a place of its own here."""


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
        spent on queries after it, the way home set aside) and, where there are several, ``level``.
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
    file = _record_file(Path(run))
    with _snapshot(file) as record:
        rows, end, name, begun = record.rows(), record.end_reason, record.name, record.description
    agent = Agent(_mission(file.parent, begun), name)
    given = {_number(row.order): k for k, row in enumerate(rows) if row.kind in _ORDERS}
    queries = [n for n, k in given.items() if rows[k].kind == "query"]
    asked = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    home = [row.body["why"] or {} for row in rows if row.kind == "go-home"]
    ending = "time is up" if home and home[-1].get("limit") == "time" else end and end.value
    state = f"{name}: not ended, {asked} so far" if end is None else f"{name}: ended, {ending}; {asked}"
    if order is None and end is not None and queries:
        order = queries[-1]
    if order is None:
        _replay(agent, rows)
        return _next(agent, state)
    if order not in given:
        raise InputError(
            f"order {order} of {name}",
            expected=f"0 to {max(given)}, the orders that it gave" if given else "a run that gave orders",
            where=str(file),
        )
    _replay(agent, rows[: given[order]])
    row = rows[given[order]]
    message = row.message
    assert isinstance(message, Query | GoHome)
    return _explained(agent, state, message, row.body["why"], f"{row.kind.replace('-', ' ')} {order}")


# -- the record ------------------------------------------------------------------------------------------


def _record_file(run: Path) -> Path:
    """Return the record of a run that was named by its folder or by the record itself."""
    file = run / RECORD if run.is_dir() else run
    if file.is_file() and file.name == RECORD:
        return file
    raise InputError(
        f"{run} is no run folder: there is no {RECORD} in it" if run.exists() else f"there is no run {run}",
        expected=f"a run folder, as fieldbo run makes it, or the {RECORD} in it",
        mend="the folders of runs are below runs/, unless --out said otherwise",
    )


@contextmanager
def _snapshot(file: Path) -> Iterator[Record]:
    """Open a copy of a record, taken at one moment; the file itself is not changed by a byte."""
    # Without a log beside it nobody is writing, and SQLite is kept from putting one there.
    written = file.with_name(f"{file.name}-wal").exists()
    uri = f"{file.resolve().as_uri()}?mode=ro{'' if written else '&immutable=1'}"
    with TemporaryDirectory(prefix="fieldbo-") as folder:
        copy = Path(folder) / RECORD
        try:
            with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            record = Record(copy)
        except sqlite3.Error as error:
            raise RecordError(f"{file} is damaged, or no record of a run: {error}") from error
        except RecordError as error:
            raise RecordError(str(error).replace(str(copy), str(file))) from None
        with record:
            yield record


def _mission(folder: Path, begun: Mapping[str, Any]) -> Mission:
    """Return the mission of a run folder, if it still is the one that the record began with."""
    file = folder / "mission.toml"
    if not file.is_file():
        raise InputError(
            f"there is no {file}",
            expected="the run folder as fieldbo run made it: mission.toml and the world beside the record",
        )
    mission = load_mission(file)
    assert mission.folder is not None
    then, now = begun.get("files", {}), digests(mission.folder)
    changed = [name for name, digest in now.items() if then.get(name, digest) != digest]
    if json.loads(json.dumps(dict(mission.settings))) != begun.get("settings"):
        changed.insert(0, file.name)
    if changed:
        raise InputError(
            f"changed since the run began: {', '.join(changed)}",
            expected="the mission and the world as they were run",
            where=str(folder),
            mend="undo the changes; to try another mission, copy mission.toml elsewhere and run that",
        )
    return mission


def _number(order: str | None) -> int:
    """Return the number in an order's id."""
    return int(str(order).rsplit("/", 1)[1])


def _replay(agent: Agent, rows: Sequence[Row]) -> None:
    """Take the agent through what was asked and told."""
    for row in rows:
        if row.kind in ("stop", "end"):
            continue
        message = row.message
        if isinstance(message, Query | GoHome):
            agent.replay(message, row.body["memory"], row.body["why"])
        elif agent.knows(message):
            agent.tell(message)


# -- in words --------------------------------------------------------------------------------------------


def _next(agent: Agent, state: str) -> Explanation:
    """Ask a rebuilt agent for its next order, and explain it."""
    craft, domain = agent.crafts[0], agent.domain
    out = [f"{_number(o.id)} to {_place(domain, o.site)}" for o in craft.queue if isinstance(o, Query)]
    if out:
        state += f"\nstill out, and counted as read: {'; '.join(out)}"
    orders = agent.ask_batch(agent.mission.batch)
    if not orders:
        stop = agent.ask()
        assert isinstance(stop, Stop)
        why = agent.endings.get(0, {"end_reason": stop.reason})
        told = f"{state}\n{_standing(agent, 'next')}: nothing, as {_because(why)}"
        return Explanation(agent.run, stop, (), why, told)
    for order in orders:
        craft.settle(str(order.id))  # what is told is told from before it leaves
    first, *others = orders
    also = [_place(domain, o.site) for o in others if isinstance(o, Query)]
    extra = {"batch": "with it " + "; ".join(also)} if also else {}
    return _explained(agent, state, first, agent.whys[str(first.id)], "next", extra)


def _explained(
    agent: Agent,
    state: str,
    order: Order,
    why: Mapping[str, Any] | None,
    name: str,
    extra: Mapping[str, str] | None = None,
) -> Explanation:
    """Explain an order from what its agent knew before it left."""
    head = f"{state}\n{_standing(agent, name)}"
    if isinstance(order, GoHome):
        return Explanation(agent.run, order, (), why, f"{head}: home, as {_because(why or {})}")
    best = _best(agent, order, why)
    told = {**_reasons(agent, order, why, best), **(extra or {})}
    wide = max(map(len, told))
    lines = [f"  {what:<{wide}}  {said}" for what, said in told.items()]
    parts = [f"{head}: {_place(agent.domain, order.site)}", _table(agent.mission, best), "\n".join(lines)]
    return Explanation(agent.run, order, tuple(best), why, "\n\n".join(parts))


def _because(why: Mapping[str, Any]) -> str:
    """Return why there is no further query."""
    if why.get("limit") == "time":
        return "there is no time for another query"
    return _BECAUSE[EndReason(why["end_reason"])]


def _standing(agent: Agent, name: str) -> str:
    """Return what the battery was when an order of that name left, or will leave."""
    craft, unit = agent.crafts[0], agent.mission.world.cost_unit
    left = f"{_digits(craft.ledger.available)} of {_digits(craft.crew.battery)} {unit}"
    if craft.crew.time_limit_s is not None:
        left += f" and {_digits(craft.hours.available)} of {_digits(craft.crew.time_limit_s)} s"
    return f"{name}, with {left} left"


def _best(agent: Agent, query: Query, why: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the chosen site as it was sent out, and the next best that the policy told."""
    craft, told = agent.crafts[0], (why or {}).get("best", ())
    chosen = {
        "site": query.site.tolist(),
        "value": told[0]["value"] if told else (why or {}).get("score"),
        "cost": craft.price(query),
    }
    for limit in craft.limits:
        chosen[LEFT[limit.name]] = limit.after(craft.end, query.site, query.level)
    if agent.mission.world.sensor.settings > 1:
        chosen["level"] = query.level
    return [chosen, *told[1:]]


def _reasons(
    agent: Agent, query: Query, why: Mapping[str, Any] | None, best: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return why a query is what it is, by catchword."""
    mission, craft = agent.mission, agent.crafts[0]
    world, unit, site = mission.world, mission.world.cost_unit, query.site[None]
    way, home = float(world.cost.travel(craft.end, site, craft.time_s)[0]), craft.crew.home
    cost = f"{_digits(way)} {unit} to get there, {_digits(best[0]['cost'] - way)} to sample"
    if home is not None:
        cost += f"; home from there {_digits(float(craft.return_cost(site)[0]))}"
    if why is None:
        return {"why": "a reading to begin with, before the policy takes over", "cost": cost}
    settings = {k: v for k, v in mission.settings["policy"].items() if k != "kind"}
    rule = mission.policy_kind + (f" ({_listed(settings)})" if settings else "")
    said = (type(mission.policy).__doc__ or "").strip().partition("\n")[0].replace("``", "")
    told = {"policy": f"{rule}: {said}" if said else rule}
    if len(best) > 1:
        told["value"] = _ahead(best)
    belief, scale = agent.surface.belief, agent.hyperparameters.scale
    half = MIDDLE90 * belief.variance(site) ** 0.5
    low, median, high = (float(scale.to_user(belief.mean(site) + k * half)[0]) for k in (-1, 0, 1))
    low, high = sorted((low, high))
    told["expected"] = f"{amount(median, world.quantity)} there, by the model ({low:.4g} to {high:.4g})"
    if (incumbent := why.get("incumbent")) is not None:
        so_far = float(scale.to_user(np.array([incumbent]))[0])
        told["so far"] = f"at best {amount(so_far, world.quantity)}, by the model"
    told["cost"] = cost
    if own := _listed({k: v for k, v in why.items() if k not in _OWN and settings.get(k) != v}):
        told["also"] = own
    return told


def _ahead(best: Sequence[Mapping[str, Any]]) -> str:
    """Return by how much the chosen site is ahead of the next best."""
    first, second = (one["value"] for one in best[:2])
    if not (isinstance(first, int | float) and isinstance(second, int | float)):
        return f"{_digits(first)}; the next best {_digits(second)}"
    if first <= second:
        return f"{_digits(first)}, level with the next best"
    percent = round(100 * (first - second) / abs(first), 1) if first else 0.0
    share = f" ({_digits(percent)}%)" if percent else ""
    return f"{_digits(first)}, {first - second:.2g}{share} above the next best"


def _table(mission: Mission, best: Sequence[Mapping[str, Any]]) -> str:
    """Return the best as an aligned table."""
    from io import StringIO

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    world, table = mission.world, Table(box=None, pad_edge=False)
    several = world.sensor.settings > 1
    unit = world.cost_unit
    heads = [*(a.label for a in world.domain.axes), *(["level"] if several else [])]
    shown = {"value": "value", "cost": f"cost ({unit})", "left": f"left for more ({unit})"}
    if any("left_s" in one for one in best):
        shown["left_s"] = "left for more (s)"
    for head in ["", *heads, *shown.values()]:
        table.add_column(escape(head), justify="right", no_wrap=True)
    for n, one in enumerate(best, 1):
        level = [str(one["level"])] if several else []
        numbers = [_digits(one.get(key)) for key in shown]
        table.add_row(str(n), *map(_digits, one["site"]), *level, *numbers)
    out = StringIO()
    Console(file=out, width=1000, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _place(domain: Domain, site: Array) -> str:
    """Return a site with the axes' names and units."""
    told = zip(domain.axes, site.tolist(), strict=True)
    return ", ".join(f"{a.name} {_digits(x)} {a.unit}".rstrip() for a, x in told)


def _listed(settings: Mapping[str, Any]) -> str:
    """Return settings side by side; of those with many entries only how many there are."""
    told = (
        f"{key.replace('_', ' ')} {f'({len(x)} entries)' if isinstance(x, list | dict) else _digits(x)}"
        for key, x in settings.items()
    )
    return ", ".join(told)


def _digits(value: Any) -> str:
    """Return a number to four digits, thousands whole; a dash for none, and words as they are.

    Examples
    --------
    >>> _digits(0.123456), _digits(12345.6), _digits(None), _digits("inf")
    ('0.1235', '12,346', '-', 'inf')
    """
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value).lower()
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
