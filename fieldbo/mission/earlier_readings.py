"""Earlier readings from a file: a log in degrees or metres, or a table with the axes of the world."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis, is_depth, is_height
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import WGS84, Georeference, reprojected
from fieldbo.errors import InputError
from fieldbo.mission.schema import PriorFile
from fieldbo.tables.cleaning import SuspectReadingsError, clean, find_suspects
from fieldbo.tables.columns import describe_columns
from fieldbo.tables.joining import GAP_S
from fieldbo.tables.marks import sentinel_doubts
from fieldbo.tables.measures import along, has_unit_of_kind, spreads_in, stated_unit, values_in
from fieldbo.tables.pooling import MOST_READINGS
from fieldbo.tables.readings import read_readings
from fieldbo.tables.source import Opening
from fieldbo.tables.survey import SurveyPoints, survey_points
from fieldbo.tables.suspects import Track
from fieldbo.tables.table import Table
from fieldbo.tables.times import IN_UTC, Times, column_of_time, times_in, times_of
from fieldbo.tables.units import bare, is_known, is_plain, short_names
from fieldbo.world.raster import value_column
from fieldbo.world.world import World

_OPTION = re.compile(r"--([a-z][a-z-]*)(?:[ =](-?\d[\d.e+-]*)(h|min|s)?\b)?")
_SECONDS = {"h": 3600.0, "min": 60.0, "s": 1.0}
_CLEANING = 'leave them out with cleaning = "clean" in [prior], or take them with "keep"'
_DEGREES = ("latitude", "longitude")


class EarlierReadings(NamedTuple):
    """Readings, and when they were taken in seconds since 1970 or their ages; NaN where that is not known."""

    sites: Array
    values: Array
    noise_sds: Array
    times_s: Array
    ages_days: Array | None = None
    lines: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out or pooled."""
    undated: str = ""
    """Why the columns of times tell no ages, if they do not."""


def readings_of_file(
    path: Path, content: PriorFile, world: World, track: Path | None = None
) -> EarlierReadings:
    """Return the readings of a log in degrees or metres, or of a table with the world's axes.

    Those of a log are pooled, at most one per half a spacing along its track. A table with the world's axes
    is taken as it is, unless it has more rows than a mission can take.

    Parameters
    ----------
    path : Path
    content : PriorFile
        Says what the file does not: columns, noise, age, and numbers that stand for no value.
    world : World
    track : Path, optional
        The track with the positions of a log that has none.

    Raises
    ------
    InputError
        The file can't be read, a column is missing or can't be told from another, or a cell is not valid or
        doubtful.
    """
    with _named_by_keys():
        return _read(path, content, world, track)


def _read(path: Path, content: PriorFile, world: World, track: Path | None) -> EarlierReadings:
    gap_s = GAP_S if content.track_gap_s is None else content.track_gap_s
    opening = Opening(content.quantity, content.layer, track, content.track_offset_s, gap_s)
    log = opening.open(path, content.time)
    log = replace(log, missing=(*log.missing, *content.missing))
    found = _find_positions(log, content, world.domain)
    value, age = _find_value(log, content, world), _find_named(log, "age_days")
    noise = _given(log, content, "noise") or _find_named(log, "noise_sd")
    time, undated = _find_time(log, content, {*found.columns, value, age})
    names = _Names(value, noise, time, age, world.quantity.unit)
    read = _read_table if found.kind == "axes" else _read_log
    points = read(log, found, names, content, world.domain)
    _check_doubts(points, log, content)
    times, ages = np.full(len(points), np.nan), None
    if points.times is not None and points.dated:
        times = points.times
    elif age is not None:
        ages = points.channels[age]
    # Without a column of noise, the mean of pooled readings counts as one reading: its noise may be shared.
    sds = None if noise is None else points.noise_sd
    if sds is None and content.noise_sd is not None:
        sds = np.full(len(points), content.noise_sd)
    if sds is None:
        sds = np.asarray(np.sqrt(world.sensor.variance(world.domain.clipped(points.positions))))
    notes = points.notes
    stated = stated_unit(log, value)
    if stated is not None and is_known(stated) and not is_plain(stated) and is_plain(world.quantity.unit):
        notes += (f"warning: {value} is in {stated}, and the world's {world.quantity.name} states no unit",)
    return EarlierReadings(points.positions, points.values, sds, times, ages, points.lines, notes, undated)


