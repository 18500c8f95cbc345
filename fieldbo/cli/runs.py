"""``fieldbo runs``: list runs and their states."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo.record.record import Record
    from fieldbo.record.store import Row

_COLUMNS = {"run": "left", "mission": "left", "begun": "left", "state": "left"}
_NUMBERS = {"orders": "right", "readings": "right", "spent": "right"}


def runs(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the run folders.")] = Path("runs"),
) -> None:
    """List the runs in a folder: when each began, its state, and what it has spent.

    Safe to use while runs are in progress; nothing is modified.
    """
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.errors import InputError
    from fieldbo.record.store import MISSION, RECORD

    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}",
            expected="a folder that holds run folders",
            fix="make a run with fieldbo run; without --out, it goes under runs/",
        )
    table = Table(box=None, pad_edge=False)
    for name, justify in {**_COLUMNS, **_NUMBERS}.items():
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for run in sorted(folder.iterdir()):
        if (run / RECORD).exists() or (run / MISSION).exists():
            table.add_row(*(escape(cell) for cell in _row(run)))
    console().print(table)


def _row(folder: Path) -> list[str]:
    """Return the cells of one run."""
    from fieldbo.errors import RecordError
    from fieldbo.record.record import Record
    from fieldbo.record.store import RECORD

    file = folder / RECORD
    if not file.exists():
        return [folder.name, "", "", "not begun"]
    try:
        with Record(file) as record:
            return [folder.name, *_cells(record)]
    except RecordError as error:
        return [folder.name, "", "", str(error).replace(f"{file} is ", "").replace(str(file), RECORD)]


def _cells(record: Record) -> list[str]:
    """Return mission, time of beginning, state, orders, readings, and battery spent."""
    from datetime import datetime

    from fieldbo.record.store import ORDERS, is_being_written
    from fieldbo.results.words import rounded

    description, rows, end = record.description, record.rows(), record.end_reason
    battery = math.fsum(vehicle["battery"] for vehicle in description.get("crew", ()))
    messages = _observations(rows)
    if _is_sum_of_costs(rows, messages):
        spent: float | None = math.fsum(message["cost"] for message in messages)
    else:
        spent = _spent_by_ledger(record, rows)
    pending = "running" if end is None and is_being_written(record.file) else "can be resumed"
    return [
        description.get("mission", ""),
        f"{datetime.fromisoformat(record.begun_utc).astimezone():%Y-%m-%d %H:%M}",
        pending if end is None else end.value,
        str(sum(row.kind in ORDERS for row in rows)),
        str(sum(len(message["values"]) for message in messages)),
        f"{'?' if spent is None else rounded(spent, battery)} of {battery:,.10g} "
        f"{description.get('cost_unit', '')}",
    ]


def _observations(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the observations of this run's orders, without repetitions."""
    from fieldbo.record.store import ORDERS

    ordered = {row.order for row in rows if row.kind in ORDERS}
    messages = {
        (row.order, row.body["message"]["part"]): row.body["message"]
        for row in reversed(rows)
        if row.kind == "observation" and row.order in ordered
    }
    return list(messages.values())


def _is_sum_of_costs(rows: Sequence[Row], messages: Sequence[dict[str, Any]]) -> bool:
    """Return True if the costs of the observations are all that was spent."""
    measured = any(row.kind == "telemetry" and row.body["message"]["remaining"] is not None for row in rows)
    return not measured and len(messages) == sum(row.kind == "observation" for row in rows)


def _spent_by_ledger(record: Record, rows: Sequence[Row]) -> float | None:
    """Return what the replayed agent has spent; None if the run can't be replayed."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.errors import FieldboError
    from fieldbo.runs.replay import replay

    try:
        with when_compiling(says_compiling(console)):
            return replay(record, scored=False).agent.spent
    except FieldboError:
        return None
