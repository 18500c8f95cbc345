"""``fieldbo new world``: a world and its first mission, from a log, a survey, or the trials of a cell."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from fieldbo.cli.new_options import (
    Cell,
    CellOptions,
    FittedModel,
    MissionOptions,
    PlaceOptions,
    TableOptions,
    reject,
    spread,
)
from fieldbo.cli.options import examples
from fieldbo.errors import InputError, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo.domain.domain import Domain
    from fieldbo.mission.new.survey import Survey
    from fieldbo.mission.new.writer import NewWorld
    from fieldbo.tables.source import Opening
    from fieldbo.tables.table import Table

_LEAST, _MOST = 1e-6, 1e9
"""Range of amounts in metres, seconds and m/s, so that no cost overflows."""

_OF_SURVEY = ("--x", "--y", "--channel", "--time", "--track", "--clean", "--low", "--high")
_LENGTH, _TIME = ("m", "the unit of lengths"), ("s", "the unit of times")


@examples(
    """
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
)
@spread
def world(
    *,
    name: Annotated[str, typer.Argument(help="Name of the world and of its first mission.")],
    table: TableOptions,
    mission: MissionOptions,
    place: PlaceOptions,
    cell: Cell = False,
    of_cell: CellOptions,
    fitted_model: FittedModel = False,
    replace_: Annotated[
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
    assumed: list[str] = []
    opening = _opening(table, assumed)
    value = table.quantity if table.value is None else table.value
    if value is None:
        placed = cell or any(each is not None for each in (table.track, table.x, place.lat, place.lon))
        list_columns(opening.open(table.csv, table.time), placed=placed)
    given: dict[str, Any] = {"csv": table.csv, "value": value, "noise_sd": table.noise}
    given |= {"fitted_model": fitted_model, "opening": opening}
    given |= {"value_unit": table.unit or "", "missing": tuple(table.missing or ())}
    if table.transform is not None:
        given["transform"] = table.transform.value
    if cell:
        of_survey = [option for option in _OF_SURVEY if option in table.given()]
        reject([*of_survey, *mission.given(), *place.given()], "with --cell", "cell", "leave out")
        lines = _make_cell(name, given, of_cell, replace_)
    else:
        reject(of_cell.given(), "without --cell", "survey", "add")
        if table.x is None and place.lat is None and place.lon is None:
            if table.track is not None:
                place = replace(place, lat="latitude", lon="longitude")
            else:
                place = replace(place, **recognised(opening.open(table.csv, table.time)))
        given |= {"channels": tuple(table.channel or ()), "time": table.time, "mission": mission.asked()}
        given |= {"low": table.low, "high": table.high}
        if table.clean is not None:
            given["cleaning"] = "clean" if table.clean else "keep"
        if place.given():
            lines = _make_place(name, table, given, mission, place, replace_, assumed)
        else:
            lines = _make_survey(name, table, given, mission, replace_, assumed)
    typer.echo("\n".join(lines))


def _make_place(
    name: str,
    table: TableOptions,
    given: dict[str, Any],
    mission: MissionOptions,
    place: PlaceOptions,
    overwrite: bool,
    assumed: list[str],
) -> list[str]:
    from fieldbo.mission.files import name_of
    from fieldbo.mission.new.place import Extent
    from fieldbo.mission.new.survey import Survey
    from fieldbo.results import plot

    picture = Path(f"{name_of('world', name)}-place.png")
    if picture.exists() and not picture.is_file():
        raise InputError(
            f"{picture} is not a file", expected="a picture, or nothing yet", fix="rename or remove it"
        )
    in_degrees = place.lat is not None or place.lon is not None
    columns: Any = (place.lat, place.lon) if in_degrees else (table.x, table.y)
    if None in columns or (in_degrees and (table.x is not None or table.y is not None)):
        raise InputError(
            "the columns of the positions are not given as a pair",
            expected="--lat and --lon in degrees, or --x and --y in metres with --crs",
            where="--lat" if in_degrees else "--x",
        )
    options: dict[str, Any] = {
        "outline": place.outline,
        "avoid": tuple(place.avoid or ()),
        "avoid_margin": _measure("--avoid-margin", place.avoid_margin, *_LENGTH, assumed),
        "start": None if place.start is None else degrees(place.start, "--start"),
        "spacing": _measure("--spacing", place.spacing, *_LENGTH, assumed),
        "pattern": None if place.pattern is None else place.pattern.value,
        "clearance": _measure("--clearance", place.clearance, *_LENGTH, assumed, zero=True),
        "speed": _measure("--speed", place.speed, "m/s", "the unit of speeds", assumed),
        "stop_s": _measure("--stop", place.stop, *_TIME, assumed),
        "crs": place.crs,
        "bathymetry": place.bathymetry,
        "positive": None if place.positive is None else place.positive.value,
        "deepest": _measure("--deepest", place.deepest, *_LENGTH, assumed),
        "least_depth": _measure("--least-depth", place.least_depth, *_LENGTH, assumed),
        "depths": None if place.depths is None else numbers(place.depths, "--depths"),
    }
    _measure("--battery", mission.battery, *_TIME, assumed)
    survey = Survey(
        **given,
        columns=columns,
        positions="degrees" if in_degrees else "metres",
        extent=Extent(**{option: value for option, value in options.items() if value is not None}),
        depth=place.depth,
    )
    made = _make_asking(name, survey, overwrite)
    try:
        plot.save(plot.place_picture(made.loaded.world, made.field.readings), picture)
    except OSError as error:
        raise InputError(
            f"{picture} can't be written: {error.strerror or error}; {made.world} and {made.mission} are "
            "complete",
            expected="a working directory with space for a picture",
            fix=f"go on without it: fieldbo run {name}",
        ) from None
    sites = made.loaded.world.domain
    assert sites.georeference is not None
    *lines, following = _report(made, "readings", assumed)
    return [
        *lines,
        f"  crs       {sites.georeference.name}",
        f"  place     {sites.size:,} sites {sites.spacing[0]:g} m apart; {_describe_shore(sites)}, "
        f"{counted(len(sites.solid), 'zone')} to avoid; drawn in {picture}: look at it",
        following,
    ]


def _make_survey(
    name: str,
    table: TableOptions,
    given: dict[str, Any],
    mission: MissionOptions,
    overwrite: bool,
    assumed: list[str],
) -> list[str]:
    """Make a survey in metres that is not placed on the Earth."""
    from fieldbo.mission.new.survey import Survey

    if table.x is None:
        raise InputError(
            "the columns of the positions are missing",
            expected="--lat COLUMN and --lon COLUMN, or --x COLUMN and --y COLUMN in metres",
            where="--x",
            fix="name them; if the log has none, name the file of the boat's track: --track FILE; or add "
            "--cell if the table holds settings and their outcomes",
        )
    _measure("--battery", mission.battery, "s", "the unit of costs", assumed)
    survey = Survey(**given, columns=(table.x,) if table.y is None else (table.x, table.y))
    return _report(_make_asking(name, survey, overwrite), "readings", assumed)


def _make_asking(name: str, survey: Survey, overwrite: bool) -> NewWorld:
    """Make a world; on a terminal, ask what becomes of readings that look wrong."""
    from fieldbo.mission.new.survey import make_world
    from fieldbo.tables.cleaning import SuspectReadingsError

    try:
        return make_world(name, survey, overwrite=overwrite)
    except SuspectReadingsError as error:
        if not sys.stdin.isatty():
            raise
        typer.echo(str(error))
        left_out = typer.confirm("Leave them out? (No: take them as they are)", default=None)
        survey = replace(survey, cleaning="clean" if left_out else "keep")
        return make_world(name, survey, overwrite=overwrite)


def _make_cell(name: str, given: dict[str, Any], options: CellOptions, overwrite: bool) -> list[str]:
    from fieldbo.mission.new.cell import control_set_of, make_cell, module_of, setting_of
    from fieldbo.mission.new.trials import CellTable

    if options.sample_cost is not None and (options.module or options.control_set):
        raise InputError(
            "--sample-cost does not apply to modules or control sets, which have their own costs",
            expected="one or the other",
            where="--sample-cost",
        )
    settings = [setting_of(text, given["opening"].open(given["csv"]).names) for text in options.axis or ()]
    cell = CellTable(
        **given,
        axes=tuple(column for column, _ in settings),
        units=tuple(its_unit for _, its_unit in settings),
        modules=tuple(module_of(text) for text in options.module or ()),
        control_sets=tuple(control_set_of(text) for text in options.control_set or ()),
        sample_cost=1.0 if options.sample_cost is None else options.sample_cost,
        cost_unit="EUR" if options.cost_unit is None else options.cost_unit,
        goal="minimise" if options.goal is None else options.goal.value,
    )
    return _report(make_cell(name, cell, overwrite=overwrite), "rows")


def _opening(table: TableOptions, assumed: list[str]) -> Opening:
    """Return how the file of readings is opened."""
    from fieldbo.tables.source import Opening

    offset, gap = table.track_offset, _measure("--track-gap", table.track_gap, *_TIME, assumed)
    sign, size = (-1.0, offset[1:]) if offset is not None and offset.startswith("-") else (1.0, offset)
    offset_s = _measure("--track-offset", size, *_TIME, assumed, zero=True)
    given = {"track_offset_s": None if offset_s is None else sign * offset_s, "track_gap_s": gap}
    return Opening(
        table.quantity,
        table.layer,
        table.track,
        **{option: value for option, value in given.items() if value is not None},
    )


def _measure(
    option: str, text: str | None, unit: str, what: str, assumed: list[str], *, zero: bool = False
) -> float | None:
    """Return an option in a unit, None if it was not given; add a note to `assumed` if it names no unit.

    Raises
    ------
    InputError
        It is not an amount in that unit, or out of range.
    """
    from fieldbo.mission.amounts import amount, names_unit

    if text is None:
        return None
    number = amount(text, unit, option, what=what, zero=zero)
    if not (_LEAST <= number <= _MOST or number == 0):
        raise InputError(
            f'{option} "{text}"', expected=f"an amount from {_LEAST:g} to {_MOST:g} {unit}", where=option
        )
    if not names_unit(text):
        assumed.append(f"{option} {text} is in {unit}")
    return number


def numbers(text: str, option: str, count: int | None = None) -> tuple[float, ...]:
    """Return the numbers of an option such as ``0,2.5``.

    Raises
    ------
    InputError
        There are not `count` numbers, or none.

    Examples
    --------
    >>> numbers("0, 2.5", "--depths")
    (0.0, 2.5)
    """
    parts = text.replace(",", " ").split()
    try:
        given = tuple(float(part) for part in parts)
    except ValueError:
        given = ()
    if not given or not all(map(math.isfinite, given)) or (count is not None and len(given) != count):
        example = ",".join("148"[: count or 3])
        raise InputError(
            f"{option} {text}",
            expected=f"{count or 'some'} numbers with decimal points, separated by commas, such as "
            f"{option} {example}",
            where=option,
            fix=f"write, for example, {option} {example}",
        )
    return given


def degrees(text: str, option: str) -> tuple[float, ...]:
    """Return the latitude and longitude of an option, in any form that the prompt of a run by hand accepts.

    Raises
    ------
    InputError
        The text is no latitude and longitude.

    Examples
    --------
    >>> degrees("69,5; 27,25", "--start"), degrees("69°30'N 27°15'E", "--start")
    ((69.5, 27.25), (69.5, 27.25))
    """
    from fieldbo.vehicles.dialogue import number_in, parts_of
    from fieldbo.vehicles.typed_places import angles_in, has_angles

    try:
        if has_angles(text):
            place, rest = angles_in(text)
            given = tuple(place.tolist())
            if rest:
                raise InputError(f"{rest!r} follows the longitude")
        else:
            given = tuple(number_in(part) for part in parts_of(text, ("latitude", "longitude")))
    except InputError as error:
        raise InputError(
            f"{option} {text}: {error.problem}",
            expected="a latitude and a longitude in degrees, or in degrees and minutes",
            where=option,
            fix=f"write, for example, {option} 47.3079,8.5105 or {option} \"47°18.48'N 8°30.63'E\"; with "
            f'decimal commas, {option} "47,3079; 8,5105"',
        ) from None
    return given


def list_columns(log: Table, *, placed: bool = True) -> NoReturn:
    """Print what the columns of a log hold, and raise the error that one has to be chosen.

    Its fix also names the columns of the positions, unless the user has `placed` the log.
    """
    from fieldbo.tables.columns import describe_columns, no_value_chosen, table_of

    typer.echo("\n".join([*log.notes, *table_of(describe_columns(log))]))
    raise no_value_chosen(log, placed=placed)


def recognised(log: Table) -> dict[str, Any]:
    """Return the columns of a log that look like latitude and longitude, once the user has agreed."""
    from fieldbo.tables.columns import degrees_in, describe_columns, option_text

    found = degrees_in(describe_columns(log))
    if found is None:
        return {}
    options = list(zip(("--lat", "--lon"), found, strict=True))
    lat, lon = found
    meant = f"{lat!r} and {lon!r} look like latitude and longitude"
    if sys.stdin.isatty() and typer.confirm(f"{meant}. Use them?"):
        return {"lat": lat, "lon": lon}
    raise InputError(
        f"the columns of the positions are missing; {meant}",
        expected="--lat COLUMN and --lon COLUMN, or --x COLUMN and --y COLUMN in metres",
        where="--lat",
        fix=" ".join(f"{option} {option_text(log, column)}" for option, column in options),
    )


def _describe_shore(domain: Domain) -> str:
    """Return how many outlines there are, and how many islands within them."""
    import shapely

    parts = shapely.get_parts(domain.outline)
    islands = int(shapely.get_num_interior_rings(parts).sum())
    return f"{counted(len(parts), 'outline')}, {counted(islands, 'island')}"


def _report(made: NewWorld, rows: str, assumed: Sequence[str] = ()) -> list[str]:
    """Return what was made and `assumed`, as lines."""
    import numpy as np

    from fieldbo.belief.question import LevelSet
    from fieldbo.mission.description import describe_parts_of_cost
    from fieldbo.mission.new.mission import one_sided
    from fieldbo.results.words import question_text
    from fieldbo.world.world import digits_of

    field, mission, world = made.field, made.loaded, made.loaded.world
    values, truth = field.readings.values, world.truth(world.domain.sites)
    digits = max(6, digits_of(float(values.max()), float(np.ptp(values))))
    unit, shown = "" if world.quantity.unit in ("", "1") else f" {world.quantity.unit}", world.quantity.number
    if isinstance(mission.question, LevelSet):
        question = mission.question
        inside = np.mean(question.sign * truth >= question.sign * question.threshold)
        scales = [f"{a.name} {v:.4g} m" for a, v in zip(world.domain.axes, field.length_scales, strict=True)]
        details = f"on {len(truth)} sites; {inside:.0%} of them at or {question.side} the threshold"
        single = " (of a single reading)" if made.pooled > 1 else ""
        of_sensor = f"noise sd {world.sensor.noise_sd:g}{unit}{single}"
        costs = [f"  sensor    {of_sensor}; set your instrument's in [sensor]"]
    else:  # length scales in ranges show which settings matter: those with a short one
        ranges = zip(world.domain.axes, field.length_scales / field.extent, strict=True)
        scales = [f"in ranges: {', '.join(f'{axis.name} {scale:.2g}' for axis, scale in ranges)}"]
        details = f"over the settings; the table says little about {made.little_known:.0%} of them"
        sample = world.cost.least_sampling_cost(world.domain.sites)
        costs = describe_parts_of_cost(world) or [f"  cost      {sample:g} {world.cost_unit} per sample"]
    noise = f"{field.noise_sd:.3g}" + (" of the log" if field.scale.transform == "log" else unit)
    noise += f" (of the mean of {made.pooled:.3g} rows)" if made.pooled > 1 else ""
    notes = [*field.notes, *field.details, *made.notes, *_warn_unreachable(mission.unreachable), *assumed]
    notes += one_sided(mission.question, values, world.quantity)
    unknown = ", costs to be learned" if mission.costs == "unknown" else ""
    return [
        f"world in {made.world}, mission in {made.mission}",
        f"  {rows:<9} {len(values)}, {values.min():.{digits}g} to {values.max():.{digits}g}{unit}",
        *map(_format_note, notes),
        f"  fitted    length scales {', '.join(scales)}; noise sd {noise}",
        f"  quality   leave-one-out error {field.loo_rmse:.4g}{unit}, which explains "
        f"{max(0.0, field.explained):.0%} of the variance; 90% intervals hold {field.loo_coverage:.0%} "
        f"of the {rows}",
        *_describe_validation(made, unit),
        f"  truth     {shown(truth.min())} to {shown(truth.max())}{unit} {details}",
        *costs,
        f"  mission   {question_text(mission.question, world.quantity)} {mission.policy_kind}, battery "
        f"{mission.vehicles[0].battery:g} {world.cost_unit}{unknown}",
        f"next: fieldbo run {world.name}",
    ]


def _warn_unreachable(number: int) -> list[str]:
    return [f"warning: {number} sites can't be reached from the start; they are left out"] if number else []


def _format_note(note: str) -> str:
    text = note.removeprefix("warning: ")
    return f"  {'note' if text == note else 'warning':<9} {text}"


def _describe_validation(made: NewWorld, unit: str) -> list[str]:
    """Return how well lines or blocks are predicted that are left out, and which error to trust, as lines."""
    validation = made.validation
    if validation is None:
        return []
    lines = [
        f"  {validation.kind + 's':<9} {validation.result(unit)}",
        f"  trust     {validation.advice(unit)}",
    ]
    return [*lines, *([f"  warning   {validation.warning}"] if validation.warning else [])]
