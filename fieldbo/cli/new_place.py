"""Worlds on the Earth for ``fieldbo new world``: their options, and the columns of their logs."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from fieldbo.cli.new_report import report

if TYPE_CHECKING:
    from fieldbo.belief.question import Side
    from fieldbo.domain.domain import Domain

_LEAST, _MOST = 1e-6, 1e9
"""Range of amounts in metres, seconds and m/s, so that no cost overflows."""


def make_place(
    name: str, table: dict[str, Any], given: Mapping[str, Any], overwrite: bool = False
) -> list[str]:
    """Make a place on the Earth."""
    from fieldbo.errors import InputError, counted
    from fieldbo.mission.files import name_of
    from fieldbo.mission.new.mission import LevelSetMission
    from fieldbo.mission.new.place import Extent
    from fieldbo.mission.new.survey import PlaceSurvey, make_place_world
    from fieldbo.results import plot

    assumed: list[str] = []
    measure = partial(measured, given, assumed=assumed)
    picture = Path(f"{name_of('world', name)}-place.png")
    if picture.exists() and not picture.is_file():
        raise InputError(
            f"{picture} is not a file", expected="a picture, or nothing yet", fix="rename or remove it"
        )

    x, y = table.pop("x"), table.pop("y")
    in_degrees = given["lat"] is not None or given["lon"] is not None
    columns = (given["lat"], given["lon"]) if in_degrees else (x, y)
    if None in columns or (in_degrees and (x is not None or y is not None)):
        raise InputError(
            "the columns of the positions are not given as a pair",
            expected="--lat and --lon in degrees, or --x and --y in metres with --crs",
            where="--lat" if in_degrees else "--x",
        )
    options = {
        "outline": given["outline"],
        "avoid": tuple(given["avoid"] or ()),
        "start": None if given["start"] is None else degrees(given["start"], "--start"),
        "spacing": measure("spacing", "m", "the unit of lengths"),
        "pattern": None if given["pattern"] is None else given["pattern"].value,
        "clearance": measure("clearance", "m", "the unit of lengths", zero=True),
        "speed": measure("speed", "m/s", "the unit of speeds"),
        "stop_s": measure("stop", "s", "the unit of times"),
        "crs": given["crs"],
        "bathymetry": given["bathymetry"],
        "least_depth": measure("least-depth", "m", "the unit of lengths"),
        "depths": None if given["depths"] is None else numbers(given["depths"], "--depths"),
    }
    extent = Extent(**{option: value for option, value in options.items() if value is not None})
    side: Side = "above" if given["side"] is None else given["side"].value
    measure("battery", "s", "the unit of times")
    asked = LevelSetMission(given["threshold"], side, given["quantile"], given["battery"])
    survey = PlaceSurvey(
        **table,
        columns=columns,
        extent=extent,
        in_degrees=in_degrees,
        depth=given["depth"],
        time=given["time"],
        missing=tuple(given["missing"] or ()),
        mission=asked,
    )
    made, place = make_place_world(name, survey, overwrite=overwrite)
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
    *lines, following = report(made, "readings", assumed)
    return [
        *lines,
        f"  crs       {place.georeference.name}",
        f"  place     {sites.size:,} sites {sites.spacing[0]:g} m apart; {_shore(sites)}, "
        f"{counted(len(sites.solid), 'zone')} to avoid; drawn in {picture}: look at it",
        following,
    ]


def measured(
    given: Mapping[str, Any], option: str, unit: str, what: str, assumed: list[str], *, zero: bool = False
) -> float | None:
    """Return an option in a unit, None if it was not given; add a note to `assumed` if it names no unit.

    Raises
    ------
    InputError
        It is not an amount in that unit, or out of range.
    """
    from fieldbo.errors import InputError
    from fieldbo.mission.amounts import amount, names_unit

    text = given[option]
    if text is None:
        return None
    number = amount(text, unit, f"--{option}", what=what, zero=zero)
    if not (_LEAST <= number <= _MOST or number == 0):
        raise InputError(
            f'--{option} "{text}"',
            expected=f"an amount from {_LEAST:g} to {_MOST:g} {unit}",
            where=f"--{option}",
        )
    if not names_unit(text):
        assumed.append(f"--{option} {text} is in {unit}")
    return number


def _shore(domain: Domain) -> str:
    """Return how many outlines there are, and how many islands within them."""
    import shapely

    from fieldbo.errors import counted

    parts = shapely.get_parts(domain.outline)
    islands = int(shapely.get_num_interior_rings(parts).sum())
    return f"{counted(len(parts), 'outline')}, {counted(islands, 'island')}"


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
    from fieldbo.errors import InputError

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
    from fieldbo.errors import InputError
    from fieldbo.vehicles.angles import angles_in, has_angles
    from fieldbo.vehicles.dialogue import number_in, parts_of

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


def list_columns(csv: Path) -> NoReturn:
    """Print what the columns of a log hold, and raise the error that one has to be chosen."""
    from fieldbo.world.logs.columns import describe_columns, no_value_chosen, table_of
    from fieldbo.world.logs.log import read_log

    log = read_log(csv)
    typer.echo("\n".join([*log.notes, *table_of(describe_columns(log))]))
    raise no_value_chosen(log)


def recognised(csv: Path) -> dict[str, str]:
    """Return the columns of a log that look like latitude and longitude, once the user has agreed."""
    from fieldbo.errors import InputError
    from fieldbo.world.logs.columns import describe_columns
    from fieldbo.world.logs.log import read_log

    columns = describe_columns(read_log(csv))
    lat, lon = ([c.name for c in columns if c.kind == kind] for kind in ("latitude", "longitude"))
    if len(lat) != 1 or len(lon) != 1:
        return {}
    meant = f"{lat[0]!r} and {lon[0]!r} look like latitude and longitude"
    if sys.stdin.isatty() and typer.confirm(f"{meant}. Use them?"):
        return {"lat": lat[0], "lon": lon[0]}
    raise InputError(
        f"the columns of the positions are missing; {meant}",
        expected="--lat COLUMN and --lon COLUMN, or --x COLUMN and --y COLUMN in metres",
        where="--lat",
        fix=f"--lat {shlex.quote(lat[0])} --lon {shlex.quote(lon[0])}",
    )
