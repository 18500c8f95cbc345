"""``fieldbo new vehicle``: a vehicle file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo new vehicle boat --link mqtt --world lake-transect` - writes boat.toml

`fieldbo new vehicle drone --link mavlink --world crack-wall` - with the frame that ties a wall to the ground

Then try it at home, in two terminals: `fieldbo robot boat.toml --world lake-transect --speedup 100` and
`fieldbo run lake-level-set --vehicle boat.toml`.
"""


def vehicle(
    name: Annotated[str, typer.Argument(help="Name of the vehicle, and of its file: NAME.toml.")],
    link: Annotated[str, typer.Option(help="How it is reached: *ros2*, *mavlink*, *mqtt* and their like.")],
    world: Annotated[str, typer.Option(help="A world that it is to go to, for the names of its axes.")],
) -> None:
    """Write a vehicle file with every setting at its default, and what each of them means."""
    from fieldbo.errors import InputError
    from fieldbo.mission.catalogue import name_of
    from fieldbo.mission.files import write_whole
    from fieldbo.mission.load import load_world
    from fieldbo.vehicles.kinds import LINKS
    from fieldbo.vehicles.remote.template import template

    file = Path(f"{name_of('vehicle', name, 'NAME')}.toml")
    text = template(link, load_world(world).domain.axes, name)
    if file.exists():
        raise InputError(f"{file} exists", expected="a name of a new file", where="NAME")
    write_whole(file, text.encode())
    if LINKS.get(link).needs_origin:
        typer.echo(f"{file}\nnext: put the place of the domain's zero into its [frame]: origin = ...")
    else:
        typer.echo(f"{file}\nnext: fieldbo robot {file} --world {world}")
