"""The tables and keys of world and mission files, and their JSON Schema for editors.

Tables with a ``kind`` (field, cost, policy) hold the settings of that kind: see its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PydanticUserError,
    TypeAdapter,
)
from pydantic_core import CoreSchema

from fieldbo.belief.model import Model
from fieldbo.belief.question import Side, one_threshold
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.field_texts import schema_with_texts
from fieldbo.mission.amounts import Amount, AmountOrNothing
from fieldbo.mission.default_policy import AUTO
from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES, Registry
from fieldbo.mission.mission import FAILURE_LIMIT
from fieldbo.mission.rules import Hold, StopRule
from fieldbo.mission.vehicle_spec import Margin, Recharging, TimeLimit, WhenLost
from fieldbo.world.world import Disturbances

MOST = 100_000
"""Largest number of a world's sites, and of initial readings."""

MOST_AXES = 32
"""Largest number of a domain's axes."""

MOST_HOLDS = 32
"""Largest number of a mission's holds."""


def _are_coordinates(given: object) -> object:
    if not isinstance(given, list | tuple):
        raise ValueError("coordinates, one per axis, for example [0, 0]")
    return given


Coordinates = Annotated[list[float], BeforeValidator(_are_coordinates)]
"""A place, one coordinate per axis."""


def _can_exist(given: object) -> object:
    """Reject a name that no file can have."""
    if isinstance(given, str) and "\0" in given:
        raise ValueError("the name of a file")
    return given


FileName = Annotated[str, BeforeValidator(_can_exist)]
"""The name or path of a file."""


class Table(BaseModel):
    """A table of a file, with no other keys, and with the texts of its keys in its schema."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        return schema_with_texts(cls, core_schema, handler)


class DegreesFile(Table):
    """A place in degrees, in a world with a CRS."""

    latitude: float = Field(ge=-90, le=90)
    """Degrees north on WGS 84."""
    longitude: float = Field(ge=-180, le=180)
    """Degrees east on WGS 84."""


PlaceFile = Coordinates | DegreesFile
"""A place: one coordinate per axis, or a latitude and a longitude."""


def _are_outlines(given: object) -> object:
    """Reject a single outline where a list of them belongs; corners become tuples, as strict mode wants."""
    if not isinstance(given, list):
        return given
    if any(_is_corner(hole) for hole in given):
        raise ValueError("a list of outlines: [[[x, y], ...], ...]")
    return [[tuple(c) if isinstance(c, list) else c for c in h] if isinstance(h, list) else h for h in given]


def _is_corner(given: object) -> bool:
    return isinstance(given, list) and bool(given) and isinstance(given[0], int | float)


def _is_1(number: object) -> object:
    """Reject ``true`` and ``1.0``, which equal 1."""
    if type(number) is not int or number != 1:
        raise ValueError("1, the only format so far")
    return number


Format = Annotated[Literal[1], BeforeValidator(_is_1)]


# -- worlds ----------------------------------------------------------------------------------------------


class AxisFile(Table):
    """One axis of a grid."""

    name: str
    """Name of the axis, for example along."""
    unit: str
    """Unit of the axis, for example m."""
    low: float
    """Lower end of the axis."""
    high: float
    """Upper end of the axis."""
    count: int = Field(ge=1)
    """Number of sites along the axis, both ends included."""
    positive: Literal["up", "down"] | None = None
    """Direction in which the axis is drawn; by default down for a depth and up otherwise."""


class ObstacleFile(Table):
    """An obstacle: a box (low and high) or a polygon (corners)."""

    name: str = Field(min_length=1)
    """Name of the obstacle, unique in the domain, for example window 1."""
    low: list[float] = []
    """One corner of a box, one coordinate per axis."""
    high: list[float] = []
    """The opposite corner of the box."""
    corners: list[list[float]] = []
    """Corners in order around a polygon, instead of low and high; two axes only."""


class _Domain(Table):
    obstacles: list[ObstacleFile] = []
    """Boxes and polygons that vehicles go around; there are no sites inside."""
    clearance: NonNegativeFloat = 0.0
    """Distance to keep from every obstacle and from the outline, in the axes' unit."""


