"""``fieldbo show``: a picture of a world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldbo.cli.pictures import Format, Width


def show(
    world: Annotated[str, typer.Argument(help="Name of a world (see *fieldbo worlds*), or its folder.")],
    draw: Annotated[
        int,
        typer.Option(
            help="Which random field to use, counted from 0, if the world draws its field at random."
        ),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Picture to write, in the format of its extension; by default *WORLD.png* in the current "
            "folder."
        ),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Draw this level as a line.")] = None,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Describe a world and draw its field; for a live world, draw its sites."""
    import io

    from fieldbo.cli.pictures import checked
    from fieldbo.mission.description import describe_world
    from fieldbo.mission.files import write_output
    from fieldbo.mission.load import load_world
    from fieldbo.results import plot

    checked(format, width)
    kind = plot.format_of(out or "", format, "--out")
    loaded = load_world(world, draw)
    typer.echo("\n".join(describe_world(loaded)))
    file = out or Path(f"{loaded.name}.{kind}")
    content = io.BytesIO()
    plot.save(plot.world_picture(loaded, threshold, width), content, kind)
    write_output(file, content.getvalue())
    what = "picture of the sites" if loaded.live else "picture"
    typer.echo(f"{what} in {file}")
