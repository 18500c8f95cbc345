"""The options of ``fieldbo new world``, in groups: the table, the mission, a place on the Earth, a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, dataclass_transform, get_type_hints

import typer

from fieldbo.errors import InputError

if TYPE_CHECKING:
    from fieldbo.belief.question import Side as BelowOrAbove
    from fieldbo.mission.new.mission import LevelSetMission


class Transform(StrEnum):
    """Transform of the values before they are modelled."""

    none = "none"
    log = "log"


class Side(StrEnum):
    """Side of the threshold on which the level set of a mission lies."""

    above = "above"
    below = "below"


class Goal(StrEnum):
    """Goal of a cell's first mission."""

    minimise = "minimise"
    maximise = "maximise"


class Positive(StrEnum):
    """Direction in which the values of a bathymetry grow."""

    down = "down"
    up = "up"


class Pattern(StrEnum):
    """Arrangement of the sites of a place."""

    square = "square"
    hexagonal = "hexagonal"


def _option(
    help: str,
    *,
    default: Any = None,
    metavar: str | None = None,
    panel: str | None = None,
    flags: str | None = None,
) -> Any:
    """Return a field of a group; with ``...`` as its default, the option has to be given."""
    names = () if flags is None else (flags,)
    given = typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)
    return field(default=MISSING if default is ... else default, metadata={"option": given})


