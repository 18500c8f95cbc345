"""``fieldbo resume``: go on with a run that was broken off."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from fieldbo.mission.mission import Mission
    from fieldbo.runs.record.record import Record
    from fieldbo.vehicles.base import Vehicle

EXAMPLES = """
**Examples**

`fieldbo resume runs/lake-level-set-1` - or only *lake-level-set-1*, below runs/

`fieldbo resume boat-3 --vehicle other-boat.toml` - with another boat

Ctrl-C, a power cut and a killed process all leave a run that can go on: every order is on disk before it
leaves, every reading before it is used. What was out is asked for again, under the same id, or closed by what
its vehicle says came of it; a reading is never counted twice. A simulated run ends as it would have unbroken.

A damaged record, and one whose mission or world was changed since, is refused and left as it is.
"""


def resume(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a folder below *runs/*.", metavar="RUN"
        ),
    ],
    vehicle: Annotated[
        list[str] | None,
        typer.Option(
            help="Vehicle file to go on with instead of the one it was begun with; one for each vehicle.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Go on with a run that was broken off; of one that has ended, write the files that it lacks."""
    from fieldbo.cli.run import carry_out, connect, simulated, with_vehicles
    from fieldbo.cli.terminal import console
    from fieldbo.runs.load import mission_of, notes, record_file
    from fieldbo.runs.record.record import ORDERS, Record
    from fieldbo.runs.runner import resume as resume_mission

    out_to = console()
    with Record(record_file(run)) as record:
        mission, folder = mission_of(record), record.file.parent
        if record.end_reason is not None:
            _ended(mission, record, out_to)
            return
        record.claim()
        orders = sum(row.kind in ORDERS for row in record.rows())
        out_to.print(f"{record.name} goes on, after {orders} {'order' if orders == 1 else 'orders'}")
        for note in notes(record):
            out_to.print(f"note: {note}", style="yellow", markup=False)
        go = partial(resume_mission, mission, record)
        vehicles = vehicles_of(mission, record.description.get("vehicles", []), vehicle or [])
        if vehicles:
            with ExitStack() as links:
                connect(vehicles, links, out_to)
                carry_out(folder, out_to, lambda: with_vehicles(vehicles, mission, out_to, go))
        else:
            carry_out(folder, out_to, lambda: simulated(mission, out_to, go))


def _ended(mission: Mission, record: Record, console: Console) -> None:
    """Say how a run ended, and write the files that are missing."""
    from fieldbo.cli.run import saving
    from fieldbo.runs.folder import complete
    from fieldbo.runs.runner import resume as resume_mission

    reason, folder = record.end_reason, record.file.parent
    console.print(f"{record.name} has ended: {reason}. There is nothing to go on with.", markup=False)
    result = resume_mission(mission, record)
    with saving(folder):
        written = complete(result, folder)
    if written:
        console.print(f"  written, as missing: {', '.join(written)}", soft_wrap=True, markup=False)


def vehicles_of(mission: Mission, begun: Sequence[Mapping[str, Any]], files: Sequence[str]) -> list[Vehicle]:
    """Return the vehicles to go on with: those of `files`, or as the run began; none in a simulation."""
    from fieldbo.errors import InputError
    from fieldbo.vehicles.load import for_new_run, vehicle_of

    if files and not begun:
        raise InputError(
            f"--vehicle {files[0]} for a run that was begun as a simulation",
            expected="a simulation to the end: what was read so far was made up",
            fix="begin a run of its own: fieldbo run MISSION --vehicle FILE",
        )
    crew = begun
    if files:  # in the same session: a robot may know what came of an order
        kept = [one.get("session") for one in begun] + [None] * len(files)
        new = zip([for_new_run(name) for name in files], kept, strict=False)
        crew = [{**one, "session": session} if session and "session" in one else one for one, session in new]
    return [vehicle_of(one, mission, number) for number, one in enumerate(crew)]