class GridFile(_Domain):
    """Sites at the nodes of a regular grid."""

    kind: Literal["grid"]
    """Sites at the nodes of a regular grid."""
    axes: list[AxisFile] = Field(min_length=1, max_length=MOST_AXES)
    """The grid's axes, in the order of coordinates."""
    outline: list[tuple[float, float]] | None = Field(default=None, min_length=3)
    """Corners of a polygon around the sites; two axes only."""
    holes: Annotated[list[list[tuple[float, float]]], BeforeValidator(_are_outlines)] = []
    """Corners of each hole in the outline, such as a lagoon's island."""
    crs: str | None = None
    """Coordinate reference system of the horizontal axes, for example EPSG:28992."""


class BathymetryFile(Table):
    """The depth of the bottom, with what its file leaves open."""

    file: str
    """NetCDF, GeoTIFF or other grid in the world's folder."""
    value: str | None = None
    """Variable or band that holds the depth; by default the only one."""
    positive: Literal["down", "up"] | None = None
    """Direction in which the values grow: depths down, elevations up; by default as the file says."""
    crs: str | None = None
    """Coordinate reference system of a file that does not state its own; by default the world's."""


class LatticeFile(Table):
    """Sites at a given spacing inside an outline on the Earth."""

    kind: Literal["lattice"]
    """Sites at a given spacing inside an outline on the Earth."""
    crs: str
    """Projected coordinate reference system in metres, for example EPSG:32632."""
    outline: str
    """GeoJSON file of the outline, which may have holes, in the world's folder."""
    avoid: str | None = None
    """GeoJSON file of zones that vehicles go around, in the world's folder."""
    avoid_margin: PositiveFloat | None = None
    """Distance to keep from points and lines among the zones, in metres; without it, they are an error."""
    spacing: PositiveFloat
    """Distance between neighbouring sites, in metres."""
    pattern: Literal["square", "hexagonal"] = "square"
    """Arrangement of the sites; hexagonal covers the area with 13% fewer of them."""
    clearance: NonNegativeFloat = 0.0
    """Distance to keep from the outline and from zones to avoid, in metres."""
    depths: list[NonNegativeFloat] | None = Field(default=None, min_length=1)
    """Depths of the sites in metres, increasing: a third axis, depth, from 0 at the surface."""
    bathymetry: str | BathymetryFile | None = None
    """NetCDF or GeoTIFF file of the depth of the bottom, or of its elevation, in the world's folder."""
    bottom_clearance: NonNegativeFloat = 0.0
    """Height above the bottom that sites at depths keep, in metres."""
    least_depth: PositiveFloat | None = None
    """Depth of water in metres below which there are no sites; routes may still cross it."""


class TruncatedNormalFile(Table):
    """A normal distribution, truncated at the ends of the axis."""

    kind: Literal["truncated-normal"]
    """A normal distribution, truncated at the ends of the axis."""
    mean: float
    """Mean after truncation, in the unit of the axis."""
    variance: PositiveFloat
    """Variance after truncation, in squared axis units."""


class UniformFile(Table):
    """A uniform distribution over the axis."""

    kind: Literal["uniform"]
    """A uniform distribution over the axis."""


FreeFile = Annotated[TruncatedNormalFile | UniformFile, Field(discriminator="kind")]


class RangeFile(Table):
    """One axis of a box."""

    name: str
    """Name of the axis, for example temperature."""
    unit: str
    """Unit of the axis, for example K."""
    low: float
    """Lower end of the axis."""
    high: float
    """Upper end of the axis."""
    positive: Literal["up", "down"] | None = None
    """Direction in which the axis is drawn; by default down for a depth and up otherwise."""
    free: FreeFile | None = None
    """Distribution of the variable when a control set leaves it free."""


class BoxFile(_Domain):
    """A box in which samples can be taken anywhere."""

    kind: Literal["box"]
    """A box in which samples can be taken anywhere."""
    axes: list[RangeFile] = Field(min_length=1, max_length=MOST_AXES)
    """The box's axes, in the order of coordinates."""
    representers: int = Field(default=1000, ge=1, le=MOST)
    """Number of quasi-random points that represent the box."""
    control_sets: list[list[str]] | None = Field(default=None, json_schema_extra={"minItems": 1})
    """Sets of axes that can be set together, leaving the others free; by default all axes are always set."""


