"""``fieldbo new world``: a world and its first mission, from a log, a survey, or the trials of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldbo.cli.new_place import list_columns, make_place, measured, recognised
from fieldbo.cli.new_report import report

if TYPE_CHECKING:
    from fieldbo.belief.question import Side as BelowOrAbove

EXAMPLES = """
**Examples**

`fieldbo new world kessel --csv sonde.csv --lat lat --lon lon --value chl --outline lake.geojson
--avoid swimmers.kml --start 47.3079,8.5105 --speed "1 m/s" --stop "30 s" --spacing "10 m"` - a lake, from a
log in degrees

`fieldbo new world bay --csv survey.csv --x east --y north --value zinc` - a survey in metres; add
`--crs EPSG:28992` to place it on the Earth

`fieldbo new world oven --cell --csv trials.csv --value strength --goal maximise --axis heat:C` -
trials of a factory cell, where every sample costs the same

`... --module "mix=ratio,speed:40" --module "bake=heat,time:10"` - changing a module means rerunning all
later ones

`... --control-set "heat,time:1" --control-set "heat:0.1"` - settings outside the set are left to chance
"""

_MISSION, _PLACE, _CELL = "Mission", "Place on the Earth", "Factory cell"


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


class Pattern(StrEnum):
    """Arrangement of the sites of a place."""

    square = "square"
    hexagonal = "hexagonal"


FittedModel = Annotated[
    bool,
    typer.Option(
        "--fitted-model",
        help="Begin the mission with the model fitted to the table. Use it for live missions: in simulation, "
        "scores would be too good, because the truth comes from that same fit.  "
        "[default: learn from the mission's readings]",
        rich_help_panel=_MISSION,
    ),
]


def world(
    name: Annotated[str, typer.Argument(help="Name of the world and of its first mission.")],
    csv: Annotated[
        Path, typer.Option(help="Table of readings, one per line, with column names in the first line.")
    ],
    value: Annotated[
        str | None, typer.Option(help="Column that holds the value. Leave it out to list the columns.")
    ] = None,
    x: Annotated[str | None, typer.Option(help="Column that holds the first coordinate, in metres.")] = None,
    y: Annotated[
        str | None,
        typer.Option(
            help="Column that holds the second coordinate, in metres. A column named *depth* makes the world "
            "a transect."
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Column that holds the readings' standard deviations. [default: fit the noise]"),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="Column that holds another quantity. Repeat the option for several."),
    ] = None,
    transform: Annotated[
        Transform, typer.Option(help="Use *log* for skewed, positive values.")
    ] = Transform.none,
    unit: Annotated[
        str | None, typer.Option(help="Unit of the value.  [default: that in the log, or 1]")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Threshold of the mission, in the value's unit.", rich_help_panel=_MISSION),
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            help="Threshold as a quantile of the readings.  [default: 0.7, or 0.3 with *--side below*]",
            rich_help_panel=_MISSION,
        ),
    ] = None,
    side: Annotated[
        Side | None,
        typer.Option(
            help="Ask where the value is at or above, or at or below, the threshold.  [default: above]",
            rich_help_panel=_MISSION,
        ),
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(
            help='Battery of the mission, such as "1 h".  [default: enough for about 40 stops]',
            metavar="AMOUNT",
            rich_help_panel=_MISSION,
        ),
    ] = None,
    lat: Annotated[
        str | None, typer.Option(help="Column that holds latitudes.", rich_help_panel=_PLACE)
    ] = None,
    lon: Annotated[
        str | None, typer.Option(help="Column that holds longitudes.", rich_help_panel=_PLACE)
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column that holds the time; it sorts the log.  [default: the log's order]",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    missing: Annotated[
        list[float] | None,
        typer.Option(
            help="Number that stands for no value, such as -9999. Repeat the option for several.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    outline: Annotated[
        str | None,
        typer.Option(
            help="Area to survey: GeoJSON, KML, GPX, shapefile or GeoPackage, in any CRS. Name one of "
            "several layers after a colon.  [default: an outline around the readings]",
            metavar="FILE[:LAYER]",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    avoid: Annotated[
        list[str] | None,
        typer.Option(
            help="Zones to go around, such as a swimmers' zone. Repeat the option for several files.",
            metavar="FILE[:LAYER]",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Start and home: latitude and longitude.  [default: the first reading]",
            metavar="LAT,LON",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(help='Speed of the boat, such as "2 kn".  [default: 1 m/s]', rich_help_panel=_PLACE),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            help='How long a sample takes, such as "1 min".  [default: 60 s]', rich_help_panel=_PLACE
        ),
    ] = None,
    spacing: Annotated[
        str | None,
        typer.Option(
            help='Distance between sites, such as "10 m".  [default: for about 1,500 sites]',
            rich_help_panel=_PLACE,
        ),
    ] = None,
    pattern: Annotated[
        Pattern | None,
        typer.Option(help="Arrangement of the sites.  [default: square]", rich_help_panel=_PLACE),
    ] = None,
    clearance: Annotated[
        str | None,
        typer.Option(
            help="Distance to keep from shores and from zones to avoid.  [default: 2 m]",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    bathymetry: Annotated[
        Path | None,
        typer.Option(
            help="Depth of the bottom, as NetCDF or GeoTIFF in any CRS; it limits the sites.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    least_depth: Annotated[
        str | None,
        typer.Option(
            help="No sites where the water is shallower; needs *--bathymetry*.", rich_help_panel=_PLACE
        ),
    ] = None,
    depths: Annotated[
        str | None,
        typer.Option(
            help="Depths of the sites, in metres.  [default: at the surface]",
            metavar="M,M,...",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    depth: Annotated[
        str | None,
        typer.Option(help="Column that holds the depth; needs *--depths*.", rich_help_panel=_PLACE),
    ] = None,
    crs: Annotated[
        str | None,
        typer.Option(
            help="CRS of *--x* and *--y*, and of files that do not state theirs, such as EPSG:28992. If it "
            "is in metres, it is also the world's.  [default: the local UTM zone]",
            metavar="CRS",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    cell: Annotated[
        bool,
        typer.Option(
            "--cell",
            help="Make a factory cell: each row holds settings and their outcome.",
            rich_help_panel=_CELL,
        ),
    ] = False,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that holds a setting, and its unit. [default: all columns]",
            metavar="COL[:UNIT]",
            rich_help_panel=_CELL,
        ),
    ] = None,
    module: Annotated[
        list[str] | None,
        typer.Option(
            help="A stage with its settings and cost. List stages in the order in which they run.",
            metavar="NAME=COL,COL:COST",
            rich_help_panel=_CELL,
        ),
    ] = None,
    control_set: Annotated[
        list[str] | None,
        typer.Option(
            help="Settings that can be set together, and what that costs.",
            metavar="COL,COL:COST",
            rich_help_panel=_CELL,
        ),
    ] = None,
    sample_cost: Annotated[
        float | None,
        typer.Option(
            help="Cost of a sample if there are no modules or control sets.  [default: 1]",
            rich_help_panel=_CELL,
        ),
    ] = None,
    cost_unit: Annotated[
        str | None, typer.Option(help="Unit of costs.  [default: EUR]", rich_help_panel=_CELL)
    ] = None,
    goal: Annotated[
        Goal | None, typer.Option(help="Goal of the mission.  [default: minimise]", rich_help_panel=_CELL)
    ] = None,
    fitted_model: FittedModel = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Overwrite a world and a mission of this name; other files in the world's folder stay.",
        ),
    ] = False,
) -> None:
    """Make a world and its first mission from a log, a survey, or the trials of a factory cell.

    Writes *worlds/NAME* and *missions/NAME.toml* in the working directory. For simulations, the truth is
    drawn from a Gaussian process fitted to the table; in a cell, it is its mean. A place on the Earth is also
    drawn, in *NAME-place.png*.
    """
    if value is None:
        list_columns(csv)
    of_mission: dict[str, Any] = {"threshold": threshold, "quantile": quantile, "side": side}
    of_mission["battery"] = battery
    of_place: dict[str, Any] = {"lat": lat, "lon": lon, "outline": outline, "avoid": avoid, "start": start}
    of_place |= {"speed": speed, "stop": stop, "spacing": spacing, "pattern": pattern}
    of_place |= {"clearance": clearance, "crs": crs, "time": time, "missing": missing}
    of_place |= {"bathymetry": bathymetry, "least-depth": least_depth, "depths": depths, "depth": depth}
    of_cell: dict[str, Any] = {"axis": axis, "module": module, "control-set": control_set}
    of_cell |= {"sample-cost": sample_cost, "cost-unit": cost_unit, "goal": goal}
    table: dict[str, Any] = {"csv": csv, "value": value, "noise_sd": noise}
    table |= {"transform": transform.value, "value_unit": "1" if unit is None else unit}
    table["fitted_model"] = fitted_model
    if cell:
        _reject({"x": x, "y": y, "channel": channel} | of_mission | of_place, "of a survey", "with --cell")
        lines = _cell(name, table, of_cell, replace)
    else:
        _reject(of_cell, "of a cell", "without --cell")
        columns = {"x": x, "y": y, "channels": tuple(channel or ())}
        if x is None and lat is None and lon is None:
            of_place |= recognised(csv)
        placed = any(given is not None for given in of_place.values())
        if placed:
            texts = {"value_unit": unit or ""}
            lines = make_place(name, table | columns | texts, of_mission | of_place, replace)
        else:
            lines = _survey(name, table | columns, of_mission | of_place, replace)
    typer.echo("\n".join(lines))


def _reject(options: Mapping[str, Any], whose: str, when: str) -> None:
    """Raise an `InputError` if one of these options was given."""
    from fieldbo.errors import InputError

    for option, given in options.items():
        if given is not None:
            raise InputError(
                f"--{option} does not apply {when}",
                expected="options of a cell" if "with " in when else "options of a survey",
                where=f"--{option}",
                fix=f"{'leave out' if when == 'with --cell' else 'add'} --cell, or leave this option out",
            )


def _cell(name: str, table: dict[str, Any], given: Mapping[str, Any], overwrite: bool) -> list[str]:
    """Make a factory cell."""
    from fieldbo.errors import InputError
    from fieldbo.mission.new.cell import CellTable, control_set_of, make_cell, module_of, setting_of
    from fieldbo.world.readings import column_names

    sample_cost, cost_unit, goal = given["sample-cost"], given["cost-unit"], given["goal"]
    if sample_cost is not None and (given["module"] or given["control-set"]):
        raise InputError(
            "--sample-cost does not apply to modules or control sets, which have their own costs",
            expected="one or the other",
            where="--sample-cost",
        )
    settings = [setting_of(text, column_names(table["csv"])) for text in given["axis"] or ()]
    cell = CellTable(
        **table,
        axes=tuple(column for column, _ in settings),
        units=tuple(its_unit for _, its_unit in settings),
        modules=tuple(module_of(text) for text in given["module"] or ()),
        control_sets=tuple(control_set_of(text) for text in given["control-set"] or ()),
        sample_cost=1.0 if sample_cost is None else sample_cost,
        cost_unit="EUR" if cost_unit is None else cost_unit,
        goal="minimise" if goal is None else goal.value,
    )
    return report(make_cell(name, cell, overwrite=overwrite), "rows")


def _survey(name: str, table: dict[str, Any], given: Mapping[str, Any], overwrite: bool) -> list[str]:
    """Make a survey in metres that is not placed on the Earth."""
    from fieldbo.errors import InputError
    from fieldbo.mission.new.survey import Survey, make_world

    if table["x"] is None:
        raise InputError(
            "the columns of the positions are missing",
            expected="--lat COLUMN and --lon COLUMN, or --x COLUMN and --y COLUMN in metres",
            where="--x",
            fix="name them, or add --cell if the table holds settings and their outcomes",
        )
    assumed: list[str] = []
    measured(given, "battery", "s", "the unit of costs", assumed)
    side: BelowOrAbove = "above" if given["side"] is None else given["side"].value
    asked = {option: given[option] for option in ("quantile", "threshold", "battery")}
    survey = Survey(**table, **asked, side=side)
    return report(make_world(name, survey, overwrite=overwrite), "readings", assumed)
