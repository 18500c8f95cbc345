"""``fieldbo new``: worlds of one's own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Make a world of your own.", no_args_is_help=True)


class Transform(StrEnum):
    """Of the values, before they are modelled."""

    none = "none"
    log = "log"


@app.callback()
def new() -> None:
    """Make a world of your own."""


@app.command("world")
def world(
    name: Annotated[str, typer.Argument(help="Name of the world, and of its first mission.")],
    csv: Annotated[Path, typer.Option(help="Readings, one a line; the first line names the columns.")],
    x: Annotated[str, typer.Option(help="Column of the first position, in metres.")],
    value: Annotated[str, typer.Option(help="Column of the value.")],
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
        float, typer.Option(help="Threshold of the mission, as a quantile of the readings.")
    ] = 0.7,
    threshold: Annotated[float | None, typer.Option(help="The threshold itself, instead.")] = None,
) -> None:
    """Make a world, and its first mission, from the CSV of a survey.

    Writes *worlds/NAME* and *missions/NAME.toml* here; the truth is the Gaussian process fitted to the
    readings.
    """
    import numpy as np

    from fieldbo.survey import Survey, make_world

    survey = Survey(csv, x, value, y, noise, tuple(channel or ()), transform.value, unit, quantile, threshold)
    made = make_world(name, survey)
    field, sites = made.field, made.loaded.world.domain.sites
    truth, sensor = field.values(sites), made.loaded.world.sensor
    kernel = ", ".join(f"{c} {v:.4g} m" for c, v in zip(survey.columns, field.length_scales, strict=True))
    lines = [
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
        f"  mission    where is {value} >= {made.threshold:g}? battery {made.loaded.crew[0].battery:g} s",
        f"next: fieldbo run {name}",
    ]
    typer.echo("\n".join(lines))
