"""``fieldbo schema``: print the JSON Schema of mission, world and vehicle files."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """Kinds of files."""

    mission = "mission"
    world = "world"
    vehicle = "vehicle"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Kind of file.")] = Kind.mission,
) -> None:
    """Print the JSON Schema of mission, world or vehicle files. Editors use it to complete and check TOML."""
    from fieldbo.mission.schema import json_schema
    from fieldbo.vehicles.remote.settings import vehicle_schema

    schemas = {
        Kind.mission: lambda: json_schema("mission"),
        Kind.world: lambda: json_schema("world"),
        Kind.vehicle: vehicle_schema,
    }
    typer.echo(json.dumps(schemas[kind](), indent=2))
