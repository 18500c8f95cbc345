"""``fieldbo new``: worlds of one's own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli import new_vehicle

if TYPE_CHECKING:
    from fieldbo.mission.new.cell import NewCell
    from fieldbo.mission.new.cell_table import CellTable
    from fieldbo.mission.new.survey import Survey

app = typer.Typer(help="Make a world, or a vehicle file, of your own.", no_args_is_help=True)
app.command("vehicle", epilog=new_vehicle.EXAMPLES)(new_vehicle.vehicle)

EXAMPLES = """
**Examples**

`fieldbo new world bay --csv survey.csv --x east --y north --value zinc` - the survey of a place

`fieldbo new world oven --cell --csv trials.csv --value strength --goal maximise --axis heat:C` -
a cell's settings, a sample costing the same whatever is set

`... --module "mix=ratio,speed:40" --module "bake=heat,time:10"` - what changes runs anew, with all after it

`... --control-set "heat,time:1" --control-set "heat:0.1"` - what is not set is left to chance
"""


class Transform(StrEnum):
    """Of the values, before they are modelled."""

    none = "none"
    log = "log"


class Goal(StrEnum):
    """Of a cell's first mission."""

    minimise = "minimise"
    maximise = "maximise"


@app.callback()
def new() -> None:
    """Make a world, or a vehicle file, of your own."""


@app.command("world", epilog=EXAMPLES)
def world(
    name: Annotated[str, typer.Argument(help="Name of the world, and of its first mission.")],
    csv: Annotated[Path, typer.Option(help="Readings, one a line; the first line names the columns.")],
    value: Annotated[str, typer.Option(help="Column of the value.")],
    x: Annotated[str | None, typer.Option(help="Column of the first position, in metres.")] = None,
    y: Annotated[
        str | None,
        typer.Option(help="Column of the second position, in metres; *depth* makes the world a transect."),
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Column of the readings' standard deviations; else noise is fitted.")
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Column of another quantity; may be given often.")
    ] = None,
    transform: Annotated[Transform, typer.Option(help="*log* for skewed, positive values.")] = Transform.none,
    unit: Annotated[str, typer.Option(help="Unit of the value.")] = "1",
    quantile: Annotated[
        float | None,
        typer.Option(help="Threshold of the mission, as a quantile of the readings.  [default: 0.7]"),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="The threshold itself, instead.")] = None,
    cell: Annotated[
        bool, typer.Option("--cell", help="Rows are samples of a cell: its settings, and what came of them.")
    ] = False,
    axis: Annotated[
        list[str] | None,
        typer.Option(help="Cell: column of a setting, with its unit; by default all.", metavar="COL[:UNIT]"),
    ] = None,
    module: Annotated[
        list[str] | None,
        typer.Option(
            help="Cell: a stage, its settings and its cost, in the order in which they run.",
            metavar="NAME=COL,COL:COST",
        ),
    ] = None,
    control_set: Annotated[
        list[str] | None,
        typer.Option(help="Cell: settings that can be set together, and its cost.", metavar="COL,COL:COST"),
    ] = None,
    sample_cost: Annotated[
        float | None, typer.Option(help="Cell: of every sample, where it has neither.  [default: 1]")
    ] = None,
    cost_unit: Annotated[str | None, typer.Option(help="Cell: unit of costs.  [default: EUR]")] = None,
    goal: Annotated[Goal | None, typer.Option(help="Cell: of its mission.  [default: minimise]")] = None,
) -> None:
    """Make a world, and its first mission, from the CSV of a survey, or of a cell's settings and outcomes.

    Writes *worlds/NAME* and *missions/NAME.toml* here; the truth is the Gaussian process fitted to the
    readings.
    """
    from fieldbo.errors import InputError

    surveys: dict[str, object] = {
        "x": x,
        "y": y,
        "channel": channel,
        "quantile": quantile,
        "threshold": threshold,
    }
    cells: dict[str, object] = {
        "axis": axis,
        "module": module,
        "control-set": control_set,
        "sample-cost": sample_cost,
    }
    cells |= {"cost-unit": cost_unit, "goal": goal}
    for option, given in (surveys if cell else cells).items():
        if given is not None:
            raise InputError(
                f"--{option} {'with' if cell else 'without'} --cell",
                expected="options of a cell" if cell else "options of a survey",
                where=f"--{option}",
                fix="leave out --cell, or this option" if cell else "add --cell, or leave this option out",
            )
    if cell:
        from fieldbo.mission.new.cell_table import CellTable, control_set_of, module_of
        from fieldbo.world.fields.table import column_names

        columns = [_column_and_unit(one, column_names(csv)) for one in axis or ()]
        table = CellTable(
            csv,
            value,
            tuple(column for column, _ in columns),
            tuple(one for _, one in columns),
            tuple(module_of(one) for one in module or ()),
            tuple(control_set_of(one) for one in control_set or ()),
            _sample_cost(sample_cost, bool(module or control_set)),
            noise,
            transform.value,
            unit,
            "EUR" if cost_unit is None else cost_unit,
            "minimise" if goal is None else goal.value,
        )
        typer.echo("\n".join(_cell(name, table)))
        return
    if x is None:
        raise InputError(
            "no column of the first position",
            expected="--x COLUMN, for a survey",
            where="--x",
            fix="or add --cell, where the table holds settings and what came of them",
        )
    from fieldbo.mission.new.survey import Survey

    threshold_at = 0.7 if quantile is None else quantile
    channels = tuple(channel or ())
    survey = Survey(csv, x, value, y, noise, channels, transform.value, unit, threshold_at, threshold)
    typer.echo("\n".join(_survey(name, survey)))