DomainFile = Annotated[GridFile | LatticeFile | BoxFile, Field(discriminator="kind")]


class ValueFile(Table):
    """The measured quantity."""

    name: str = "value"
    """Name of the quantity, for example chlorophyll."""
    unit: str = "1"
    """Unit of the quantity; 1 if it has none."""
    standard_name: str | None = None
    """CF standard name of the quantity."""


class WorldFile(Table):
    """A world: its sites, its field, and the costs of moving and sampling."""

    format: Format
    """Format of this file: 1."""
    version: str
    """Version of this world; raise it when its answers change."""
    title: str
    """One line that describes the world."""
    cost_unit: str = Field(min_length=1)
    """Unit of all costs and of the battery, for example s or Wh."""
    start: PlaceFile | None = None
    """Where vehicles start: one coordinate per axis, or { latitude = 47.3, longitude = 8.5 }; by default the
    first site."""
    value: ValueFile = ValueFile()
    """The measured quantity."""
    domain: DomainFile
    """The sites and axes: a grid or a box."""
    field: dict[str, Any] | None = None
    """The true field, for simulation; a live world has none."""
    cost: dict[str, Any]
    """The cost of moving and sampling."""
    sensor: Sensor = Sensor()
    """The sensor's noise and settings."""
    conditions: Disturbances | None = None
    """How real costs differ from declared ones, in simulation only."""
    unreadable: list[ObstacleFile] = []
    """Boxes and polygons in which every reading fails, such as a wet patch of a wall; in simulation only."""


# -- missions --------------------------------------------------------------------------------------------


class QuantileFile(Table):
    """A threshold at a quantile of the true values; simulation only."""

    quantile: float = Field(gt=0, lt=1)
    """Fraction of the true values below the threshold, for example 0.7."""


class ShareFile(Table):
    """A threshold at a fraction of the unknown maximum."""

    of_maximum: float
    """Fraction of the unknown maximum, for example 0.8."""


class LevelSetFile(Table):
    """Ask where the quantity is at or above a threshold, or at or below it."""

    kind: Literal["level-set"]
    """Ask where the quantity is at or above a threshold, or at or below it."""
    threshold: Annotated[float | QuantileFile | ShareFile, BeforeValidator(one_threshold)]
    """Threshold in the unit of the values, or { quantile = 0.7 } of the true values, or { of_maximum = 0.8 }
    of the unknown maximum."""
    side: Side = "above"
    """Whether to ask where the quantity is at or above the threshold, or at or below it."""


class OptimumFile(Table):
    """Ask where the quantity is largest or smallest."""

    kind: Literal["optimum"]
    """Ask where the quantity is largest or smallest."""
    goal: Literal["maximise", "minimise"] = "maximise"
    """Whether to find the largest or the smallest value."""
    least_size: Amount | None = None
    """Width of the smallest patch that matters, such as "3 m", where all axes have one unit. scout looks for
    patches of this width and more, and intervals allow for those that no reading would have noticed. By
    default, as wide as the cells of a sweep that takes the whole battery."""


QuestionFile = Annotated[LevelSetFile | OptimumFile, Field(discriminator="kind")]