@contextmanager
def _named_by_keys() -> Iterator[None]:
    """Name the keys of ``[prior]`` in errors, instead of the options of ``fieldbo new world``."""
    try:
        yield
    except SuspectReadingsError as error:
        raise error.with_fix(_CLEANING) from None
    except InputError as error:
        problem, expected, where, fix = (
            None if text is None else _OPTION.sub(_name_by_key, text)
            for text in (error.problem, error.expected, error.where, error.fix)
        )
        raise type(error)(str(problem), expected=expected, where=where, fix=fix) from None


def _name_by_key(option: re.Match[str]) -> str:
    key = option[1].replace("-", "_")
    key += "_s" if key in ("track_offset", "track_gap") else ""
    if key not in PriorFile.model_fields:
        return option[0]
    if not option[2]:
        return f"prior.{key}"
    return f"prior.{key}={float(option[2]) * _SECONDS[option[3]]:g}" if option[3] else f"{key} = {option[2]}"


def _check_doubts(points: SurveyPoints, log: Table, content: PriorFile) -> None:
    """Raise an `InputError` if numbers may stand for no value, or dates may have two readings."""
    if points.doubts:
        raise InputError(
            "; ".join(points.doubts),
            expected="a log without doubtful values",
            where=str(log.path),
            fix="name numbers that stand for no value in [prior], or with --set prior.missing=[-9999]",
        )
    if points.undecided and content.age_days is None:
        raise InputError(
            points.undecided,
            expected="times that can be read in one way, such as 2026-08-05T10:00:00+02:00",
            where=str(log.path),
            fix="write them so, or give the age of all readings with --set prior.age_days=1",
        )


# -- positions and values ------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """The columns of a position: latitude and longitude, x and y in metres, or one per axis of the world."""

    kind: Literal["degrees", "metres", "axes"]
    columns: tuple[str, ...]
    depth: str | None = None
    """Column of the axis that points up or down, unless it is among the others."""


class _Names(NamedTuple):
    """The columns of everything else, and the unit of the world's quantity, which the values get."""

    value: str
    noise: str | None
    time: str | None
    age: str | None
    unit: str


def _read_log(log: Table, found: _Found, names: _Names, content: PriorFile, domain: Domain) -> SurveyPoints:
    """Return the points of a log, pooled, at places (n, d) of the domain."""
    horizontal, upright = _directions(domain)
    options = ("lat", "lon") if found.kind == "degrees" else ("x", "y")
    where: dict[str, Any] = dict(zip(options, found.columns, strict=False))
    points = survey_points(
        log,
        **where,
        depth=found.depth,
        upright=domain.axes[upright[0]] if upright else None,
        value=names.value,
        value_unit=names.unit,
        time=names.time,
        noise_sd=names.noise,
        channels=() if names.age is None else (names.age,),
        cleaning=content.cleaning,
        low=content.low,
        high=content.high,
        least=1,
        spacing_m=None if domain.continuous else float(domain.spacing[horizontal[0]]),
    )
    places = points.positions
    if found.kind == "degrees":
        places = _georeference(domain).metres(places)
    elif content.crs is not None:
        places = _georeference(domain).metres(reprojected(places, content.crs, WGS84)[:, ::-1])
    sites = np.zeros((len(points), domain.dimension))
    sites[:, horizontal] = places
    if points.depths is not None:
        sites[:, upright[0]] = points.depths
    return replace(points, positions=sites)


