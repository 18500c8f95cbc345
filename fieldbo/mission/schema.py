"""What a world file and a mission file may hold; and their JSON Schema, for editors.

The tables with a ``kind`` (field, cost, policy) hold that kind's own settings: see its class.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fieldbo.belief.model import Model
from fieldbo.domain.sensor import Sensor
from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES, Registry
from fieldbo.world.disturbances import Disturbances


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AxisFile(_Table):
    """One axis of a grid."""

    name: str = Field(description="Name of the axis, for example along")
    unit: str = Field(description="Unit of the axis, for example m")
    low: float
    high: float
    count: int = Field(ge=1, le=100_000, description="Number of sites along the axis, ends included")
    positive: Literal["up", "down"] | None = Field(
        default=None, description="Which way the axis is drawn; a depth points down unless it says otherwise"
    )


class ObstacleFile(_Table):
    """What lies in the domain and is no part of it: a box (low, high), or a polygon (corners)."""

    name: str = Field(min_length=1, description="For example window 1; each has another")
    low: list[float] = Field(default=[], description="One corner of a box, a coordinate an axis")
    high: list[float] = Field(default=[], description="The opposite corner of a box")
    corners: list[list[float]] = Field(
        default=[], description="Instead of low and high: corners in order around a polygon (two axes only)"
    )


class GridFile(_Table):
    """Sites at the nodes of a regular grid."""

    kind: Literal["grid"]
    axes: list[AxisFile] = Field(min_length=1)
    outline: list[tuple[float, float]] | None = Field(
        default=None,
        min_length=3,
        description="Corners of a polygon (two axes only); sites outside are left out",
    )
    obstacles: list[ObstacleFile] = Field(
        default=[], description="Boxes and polygons that vehicles go round; sites inside are left out"
    )
    clearance: float = Field(
        default=0.0, description="By how much every obstacle is grown, in the axes' unit"
    )


class TruncatedNormalFile(_Table):
    """A variable left free is normal, cut off at the ends of its axis."""

    kind: Literal["truncated-normal"]
    mean: float = Field(description="Once it is cut off, as is the variance")
    variance: float


class UniformFile(_Table):
    """A variable left free is anywhere on its axis."""

    kind: Literal["uniform"]


FreeFile = Annotated[TruncatedNormalFile | UniformFile, Field(discriminator="kind")]


class RangeFile(_Table):
    """One axis of a box."""

    name: str = Field(description="Name of the axis, for example temperature")
    unit: str = Field(description="Unit of the axis, for example K")
    low: float
    high: float
    positive: Literal["up", "down"] | None = None
    free: FreeFile | None = Field(
        default=None, description="The distribution of the variable where it is left free; else it never is"
    )


class BoxFile(_Table):
    """Samples can be taken anywhere in a box."""

    kind: Literal["box"]
    axes: list[RangeFile] = Field(min_length=1)
    representers: int = Field(
        default=1000, ge=1, le=100_000, description="How many quasi-random points stand for the box"
    )
    obstacles: list[ObstacleFile] = Field(
        default=[], description="Boxes and polygons that vehicles go round; points inside are left out"
    )
    clearance: float = Field(
        default=0.0, description="By how much every obstacle is grown, in the axes' unit"
    )
    control_sets: list[list[str]] | None = Field(
        default=None,
        json_schema_extra={"minItems": 1},
        description="Which axes can be set together, the others left free; by default all always are",
    )


DomainFile = Annotated[GridFile | BoxFile, Field(discriminator="kind")]


class ValueFile(_Table):
    """What is measured."""

    name: str = "value"
    unit: str = "1"
    standard_name: str | None = Field(default=None, description="CF standard name")


class WorldFile(_Table):
    """A world.toml."""

    format: Literal[1]
    version: str = Field(description="Version of this world; raise it when its answers change")
    title: str
    cost_unit: str = Field(min_length=1, description="Unit of every cost and of the battery")
    start: list[float] | None = Field(
        default=None, description="Where vehicles start; default: the first site"
    )
    value: ValueFile = ValueFile()
    domain: DomainFile
    field: dict[str, Any] | None = Field(default=None, description="The truth; a live world has none")
    cost: dict[str, Any]
    sensor: dict[str, Any] = Field(default_factory=dict)
    conditions: dict[str, Any] | None = Field(
        default=None, description="What real costs differ by from declared ones, in simulation only"
    )


class QuantileFile(_Table):
    """A threshold at a quantile of the true values; simulation only."""

    quantile: float = Field(gt=0, lt=1)


class ShareFile(_Table):
    """A threshold at a share of the unknown maximum."""

    of_maximum: float


class LevelSetFile(_Table):
    """A question: where is the quantity at or above a threshold."""

    kind: Literal["level-set"]
    threshold: float | QuantileFile | ShareFile = Field(
        description="In the unit of the values, or { quantile = 0.7 } of the true ones, "
        "or { of_maximum = 0.8 } of the unknown maximum"
    )


class OptimumFile(_Table):
    """A question: where is the quantity largest, or smallest."""

    kind: Literal["optimum"]
    goal: Literal["maximise", "minimise"] = "maximise"


QuestionFile = Annotated[LevelSetFile | OptimumFile, Field(discriminator="kind")]


class WhenLostFile(_Table):
    """What to do when orders are lost in a row."""

    orders: int = Field(default=3, description="After so many")
    then: Literal["home", "wait"] = Field(
        default="home", description="Send the vehicle home and end, or wait until it is heard of again"
    )
    patience_s: float = Field(default=600.0, description="Wait so many seconds at most")


class AgentFile(_Table):
    """Who goes, and with what."""

    battery: float | str = Field(description='In the world\'s cost unit: 6000, or "6000 s"')
    start: list[float] | None = None
    home: list[float] | None = Field(default=None, description="Where the vehicle must be able to return to")
    reserve: float = Field(default=0.0, description="Never spent on purpose, in the cost unit")
    margin: float = Field(default=0.0, description="Share by which a move may turn out dearer than declared")
    time_limit_s: float | None = None
    max_steps: int | None = Field(default=None, ge=1)
    batch: int = Field(default=1, description="How many queries leave at once")
    costs: Literal["declared", "unknown"] = Field(
        default="declared", description="Whether the agent knows the world's costs, or is to find them out"
    )
    when_lost: WhenLostFile = WhenLostFile()


class InitialFile(_Table):
    """Readings before the policy takes over."""

    count: int = Field(
        default=1, ge=0, description="The first is taken at the start, the others at random sites"
    )
    level: int = Field(default=0, ge=0, description="The sensor's setting for them")


class MissionFile(_Table):
    """A mission file."""

    format: Literal[1]
    title: str = ""
    world: str
    draw: int = Field(default=0, ge=0, description="Which field, where the world is random")
    seed: int = Field(default=0, ge=0)
    question: QuestionFile
    agent: AgentFile
    initial: InitialFile = InitialFile()
    policy: dict[str, Any]
    model: dict[str, Any] = Field(default_factory=dict)


def json_schema(what: Literal["world", "mission"]) -> dict[str, Any]:
    """Return the JSON Schema of world or mission files, all installed kinds included."""
    shape = WorldFile if what == "world" else MissionFile
    schema = TypeAdapter(shape).json_schema()
    tables = {"field": FIELDS, "cost": COSTS} if what == "world" else {"policy": POLICIES}
    found = {name: kinds_schema(registry) for name, registry in tables.items()}
    alone: dict[str, type] = {"model": Model}
    if what == "world":
        alone = {"sensor": Sensor, "conditions": Disturbances}
    found |= {name: TypeAdapter(cls).json_schema() for name, cls in alone.items()}
    for name, table in found.items():
        schema["$defs"] = {**schema.get("$defs", {}), **table.pop("$defs", {})}
        schema["properties"][name] = table
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def kinds_schema(registry: Registry) -> dict[str, Any]:
    """Return the JSON Schema of a table with a ``kind``: that of any kind of a registry."""
    options: list[dict[str, Any]] = []
    shared: dict[str, Any] = {}
    for name in registry.names():
        one = TypeAdapter(registry.get(name)).json_schema()
        shared |= one.pop("$defs", {})
        one["properties"] = {"kind": {"const": name}, **one.get("properties", {})}
        one["required"] = ["kind", *one.get("required", [])]
        options.append(one)
    return {"oneOf": options, "$defs": shared}
