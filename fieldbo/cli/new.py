"""``fieldbo new``: create your own world or vehicle file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli import new_vehicle

if TYPE_CHECKING:
    from fieldbo.mission.new.writer import NewWorld

app = typer.Typer(help="Create your own world or vehicle file.", no_args_is_help=True)
app.command("vehicle", epilog=new_vehicle.EXAMPLES)(new_vehicle.vehicle)

EXAMPLES = """
**Examples**

`fieldbo new world bay --csv survey.csv --x east --y north --value zinc` - a spatial survey

`fieldbo new world oven --cell --csv trials.csv --value strength --goal maximise --axis heat:C` -
trials of a factory cell, where every sample costs the same

`... --module "mix=ratio,speed:40" --module "bake=heat,time:10"` - changing a module means rerunning all
later ones

`... --control-set "heat,time:1" --control-set "heat:0.1"` - settings outside the set are left to chance
"""


class Transform(StrEnum):
    """Transform of the values before they are modelled."""

    none = "none"
    log = "log"


class Goal(StrEnum):
    """Goal of a cell's first mission."""

    minimise = "minimise"
    maximise = "maximise"


@app.callback()
def new() -> None:
    """Create your own world or vehicle file."""


@app.command("world", epilog=EXAMPLES)
def world(
    name: Annotated[str, typer.Argument(help="Name of the world and of its first mission.")],
    csv: Annotated[
        Path, typer.Option(help="Table of readings, one per line, with column names in the first line.")
    ],
    value: Annotated[
        str | None, typer.Option(help="Column that holds the value. Leave it out to see the columns.")
    ] = None,
    x: Annotated[str | None, typer.Option(help="Column that holds the first coordinate, in metres.")] = None,
    y: Annotated[
        str | None,
        typer.Option(
            help="Column that holds the second coordinate, in metres. A column named *depth* makes the world "
            "a transect."
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Column that holds the readings' standard deviations. [default: fit the noise]"),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="Column that holds another quantity. Repeat the option for several."),
    ] = None,
    transform: Annotated[
        Transform, typer.Option(help="Use *log* for skewed, positive values.")
    ] = Transform.none,
    unit: Annotated[str, typer.Option(help="Unit of the value.")] = "1",
    quantile: Annotated[
        float | None,
        typer.Option(help="Threshold of the mission, as a quantile of the readings.  [default: 0.7]"),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Threshold of the mission, in the value's unit, instead of a quantile."),
    ] = None,
    cell: Annotated[
        bool, typer.Option("--cell", help="Make a factory cell: each row holds settings and their outcome.")
    ] = False,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            help="Cell: column that holds a setting, and its unit. [default: all columns]",
            metavar="COL[:UNIT]",
        ),
    ] = None,
    module: Annotated[
        list[str] | None,
        typer.Option(
            help="Cell: a stage with its settings and cost. List stages in the order in which they run.",
            metavar="NAME=COL,COL:COST",
        ),
    ] = None,
    control_set: Annotated[
        list[str] | None,
        typer.Option(
            help="Cell: settings that can be set together, and what that costs.", metavar="COL,COL:COST"
        ),
    ] = None,
    sample_cost: Annotated[
        float | None,
        typer.Option(help="Cell: cost of a sample if there are no modules or control sets.  [default: 1]"),
    ] = None,
    cost_unit: Annotated[str | None, typer.Option(help="Cell: unit of costs.  [default: EUR]")] = None,
    goal: Annotated[Goal | None, typer.Option(help="Cell: goal of the mission.  [default: minimise]")] = None,
) -> None:
    """Make a world and its first mission from a CSV of survey readings or factory-cell trials.

    Writes *worlds/NAME* and *missions/NAME.toml* in the working directory. The truth is the mean of a
    Gaussian process fitted to the table.
    """
    from fieldbo.errors import InputError

    if value is None:
        from fieldbo.world.logs.columns import describe_columns, no_value_chosen, table_of
        from fieldbo.world.logs.log import read_log

        log = read_log(csv)
        typer.echo("\n".join([*log.notes, *table_of(describe_columns(log))]))
        raise no_value_chosen(log)
    of_survey: dict[str, object] = {"x": x, "y": y, "channel": channel, "quantile": quantile}
    of_survey |= {"threshold": threshold}
    of_cell: dict[str, object] = {"axis": axis, "module": module, "control-set": control_set}
    of_cell |= {"sample-cost": sample_cost, "cost-unit": cost_unit, "goal": goal}
    for option, given in (of_survey if cell else of_cell).items():
        if given is not None:
            raise InputError(
                f"--{option} does not apply {'with' if cell else 'without'} --cell",
                expected="options of a cell" if cell else "options of a survey",
                where=f"--{option}",
                fix=f"{'leave out' if cell else 'add'} --cell, or leave this option out",
            )
    if cell:
        from fieldbo.mission.new.cell import make_cell
        from fieldbo.mission.new.cell_table import CellTable, control_set_of, module_of, setting_of
        from fieldbo.world.readings import column_names

        if sample_cost is not None and (module or control_set):
            raise InputError(
                "--sample-cost does not apply to modules or control sets, which have their own costs",
                expected="one or the other",
                where="--sample-cost",
            )
        settings = [setting_of(text, column_names(csv)) for text in axis or ()]
        table = CellTable(
            csv,
            value,
            axes=tuple(column for column, _ in settings),
            units=tuple(its_unit for _, its_unit in settings),
            modules=tuple(module_of(text) for text in module or ()),
            control_sets=tuple(control_set_of(text) for text in control_set or ()),
            sample_cost=1.0 if sample_cost is None else sample_cost,
            noise_sd=noise,
            transform=transform.value,
            value_unit=unit,
            cost_unit="EUR" if cost_unit is None else cost_unit,
            goal="minimise" if goal is None else goal.value,
        )
        typer.echo("\n".join(_report(make_cell(name, table), "rows")))
        return
    if x is None:
        raise InputError(
            "the column of the first position is missing",
            expected="--x COLUMN, for a survey",
            where="--x",
            fix="give --x, or add --cell if the table holds settings and their outcomes",
        )
    from fieldbo.mission.new.survey import Survey, make_world

    survey = Survey(
        csv,
        x,
        value,
        y=y,
        noise_sd=noise,
        channels=tuple(channel or ()),
        transform=transform.value,
        value_unit=unit,
        quantile=0.7 if quantile is None else quantile,
        threshold=threshold,
    )
    typer.echo("\n".join(_report(make_world(name, survey), "readings")))


