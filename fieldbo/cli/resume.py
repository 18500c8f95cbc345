"""``fieldbo resume``: continue an interrupted run."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldbo.cli.pictures import Format, Width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from fieldbo.cli.session import Pictures
    from fieldbo.mission.mission import Mission
    from fieldbo.record.record import Record

EXAMPLES = """
**Examples**

`fieldbo resume runs/lake-level-set-1` - or just *lake-level-set-1*, if it is in runs/

`fieldbo resume boat-3 --vehicle boat.toml` - with another boat, or a vehicle file that has changed

`fieldbo resume boat-3 --away "20 min"` - say how long the run stood still, because the clock was set since

Ctrl-C, a power cut and a killed process all leave a run that can be resumed: every order is on disk before it
is sent, and every reading before it is used. Outstanding orders are sent again under the same id, or closed
with what their vehicle reports; no reading is ever counted twice. A resumed simulation gives the
same result as an uninterrupted one.

A run that ended because its vehicle was lost continues with the vehicle once it answers again. One whose
question was answered continues if *fieldbo correct* has undone the answer.

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
            help="Vehicle file to use from now on; later resumes keep it. By default, the vehicles last "
            "used. Repeat the option for each vehicle. The run keeps a copy: if you edit the file, give it "
            "again.",
            metavar="FILE",
        ),
    ] = None,
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Continue even if the last rows of the record are missing."),
    ] = False,
    away: Annotated[
        str | None,
        typer.Option(
            help='For how long the run stood still, such as *"20 min"* or *1200* (seconds), if this '
            "computer's clock was set since. It counts towards *time_limit_s*.",
            metavar="TIME",
        ),
    ] = None,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Continue a run that was interrupted, lost its vehicle, or was corrected; or write missing files."""
    from fieldbo.cli.pictures import checked
    from fieldbo.cli.session import carry_out, connect
    from fieldbo.cli.terminal import console
    from fieldbo.errors import counted
    from fieldbo.mission.amounts import amount
    from fieldbo.record.record import Record
    from fieldbo.record.store import ORDERS, record_file
    from fieldbo.runs.replay import mission_of, notes
    from fieldbo.runs.runner import reopens
    from fieldbo.runs.runner import resume as resume_mission
    from fieldbo.vehicles.load import vehicle_of

    out_to, pictures = console(), checked(format, width)
    away_s = None if away is None else amount(away, "s", "--away", zero=True, what="the unit of time")
    with Record(record_file(run)) as record:
        mission, folder = mission_of(record), record.file.parent
        if accept_loss:
            record.claim(accept_loss=True)  # so that a run that has ended can be corrected again, too
        if record.end_reason is not None and not reopens(mission, record):
            _complete(mission, record, out_to, pictures)
            return
        record.claim(accept_loss=accept_loss)
        orders = counted(sum(row.kind in ORDERS for row in record.rows()), "order")
        out_to.print(f"Resuming {record.name} after {orders}", markup=False)
        for note in notes(record):
            out_to.print(f"note: {note}", style="yellow", markup=False)
        recorded = continuing(mission, record.vehicles, vehicle or [])
        vehicles = [vehicle_of(settings, mission, number) for number, settings in enumerate(recorded)]
        with ExitStack() as links:
            connect(vehicles, links, out_to)
            if vehicle:  # from now on: the next resume must not return to the old fence
                record.continue_with(recorded)
            going_on = partial(resume_mission, mission, record, away_s=away_s)
            carry_out(going_on, mission, vehicles, folder, out_to, pictures)


def _complete(mission: Mission, record: Record, console: Console, pictures: Pictures) -> None:
    """Print how a run ended, and write its missing files."""
    from fieldbo.cli.session import saving
    from fieldbo.runs.folder import complete
    from fieldbo.runs.runner import resume as resume_mission

    folder = record.file.parent
    console.print(f"{record.name} has ended ({record.end_reason}); nothing to resume.", markup=False)
    result = resume_mission(mission, record)
    with saving(folder):
        written = complete(result, folder, *pictures)
    if written:
        console.print(f"  missing files written: {', '.join(written)}", soft_wrap=True, markup=False)


def continuing(
    mission: Mission, recorded: Sequence[Mapping[str, Any]], files: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the settings of the vehicles that continue a run: those of `files`, or the recorded ones."""
    from fieldbo.errors import InputError, counted
    from fieldbo.vehicles.load import check_new, recorded_settings

    if not files:
        return [dict(settings) for settings in recorded]
    if not recorded:
        raise InputError(
            f"--vehicle {files[0]} was given for a simulated run",
            expected="no vehicle: a run that starts in simulation ends in simulation",
            fix="start a new run: fieldbo run MISSION --vehicle FILE",
        )
    if len(files) != len(recorded):
        raise InputError(
            f"{counted(len(files), 'vehicle')} for a run with {len(recorded)}",
            expected="as many as the run began with",
            fix="give --vehicle once for each vehicle, in the order of the mission",
        )
    new = []
    for number, (name, before) in enumerate(zip(files, recorded, strict=True)):
        settings = recorded_settings(name)
        if "session" in settings and "session" in before:
            settings["session"] = before["session"]  # a robot may remember outstanding orders by it
        check_new(settings, mission, number)
        new.append(settings)
    return new
