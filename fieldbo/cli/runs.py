"""``fieldbo runs``: the runs below a folder, and how they stand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo.runs.record.record import Record, Row

_COLUMNS = {"run": "left", "mission": "left", "begun": "left", "state": "left"}
_NUMBERS = {"orders": "right", "readings": "right", "spent": "right"}


def runs(
    folder: Annotated[Path, typer.Argument(help="Where the run folders lie.")] = Path("runs"),
) -> None:
    """List the runs below a folder: when they were begun, how they stand, and what they have spent.

    They are only read, also while they are going on.
    """
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.errors import InputError
    from fieldbo.runs.folder import MISSION, RECORD

    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}",
            expected="one that holds run folders",
            fix="fieldbo run makes them below runs/, unless --out said otherwise",
        )
    table = Table(box=None, pad_edge=False)
    for name, justify in {**_COLUMNS, **_NUMBERS}.items():
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for one in sorted(folder.iterdir()):
        if (one / RECORD).exists() or (one / MISSION).exists():
            table.add_row(*(escape(cell) for cell in _row(one)))
    console().print(table)


def _row(folder: Path) -> list[str]:
    """Return what the table says of one run."""
    from fieldbo.errors import RecordError
    from fieldbo.runs.folder import RECORD
    from fieldbo.runs.record.record import Record

    file = folder / RECORD
    if not file.exists():
        return [folder.name, "", "", "nothing begun yet"]
    try:
        with Record(file) as record:
            return [folder.name, *_told(record)]
    except RecordError as error:
        return [folder.name, "", "", str(error).replace(f"{file} is ", "").replace(str(file), RECORD)]


def _told(record: Record) -> list[str]:
    """Return mission, when it was begun, state, orders, readings, and what was spent of the battery."""
    from datetime import datetime

    from fieldbo.results.formatting import rounded
    from fieldbo.runs.record.lock import is_being_written
    from fieldbo.runs.record.record import ORDERS

    begun, rows = record.description, record.rows()
    end = record.end_reason
    going = "running" if end is None and is_being_written(record.file) else "can be resumed"
    battery = math.fsum(one["battery"] for one in begun.get("crew", ()))
    told = _readings(rows)
    paid = math.fsum(one["cost"] for one in told) if _plain(rows, told) else _by_books(record, rows)
    spent = "?" if paid is None else rounded(paid, battery)
    return [
        begun.get("mission", ""),
        f"{datetime.fromisoformat(record.begun_utc).astimezone():%Y-%m-%d %H:%M}",
        going if end is None else end.value,
        str(sum(row.kind in ORDERS for row in rows)),
        str(sum(len(one["values"]) for one in told)),
        f"{spent} of {battery:,.10g} {begun.get('cost_unit', '')}",
    ]


def _readings(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what was told of orders of this run as observed; what was told twice, once."""
    from fieldbo.runs.record.record import ORDERS

    ordered = {row.order for row in rows if row.kind in ORDERS}
    told = {
        (row.order, row.body["message"]["part"]): row.body["message"]
        for row in reversed(rows)
        if row.kind == "observation" and row.order in ordered
    }
    return list(told.values())


def _plain(rows: Sequence[Row], told: Sequence[dict[str, Any]]) -> bool:
    """Say whether nothing was spent but what was told as observed, each of it once."""
    measured = any(row.kind == "telemetry" and row.body["message"]["remaining"] is not None for row in rows)
    return not measured and len(told) == sum(row.kind == "observation" for row in rows)


def _by_books(record: Record, rows: Sequence[Row]) -> float | None:
    """Return what was spent by the books of the agent, replayed; None if it can't be any more."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.errors import FieldboError
    from fieldbo.runs.load import mission_of
    from fieldbo.runs.state import RunState

    try:
        course = RunState(mission_of(record), record.name)
        with when_compiling(says_compiling(console())):
            course.replay(rows)
    except FieldboError:
        return None
    return course.agent.spent