def _report(made: NewWorld, rows: str) -> list[str]:
    """Return what was made, as lines."""
    import numpy as np

    from fieldbo.belief.question import LevelSet
    from fieldbo.mission.description import describe_parts_of_cost
    from fieldbo.results.formatting import question_text

    field, mission, world = made.field, made.loaded, made.loaded.world
    values, truth = field.readings.values, world.truth(world.domain.sites)
    unit = "" if world.quantity.unit in ("", "1") else f" {world.quantity.unit}"
    if isinstance(mission.question, LevelSet):
        above = np.mean(truth >= mission.question.threshold)
        scales = [f"{a.name} {v:.4g} m" for a, v in zip(world.domain.axes, field.length_scales, strict=True)]
        details = f"on {len(truth)} sites; {above:.0%} of them at or above the threshold"
        costs = [f"  sensor    noise sd {world.sensor.noise_sd:g}{unit}; set your instrument's in [sensor]"]
    else:  # length scales in ranges show which settings matter: those with a short one
        ranges = zip(world.domain.axes, field.length_scales / field.extent, strict=True)
        scales = [f"in ranges: {', '.join(f'{axis.name} {scale:.2g}' for axis, scale in ranges)}"]
        details = f"over the settings; the table says little about {made.little_known:.0%} of them"
        sample = world.cost.least_sampling_cost(world.domain.sites)
        costs = describe_parts_of_cost(world) or [f"  cost      {sample:g} {world.cost_unit} per sample"]
    noise = f"{field.noise_sd:.3g}" + (" of the log" if field.scale.transform == "log" else unit)
    unknown = ", costs to be learned" if mission.costs == "unknown" else ""
    return [
        f"world in {made.world}, mission in {made.mission}",
        f"  {rows:<9} {len(values)}, {values.min():g} to {values.max():g}{unit}",
        *(f"  note      {note}" for note in [*field.notes, *made.notes]),
        f"  fitted    length scales {', '.join(scales)}; noise sd {noise}",
        f"  quality   leave-one-out error {field.loo_rmse:.4g}{unit}, which explains "
        f"{max(0.0, field.explained):.0%} of the variance; 90% intervals hold {field.loo_coverage:.0%} "
        f"of the {rows}",
        *_validation(made, unit),
        f"  truth     {truth.min():.4g} to {truth.max():.4g}{unit} {details}",
        *costs,
        f"  mission   {question_text(mission.question, world.quantity)} {mission.policy_kind}, battery "
        f"{mission.vehicles[0].battery:g} {world.cost_unit}{unknown}",
        f"next: fieldbo run {world.name}",
    ]


def _validation(made: NewWorld, unit: str) -> list[str]:
    """Return how well lines or blocks are predicted that are left out, and which error to trust, as lines."""
    validation = made.validation
    if validation is None:
        return []
    lines = [
        f"  {validation.kind + 's':<9} {validation.result(unit)}",
        f"  trust     {validation.advice(unit)}",
    ]
    return [*lines, *([f"  warning   {validation.warning}"] if validation.warning else [])]
