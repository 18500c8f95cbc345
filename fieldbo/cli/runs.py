"""``fieldbo runs``, ``ask``, ``steer`` and ``correct``: look at a run, and change it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldbo.cli.options import Run, examples
from fieldbo.errors import FieldboError, InputError, RecordError, RefusedError, UnconfirmedError, at
from fieldbo.messages.names import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo.domain.domain import Domain
    from fieldbo.domain.obstacles import Obstacle
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

    from fieldbo.cli.session import console
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
            table.add_row(*(escape(cell) for cell in _make_row(run)))
    console().print(table)


def _make_row(folder: Path) -> list[str]:
    from fieldbo.record.record import Record
    from fieldbo.record.store import RECORD

    file = folder / RECORD
    if not file.exists():
        return [folder.name, "", "", "not begun"]
    try:
        with Record(file) as record:
            return [folder.name, *_make_cells(record)]
    except RecordError as error:
        return [folder.name, "", "", str(error).replace(f"{file} is ", "").replace(str(file), RECORD)]


def _make_cells(record: Record) -> list[str]:
    """Return mission, time of beginning, state, orders, readings, and battery spent."""
    from datetime import datetime

    from fieldbo.record.store import ORDERS, is_being_written
    from fieldbo.results.words import rounded

    description, rows, end = record.description, record.rows(), record.end_reason
    battery = math.fsum(vehicle["battery"] for vehicle in description.get("crew", ()))
    messages = _find_observations(rows)
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


def _find_observations(rows: Sequence[Row]) -> list[dict[str, Any]]:
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
    from fieldbo.cli.session import console, says_compiling
    from fieldbo.runs.replay import replay

    try:
        with when_compiling(says_compiling(console)):
            return replay(record, scored=False).agent.spent
    except FieldboError:
        return None


@examples(
    """
**Examples**

`fieldbo ask runs/lake-level-set-1` - the next query of a run; for a run that has ended, its last query

`fieldbo ask runs/lake-level-set-1 --order 12` - why the run issued order 12

**Columns**

**left after** - what remains for later queries, with the cost of the trip home set aside

A dash in place of a variable means that the query leaves it free.

Control sets with unknown costs have a table of their own. **mean cost** - the average cost of the set's
**plays** so far; **cost at least** - the lower confidence bound; **best case** - the confidence bound on the
average value; **plausible** - whether that bound is good enough for the set to be played.
"""
)
def ask(
    run: Run,
    order: Annotated[
        int | None, typer.Option(help="Explain the order with this number, counted from 0.")
    ] = None,
) -> None:
    """Explain what a run would query next: up to three of the best candidates, their costs, and the reasons.

    For a run that has ended, explain its last query. Safe to use while the run is in
    progress; nothing is modified.
    """
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.session import console, says_compiling
    from fieldbo.runs.explain import explain

    with when_compiling(says_compiling(console)):
        typer.echo(explain(run, order).text)


@examples(
    """
**Examples**

`fieldbo steer lake-3 pause` - the vehicle stops and holds; `continue` lets it go on

`fieldbo steer lake-3 skip` - leave out the site that it is going to

`fieldbo steer lake-3 next 300,4` - sample there after the outstanding orders

`fieldbo steer boat-1 next "47.3079 8.5105"` - the same in degrees

`fieldbo steer boat-1 no-go regatta.geojson` - keep out of these areas from now on

`fieldbo steer boat-1 no-go "47.307 8.510; 47.309 8.510; 47.308 8.514"` - the same with corners

`fieldbo steer boat-1 battery "31 Wh"` - this much is left in the battery now

`fieldbo steer boat-1 home` - go home; the run ends there

`fieldbo steer boat-1 stop` - hold, and end the process; *fieldbo resume* continues

