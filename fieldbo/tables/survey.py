"""The points of a survey, from a log: positions and values with what is doubtful left out and said so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis
from fieldbo.errors import InputError, counted
from fieldbo.tables.cleaning import Cleaning, clean, find_suspects
from fieldbo.tables.columns import direction_of
from fieldbo.tables.coordinates import Bounds, read_degrees, swapped, unwrapped
from fieldbo.tables.marks import sentinel_doubts
from fieldbo.tables.measures import Measured, along, kind_of, lengths_of, spreads_in, values_in
from fieldbo.tables.pooling import Pooled, joined, local_metres, thinned
from fieldbo.tables.suspects import Track
from fieldbo.tables.table import LEAST_READINGS, Table, fix_of_limit
from fieldbo.tables.times import IN_UTC, Times, times_in

_MANY = 0.05
"""Fraction of impossible positions above which something is wrong with the columns, not with single fixes."""

_DEPTH = Axis("depth", "m", 0.0, 12_000.0)
_ZERO = 1e-20
"""Degrees closer to 0 are none but a mark for a missing fix, such as -9.99e-29."""


@dataclass(frozen=True, eq=False)
class SurveyPoints:
    """Readings of a survey, in the order in which they were taken.

    Attributes
    ----------
    positions : (n, 2) or (n, 1) array
        Latitudes and longitudes in degrees, WGS 84 as logged; or metres, in the columns x and y, or x alone.
        Longitudes lie between -180 and 180; of a survey across the antimeridian, they go on beyond 180.
    values : (n,) array
        Means of the readings pooled.
    times : (n,) array or None
        Seconds since 1970 in UTC, or of the log's own clock if it states no date.
    depths : (n,) array or None
        As logged.
    channels : dict of str to (n,) array
        Means of other quantities; NaN where none was logged.
    noise_sd : (n,) array or None
        Standard error of each value: from the log's noise column, or from the scatter of the readings that
        were pooled. The latter holds noise from reading to reading only, not drift or calibration, and is
        None if nothing was pooled. A fit that learns the noise is the cautious choice.
    counts : (n,) int array
        How many rows of the log each point pools.
    lines : tuple of int
        The line in the file of the first row of each point.
    notes : tuple of str
        What was left out, pooled or converted.
    doubts : tuple of str
        Questions that only the user can answer. Stop and ask, do not guess.
    dated : bool
        Whether the `times` count from 1970.
    undecided : str
        The two readings of a date, if the log does not tell whether the day or the month comes first, or
        why the zone of the times is not certain. The order of the rows hardly depends on it, their age does.
    """

    positions: Array
    values: Array
    times: Array | None
    depths: Array | None
    channels: dict[str, Array]
    noise_sd: Array | None
    counts: NDArray[np.int64]
    lines: tuple[int, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    dated: bool = False
    undecided: str = ""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def lat(self) -> Array:
        """Latitudes (n,)."""
        return self.positions[:, 0]

    @property
    def lon(self) -> Array:
        """Longitudes (n,)."""
        return self.positions[:, 1]


def survey_points(
    log: Table,
    *,
    value: str,
    value_unit: str = "",
    lat: str | None = None,
    lon: str | None = None,
    x: str | None = None,
    y: str | None = None,
    time: str | None = None,
    depth: str | None = None,
    upright: Axis | None = None,
    noise_sd: str | None = None,
    channels: Sequence[str] = (),
    missing: Sequence[float] = (),
    bounds: Bounds | None = None,
    spacing_m: float | None = None,
    tolerance_m: float = 1.0,
    cleaning: Cleaning = "ask",
    low: float | None = None,
    high: float | None = None,
    least: int = LEAST_READINGS,
) -> SurveyPoints:
    """Return the points of a survey, with positions in degrees (`lat`, `lon`) or metres (`x`, perhaps `y`).

    Rows without a position or value, and without a fix (0, 0), are left out. Readings that look wrong next to
    the others (`fieldbo.tables.cleaning`) are asked about. Readings that follow each other within half a
    spacing are pooled into their mean, and so are stations at the same position. Whatever is done is in the
    `notes`.

    Parameters
    ----------
    log : Table
    value : str
        Column of the value; a unit in brackets may be left out, as for all columns.
    value_unit : str
        The unit that the values get; by default they stay in that of the column, as do the standard
        deviations of the noise.
    lat, lon : str, optional
        Columns of the position in degrees.
    x, y : str, optional
        Columns of the position in metres, instead; `x` alone on a line.
    time : str, optional
        Column of the time; rows are sorted by it. Without it, they count as logged one after another. A
        column of dates and one of times of day are put together, whichever is named.
    depth : str, optional
        Column of the depth. Readings are pooled only at about the same depth.
    upright : Axis, optional
        The axis that `depth` lies along, whose unit and direction it gets; by default metres downwards.
    noise_sd : str, optional
        Column of the readings' standard deviations.
    channels : sequence of str
        Columns of other quantities.
    missing : sequence of float
        Numbers that stand for no value, such as -9999.
    bounds : (west, south, east, north), optional
        Where the survey should lie, in degrees, to recognise exchanged columns.
    spacing_m : float, optional
        Spacing of the map's sites, in metres; by default, that of 2,500 sites over the survey's extent. It is
        widened for a log with so many readings that a fit would take minutes.
    tolerance_m : float
        Stations closer than this, and than a quarter of the spacing, are one.
    cleaning : {"ask", "clean", "keep"}
        What to do with readings that look wrong: raise an error that lists them, leave them out, or take
        them.
    low, high : float, optional
        The least and the largest value that is possible; readings beyond are left out. By default known
        limits of temperature, salinity, oxygen and pH count, and readings beyond look wrong.
    least : int
        Fewest rows that must be usable.

    Raises
    ------
    InputError
        A column is missing or holds something else, positions are impossible, values are limits of detection,
        or fewer than five readings are left.
    SuspectReadingsError
        Readings look wrong, and `cleaning` is "ask".

    Examples
    --------
    >>> from pathlib import Path
    >>> cells = {"east": ("0", "50", "90", "130", "190"), "zinc": ("7", "9", "", "8", "5")}
    >>> log = Table(Path("log.csv"), tuple(cells), {}, cells, np.arange(2, 7))
    >>> points = survey_points(log, x="east", value="zinc", least=4)
    >>> points.positions[:, 0].tolist(), points.values.tolist()
    ([0.0, 50.0, 130.0, 190.0], [7.0, 9.0, 8.0, 5.0])
    >>> points.notes
    ('1 row without a number for zinc left out (line 4)',)
    """
    log = replace(log, missing=(*log.missing, *missing))
    value = log.column(value, "--value")
    where = _read_positions(log, lat=lat, lon=lon, x=x, y=y, bounds=bounds)
    unit = value_unit or log.units.get(value, "")
    _read_numbers(log, value)  # checks its cells
    numbers, about_value = values_in(log, value, unit)
    columns = {**where.columns, "value": numbers}
    about_depth: tuple[str, ...] = ()
    if depth is not None:
        depth = log.column(depth, "--depth")
        _read_numbers(log, depth)  # checks its cells
        columns["depth"], about_depth = along(log, depth, upright or _DEPTH)
    columns |= {f"channel {each}": _read_numbers(log, log.column(each, "--channel")) for each in channels}
    noise, about_noise = _read_noise(log, noise_sd, unit, value)
    clock, about_time = _read_times(log, time)
    notes = [*log.notes, *where.notes, *about_depth, *about_value, *about_noise, *about_time]

    doubts = _ask_about_marks(log, [value, depth, noise_sd, *channels])
    reasons = where.reasons(log, bounds, doubts) | {
        f"without a number for {value}": ~np.isfinite(columns["value"]),
        **_beyond(columns["value"], value, low, high),
        "without a depth": ~np.isfinite(columns.get("depth", np.zeros(len(log)))),
        "without a noise of at least 0": ~((np.zeros(len(log)) if noise is None else noise) >= 0),
    }
    order, left_out = _select_usable(log, reasons, least, value)
    notes += left_out
    if clock is not None:
        columns["time"] = clock.seconds
        order, sorting = _sort_by_time(clock.seconds, order)
        notes += sorting
    metres, wrapping = where.metres(order)
    if not doubts:
        depths = columns["depth"][order] if "depth" in columns else None
        times = None if clock is None else clock.seconds[order]
        track = Track(metres, columns["value"][order], log.lines[order], times, depths)
        suspects = find_suspects(
            track,
            value,
            unit=unit,
            low=low,
            high=high,
            positions={name: [log.cells[name][row] for row in order] for name in where.names},
            depth=depth or "",
        )
        kept, cleaned = clean(suspects, len(order), cleaning, log, least)
        order, metres, notes = order[kept], metres[kept], [*notes, *cleaned]
    rows = Pooled.rows(
        {name: column[order] for name, column in columns.items()},
        metres,
        None if noise is None else noise[order] ** 2,
        log.lines[order],
    )
    rows, spacing, thinning = thinned(rows, spacing_m)
    rows, joining = joined(rows, min(tolerance_m, 0.25 * spacing))
    got = rows.columns
    return SurveyPoints(
        np.column_stack([got[name] for name in where.columns]),
        got["value"],
        got.get("time"),
        got.get("depth"),
        {each: got[f"channel {each}"] for each in channels},
        rows.noise_sd,
        rows.counts,
        tuple(rows.lines.tolist()),
        (*notes, *wrapping, *thinning, *joining),
        tuple(doubts),
        dated=clock is not None and clock.absolute,
        undecided="" if clock is None else clock.undecided or clock.unzoned,
    )


class _Metres(NamedTuple):
    """Positions in metres, by the axis, the names of their columns in the log, and what was done to them."""

    columns: dict[str, Array]
    names: tuple[str, ...]
    notes: tuple[str, ...]

    def reasons(self, log: Table, bounds: Bounds | None, doubts: list[str]) -> dict[str, NDArray[np.bool_]]:
        """Return which rows (n,) have no usable position, by the reason."""
        axes = np.array(list(self.columns.values()))
        return {"without a position": np.asarray(~np.isfinite(axes).all(axis=0))}

    def metres(self, order: NDArray[np.int64]) -> tuple[Array, list[str]]:
        """Return the positions (n, 2) of rows in metres, and notes."""
        x = self.columns["x"][order]
        return np.column_stack([x, self.columns["y"][order] if "y" in self.columns else np.zeros(len(x))]), []


class _Degrees(NamedTuple):
    """Latitudes and longitudes, by the axis, the names of their columns, and what was done to them."""

    columns: dict[str, Array]
    names: tuple[str, str]
    notes: tuple[str, ...]

    def reasons(self, log: Table, bounds: Bounds | None, doubts: list[str]) -> dict[str, NDArray[np.bool_]]:
        """Return which rows (n,) have no usable position, by the reason.

        If the columns seem to be exchanged, that is added to `doubts`.

        Raises
        ------
        InputError
            More than a few positions are none on the globe.
        """
        (y, x), (lat, lon) = (self.columns["lat"], self.columns["lon"]), self.names
        placed = np.isfinite(y) & np.isfinite(x)
        doubt = swapped(y[placed], x[placed], bounds)
        if doubt is not None:
            doubts.append(f"{doubt}; is --lat {lon!r} --lon {lat!r} right?")
        impossible = (np.abs(y) > 90) | (np.abs(x) > 360)
        if doubt is None:
            _check_possible(log, y, x, impossible, lat, lon)
        return {
            "without a position": ~placed,
            "without a fix (position 0, 0)": (np.abs(y) < _ZERO) & (np.abs(x) < _ZERO),
            "at an impossible position": impossible & (doubt is None),
        }

    def metres(self, order: NDArray[np.int64]) -> tuple[Array, list[str]]:
        """Return the positions (n, 2) of rows in metres, and notes; make their longitudes continuous."""
        y, x = self.columns["lat"], self.columns["lon"]
        x[order], wrapping = unwrapped(x[order])
        return local_metres(y[order], x[order]), wrapping


def _read_positions(
    log: Table, *, lat: str | None, lon: str | None, x: str | None, y: str | None, bounds: Bounds | None
) -> _Metres | _Degrees:
    """Return the positions of a log, in degrees or in metres."""
    if x is not None:
        given = {"x": x} if y is None else {"x": x, "y": y}
        axes = {axis: log.column(name, f"--{axis}") for axis, name in given.items()}
        read = {axis: _read_lengths(log, name) for axis, name in axes.items()}
        numbers = {axis: each.numbers for axis, each in read.items()}
        return _Metres(
            numbers, tuple(axes.values()), tuple(note for each in read.values() for note in each.notes)
        )
    if lat is None or lon is None:
        raise InputError(
            "the columns of the positions are missing",
            expected="both lat and lon in degrees, or x in metres, and perhaps y",
            where="survey_points",
        )
    lat, lon = log.column(lat, "--lat"), log.column(lon, "--lon")
    y_read, x_read = read_degrees(log, lat, "latitude"), read_degrees(log, lon, "longitude")
    columns = {"lat": y_read.numbers, "lon": x_read.numbers}
    contradicted = direction_of(lat) == "longitude" and direction_of(lon) == "latitude"
    if contradicted and not _tell_directions(y_read.numbers, x_read.numbers, bounds):
        raise InputError(
            f"{lat!r} is given as the latitude and {lon!r} as the longitude",
            expected="columns whose names say the same as the options",
            where="--lat",
            fix=f"exchange them: --lat {shlex.quote(lon)} --lon {shlex.quote(lat)}; if the names are wrong, "
            "correct them in the file",
        )
    return _Degrees(columns, (lat, lon), (*y_read.notes, *x_read.notes))


def _tell_directions(y: Array, x: Array, bounds: Bounds | None) -> bool:
    """Return whether positions (n,) themselves tell which are latitudes, whatever their names are."""
    placed = np.isfinite(y) & np.isfinite(x)
    y, x = y[placed], x[placed]
    return any(swapped(*pair, bounds) is not None for pair in ((y, x), (x, y)))


def _read_lengths(log: Table, name: str) -> Measured:
    """Return a column of positions or depths (n,) in metres, and notes."""
    _read_numbers(log, name)  # checks its cells
    return lengths_of(log, name, kind_of(name))


def _read_noise(log: Table, name: str | None, unit: str, value: str) -> tuple[Array | None, tuple[str, ...]]:
    """Return the standard deviations (n,) of a column in the unit of the values, and notes."""
    if name is None:
        return None, ()
    name = log.column(name, "--noise")
    _read_numbers(log, name)  # checks its cells
    return spreads_in(log, name, unit, value)


def _ask_about_marks(log: Table, names: Sequence[str | None]) -> list[str]:
    """Return a question for each number in columns that may stand for no value."""
    columns = [log.column(name) for name in names if name is not None]
    return [doubt for name in columns for doubt in sentinel_doubts(log.numbers(name), name, log.missing)]


def _beyond(values: Array, name: str, low: float | None, high: float | None) -> dict[str, NDArray[np.bool_]]:
    """Return which rows (n,) have a value below `low` or above `high`, by the reason."""
    beyond: dict[str, NDArray[np.bool_]] = {}
    if low is not None:
        beyond[f"with {name} below {low:g}"] = values < low
    if high is not None:
        beyond[f"with {name} above {high:g}"] = values > high
    return beyond


def _read_numbers(log: Table, name: str) -> Array:
    """Return the numbers (n,) of a column, NaN where there is none."""
    check_limits(log, name)
    numbers, present = log.numbers(name), ~log.is_missing(name)
    gaps = np.flatnonzero(present & ~np.isfinite(numbers)).tolist()
    wrong = [row for row in gaps if not _is_number(log.cells[name][row])]
    if len(wrong) > 0.5 * present.sum():
        raise InputError(
            f"{log.cells[name][wrong[0]]!r} is not a number",
            expected="a column of numbers",
            where=log.place(wrong[0], name),
            fix=fix_of_limit(log.cells[name][wrong[0]]),
        )
    return numbers


def _is_number(cell: str) -> bool:
    """Return whether a cell is a number, perhaps one that stands for no value."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _sort_by_time(times: Array, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    """Return rows sorted by time, and a note if they were not; one without a time follows the one before."""
    known = np.maximum.accumulate(np.where(np.isfinite(times[order]), order, -1))
    by_time = np.argsort(np.where(known < 0, -np.inf, times[known]), kind="stable")
    return order[by_time], ["rows are sorted by time"] if (np.diff(by_time) < 0).any() else []


def _read_times(log: Table, name: str | None) -> tuple[Times | None, list[str]]:
    if name is None:
        return None, []
    name = log.column(name, "--time")
    times = times_in(log, name)
    if times is None:
        row = int(np.argmin(log.is_missing(name)))
        raise InputError(
            f"{log.cells[name][row]!r} is not a time",
            expected="times such as 2024-05-01T12:30:00Z, 1.5.2024 12:30, 12:30:00 or seconds since 1970",
            where=log.place(row, name),
        )
    in_utc = [IN_UTC] if times.absolute and not times.offsets else []
    return times, [*times.notes, *in_utc]


def _check_possible(
    log: Table, y: Array, x: Array, impossible: NDArray[np.bool_], lat: str, lon: str
) -> None:
    """Raise an `InputError` if more than a few positions are none on the globe."""
    if impossible.sum() <= _MANY * len(log):
        return
    row = int(np.argmax(impossible))
    name, number = (lat, y[row]) if abs(y[row]) > 90 else (lon, x[row])
    scaled = max(np.median(np.abs(y[impossible])) / 90, np.median(np.abs(x[impossible])) / 180) > 1e5
    raise InputError(
        f"{number:g} is not in degrees, in {impossible.sum()} of {len(log)} rows",
        expected="latitudes between -90 and 90, longitudes between -180 and 360",
        where=log.place(row, name),
        fix=f"call the columns {lat} (degE7) and {lon} (degE7) if they hold degrees times ten million"
        if scaled
        else "use --x and --y if the positions are in metres",
    )


def _select_usable(
    log: Table, reasons: dict[str, NDArray[np.bool_]], least: int, value: str
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows with none of the reasons to be left out, and notes on those that have one.

    Raises
    ------
    InputError
        Too few rows are left.
    """
    kept, notes = np.ones(len(log), dtype=bool), []
    for reason, rows in reasons.items():
        these = kept & rows
        lines = log.lines[these]
        kept &= ~rows
        if len(lines):
            some = ", ".join(map(str, lines[:3])) + (", ..." if len(lines) > 3 else "")
            line = "line" if len(lines) == 1 else "lines"
            word = _first_word(log, these, value) if reason.endswith(f"for {value}") else ""
            notes.append(f"{counted(len(lines), 'row')} {reason} left out ({line} {some}{word})")
    if kept.sum() < least:
        raise InputError(
            f"{counted(int(kept.sum()), 'reading')} of {counted(len(log), 'row')} can be used"
            + (f": {'; '.join(notes)}" if notes else ""),
            expected=f"at least {counted(least, 'row')} with a position and a value",
            where=str(log.path),
        )
    return np.flatnonzero(kept), notes


def _first_word(log: Table, rows: NDArray[np.bool_], name: str) -> str:
    """Return what the first of the cells that are no number holds instead, such as "07. Dez" for 7.12."""
    found = np.flatnonzero(rows & ~log.is_missing(name)).tolist()
    words = [row for row in found if not _is_number(log.cells[name][row])]
    return f"; {log.cells[name][words[0]]!r} in line {log.lines[words[0]]}" if words else ""


_LIMIT = re.compile(r"[<>≤≥]=?\s*\d.*")


def check_limits(log: Table, name: str) -> None:
    """Raise an `InputError` if a column holds limits of detection such as <0.5.

    To leave them out would bias the map, for they are the lowest or the highest values.
    """
    rows = [row for row, cell in enumerate(log.cells[name]) if _LIMIT.fullmatch(cell)]
    if rows:
        raise InputError(
            f"{log.cells[name][rows[0]]!r} is a limit of detection, in {counted(len(rows), 'row')}",
            expected="a number",
            where=log.place(rows[0], name),
            fix=fix_of_limit(log.cells[name][rows[0]]) or "write a number instead",
        )
