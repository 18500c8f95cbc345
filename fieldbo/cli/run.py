"""``fieldbo run``: run a mission, and write its run folder."""

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

    from fieldbo.mission.mission import Mission
    from fieldbo.vehicles.base import Vehicle

EXAMPLES = """
**Examples**

`fieldbo run lake-level-set` - the lake, simulated

`fieldbo run lake-level-set --battery 3000 --seed 1` - half the battery, a different seed

`fieldbo run lake-level-set --set policy.kind=gchk --set policy.per_cost=true` - another policy

`fieldbo run lake-level-set --prior yesterday.csv` - begin with earlier readings, or those of a run

`fieldbo run lake-level-set --format pdf --width column` - with pictures for a paper

`fieldbo run my-survey.toml --by-hand` - you take the samples and type in the readings

`fieldbo run my-survey.toml --vehicle boat.toml` - a robot takes them; test it first with `fieldbo robot`

**Writes** `run.sqlite` and `run.count` (the record), `mission.toml` and the world (as run), `summary.json`,
`observations.csv`, `path.csv`, `curve.csv`, `ledger.csv`, `map.nc`, `path.png`, `map.png`, `curve.png` (or
.svg or .pdf).

**Exit codes** 0: done; 1: stopped by an error, all readings are kept; 2: invalid input, nothing was started;
130: stopped by Ctrl-C (143: SIGTERM, 129: SIGHUP), the run folder is complete up to the last observation.
*fieldbo resume* continues a run that did not finish.
"""

_NOT_SCORED = (
    "The field of this world is fitted to an earlier survey, and the place may have changed since: this run "
    "is not scored against it. For a rehearsal with scores, run the mission without a vehicle."
)


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
        typer.Option(
            help='Battery: 3000 in the world\'s cost unit, a multiple ("2 h"), or a percentage of a full '
            'battery ("35 %").',
            metavar="AMOUNT",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Earlier readings to begin with: a CSV, or a run folder or the name of a run in *runs/*.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder to create; by default *runs/MISSION-n*, with the next free number n."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of the mission; repeatable.", metavar="TABLE.KEY=VALUE"),
    ] = None,
    by_hand: Annotated[
        bool,
        typer.Option("--by-hand", help="You are the vehicle: go to each site and type in the reading."),
    ] = False,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(
            help="Have a robot carry out the orders. Give a vehicle file, or *ros2*, *mavlink* or *mqtt* for "
            "that link's defaults. Repeat the option for each vehicle in the mission.",
            metavar="FILE",
        ),
    ] = None,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Run a mission until its question is answered or its battery is spent.

    A live progress line shows the remaining battery, the number of stops and the score so far: F1 and the
    fraction still unclassified, or the estimated optimum and its regret. The run folder holds the record,
    tables, maps and pictures.
    """
    from fieldbo.cli.pictures import checked
    from fieldbo.cli.session import carry_out, connect
    from fieldbo.cli.settings import overrides
    from fieldbo.cli.terminal import console
    from fieldbo.mission.checks import check_simulated
    from fieldbo.mission.load import load_mission
    from fieldbo.runs.folder import begin
    from fieldbo.runs.runner import run as run_mission

    out_to, pictures = console(), checked(format, width)
    recorded = _recorded(vehicle or [], by_hand=by_hand)
    settings = overrides(set_ or [], seed=seed, battery=battery, prior=prior)
    if recorded:
        loaded, vehicles = _carried_out(mission, settings, recorded, out_to)
    else:
        loaded, vehicles = load_mission(mission, settings), []
        check_simulated(loaded)  # before making a folder
    with ExitStack() as links:
        connect(vehicles, links, out_to)
        folder, record = begin(loaded, out, recorded)
        links.enter_context(record)
        if any(settings.get("kind") == "by-form" for settings in recorded):
            out_to.print(f"enter the readings in a browser: fieldbo console {folder}", markup=False)
        carry_out(partial(run_mission, loaded, record=record), loaded, vehicles, folder, out_to, pictures)


def _carried_out(
    name: str, overrides: Mapping[str, Any], recorded: Sequence[Mapping[str, Any]], out_to: Console
) -> tuple[Mission, list[Vehicle]]:
    """Return a mission as vehicles carry it out, and the vehicles; print what they make of it."""
    from fieldbo.mission.load import load_mission
    from fieldbo.runs.folder import as_carried_out
    from fieldbo.vehicles.load import check_new, full_battery, place_of, vehicle_of

    loaded = load_mission(name, overrides, full_battery(recorded))
    found = as_carried_out(loaded, recorded)
    if found.world.live and not loaded.world.live:
        out_to.print(_NOT_SCORED, style="dim", soft_wrap=True, highlight=False)
    for number, settings in enumerate(recorded):
        for warning in check_new(settings, found, number):
            out_to.print(f"warning: {warning}", style="yellow", markup=False)
        for line in place_of(settings, found, number):
            out_to.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
    return found, [vehicle_of(settings, found, number) for number, settings in enumerate(recorded)]


def _recorded(vehicles: Sequence[str], *, by_hand: bool) -> list[dict[str, Any]]:
    """Return the settings of the vehicles as the record keeps them; none for a simulation."""
    if not (vehicles or by_hand):
        return []
    from fieldbo.errors import InputError
    from fieldbo.vehicles.load import recorded_settings

    if by_hand and vehicles:
        raise InputError(
            "both --by-hand and --vehicle were given",
            expected="at most one of them",
            fix="leave out --by-hand if a robot takes the samples",
        )
    return [recorded_settings(name) for name in (["by-hand"] if by_hand else vehicles)]