class AgentFile(Table):
    """The vehicle, its battery and its limits."""

    battery: Amount
    """Battery, above 0: in the world's cost unit (6000), in a multiple of it ("2 h" if it is s), or as a
    percentage of a full battery ("35 %")."""
    full_battery: Amount | None = None
    """Capacity of a full battery, needed for percentages; full in a vehicle file takes precedence."""
    start: PlaceFile | None = None
    """Where the vehicle starts, like the world's start, which is the default."""
    home: PlaceFile | None = None
    """Where the vehicle must be able to return to; by default it may end anywhere."""
    reserve: AmountOrNothing = 0.0
    """Part of the battery that is never spent on purpose: an amount like battery, or 0."""
    margin: Margin = 0.0
    time_limit_s: TimeLimit = None
    max_steps: PositiveInt | None = None
    """Maximum number of orders; there is no limit by default."""
    batch: PositiveInt = 1
    """Number of queries issued at once."""
    failure_limit: float = Field(default=FAILURE_LIMIT, gt=0, le=1)
    """Probability of a failed reading above which a site is not proposed while others are left; 1 proposes
    all sites, wherever readings fail."""
    costs: Literal["declared", "unknown"] = "declared"
    """Whether the agent knows the world's costs, or learns what each order has cost."""
    when_lost: WhenLost = WhenLost()
    """What to do when orders are lost in a row."""
    recharge: Recharging | None = None
    """How the battery is changed at home once it affords no further query; by default there is only one."""


class InitialFile(Table):
    """Readings before the policy takes over."""

    count: int = Field(default=1, ge=0, le=MOST)
    """Number of readings before the policy takes over: the first at the start, the others at random sites."""
    level: NonNegativeInt = 0
    """Sensor level of these readings, counted from 0."""


class MeanFile(Table):
    """A prior mean: a CSV, a GeoTIFF or a NetCDF file in the coordinates of the axes."""

    file: FileName
    """Name of the file, in the mission's folder."""
    value: str | None = None
    """Column, band or variable that holds the mean; by default a CSV's column value or the one named like the
    quantity, and the only band or variable."""


class PriorFile(Table):
    """What is known before the mission: earlier readings, and a prior mean."""

    readings: FileName | None = None
    """A table or a log in the mission's folder, in any format that new worlds are made from; or the name of a
    run."""
    value: str | None = None
    """Column that holds the value; by default the one called value, or named like the quantity."""
    lat: str | None = None
    """Column that holds latitudes; by default the only one."""
    lon: str | None = None
    """Column that holds longitudes; by default the only one."""
    x: str | None = None
    """Column that holds the first coordinate, in metres; by default the columns named like the axes."""
    y: str | None = None
    """Column that holds the second coordinate, in metres."""
    crs: str | None = None
    """CRS of x and y, such as EPSG:28992; by default that of the world."""
    depth: str | None = None
    """Column that holds depths, or heights; by default the one named like the axis, or the only one."""
    time: str | None = None
    """Column that holds times; by default the one called time, or the only one."""
    noise: str | None = None
    """Column that holds standard deviations; by default the one called noise_sd, if there is one."""
    quantity: str | None = None
    """Which quantity to read, of several in one column."""
    layer: str | None = None
    """Which of several tables in a file to read: a layer, a sheet, a track or a kind of message."""
    track: FileName | None = None
    """A track with the positions of a log that has none, such as a GPX file."""
    track_offset_s: float | None = None
    """Seconds to add to the times of the log, so that they are those of the track."""
    track_gap_s: PositiveFloat | None = None
    """The furthest that two fixes of the track may be apart, for positions between them; by default 30 s."""
    noise_sd: NonNegativeFloat | None = None
    """Noise of the earlier readings, if they have no column of it; by default that of the sensor."""
    per_day: NonNegativeFloat = 0.0
    """How much the field changes in a day: a standard deviation, in the unit of the values. The noise
    variance of an earlier reading grows by its square per day of age."""
    age_days: NonNegativeFloat | None = None
    """Age of all earlier readings in days; by default it follows from their times."""
    missing: list[float] = []
    """Numbers in a log that stand for no value, such as -9999."""
    cleaning: Literal["ask", "clean", "keep"] = "ask"
    """What becomes of readings of a log that look wrong: an error lists them, they are left out, or taken."""
    low: float | None = None
    """The least possible value; lower ones are left out."""
    high: float | None = None
    """The largest possible value; higher ones are left out."""
    at: str | None = None
    """When the mission begins, for example 2026-07-02T08:00:00Z; by default now. Without an offset it is
    UTC."""
    mean: FileName | MeanFile | None = None
    """What is expected at each site before any reading: a file, or { file = "...", value = "..." }."""


