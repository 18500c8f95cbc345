"""``fieldbo resume``: continue an interrupted run."""

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

`fieldbo resume runs/lake-level-set-1` - or just *lake-level-set-1*, if it is in runs/

`fieldbo resume boat-3 --vehicle other-boat.toml` - with another boat

Ctrl-C, a power cut and a killed process all leave a run that can be resumed: every order is on disk before it
is sent, and every reading before it is used. Outstanding orders are sent again under the same id, or closed
with what their vehicle reports; no reading is ever counted twice. A resumed simulation gives the
same result as an uninterrupted one.

A run that ended because its vehicle was lost continues with the vehicle once it answers again.

A damaged record, or one whose mission or world has changed since, is rejected and left untouched.
"""


def resume(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
        ),
    ],
    vehicle: Annotated[
        list[str] | None,
        typer.Option(
            help="Vehicle file to use from now on; repeat it for each vehicle. By default, the vehicles with "
            "which the run started.",
            metavar="FILE",
        ),
    ] = None,
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Continue even if the last rows of the record are missing."),
    ] = False,
) -> None:
    """Continue an interrupted run, or one whose vehicle was lost; for any other, write its missing files."""
    from fieldbo.cli.session import carry_out, connect
    from fieldbo.cli.terminal import console
    from fieldbo.errors import counted
    from fieldbo.messages import EndReason
    from fieldbo.runs.load import mission_of, notes, record_file
    from fieldbo.runs.record.record import ORDERS, Record
    from fieldbo.runs.runner import resume as resume_mission

    out_to = console()
    with Record(record_file(run)) as record:
        mission, folder = mission_of(record), record.file.parent
        if accept_loss:
            record.claim(accept_loss=True)  # so that a run that has ended can be corrected again, too
        if record.end_reason not in (None, EndReason.VEHICLE_LOST):
            _complete(mission, record, out_to)
            return
        record.claim(accept_loss=accept_loss)
        orders = counted(sum(row.kind in ORDERS for row in record.rows()), "order")
        out_to.print(f"Resuming {record.name} after {orders}", markup=False)
        for note in notes(record):
            out_to.print(f"note: {note}", style="yellow", markup=False)
        vehicles = vehicles_of(mission, record.vehicles, vehicle or [])
        with ExitStack() as links:
            connect(vehicles, links, out_to)
            carry_out(partial(resume_mission, mission, record), mission, vehicles, folder, out_to)


def _complete(mission: Mission, record: Record, console: Console) -> None:
    """Print how a run ended, and write its missing files."""
    from fieldbo.cli.session import saving
    from fieldbo.runs.folder import complete
    from fieldbo.runs.runner import resume as resume_mission

    folder = record.file.parent
    console.print(f"{record.name} has ended ({record.end_reason}); nothing to resume.", markup=False)
    result = resume_mission(mission, record)
    with saving(folder):
        written = complete(result, folder)
    if written:
        console.print(f"  missing files written: {', '.join(written)}", soft_wrap=True, markup=False)


def vehicles_of(
    mission: Mission, started_with: Sequence[Mapping[str, Any]], files: Sequence[str]
) -> list[Vehicle]:
    """Return the vehicles that continue a run: those of `files`, or those it started with."""
    from fieldbo.errors import InputError
    from fieldbo.vehicles.load import check_new, for_new_run, vehicle_of

    if files and not started_with:
        raise InputError(
            f"--vehicle {files[0]} was given for a simulated run",
            expected="no vehicle: a run that starts in simulation ends in simulation",
            fix="start a new run: fieldbo run MISSION --vehicle FILE",
        )
    recorded = started_with
    if files:  # keep the session: a robot may remember outstanding orders by it
        sessions = [settings.get("session") for settings in started_with] + [None] * len(files)
        new = zip([for_new_run(name) for name in files], sessions, strict=False)
        recorded = [{**s, "session": session} if session and "session" in s else s for s, session in new]
        for number, settings in enumerate(recorded):
            check_new(settings, mission, number)
    return [vehicle_of(settings, mission, number) for number, settings in enumerate(recorded)]
