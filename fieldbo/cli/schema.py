"""``fieldbo schema``: the JSON Schema of world and mission files."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """Which files."""

    mission = "mission"
    world = "world"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which files the schema is for.")] = Kind.mission,
) -> None:
    """Print the JSON Schema of mission or world files, for editors that complete and check TOML."""
    from fieldbo.forms import json_schema

    typer.echo(json.dumps(json_schema(kind.value), indent=2))
