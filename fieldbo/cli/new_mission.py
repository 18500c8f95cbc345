"""``fieldbo new mission``: a further mission for a world."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldbo.cli.new_place import degrees, numbers
from fieldbo.cli.new_world import FittedModel, Side

EXAMPLES = """
**Examples**

`fieldbo new mission bloom --world kessel --threshold 12 --battery "2 h"`

`fieldbo new mission hypoxia --world kessel --threshold 4 --side below --start 47.3079,8.5105`
"""


def mission(
    name: Annotated[str, typer.Argument(help="Name of the mission.")],
    world: Annotated[str, typer.Option(help="World of the mission (see *fieldbo worlds*).")],
    threshold: Annotated[float | None, typer.Option(help="Threshold, in the value's unit.")] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            help="Threshold as a quantile of the readings.  [default: 0.7, or 0.3 with *--side below*]"
        ),
    ] = None,
    side: Annotated[
        Side, typer.Option(help="Ask where the value is at or above, or at or below, the threshold.")
    ] = Side.above,
    battery: Annotated[
        str | None,
        typer.Option(help='Battery, such as "1 h".  [default: enough for about 40 stops]', metavar="AMOUNT"),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Start and home: latitude and longitude, or the coordinates of a world without a CRS.  "
            "[default: the world's start]",
            metavar="LAT,LON",
        ),
    ] = None,
    fitted_model: FittedModel = False,
) -> None:
    """Write *missions/NAME.toml*: a level-set mission that starts and ends at one place."""
    from fieldbo.mission.amounts import names_unit
    from fieldbo.mission.description import describe_mission
    from fieldbo.mission.load import load_world
    from fieldbo.mission.new.mission import LevelSetMission, make_mission, one_sided
    from fieldbo.results.words import question_text
    from fieldbo.world.fields.table import TableField

    asked = LevelSetMission(threshold, side.value, quantile, battery)
    place: object = None
    if start is not None:
        domain = load_world(world).domain
        if domain.crs is None:
            place = numbers(start, "--start", domain.dimension)
        else:
            place = dict(zip(("latitude", "longitude"), degrees(start, "--start"), strict=True))
    file, loaded = make_mission(name, world, asked, place, fitted_model=fitted_model)
    field, quantity = loaded.world.field, loaded.world.quantity
    readings = field.readings.values if isinstance(field, TableField) else ()
    notes = one_sided(loaded.question, readings, quantity)
    if battery is not None and not names_unit(battery):
        notes.append(f"--battery {battery} is in {loaded.world.cost_unit}")
    typer.echo(f"mission in {file}")
    question = question_text(loaded.question, quantity)
    typer.echo("\n".join(describe_mission(loaded, question)))
    for note in notes:
        typer.echo(f"  note      {note}")
    typer.echo(f"next: fieldbo run {name}")
