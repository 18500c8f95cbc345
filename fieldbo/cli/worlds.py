"""``fieldbo worlds``: the worlds that can be named."""

from __future__ import annotations


def worlds() -> None:
    """List the worlds: those below ./worlds, then the shipped ones."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.mission.catalogue import list_worlds
    from fieldbo.mission.toml import read_toml

    table = Table(box=None, pad_edge=False)
    table.add_column("world", no_wrap=True)
    table.add_column("what it is")
    table.add_column("costs in", no_wrap=True)
    for name, file in sorted(list_worlds().items()):
        told = read_toml(file)
        table.add_row(*(escape(str(x)) for x in (name, told.get("title", ""), told.get("cost_unit", ""))))
    console().print(table)
