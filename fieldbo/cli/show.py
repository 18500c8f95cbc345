"""``fieldbo show``: a picture of a world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    world: Annotated[str, typer.Argument(help="Name of a world (see *fieldbo worlds*), or its folder.")],
    draw: Annotated[int, typer.Option(help="Which field, where the world is random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The picture; by default *WORLD.png* here.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Draw this level as a line.")] = None,
) -> None:
    """Say what a world is, and draw its field; of a live world, which has none, its sites."""
    from fieldbo.errors import InputError
    from fieldbo.mission.description import describe_world
    from fieldbo.mission.load import load_world
    from fieldbo.results import plot

    told = load_world(world, draw)
    typer.echo("\n".join(describe_world(told)))
    file = out or Path(f"{told.name}.png")
    try:
        plot.save(plot.world_picture(told, threshold), file)
    except OSError as error:
        raise InputError(f"{file} can't be written: {error.strerror}", where="--out") from None
    what = "picture of the sites" if told.live else "picture"
    typer.echo(f"{what} in {file}")
