"""CSV tables: readings, path, curve and ledger of a run."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.ledger import Entry
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import TABLE_DIGITS
from fieldbo.messages import Action, Command, Observation, kind_of, order_number
from fieldbo.results.curve import Step
from fieldbo.results.outcome import Account, Outcome


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Return the content of a CSV file; numbers keep all their digits, NaN is left empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        fields = [float(x) if isinstance(x, np.floating) else x for x in row]
        writer.writerow(["" if isinstance(x, float) and math.isnan(x) else x for x in fields])
    return out.getvalue().encode()


def of(outcome: Outcome) -> dict[str, bytes]:
    """Return the CSV files of a run folder, by name: observations, path, curve and ledger."""
    more = ["battery"] if outcome.several_batteries else []
    columns = Step.columns(outcome.mission.question, [*outcome.cell_runs.columns, *more])
    steps = [[getattr(s, name) for name in columns] for s in outcome.curve]
    return {
        "observations.csv": table(*readings(outcome)),
        "path.csv": table(*place_table(outcome.mission.world.domain, outcome.path)),
        "curve.csv": table(columns, steps),
        "ledger.csv": ledger_table(outcome.accounts, outcome.commands),
    }


def place_table(domain: Domain, places: Array) -> tuple[list[str], list[list[float]]]:
    """Return the header and rows of a table of places (k, d), such as ``path.csv``."""
    axes: list[str] = []
    for axis in domain.axes:
        axes.append(_unique(axis.name, "axis", [*axes, *degree_columns(domain)]))
    return [*axes, *degree_columns(domain)], np.hstack([places, degrees(domain, places)]).tolist()


def degree_columns(domain: Domain) -> list[str]:
    """Return the columns behind the coordinates of a place: latitude and longitude if there is a CRS."""
    return [] if domain.crs is None else ["latitude", "longitude"]


def degrees(domain: Domain, places: Array) -> Array:
    """Return what the columns of `degree_columns` hold for places (k, d): (k, 2), or (k, 0) without a CRS."""
    if domain.georeference is None or not len(places):
        return np.empty((len(places), len(degree_columns(domain))))
    return domain.georeference.degrees(places).round(TABLE_DIGITS)


def readings(outcome: Outcome) -> tuple[list[str], list[list[Any]]]:
    """Return the header and rows of ``observations.csv``, one row per reading.

    Column names are unique: an axis or a channel named like another column gets a suffix, as in
    ``value channel``.
    """
    mission, runs = outcome.mission, outcome.cell_runs
    channels = sorted({c for o in outcome.observations for c in (o.channels or {})})
    several_vehicles, several_levels = len(outcome.accounts) > 1, mission.world.sensor.settings > 1
    vehicle_of = {str(q.id): q.vehicle for q in outcome.queries}
    several_batteries = outcome.several_batteries
    before = ["order", *(["vehicle"] if several_vehicles else [])]
    before += ["battery"] if several_batteries else []
    below = mission.world.sensor.below
    behind = ["value", "noise_sd", *(["censored"] if below is not None else [])]
    behind += [*(["level"] if several_levels else []), "time_s", "cost"]
    behind += [*runs.reading_columns, *(["believed"] if outcome.outliers_tested else [])]
    domain = mission.world.domain
    behind = [*degree_columns(domain), *behind]
    axes: list[str] = []
    for axis in domain.axes:
        axes.append(_unique(axis.name, "axis", [*before, *axes, *behind]))
    header = [*before, *axes, *behind]
    believed = iter(outcome.believed)
    rows = []
    for o in outcome.observations:
        level = [outcome.level_of_order.get(o.order)] if several_levels else []
        order = [o.order, *([vehicle_of.get(o.order)] if several_vehicles else [])]
        order += [outcome.battery_of_order[o.order]] if several_batteries else []
        places = degrees(domain, o.sites)
        for k in range(len(o.values)):
            noise = float(np.sqrt(o.noise_variances[k]))
            cost = o.cost if k == len(o.values) - 1 else 0.0
            censored = [] if below is None else [int(o.values[k] <= below)]
            row = [*order, *o.sites[k], *places[k], o.values[k], noise, *censored, *level, o.times_s[k], cost]
            row += runs.reading_row(o.order)
            row += [int(next(believed))] if outcome.outliers_tested else []
            rows.append(row + [_channel(o, name, k) for name in channels])
    for name in channels:
        header.append(_unique(name, "channel", [*header, "time"]))  # exports add a column "time"
    return header, rows


def _channel(observation: Observation, name: str, k: int) -> float:
    """Return reading `k` of a channel; NaN if the observation has no such channel."""
    channels = observation.channels or {}
    return float(channels[name][k]) if name in channels else math.nan


def _unique(name: str, suffix: str, taken: Sequence[str]) -> str:
    """Return a column name that is not taken yet."""
    while name in taken:
        name = f"{name} {suffix}"
    return name


def ledger_table(accounts: Sequence[Account], commands: Sequence[Command] = ()) -> bytes:
    """Return ``ledger.csv``: one row per order, with planned and real cost and the battery left after it.

    A rejected order costs nothing; unknown amounts are left empty. Each command that an operator gave, and
    that was obeyed, has a row before the first order after it; that of a pause holds what waiting took, and
    that of a stated battery what it took from the account, or gave back. The last row of a battery,
    ``unexplained``, holds what reports took beyond all that: what is spent adds up.
    """
    columns = ["vehicle", "battery", "order", "kind"]
    columns += ["planned", "spent", "left", "planned_s", "spent_s", "left_s"]
    rows = [
        [number, *(value if _is_known(value) else math.nan for value in row)]
        for number, account in enumerate(accounts)
        for row in _lines(account, [c for c in commands if not c.refused and c.vehicle in (None, number)])
    ]
    if all(account.batteries_used == 1 for account in accounts):
        columns, rows = [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in rows]
    if len(accounts) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return table(columns, rows)


def _is_known(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _lines(account: Account, commands: Sequence[Command]) -> list[list[Any]]:
    """Return the rows of one vehicle, orders and commands in turn."""
    rows: list[tuple[int, int, list[Any]]] = []
    for order, battery, time in account.lines:
        which = account.battery_of.get(str(order.id), 1)
        row = [which, order.id, kind_of(order), *_amounts(battery), *_amounts(time)]
        rows.append((order_number(order.id), 1, row))
    pauses, statements = iter(account.pauses), iter(account.statements)
    for command in commands:
        row = [math.nan, command.order or "", command.action.value, *[math.nan] * 6]
        if command.action is Action.PAUSE and (pause := next(pauses, None)) is not None:
            kind = f"hold {pause.hold}" if pause.hold else "pause"
            row = [pause.battery, "", kind, 0.0, pause.spent, pause.left, 0.0, pause.seconds, pause.left_s]
        if command.action is Action.BATTERY and (stated := next(statements, None)) is not None:
            row = [stated.battery, "", "battery", 0.0, stated.spent, stated.left, *[math.nan] * 3]
        rows.append((command.after, 0, row))
    for number, (spent, left) in account.unexplained.items():
        last = max((order_number(id) for id, of in account.battery_of.items() if of == number), default=0)
        rows.append((last, 2, [number, "", "unexplained", 0.0, spent, left, *[math.nan] * 3]))
    return [row for _, _, row in sorted(rows, key=lambda r: r[:2])]


def _amounts(entry: Entry) -> tuple[float, float, float]:
    return entry.planned, entry.spent, entry.left
