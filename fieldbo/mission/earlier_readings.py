"""Earlier readings from a table with the world's axes, or from a log in degrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis, is_depth, is_height
from fieldbo.errors import InputError
from fieldbo.mission.schema import PriorFile
from fieldbo.world.logs.columns import describe_columns
from fieldbo.world.logs.log import Log, bare, read_log
from fieldbo.world.logs.survey import survey_from_log
from fieldbo.world.logs.times import IN_UTC, column_of_time, has_offset, times_in, times_of
from fieldbo.world.raster import value_column
from fieldbo.world.readings import column_cells, column_names, read_readings
from fieldbo.world.world import World

_DEGREES = ("latitude", "longitude")
_NO_VALUE = ("", "na", "nan")


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


def readings_of_file(path: Path, content: PriorFile, world: World) -> EarlierReadings:
    """Return the readings of a table with the world's axes, or else of a log in degrees.

    Parameters
    ----------
    path : Path
    content : PriorFile
        Says what the file does not: noise, age, and numbers that stand for no value.
    world : World

    Raises
    ------
    InputError
        The file can't be read, a column is missing or can't be told from another, or a cell is not valid.
    """
    axes = {axis.name for axis in world.domain.axes}
    if world.domain.georeference is not None and not axes <= set(column_names(path)):
        return _from_log(path, content, world)
    return _from_table(path, content, world)


def _from_table(path: Path, content: PriorFile, world: World) -> EarlierReadings:
    columns, axes = column_names(path), [axis.name for axis in world.domain.axes]
    value = value_column(path, world.domain, world.quantity.name)
    noise = "noise_sd" if "noise_sd" in columns else None
    table = read_readings(path, axes, value, noise, least=1, gaps=True)
    cells = column_cells(path, value)
    wrong = [(ln, c) for (ln, c), y in zip(cells, table.values, strict=True) if not _usable(c, float(y))]
    if wrong:
        raise InputError(
            f"{wrong[0][1]!r} is not a finite number",
            expected="a finite number, or an empty cell where the reading failed",
            where=f"{path}, line {wrong[0][0]}, column {value}",
        )
    kept = np.isfinite(table.values)
    if not kept.any():
        raise InputError("every reading failed", expected="at least one value", where=str(path))
    sites, lines = table.sites[kept], tuple(np.array(table.lines)[kept].tolist())
    sds = None
    if noise is not None:
        sds = np.array([float(cell) for _, cell in column_cells(path, noise)])[kept]
    times, ages, undated = np.full(len(sites), np.nan), None, ""
    notes: tuple[str, ...] = ()
    dated = _dates(path) if "time" in columns else None
    if dated is not None:
        times = dated[kept]
        notes = () if all(has_offset(cell) for _, cell in column_cells(path, "time")) else (IN_UTC,)
    elif "age_days" in columns:
        numbers = read_readings(path, axes, value, channels=["age_days"], least=1, gaps=True)
        ages = numbers.channels["age_days"][kept]
    elif "time" in columns:
        undated = _without_dates("time")
    sds = _noise(sites, sds, content, world)
    return EarlierReadings(sites, table.values[kept], sds, times, ages, lines, notes, undated)


def _from_log(path: Path, content: PriorFile, world: World) -> EarlierReadings:
    """Return the readings of a log in degrees, at most one per half a spacing along its track."""
    domain, log = world.domain, read_log(path)
    georeference = domain.georeference
    assert georeference is not None
    kinds = _kinds(log)
    columns = [kinds[kind][0] for kind in _DEGREES if len(kinds[kind]) == 1]
    upright = [j for j in range(domain.dimension) if j not in georeference.axes]
    if len(columns) < len(_DEGREES) or len(upright) > 1:
        raise InputError(
            f"there are no columns {' and '.join(axis.name for axis in domain.axes)}, nor one of "
            "latitudes and one of longitudes",
            expected="a table with the world's axes, or a log in degrees",
            where=f"{path}, line 1",
        )
    noise, age = _named(log, "noise_sd"), _named(log, "age_days")
    time, undated = _time_column(log, kinds["time"])
    points = survey_from_log(
        log,
        lat=columns[0],
        lon=columns[1],
        value=_value_column(log, world),
        time=time,
        depth=_upright_column(log, domain.axes[upright[0]]) if upright else None,
        noise_sd=noise,
        channels=() if age is None else (age,),
        missing=content.missing,
        least=1,
        spacing_m=float(domain.spacing[georeference.axes[0]]),
    )
    if points.doubts:
        raise InputError(
            "; ".join(points.doubts).replace("--missing ", "missing = "),
            expected="a log without doubtful values",
            where=str(path),
            fix="name numbers that stand for no value in [prior], or with --set prior.missing=[-9999]",
        )
    if points.undecided and content.age_days is None:
        raise InputError(
            points.undecided,
            expected="dates that can be read in one way, such as 2026-08-05",
            where=str(path),
            fix="write the dates so, or give the age of all readings with --set prior.age_days=1",
        )
    sites = np.zeros((len(points), domain.dimension))
    sites[:, list(georeference.axes)] = georeference.metres(np.column_stack([points.lat, points.lon]))
    if upright and points.depths is not None:
        sites[:, upright[0]] = points.depths
    times, ages = np.full(len(sites), np.nan), None
    if time is not None and points.times is not None and points.dated:
        times = points.times
    elif age is not None:
        ages = points.channels[age]
    # Without a column of noise, the mean of pooled readings counts as one reading: its noise may be shared.
    sds = _noise(sites, None if noise is None else points.noise_sd, content, world)
    return EarlierReadings(sites, points.values, sds, times, ages, points.lines, points.notes, undated)


def _noise(sites: Array, given: Array | None, content: PriorFile, world: World) -> Array:
    """Return the noise (n,) of readings: that of their column, of the mission's file, or of the sensor."""
    if given is not None:
        return given
    if content.noise_sd is not None:
        return np.full(len(sites), content.noise_sd)
    return np.asarray(np.sqrt(world.sensor.variance(world.domain.clipped(sites))))


