"""``fieldbo worlds``: list the worlds."""

from __future__ import annotations


def worlds() -> None:
    """List your own worlds in *./worlds* and the shipped ones."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.mission.catalogue import list_worlds
    from fieldbo.mission.toml import read_toml

    table = Table(box=None, pad_edge=False)
    table.add_column("world", no_wrap=True)
    table.add_column("description")
    table.add_column("cost unit", no_wrap=True)
    for name, file in sorted(list_worlds().items()):
        world = read_toml(file)
        table.add_row(*(escape(str(x)) for x in (name, world.get("title", ""), world.get("cost_unit", ""))))
    console().print(table)