The run confirms each command, or says why it refuses. Both are recorded. **Exit codes** 0: confirmed;
1: refused, or not confirmed in time; 2: invalid input.
"""
)
def steer(
    run: Annotated[Path, typer.Argument(help="The run folder, or its name in *runs/*.", metavar="RUN")],
    action: Annotated[Action, typer.Argument(help="What the run is to do.", metavar="ACTION")],
    what: Annotated[
        str | None,
        typer.Argument(
            help="For *next*: a place, as coordinates or degrees. For *no-go*: a file of polygons, or "
            "corners with semicolons between them. For *battery*: an amount, or a percentage. "
            "For *skip*: the id of a query, if it is not the first.",
            metavar="[PLACE|AREA|AMOUNT|ORDER]",
        ),
    ] = None,
    vehicle: Annotated[
        int | None, typer.Option(help="Number of the vehicle, from 0; by default all of them.")
    ] = None,
    wait: Annotated[float, typer.Option(help="How long to wait for the confirmation, in seconds.")] = 10.0,
) -> None:
    """Pause, redirect or end a run that another process is carrying out."""
    import getpass

    from fieldbo.domain.places import place_text
    from fieldbo.record.record import Record
    from fieldbo.record.store import record_file
    from fieldbo.runs.replay import mission_of
    from fieldbo.runs.steer import level_in, level_text
    from fieldbo.runs.steer import steer as give

    needs = {Action.NEXT: "a place", Action.NO_GO: "an area", Action.BATTERY: "what is left"}
    if action in needs and what is None:
        raise InputError(
            f"{action.value} without {needs[action]}", expected=needs[action], where="fieldbo steer"
        )
    if what is not None and action not in (*needs, Action.SKIP):
        raise InputError(f"{what!r} behind {action.value}", expected="nothing", where="fieldbo steer")
    with Record(record_file(run)) as record:
        mission = mission_of(record)
    domain = mission.world.domain
    details: dict[str, Any] = {"order": what} if action is Action.SKIP else {}
    if what is not None and action is Action.NEXT:
        details = {"site": _parse_place(what, domain)}
    elif what is not None and action is Action.NO_GO:
        details = {"areas": _parse_areas(what, domain)}
    elif what is not None and action is Action.BATTERY:
        details = {"left": level_in(what, mission, "fieldbo steer RUN battery AMOUNT")}
    try:
        given = give(run, action.value, vehicle=vehicle, by=getpass.getuser(), wait_s=wait, **details)
    except (RefusedError, UnconfirmedError) as error:
        typer.echo(f"fieldbo: {error}", err=True)
        raise typer.Exit(1) from None
    at = "" if given.site is None else f" at {place_text(domain, given.site)}"
    closed = f": {', '.join(area.name for area in given.areas)}" if given.areas else ""
    level = "" if given.left is None else f": {level_text(mission, given)}"
    typer.echo(f"confirmed: {action.value}{at}{closed}{level}")


def _parse_place(text: str, domain: Domain) -> Any:
    from fieldbo.vehicles.typed_places import place_in

    with at("fieldbo steer RUN next PLACE"):
        return place_in(text, domain)


def _parse_areas(text: str, domain: Domain) -> list[Obstacle]:
    """Return the areas in a file, or the one whose corners a text holds."""
    from fieldbo.domain.obstacles import Obstacle, simple_polygon
    from fieldbo.mission.layers import areas_in
    from fieldbo.mission.shapes import NAME

    where = "fieldbo steer RUN no-go AREA"
    if ";" not in text:
        if not Path(text.rpartition(":")[0] if ":" in text else text).exists():
            raise InputError(
                f"there is no file {text}",
                expected="a file of polygons, or at least three corners with semicolons between them",
                where=where,
            )
        return areas_in(Path(text), domain, where)
    corners = [tuple(_parse_place(part, domain)[:2].tolist()) for part in text.split(";") if part.strip()]
    simple_polygon(corners, "the area", where)
    return [Obstacle(NAME, corners=tuple(corners))]


_DIGITS = 18
"""Most digits of an order's number; Python reads no more than some thousands."""


@examples(
    """
**Examples**

`fieldbo correct lake-1 12 24.7` - the reading of order 12 was 24.7

`fieldbo correct lake-1 12 failed` - the reading failed

`fieldbo correct boat-3 7 1,85 --reading 2` - the third reading of order 7, counted from 0

`fieldbo correct lake-1 12 247 --yes` - it was, although it is far from all others

The number of an order is the last part of its id, as *observations.csv* and the prompt show it: 12 of
*lake-1/12*. The record keeps the wrong reading and its correction side by side. The belief, the answer and
all files are those of the right reading; the route and the costs stay, and so does the reason why the run
ended, unless its question was answered and no longer is: then *fieldbo resume* continues the run.
While a run by hand is in progress, type the correction at its prompt instead.
"""
)
def correct(
    run: Run,
    order: Annotated[str, typer.Argument(help="Number of the order, or its id.", metavar="ORDER")],
    value: Annotated[
        str,
        typer.Argument(
            help="What the reading really was, with a decimal point or comma; or *failed*.", metavar="VALUE"
        ),
    ],
    reading: Annotated[
        int | None, typer.Option(help="Which reading of the order, counted from 0, if it has several.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take a value that is far from all other readings without asking.")
    ] = False,
) -> None:
    """Correct a reading of a run, finished or not, and rewrite its files."""
    import math

    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.session import UNDONE, console, saving, says_compiling, show_result
    from fieldbo.record.record import Record
    from fieldbo.record.store import RECORD, record_file
    from fieldbo.runs.folder import save
    from fieldbo.runs.runner import correct_run
    from fieldbo.runs.signals import unbroken
    from fieldbo.vehicles.dialogue import number_in

    number = math.nan if value.lower() == "failed" else number_in(value)
    is_number = order.isdecimal() and len(order) <= _DIGITS
    folder, out_to = record_file(run).parent, console()
    with when_compiling(says_compiling(lambda: out_to)), unbroken():
        agree = None if yes else _agree
        result = correct_run(run, int(order) if is_number else order, number, reading, agree)
        with saving(folder):
            formats = save(result, folder)
    out_to.print(f"{result.run}: order {order} corrected to {value}", markup=False)
    with Record(folder / RECORD) as record:
        ended = record.end_reason is not None
    show_result(result, folder, out_to, UNDONE if ended else "Not finished.", formats)


def _agree(question: str) -> None:
    """Ask to confirm an unlikely value; raise an `InputError` if it is not, or if nobody can be asked."""
    import sys

    if not sys.stdin.isatty():
        raise InputError(
            question, expected="a value like the others", where="VALUE", fix="if it is right, add --yes"
        )
    if not typer.confirm(question):
        raise InputError("nothing was corrected", fix="type the right value")