class MissionFile(Table):
    """A mission: a question about a world, a vehicle, a policy and a model."""

    format: Format
    """Format of this file: 1."""
    title: str = ""
    """One line that describes the mission."""
    world: str
    """Name of the world."""
    draw: NonNegativeInt = 0
    """Which random field to use, counted from 0, if the world draws its field at random."""
    seed: NonNegativeInt = 0
    """Seed of the random streams; it never changes the field."""
    question: QuestionFile
    """What to find out: a level set or an optimum."""
    agent: AgentFile
    """The vehicle, its battery and its limits."""
    initial: InitialFile = InitialFile()
    """Readings before the policy takes over."""
    prior: PriorFile | None = None
    """What is known before the mission: earlier readings, and a prior mean."""
    policy: dict[str, Any] = Field(default_factory=dict)
    """The policy that chooses where to sample next. Left out, or kind = "auto": the default for such a
    question and such costs, which fieldbo policies --for MISSION names."""
    model: Model = Model()
    """The agent's model of the field."""
    stop: StopRule = StopRule()
    """When the question counts as answered."""
    hold: list[Hold] = Field(default=[], max_length=MOST_HOLDS)
    """When the vehicle waits: values of telemetry channels, such as a wind that is too strong."""


class AnyPolicyFile(Table):
    """What the table of every policy may have, beside the settings of its kind."""

    most_readings_per_site: PositiveInt | None = None
    """Number of orders to one site after which it is not proposed again, whatever the policy would do. Only
    where sites are a list, such as a grid."""


_AUTO: dict[str, Any] = {
    "description": "The default policy for such a question and such costs.",
    "properties": {"kind": {"const": AUTO, "description": "Kind of policy"}},
    "required": ["kind"],
    "additionalProperties": False,
}


def json_schema(what: Literal["world", "mission"]) -> dict[str, Any]:
    """Return the JSON Schema of world or mission files, including all installed kinds."""
    schema = TypeAdapter(WorldFile if what == "world" else MissionFile).json_schema()
    registries = {"field": FIELDS, "cost": COSTS} if what == "world" else {"policy": POLICIES}
    for name, registry in registries.items():
        table = kinds_schema(registry)
        if name == "policy":
            table["oneOf"].insert(0, _AUTO)
            for option in table["oneOf"]:
                option.setdefault("properties", {}).update(AnyPolicyFile.model_json_schema()["properties"])
        schema["$defs"] = {**schema.get("$defs", {}), **table.pop("$defs", {})}
        description = schema["properties"][name].get("description")
        schema["properties"][name] = {"description": description, **table}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def kinds_schema(registry: Registry) -> dict[str, Any]:
    """Return the JSON Schema of a table with a ``kind``: any kind of a registry."""
    options: list[dict[str, Any]] = []
    shared: dict[str, Any] = {}
    for name in registry.names():
        try:
            option = TypeAdapter(registry.get(name)).json_schema()
        except (InputError, PydanticUserError) as error:  # a broken package must not hide the other kinds
            option = {"description": str(error).split("\n")[0]}
        shared |= option.pop("$defs", {})
        kind = {"const": name, "description": f"Kind of {registry.what.removesuffix(' kind')}"}
        option["properties"] = {"kind": kind, **option.get("properties", {})}
        option["required"] = ["kind", *option.get("required", [])]
        options.append(option)
    return {"oneOf": options, "$defs": shared}


def holds_text(path: Sequence[str]) -> bool:
    """Return whether the key of a mission at a path of tables takes text and nothing else.

    Examples
    --------
    >>> holds_text(["prior", "value"]), holds_text(["agent", "battery"])
    (True, False)
    """
    table: Any = MissionFile
    for name in path:
        if not (isinstance(table, type) and issubclass(table, Table)) or name not in table.model_fields:
            return False
        kinds = _kinds_of(table.model_fields[name].annotation)
        table = next((kind for kind in kinds if kind is not str), str) if kinds else None
    return table is str


def _kinds_of(annotation: Any) -> list[Any]:
    """Return the types of which a key may be, without None."""
    if get_origin(annotation) is Annotated:
        return _kinds_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for each in get_args(annotation) for kind in _kinds_of(each)]
    return [] if annotation in (None, NoneType) else [annotation]