# -- columns -------------------------------------------------------------------------------------------------


def _kinds(log: Log) -> Mapping[str, list[str]]:
    """Return the columns of a log that hold latitudes, longitudes and times."""
    described = describe_columns(log)
    return {kind: [c.name for c in described if c.kind == kind] for kind in (*_DEGREES, "time")}


def _named(log: Log, name: str) -> str | None:
    """Return the column with a name, perhaps with a unit behind it and in any case; None without one."""
    like = [full for full in log.names if name.lower() in (full.lower(), bare(full).lower())]
    return log.column(name) if like else None


def _value_column(log: Log, world: World) -> str:
    """Return the column called value, or else the one named like the quantity."""
    if "value" in log.names:
        return "value"
    quantity = world.quantity.name
    return _named(log, quantity) or value_column(log.path, world.domain, quantity)


def _upright_column(log: Log, axis: Axis) -> str:
    """Return the column of an axis of depths or heights: named like it, or the only one of its kind."""
    named = _named(log, axis.name)
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
        where=_header(log),
        fix=f"rename one of them to {axis.name}" if like else "add it, in the world's unit and direction",
    )


def _time_column(log: Log, candidates: Sequence[str]) -> tuple[str | None, str]:
    """Return the column of times, None without one, and why it tells no ages, if it does not."""
    if "time" in log.names and not log.is_missing("time").all():
        candidates = ["time"]
    column = column_of_time(log, candidates)
    if column is not None:
        times = times_in(log, column)
        return column, "" if times is None or times.absolute else _without_dates(column)
    if not candidates:
        return None, ""
    named = f"{', '.join(candidates[:-1])} and {candidates[-1]}"
    return None, f"columns {named} look like times, and none is called time"


def _header(log: Log) -> str:
    return f"{log.path}, line of the column names"


def _usable(cell: str, value: float) -> bool:
    return bool(np.isfinite(value)) or cell.lower() in _NO_VALUE


# -- times ---------------------------------------------------------------------------------------------------


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


def _dates(path: Path) -> Array | None:
    """Return the times (n,) in a table's column time in seconds since 1970; None if they have no dates."""
    cells = column_cells(path, "time")
    try:
        return np.array([seconds_of(c, f"{path}, line {ln}, column time") for ln, c in cells])
    except InputError:
        if _has_dates([cell for _, cell in cells]):
            raise
        return None


def _without_dates(column: str) -> str:
    return f"column {column} holds times without dates"


def _has_dates(cells: Sequence[str]) -> bool:
    """Return False if cells hold times of day, or seconds of a clock that does not count from 1970."""
    found = times_of(cells)
    return found is None or found.absolute
