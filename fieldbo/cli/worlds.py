"""``fieldbo worlds``: list the worlds."""

from __future__ import annotations

from typing import Any


def worlds() -> None:
    """List your own worlds in *./worlds* and the shipped ones, with their CRS if any of them has one."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.mission.files import list_worlds, read_toml

    table = Table(box=None, pad_edge=False)
    table.add_column("world", no_wrap=True)
    table.add_column("description")
    table.add_column("cost unit", no_wrap=True)
    worlds = {name: read_toml(file) for name, file in sorted(list_worlds().items())}
    systems = {name: _crs(world) for name, world in worlds.items()}
    if any(systems.values()):
        table.add_column("CRS", no_wrap=True)
    for name, world in worlds.items():
        row = [name, world.get("title", ""), world.get("cost_unit", "")]
        row += [systems[name]] if any(systems.values()) else []
        table.add_row(*(escape(str(x)) for x in row))
    console().print(table)


def _crs(world: dict[str, Any]) -> str:
    """Return the CRS of a world's file, as it is written there; empty without one."""
    domain = world.get("domain")
    return str(domain.get("crs") or "") if isinstance(domain, dict) else ""