def _read_table(log: Table, found: _Found, names: _Names, content: PriorFile, domain: Domain) -> SurveyPoints:
    """Return the rows of a table with the world's axes; a value may be missing, where a reading failed.

    Raises
    ------
    InputError
        A cell holds something else than a number or a time, or every reading failed.
    """
    age = () if names.age is None else (names.age,)
    table = read_readings(log, found.columns, names.value, names.noise, age, least=1, gaps=True)
    kept = np.isfinite(table.values)
    stated = replace(log, missing=()).numbers(names.value)
    wrong = np.flatnonzero(~np.isfinite(stated) & ~log.is_missing(names.value))
    if len(wrong):
        raise InputError(
            f"{log.cells[names.value][wrong[0]]!r} is not a finite number",
            expected="a finite number, or an empty cell where the reading failed",
            where=log.place(int(wrong[0]), names.value),
        )
    if not kept.any():
        raise InputError("every reading failed", expected="at least one value", where=str(log.path))
    values = values_in(log, names.value, names.unit)
    noise = None if names.noise is None else spreads_in(log, names.noise, names.unit, names.value)
    axes = [along(log, column, axis) for column, axis in zip(found.columns, domain.axes, strict=True)]
    clock, about_time = _read_times(log, names.time)
    positions = np.column_stack([axis.numbers for axis in axes])
    cleaned: list[str] = []
    if (names.noise, names.age) != ("noise_sd", "age_days"):  # else a run's copy of what was tested before
        kept[kept], cleaned = _test(
            log, positions[kept], values.numbers[kept], kept, names.value, content, domain
        )
    return SurveyPoints(
        positions=positions[kept],
        values=values.numbers[kept],
        times=None if clock is None else clock.seconds[kept],
        depths=None,
        channels={name: channel[kept] for name, channel in table.channels.items()},
        noise_sd=None if noise is None else noise.numbers[kept],
        counts=np.ones(int(kept.sum()), dtype=np.int64),
        lines=tuple(log.lines[kept].tolist()),
        notes=(
            *log.notes,
            *(note for each in (*axes, values) for note in each.notes),
            *about_time,
            *cleaned,
        ),
        doubts=tuple(sentinel_doubts(table.values, names.value, log.missing)),
        dated=clock is not None and clock.absolute,
        undecided="" if clock is None else clock.undecided or clock.unzoned,
    )