def _survey(name: str, survey: Survey) -> list[str]:
    """Make a survey's world; return what is to be said of it."""
    import numpy as np

    from fieldbo.mission.new.survey import make_world

    made = make_world(name, survey)
    field, sites = made.field, made.loaded.world.domain.sites
    truth, sensor, unit = field.values(sites), made.loaded.world.sensor, survey.value_unit
    kernel = ", ".join(f"{c} {v:.4g} m" for c, v in zip(survey.columns, field.length_scales, strict=True))
    return [
        f"world in {made.world}, mission in {made.mission}",
        f"  readings   {len(field.readings.values)}, {field.readings.values.min():g} to "
        f"{field.readings.values.max():g} {unit}",
        *(f"  note       {n}" for n in field.notes),
        f"  fitted     length scales {kernel}; noise sd {field.noise_sd:.3g}"
        + (" of the log" if survey.transform == "log" else f" {unit}"),
        f"  quality    leave-one-out error {field.loo_rmse:.4g} {unit}; 90% intervals hold "
        f"{field.loo_coverage:.0%} of the readings",
        f"  truth      {truth.min():.4g} to {truth.max():.4g} {unit} on {len(truth)} sites; "
        f"{np.mean(truth >= made.threshold):.0%} of them at or above the threshold",
        f"  sensor     noise sd {sensor.noise_sd:g} {unit}; put your instrument's into [sensor]",
        f"  mission    where is {survey.value} >= {made.threshold:g}? "
        f"battery {made.loaded.vehicles[0].battery:g} s",
        f"next: fieldbo run {name}",
    ]


def _column_and_unit(text: str, header: list[str]) -> tuple[str, str]:
    """Return the column and the unit of a setting, told as ``heat:C`` or ``heat``."""
    if text.strip() in header:  # its name may hold a colon
        return text.strip(), ""
    column, _, unit = text.rpartition(":") if ":" in text else (text, "", "")
    return column.strip(), unit.strip()


def _sample_cost(given: float | None, priced: bool) -> float:
    from fieldbo.errors import InputError

    if given is not None and priced:
        raise InputError(
            "--sample-cost with modules or control sets, which have costs of their own",
            expected="one or the other",
            where="--sample-cost",
        )
    return 1.0 if given is None else given


def _cell(name: str, table: CellTable) -> list[str]:
    """Make a cell's world; return what is to be said of it."""
    from fieldbo.mission.description import describe_parts_of_cost
    from fieldbo.mission.new.cell import make_cell
    from fieldbo.results.formatting import question_text

    made = make_cell(name, table)
    field, mission = made.field, made.loaded
    world, crew, values = mission.world, mission.vehicles[0], field.readings.values
    truth = world.truth(world.domain.sites)
    unit = "" if table.value_unit in ("", "1") else f" {table.value_unit}"
    noise = f"{field.noise_sd:.3g}" + (" of the log" if table.transform == "log" else unit)
    costs = describe_parts_of_cost(world) or [f"  cost      {table.sample_cost:g} {table.cost_unit} a sample"]
    learnt = ", costs to be found out" if mission.costs == "unknown" else ""
    return [
        f"world in {made.world}, mission in {made.mission}",
        f"  rows      {len(values)}, {values.min():g} to {values.max():g}{unit}",
        *(f"  note      {n}" for n in [*field.notes, *made.notes]),
        f"  fitted    {_scales(made)}; noise sd {noise}",
        f"  quality   leave-one-out error {field.loo_rmse:.4g}{unit}, which explains "
        f"{max(0.0, field.explained):.0%} of the variance; 90% intervals hold {field.loo_coverage:.0%} "
        "of the rows",
        f"  truth     {truth.min():.4g} to {truth.max():.4g}{unit}; the table says little of "
        f"{made.little_known:.0%} of the settings",
        *costs,
        f"  mission   {question_text(mission.question, world.quantity)} {mission.policy_kind}, battery "
        f"{crew.battery:g} {table.cost_unit}{learnt}",
        f"next: fieldbo run {name}",
    ]


def _scales(made: NewCell) -> str:
    """Return the fitted length scales, in shares of each setting's range: what matters has a short one."""
    shares = made.field.length_scales / made.field.extent
    told = zip(made.loaded.world.domain.axes, shares, strict=True)
    return "length scales in ranges: " + ", ".join(f"{axis.name} {share:.2g}" for axis, share in told)