@dataclass_transform(frozen_default=True)
class Options:
    """A group of options, one per field; those that were not given are None."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    def given(self) -> dict[str, Any]:
        """Return the options that were given, by name."""
        values = {f"--{name.replace('_', '-')}": value for name, value in vars(self).items()}
        return {option: value for option, value in values.items() if value is not None}


def reject(given: Iterable[str], when: str, whose: str, fix: str) -> None:
    """Raise an `InputError` for the first of the options that were given."""
    for option in given:
        raise InputError(
            f"{option} does not apply {when}",
            expected=f"options of a {whose}",
            where=option,
            fix=f"{fix} --cell, or leave this option out",
        )


_of_mission = partial(_option, panel="Mission")
_of_place = partial(_option, panel="Place on the Earth")
_of_cell = partial(_option, panel="Factory cell")


class TableOptions(Options):
    """The table, and its columns."""

    csv: Path = _option("Table of readings: CSV, or what your instrument's program exports.", default=...)
    value: str | None = _option("Column that holds the value. Leave it out to list the columns.")
    x: str | None = _option("Column that holds the first coordinate, in metres.")
    y: str | None = _option(
        "Column that holds the second coordinate, in metres. A column named *depth* makes the world a "
        "transect."
    )
    noise: str | None = _option(
        "Column that holds the readings' standard deviations. [default: fit the noise]"
    )
    channel: list[str] | None = _option("Column that holds another quantity. Repeat the option for several.")
    time: str | None = _option("Column that holds the time; it sorts the log.  [default: the log's order]")
    missing: list[float] | None = _option(
        "Number that stands for no value, such as -9999. Repeat the option for several."
    )
    transform: Transform | None = _option(
        "Use *log* for skewed, positive values.  [default: *log* for a survey of heavy-tailed values]"
    )
    unit: str | None = _option(
        "Unit of the value; values in another one are converted.  [default: that in the log, or 1]"
    )
    quantity: str | None = _option(
        "Quantity to read from a table that has several in one column; it becomes the value."
    )
    layer: str | None = _option("Layer, sheet, track or kind of message to read, if the file has several.")
    track: Path | None = _option(
        "Track with the positions of a log that has none: GPX, NMEA, the log of an autopilot, or a table."
    )
    track_offset: str | None = _option(
        "Time to add to the log's clock to match the track's, such as \"-2 h\".", metavar="AMOUNT"
    )
    track_gap: str | None = _option(
        "Longest gap between fixes of the track to interpolate across.  [default: 30 s]", metavar="AMOUNT"
    )
    clean: bool | None = _option(
        "Leave out readings that look wrong, or keep them.  [default: ask]", flags="--clean/--keep"
    )
    low: float | None = _option("The least possible value; lower ones are left out.")
    high: float | None = _option("The largest possible value; higher ones are left out.")


class MissionOptions(Options):
    """What the first mission asks."""

    threshold: float | None = _of_mission("Threshold of the mission, in the value's unit.")
    quantile: float | None = _of_mission(
        "Threshold as a quantile of the readings.  [default: 0.7, or 0.3 with *--side below*]"
    )
    side: Side | None = _of_mission(
        "Ask where the value is at or above, or at or below, the threshold.  [default: above]"
    )
    battery: str | None = _of_mission(
        'Battery of the mission, such as "1 h".  [default: enough for about 40 stops]', metavar="AMOUNT"
    )

    @property
    def on_side(self) -> BelowOrAbove:
        """The side of the threshold that the mission maps."""
        return "above" if self.side is None else self.side.value

    def asked(self) -> LevelSetMission:
        """Return the mission."""
        from fieldbo.mission.new.mission import LevelSetMission

        return LevelSetMission(self.threshold, self.on_side, self.quantile, self.battery)


class PlaceOptions(Options):
    """A place on the Earth."""

    lat: str | None = _of_place("Column that holds latitudes.")
    lon: str | None = _of_place("Column that holds longitudes.")
    outline: str | None = _of_place(
        "Area to survey: GeoJSON, KML, GPX, shapefile or GeoPackage, in any CRS. Name one of several layers "
        "after a colon.  [default: an outline around the readings]",
        metavar="FILE[:LAYER]",
    )
    avoid: list[str] | None = _of_place(
        "Zones to go around, such as a swimmers' zone. Repeat the option for several files.",
        metavar="FILE[:LAYER]",
    )
    avoid_margin: str | None = _of_place(
        'Distance to keep from points and lines among the zones, such as "10 m".  [default: only areas]'
    )
    start: str | None = _of_place(
        "Start and home: latitude and longitude.  [default: the first reading]", metavar="LAT,LON"
    )
    speed: str | None = _of_place('Speed of the boat, such as "2 kn".  [default: 1 m/s]')
    stop: str | None = _of_place('How long a sample takes, such as "1 min".  [default: 60 s]')
    spacing: str | None = _of_place(
        'Distance between sites, such as "10 m".  [default: for about 1,500 sites]'
    )
    pattern: Pattern | None = _of_place("Arrangement of the sites.  [default: square]")
    clearance: str | None = _of_place("Distance to keep from shores and from zones to avoid.  [default: 2 m]")
    bathymetry: str | None = _of_place(
        "Depth of the bottom, as NetCDF, GeoTIFF or another grid in any CRS; it limits the sites. Name one "
        "of several variables or bands after a colon.",
        metavar="FILE[:VARIABLE]",
    )
    positive: Positive | None = _of_place(
        "Direction in which the values of *--bathymetry* grow: *down* for depths, *up* for elevations.  "
        "[default: as the file says]"
    )
    deepest: str | None = _of_place(
        'Depth of the deepest water, such as "800 m".  [default: more than 500 m is an error]'
    )
    least_depth: str | None = _of_place("No sites where the water is shallower; needs *--bathymetry*.")
    depths: str | None = _of_place(
        "Depths of the sites, in metres.  [default: at the surface]", metavar="M,M,..."
    )
    depth: str | None = _of_place("Column that holds the depth; needs *--depths*.")
    crs: str | None = _of_place(
        "CRS of *--x* and *--y*, and of files that do not state theirs, such as EPSG:28992. If it is in "
        "metres, it is also the world's.  [default: the local UTM zone]",
        metavar="CRS",
    )


class CellOptions(Options):
    """A factory cell."""

    axis: list[str] | None = _of_cell(
        "Column that holds a setting, and its unit. [default: all but those of the order of runs]",
        metavar="COL[:UNIT]",
    )
    module: list[str] | None = _of_cell(
        "A stage with its settings and cost. List stages in the order in which they run.",
        metavar="NAME=COL,COL:COST",
    )
    control_set: list[str] | None = _of_cell(
        "Settings that can be set together, and what that costs.", metavar="COL,COL:COST"
    )
    sample_cost: float | None = _of_cell(
        "Cost of a sample if there are no modules or control sets.  [default: 1]"
    )
    cost_unit: str | None = _of_cell("Unit of costs.  [default: EUR]")
    goal: Goal | None = _of_cell("Goal of the mission.  [default: minimise]")


Cell = Annotated[
    bool,
    typer.Option(
        "--cell",
        help="Make a factory cell: each row holds settings and their outcome.",
        rich_help_panel="Factory cell",
    ),
]
FittedModel = Annotated[
    bool,
    typer.Option(
        "--fitted-model",
        help="Begin the mission with the model fitted to the table. Use it for live missions: in simulation, "
        "scores would be too good, because the truth comes from that same fit.  "
        "[default: learn from the mission's readings]",
        rich_help_panel="Mission",
    ),
]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are parameters one by one, as typer reads them."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if hint in Options.__subclasses__()}

    def flat(**given: Any) -> None:
        made = {
            name: group(**{each.name: given.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    annotated: Any = Annotated  # of types that are known only now
    parameters = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        types = get_type_hints(groups[name])
        for each in fields(groups[name]):
            kind = annotated[types[each.name], each.metadata["option"]]
            default = Parameter.empty if each.default is MISSING else each.default
            parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    return flat
