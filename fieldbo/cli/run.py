"""``fieldbo run``: run a mission, and write its run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from fieldbo.mission import Mission
    from fieldbo.record import Record
    from fieldbo.result import Result, Step

EXAMPLES = """
**Examples**

`fieldbo run lake-level-set` - the lake, simulated

`fieldbo run lake-level-set --battery 3000 --seed 1` - half the battery, another seed

`fieldbo run lake-level-set --set policy.kind=gchk --set policy.per_cost=true` - another rule

`fieldbo run my-survey.toml --by-hand` - you go, and type in what you read

**Writes** `run.sqlite` (the record), `mission.toml` and the world (as run), `summary.json`,
`observations.csv`, `path.csv`, `curve.csv`, `map.nc`, `path.png`, `map.png`, `curve.png`.

**Exit codes** 0: done; 1: broken off by an error, everything read is kept; 2: something has to be mended
first, nothing was started; 130: stopped by Ctrl-C, the run folder is complete up to the last observation.
"""


def run(
    mission: Annotated[
        str,
        typer.Argument(help="Name of a mission (see *fieldbo missions*), or a TOML file.", metavar="MISSION"),
    ],
    seed: Annotated[
        int | None, typer.Option(help="Seed of the random streams; the field stays the same.")
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(help='Battery in the world\'s cost unit: 3000, or "3000 s".', metavar="AMOUNT"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder to make; by default *runs/MISSION-n*, n the next free number."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace a key of the mission; may be given often.", metavar="TABLE.KEY=VALUE"
        ),
    ] = None,
    by_hand: Annotated[
        bool,
        typer.Option("--by-hand", help="You are the vehicle: go where it says, type in what you read."),
    ] = False,
) -> None:
    """Run a mission until its question is answered or its battery is spent.

    A live line shows the battery left, the sites visited and the share still unclassified. The run folder
    holds the record, tables, maps and pictures.
    """
    from fieldbo.catalogue import load_mission
    from fieldbo.cli.console import console
    from fieldbo.cli.settings import overrides
    from fieldbo.folder import begin
    from fieldbo.runner import BrokenOffError, Interrupted, unbroken
    from fieldbo.vehicles.simulated import Simulated

    out_to = console()
    told = load_mission(mission, overrides(set_ or [], seed=seed, battery=battery))
    if not by_hand:
        Simulated(told)  # a live world is refused before a folder is made
    folder, record = begin(told, out)
    code = 0
    with record:
        try:
            result = _by_hand(told, record, out_to) if by_hand else _simulated(told, record, out_to)
        except Interrupted as stop:
            code, result = 130, stop.result
        except BrokenOffError as stop:
            code, result = 1, stop.result
            typer.echo(f"fieldbo: the run broke off: {stop}\nIts record is in {folder}.", err=True)
    with unbroken():  # a Ctrl-C waits until every file is there
        result.save(folder)
        _report(result, folder, out_to)
    raise typer.Exit(code)


def _simulated(mission: Mission, record: Record, console: Console) -> Result:
    """Run in simulation with a live line."""
    from rich.progress import BarColumn, Progress, TextColumn

    from fieldbo.runner import run as run_mission

    battery, unit = mission.crew[0].battery, mission.world.cost_unit
    columns = (TextColumn("battery"), BarColumn(24), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        line = progress.add_task(f"{battery:,.0f} {unit}", total=battery, completed=int(battery))

        def show(step: Step) -> None:
            progress.update(line, completed=max(0.0, step.remaining), description=_line(step, unit))

        return run_mission(mission, record=record, on_step=show)


def _by_hand(mission: Mission, record: Record, console: Console) -> Result:
    """Run with a person as the vehicle; a line after each answer."""
    from fieldbo.runner import run as run_mission
    from fieldbo.vehicles import VEHICLES

    unit = mission.world.cost_unit
    return run_mission(
        mission,
        [VEHICLES.get("by-hand")(mission)],
        record,
        on_step=lambda step: console.print(f"  {_line(step, unit)}", style="dim"),
    )


def _line(step: Step, unit: str) -> str:
    f1 = f"F1 {step.f1:.2f}" if step.f1 == step.f1 else f"expected F1 {step.expected_f1:.2f}"
    return (
        f"{step.remaining:,.0f} {unit} left, {step.step} sites visited, "
        f"{step.unclassified:.0%} unclassified, {f1}"
    )


def _report(result: Result, folder: Path, console: Console) -> None:
    """Print what came of the run, and where it is."""
    told = result.summary()
    unit, area = told["cost_unit"], told["area_unit"]
    low, high = told["area_above_interval90"]
    f1_low, f1_high = told["expected_f1_interval90"]
    if result.end_reason is None:
        console.print(
            f"[bold]Stopped by you.[/] The run folder is complete up to the last observation "
            f"({told['readings']} readings)."
        )
    else:
        console.print(f"[bold]{result.end_reason.capitalize()}.[/] {told['steps']} sites visited.")
    scored = "" if told["f1"] is None else f"{told['f1']:.3f} against the truth; "
    console.print(
        f"  F1       {scored}{told['expected_f1']:.3f} expected by the model ({f1_low:.3f} to {f1_high:.3f})"
    )
    console.print(f"  cost     {told['cost']:,.0f} of {told['battery']:,.0f} {unit}")
    console.print(
        f"  above {told['threshold']:g} {told['value_unit']}: {told['area_above']:,.0f} {area} "
        f"({low:,.0f} to {high:,.0f})"
    )
    for note in told["notes"]:
        console.print(f"  note: {note}", style="yellow", markup=False)
    console.print(
        f"  in {folder}: path.png, map.png, curve.png, summary.json and more", soft_wrap=True, markup=False
    )
