"""``fieldbo new``: create your own world, mission or vehicle file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldbo.cli.new_options import FittedModel, Side
from fieldbo.cli.new_world import degrees, numbers, world
from fieldbo.cli.options import add, examples
from fieldbo.errors import InputError

HELP = "Create your own world, mission or vehicle file."

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.callback(help=HELP)
def new() -> None:
    """Make ``new`` a group of commands."""


@examples(
    """
**Examples**

`fieldbo new mission bloom --world kessel --threshold 12 --battery "2 h"`

`fieldbo new mission hypoxia --world kessel --threshold 4 --side below --start 47.3079,8.5105`
"""
)
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


@examples(
    """
**Examples**

`fieldbo new vehicle boat --link mqtt --world lake-transect` - write boat.toml

`fieldbo new vehicle drone --link mavlink --world crack-wall` - with a frame that says where the wall stands

Then rehearse at home, in two terminals: `fieldbo robot boat.toml --world lake-transect --speedup 100` and
`fieldbo run lake-level-set --vehicle boat.toml`.
"""
)
def vehicle(
    name: Annotated[str, typer.Argument(help="Name of the vehicle; the file is NAME.toml.")],
    link: Annotated[
        str,
        typer.Option(
            help="How to reach it: *ros2*, *ros2-topics*, *ros2-nav2*, *mavlink*, *mqtt*, or a plug-in."
        ),
    ],
    world: Annotated[
        str,
        typer.Option(
            help="World the vehicle will work in; it supplies the axes, tolerances that fit, the speed and, "
            "if it has a CRS, the place."
        ),
    ],
) -> None:
    """Write a vehicle file that lists and explains every setting, with its default or what fits the world."""
    from fieldbo.mission.files import name_of, write_whole
    from fieldbo.mission.load import load_world
    from fieldbo.vehicles.base import LINKS
    from fieldbo.vehicles.file import proposed, stands_upright, template

    file = Path(f"{name_of('vehicle', name, 'NAME')}.toml")
    loaded = load_world(world)
    domain = loaded.domain
    text = template(link, domain, name, proposed(link, loaded))
    if file.exists():
        raise InputError(f"{file} exists", expected="the name of a new file", where="NAME")
    write_whole(file, text.encode())
    if LINKS.get(link).needs_origin and domain.crs is None:
        typer.echo(f"{file}\nnext: set origin in its [frame] to the place of the domain's zero")
        if stands_upright(domain):
            typer.echo(
                "and stand_off in its [link] to the distance that the vehicle is to keep from the wall"
            )
    elif link == "mavlink":
        typer.echo(
            f"{file}\nnext: fieldbo plan RUN --vehicle {file}\n"
            f"to run missions live, set full in its [battery] first; then rehearse: "
            f"fieldbo robot {file} --world {world}"
        )
    else:
        typer.echo(f"{file}\nnext: fieldbo robot {file} --world {world}")


add(app, world, mission, vehicle)
