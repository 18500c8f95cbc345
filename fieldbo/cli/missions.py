"""``fieldbo missions``: the missions that can be named."""

from __future__ import annotations


def missions() -> None:
    """List the missions: those below ./missions, then the shipped ones."""
    from rich.console import Console
    from rich.table import Table

    from fieldbo.catalogue import list_missions
    from fieldbo.files import read_toml

    table = Table("mission", "world", "policy", "what it asks", box=None, pad_edge=False)
    for name, file in sorted(list_missions().items()):
        told = read_toml(file)
        policy = told.get("policy", {})
        kind = f"{policy.get('kind', '')}{' per cost' if policy.get('per_cost') else ''}"
        table.add_row(name, str(told.get("world", "")), kind, str(told.get("title", "")))
    Console(highlight=False).print(table)
