"""``fieldbo missions``: the missions that can be named."""

from __future__ import annotations


def missions() -> None:
    """List the missions: those below ./missions, then the shipped ones."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.mission.catalogue import list_missions
    from fieldbo.mission.toml import read_toml

    table = Table(box=None, pad_edge=False)
    table.add_column("mission", no_wrap=True)
    table.add_column("what it asks, and how")
    for name, file in sorted(list_missions().items()):
        table.add_row(escape(name), escape(str(read_toml(file).get("title", ""))))
    console().print(table)
