"""``fieldbo new vehicle``: a vehicle file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo new vehicle boat --link mqtt --world lake-transect` - write boat.toml

`fieldbo new vehicle drone --link mavlink --world crack-wall` - with a frame that says where the wall stands

Then rehearse at home, in two terminals: `fieldbo robot boat.toml --world lake-transect --speedup 100` and
`fieldbo run lake-level-set --vehicle boat.toml`.
"""


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
    from fieldbo.errors import InputError
    from fieldbo.mission.files import name_of, write_whole
    from fieldbo.mission.load import load_world
    from fieldbo.vehicles.kinds import LINKS
    from fieldbo.vehicles.proposals import proposed, stands_upright
    from fieldbo.vehicles.remote.template import template

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