def _test(
    log: Table,
    positions: Array,
    values: Array,
    rows: NDArray[np.bool_],
    value: str,
    content: PriorFile,
    domain: Domain,
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which of some rows (n,) of a table are kept of those that look wrong, and notes.

    Only in space do neighbours tell: settings of a cell have none.
    """
    horizontal, upright = _directions(domain)
    spatial = len(horizontal) <= 2 and len(upright) <= 1 and all(axis.unit == "m" for axis in domain.axes)
    if not spatial:
        return np.ones(len(values), dtype=bool), []
    metres = np.zeros((len(values), 2))
    metres[:, : len(horizontal)] = positions[:, horizontal]
    depths = positions[:, upright[0]] if upright and is_depth(domain.axes[upright[0]].name) else None
    suspects = find_suspects(
        Track(metres, values, log.lines[rows], depths=depths),
        value,
        unit=log.units.get(value, ""),
        low=content.low,
        high=content.high,
    )
    return clean(suspects, len(values), content.cleaning, log, 1)


def _find_positions(log: Table, content: PriorFile, domain: Domain) -> _Found:
    """Return the columns of the position: those named in ``[prior]``, or else what the table holds.

    Raises
    ------
    InputError
        There are none, they can't be told apart, or they don't fit the domain.
    """
    axes = [axis.name for axis in domain.axes]
    horizontal, upright = _directions(domain)
    if content.x is not None:
        if len(horizontal) > 2 or len(upright) > 1 or len(horizontal) != (1 if content.y is None else 2):
            raise InputError(
                "x and y do not fit the axes of the world",
                expected=f"columns named like the axes {', '.join(axes)}"
                if len(horizontal) > 2
                else "x and y for two horizontal axes, x alone for one",
                where="prior.x",
            )
        columns = (_given(log, content, "x"), _given(log, content, "y"))
        depth = _find_upright(log, content, domain.axes[upright[0]]) if upright else None
        return _Found("metres", tuple(each for each in columns if each), depth)
    if content.lat is None and content.lon is None and set(axes) <= set(log.names):
        if len(log) <= MOST_READINGS or len(upright) > 1 or len(horizontal) > 2:
            return _Found("axes", tuple(axes))
        return _Found("metres", tuple(axes[j] for j in horizontal), axes[upright[0]] if upright else None)
    if domain.georeference is not None:
        degrees = _find_degrees(log, content)
        if len(degrees) == len(_DEGREES) and len(upright) <= 1:
            depth = _find_upright(log, content, domain.axes[upright[0]]) if upright else None
            return _Found("degrees", degrees, depth)
    elif content.lat is not None or content.lon is not None:
        raise InputError(
            "the world has no coordinate reference system",
            expected="columns named like its axes: " + ", ".join(axes),
            where="prior.lat" if content.lat is not None else "prior.lon",
        )
    named = [_find_named(log, axis) for axis in axes]
    found = tuple(each for each in named if each is not None)
    if len(found) == len(axes):
        return _Found("axes", found)
    if domain.georeference is None:
        log.column(axes[named.index(None)])  # raises the error
    raise InputError(
        f"there are no columns {' and '.join(axes)}, nor one of latitudes and one of longitudes",
        expected="a table with the world's axes, or a log in degrees",
        where=log.place_of_names,
        fix="name the columns in [prior]: lat and lon, or x and y; or the file of the boat's track: track",
    )


def _directions(domain: Domain) -> tuple[list[int], list[int]]:
    """Return the indices of the horizontal axes, easting first, and of those that point up or down."""
    if domain.georeference is not None:
        horizontal = list(domain.georeference.axes)
    else:
        horizontal = [
            j for j, axis in enumerate(domain.axes) if not (is_depth(axis.name) or is_height(axis.name))
        ]
    return horizontal, [j for j in range(domain.dimension) if j not in horizontal]


def _georeference(domain: Domain) -> Georeference:
    if domain.georeference is None:
        raise InputError(
            "the world has no coordinate reference system, and crs is given",
            expected="positions in the coordinates of the world",
            where="prior.crs",
            fix="leave crs out",
        )
    return domain.georeference


# -- columns -------------------------------------------------------------------------------------------------


def _given(log: Table, content: PriorFile, key: str) -> str | None:
    """Return the column that a key of ``[prior]`` names, if it was set."""
    name = getattr(content, key)
    return None if name is None else log.column(name, f"prior.{key}")


def _find_named(log: Table, name: str) -> str | None:
    """Return the column with a name, perhaps with a unit behind it and in any case; None without one."""
    like = [full for full in log.names if name.lower() in (full.lower(), bare(full).lower())]
    return log.column(name) if like else None


def _find_value(log: Table, content: PriorFile, world: World) -> str:
    """Return the column of the value: the one that is given, called value, or named like the quantity."""
    given = _given(log, content, "value")
    if given is not None:
        return given
    chosen = [name for name in log.names if log.roles.get(name) == "value"]
    if content.quantity is not None and len(chosen) == 1:
        return chosen[0]
    if "value" in log.names:
        return "value"
    quantity = world.quantity
    if quantity.name in log.names:
        return log.column(quantity.name)
    like = [name for name in log.names if quantity.name.strip().lower() in short_names(name)]
    fitting = [name for name in like if has_unit_of_kind(log, name, quantity.unit)]
    if len(fitting) == 1:
        return fitting[0]
    if len(like) > 1:
        raise InputError(
            f"columns {', '.join(like)} are named like the quantity {quantity.label}, and {len(fitting)} of "
            "them have a unit that fits",
            expected="one column of the value",
            where=log.place_of_names,
            fix=f"name it with --set {shlex.quote(f'prior.value={(fitting or like)[0]}')}"
            if fitting
            else "name it in [prior]: value",
        )
    return like[0] if like else value_column(log, world.domain, quantity.name)


def _find_degrees(log: Table, content: PriorFile) -> tuple[str, ...]:
    """Return the columns of latitude and longitude; fewer if one can't be told."""
    described = describe_columns(log)
    found = []
    for key, kind in zip(("lat", "lon"), _DEGREES, strict=True):
        given, like = _given(log, content, key), [each.name for each in described if each.kind == kind]
        found += [given] if given is not None else like if len(like) == 1 else []
    return tuple(found)


def _find_upright(log: Table, content: PriorFile, axis: Axis) -> str:
    """Return the column of an axis of depths or heights: named like it, or the only one of its kind."""
    named = _given(log, content, "depth") or _find_named(log, axis.name)
    if named is not None:
        return named
    of_kind = is_depth if is_depth(axis.name) else is_height
    like = [name for name in log.names if of_kind(name)]
    if len(like) == 1:
        return like[0]
    raise InputError(
        f"columns {' and '.join(like)} may both be the axis {axis.label}"
        if like
        else f"there is no column of the axis {axis.label}",
        expected=f"a column {axis.name}, besides latitude and longitude",
        where=log.place_of_names,
        fix=f"rename one of them to {axis.name}, or name it in [prior]: depth"
        if like
        else "add it, in the world's unit and direction",
    )


# -- times ---------------------------------------------------------------------------------------------------


def _find_time(log: Table, content: PriorFile, others: Container[str | None]) -> tuple[str | None, str]:
    """Return the column of times, None without one, and why it tells no ages, if it does not."""
    given = _given(log, content, "time")
    if given is None and "time" in log.names and not log.is_missing("time").all():
        given = "time"
    if given is not None:
        candidates = [given]
    elif _find_named(log, "age_days") is not None:
        candidates = []
    else:
        candidates = [
            each.name for each in describe_columns(log) if each.kind == "time" and each.name not in others
        ]
    column = column_of_time(log, candidates)
    if column is not None:
        times = times_in(log, column)
        return column, "" if times is None or times.absolute else f"column {column} holds times without dates"
    if not candidates:
        return None, ""
    named = f"{', '.join(candidates[:-1])} and {candidates[-1]}"
    return None, f"columns {named} look like times, and none is called time"


def _read_times(log: Table, column: str | None) -> tuple[Times | None, tuple[str, ...]]:
    """Return the times of a table, None if it has none, and notes.

    Raises
    ------
    InputError
        Some cell is no time, if others are dates.
    """
    if column is None:
        return None, ()
    times, cells = times_in(log, column), log.cells[column]
    none = [times_of([cell]) is None for cell in cells] if times is None else ~np.isfinite(times.seconds)
    wrong = ~log.is_missing(column) & none
    if wrong.any() and (times is None or times.absolute):
        row = int(np.argmax(wrong))
        raise InputError(
            f"{cells[row]!r} is not a time",
            expected="a time like 2026-07-02T08:00:00+02:00; without an offset it is UTC",
            where=log.place(row, column),
        )
    if times is None:
        return None, ()
    in_utc = (IN_UTC,) if times.absolute and not times.offsets else ()
    return times, (*times.notes, *in_utc)


def seconds_of(text: str, where: str) -> float:
    """Return a time in seconds since 1970; one without an offset is UTC.

    Raises
    ------
    InputError
        It is not a date, perhaps with a time, in ISO 8601.
    """
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is not a time",
            expected="a time like 2026-07-02T08:00:00+02:00; without an offset it is UTC",
            where=where,
        ) from None
