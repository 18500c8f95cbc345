"""Positions for what was logged without them: interpolated by time between the fixes of a track."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError, counted
from fieldbo.tables.columns import describe_columns
from fieldbo.tables.coordinates import read_degrees
from fieldbo.tables.measures import Measured
from fieldbo.tables.table import Table
from fieldbo.tables.times import Times, column_of_time, times_in

GAP_S = 30.0
"""Fixes of a track further apart than this have no positions between them, unless another gap is given."""

OPTION, OFFSET_OPTION, GAP_OPTION = "--track", "--track-offset", "--track-gap"

_MINUTES, _SHARED = 3, 0.25
"""Fewest minutes that show that seconds are lost, and the least share of rows that are not their first."""

_HOURS = range(-14, 15)  # offsets of time zones from UTC


def positions_at(
    seconds: Array, fixes_s: Array, lat: Array, lon: Array, gap_s: float = GAP_S
) -> tuple[Array, Array]:
    """Return the latitudes and longitudes (n,) of a track at given times; NaN where there are none.

    Between two fixes at most `gap_s` apart they are interpolated linearly, across 180 degrees of longitude as
    well. At the time of a fix they are that fix, to the last digit. There are none before the first fix and
    after the last.

    Parameters
    ----------
    seconds : (n,) array
    fixes_s : (m,) array
        Times of the fixes in any order, by the same clock as `seconds`. Of fixes at the same time, the first
        counts.
    lat, lon : (m,) arrays
        Degrees; fixes with NaN in either, or in their time, do not count.
    gap_s : float

    Examples
    --------
    >>> lat, lon = positions_at(np.array([5.0, 90.0]), np.array([0.0, 10.0, 100.0]), np.zeros(3),
    ...                         np.array([179.0, -179.0, -178.0]))
    >>> lon.tolist()
    [180.0, nan]
    """
    known = np.isfinite(fixes_s) & np.isfinite(lat) & np.isfinite(lon)
    times, first = np.unique(fixes_s[known], return_index=True)
    if not len(times):
        return np.full(len(seconds), np.nan), np.full(len(seconds), np.nan)
    lat, lon = lat[known][first], np.unwrap(lon[known][first], period=360.0)
    after = np.clip(np.searchsorted(times, seconds), 0, len(times) - 1)
    before = np.clip(after - 1, 0, None)
    between = (times[before] < seconds) & (seconds < times[after]) & (times[after] - times[before] <= gap_s)
    placed = between | (times[after] == seconds)
    at = np.where(placed, seconds, times[0])
    x = np.interp(at, times, lon)
    x = np.where(np.abs(x) > 180.0, (x + 180.0) % 360.0 - 180.0, x)
    return np.where(placed, np.interp(at, times, lat), np.nan), np.where(placed, x, np.nan)


class _Clocked(NamedTuple):
    """A table with the column of its times."""

    table: Table
    column: str
    times: Times

    @property
    def range(self) -> str:
        known = self.times.seconds[np.isfinite(self.times.seconds)]
        ends = (self._write(float(end)) for end in (known.min(), known.max()))
        return f"{self.table.path.name} from {' to '.join(ends)}"

    def _write(self, second: float) -> str:
        if self.times.kind == "number":
            return f"{second:.10g}"
        at = datetime.fromtimestamp(second, UTC)
        return f"{at:%Y-%m-%d %H:%M:%S}" if self.times.absolute else f"{at:%H:%M:%S}"


def join_track(
    table: Table,
    track: Table,
    *,
    time: str | None = None,
    track_time: str | None = None,
    offset_s: float | None = None,
    gap_s: float = GAP_S,
) -> Table:
    """Return a log without positions with columns ``latitude`` and ``longitude`` from a track.

    Positions are interpolated as `positions_at` does. Rows without one are left out, and the notes say how
    many. Where the clocks differ, the times of the log are written anew, in UTC by the clock of the track.

    Parameters
    ----------
    table, track : Table
        The track has columns of time, latitude and longitude; others are left alone.
    time, track_time : str, optional
        Columns of time; by default, the only ones.
    offset_s : float, optional
        Seconds to add to the times of the log so that they are those of the track. Times without an offset
        from UTC are taken as UTC first: for a log in Central European Summer Time it is -7200. Required if
        either states no offset.
    gap_s : float
        The furthest that two fixes may be apart for positions between them, in seconds.

    Raises
    ------
    InputError
        A column is missing or not clear, the log has positions already, times state no offset and `offset_s`
        is None, the times of one have lost their seconds, or the log and the track have no time in common.

    Examples
    --------
    >>> from pathlib import Path
    >>> def table(name, **cells):
    ...     return Table(Path(name), tuple(cells), {}, cells, np.arange(2, 2 + len(cells["time"])))
    >>> sonde = table("sonde.csv", time=("2024-05-01T12:00:05Z", "2024-05-01T13:00:00Z"), chl=("3", "4"))
    >>> boat = table("boat.csv", time=("2024-05-01T12:00:00Z", "2024-05-01T12:00:10Z"), lat=("47", "48"),
    ...              lon=("8", "9"))
    >>> joined = join_track(sonde, boat)
    >>> joined.cells["latitude"], joined.cells["chl"]
    (('47.5',), ('3',))
    >>> joined.notes[-1]
    '1 row without a fix left out (line 3): 1 beyond the ends of the track'
    """
    _check_unplaced(table)
    log, fixes = _find_clock(table, time, "time"), _find_clock(track, track_time, "time of the track")
    for each in (log, fixes):
        _check_seconds(each)
    shift = _agree_on_clocks(log, fixes, offset_s)
    (lat, about_lat), (lon, about_lon) = (_find_degrees(track, d) for d in ("latitude", "longitude"))
    seconds = log.times.seconds + shift
    y, x = positions_at(seconds, fixes.times.seconds, lat, lon, gap_s)
    placed = np.isfinite(y)
    fixed = np.isfinite(lat) & np.isfinite(lon)
    known = np.sort(fixes.times.seconds[np.isfinite(fixes.times.seconds) & fixed])
    if not placed.any():
        raise _nothing_in_common(log, fixes, seconds, known, shift, gap_s)
    notes = [
        *table.notes,
        *(f"{track.path.name}: {note}" for note in (*track.notes, *about_lat, *about_lon)),
        *log.times.notes,
        f"positions are those of {track.path.name} at the time of each row, straight between fixes at most "
        f"{gap_s:g} s apart ({counted(len(known), 'fix', 'fixes')}, mostly {_usual_step(known):.3g} s apart)",
    ]
    if shift:
        notes.append(f"{shift:+g} s are added to {log.column}, so that it is the track's time")
    if not placed.all():
        notes.append(_note_left_out(table, placed, seconds, known))
    cells = {name: _pick(column, placed) for name, column in table.cells.items()}
    if fixes.times.absolute and (shift or not log.times.offsets):
        cells[log.column] = tuple(_write_utc(second) for second in seconds[placed].tolist())
    cells["latitude"], cells["longitude"] = (tuple(map(repr, axis[placed].tolist())) for axis in (y, x))
    taken = [name for name in table.names if name not in ("latitude", "longitude")]
    return replace(
        table,
        names=(*taken, "latitude", "longitude"),
        units={**table.units, "latitude": "degrees_north", "longitude": "degrees_east"},
        cells=cells,
        lines=table.lines[placed],
        notes=tuple(notes),
        roles={**table.roles, log.column: "time", "latitude": "latitude", "longitude": "longitude"},
    )


def _pick(column: tuple[str, ...], rows: Mask) -> tuple[str, ...]:
    return tuple(cell for cell, kept in zip(column, rows.tolist(), strict=True) if kept)


def _write_utc(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


def _usual_step(times: Array) -> float:
    steps = np.diff(times)
    return float(np.median(steps)) if len(steps) else 0.0


def _check_unplaced(table: Table) -> None:
    """Raise an `InputError` if a log holds positions of its own."""
    found = [
        c.name for c in describe_columns(table) if _kind(table, c.name, c.kind) in ("latitude", "longitude")
    ]
    if found:
        raise InputError(
            f"{table.path.name} has positions already: {' and '.join(found)}",
            expected="a log without positions, whose rows get those of a track",
            where=OPTION,
            fix=f"leave {OPTION} out, or remove these columns",
        )


def _kind(table: Table, name: str, guess: str) -> str:
    return table.roles.get(name, guess)


def _find_clock(table: Table, given: str | None, what: str) -> _Clocked:
    """Return a table with its only column of time, or the one given."""
    if given is not None:
        name: str | None = table.column(given)
    else:
        stated = [name for name, role in table.roles.items() if role == "time"]
        found = stated or [c.name for c in describe_columns(table) if c.kind == "time"]
        name = found[0] if len(found) == 1 else column_of_time(table, found)
        if name is None:
            raise InputError(
                f"{table.path.name} has {counted(len(found), 'column')} of time"
                + (f": {', '.join(found)}" if found else ""),
                expected=f"one column of the {what}, by which a track is joined",
                where=OPTION,
                fix=f"name one with --time {found[0]!r}" if found else "export it with its dates and times",
            )
    times = times_in(table, name) if name is not None else None
    if name is None or times is None or not np.isfinite(times.seconds).any():
        raise InputError(
            f"column {name} of {table.path.name} holds no times",
            expected="times such as 2024-05-01T12:30:00Z",
            where=OPTION,
        )
    return _Clocked(table, name, times)


def _check_seconds(clocked: _Clocked) -> None:
    """Raise an `InputError` if times have lost their seconds: several rows share each of successive minutes.

    Excel does not write the seconds of a time that it shows without them.
    """
    seconds = clocked.times.seconds[np.isfinite(clocked.times.seconds)]
    minutes = np.unique(seconds)
    if len(minutes) < _MINUTES or (seconds % 60).any():
        return
    shared = len(seconds) - len(minutes)
    if shared < _SHARED * len(minutes) or float(np.median(np.diff(minutes))) != 60.0:
        return
    raise InputError(
        f"{clocked.table.path.name} has {len(seconds)} rows in {len(minutes)} whole minutes: the seconds of "
        "its times are lost",
        expected="times with seconds, since a boat moves within a minute",
        where=f"{clocked.table.path}, column {clocked.column}",
        fix="give the file that the maker's program exported; Excel drops seconds when it saves as CSV",
    )


def _agree_on_clocks(log: _Clocked, fixes: _Clocked, offset_s: float | None) -> float:
    """Return the seconds to add to the times of a log; raise an `InputError` if they are not known."""
    if log.times.undecided:
        raise InputError(
            log.times.undecided, expected="dates whose day and month are certain", where=str(log.table.path)
        )
    if log.times.absolute != fixes.times.absolute or (
        not log.times.absolute and log.times.kind != fixes.times.kind
    ):
        without = log if not log.times.absolute else fixes
        raise InputError(
            f"{without.table.path.name} has times without dates, the other file has dates",
            expected="dates and times in both",
            where=f"{without.table.path}, column {without.column}",
            fix="export it with its dates",
        )
    if offset_s is not None:
        return offset_s
    silent = [each for each in (log, fixes) if not (each.times.offsets and each.times.absolute)]
    if silent:
        names = " and ".join(f"{each.column} of {each.table.path.name}" for each in silent)
        raise InputError(
            f"{names} {'states' if len(silent) == 1 else 'state'} no offset from UTC: times may be local",
            expected="times such as 2024-05-01T12:30:00Z or 2024-05-01T14:30:00+02:00, or the difference",
            where=OFFSET_OPTION,
            fix=f"say what to add to the log's times: {OFFSET_OPTION} 0s if both are in UTC, "
            f"{OFFSET_OPTION}=-2h if the log's clock is two hours ahead of the track's",
        )
    return 0.0


def _find_degrees(track: Table, direction: Literal["latitude", "longitude"]) -> Measured:
    """Return the only latitudes or longitudes (m,) of a track, and notes."""
    stated = [name for name, role in track.roles.items() if role == direction]
    found = stated or [c.name for c in describe_columns(track) if c.kind == direction]
    if len(found) != 1:
        raise InputError(
            f"{track.path.name} has {counted(len(found), 'column')} of {direction}"
            + (f": {', '.join(found)}" if found else ""),
            expected="a track with one column each of time, latitude and longitude in degrees",
            where=OPTION,
            fix="give a GPX, NMEA, .bin, .tlog or .ulg file, or a CSV file with columns time, lat and lon",
        )
    degrees, notes = read_degrees(track, found[0], direction)
    limit = 90.0 if direction == "latitude" else 360.0
    return Measured(np.where(np.abs(degrees) <= limit, degrees, np.nan), notes)


def _note_left_out(table: Table, placed: Mask, seconds: Array, known: Array) -> str:
    left: NDArray[np.int64] = table.lines[~placed]
    some = ", ".join(map(str, left[:3].tolist())) + (", ..." if len(left) > 3 else "")
    times = seconds[~placed]
    beyond = int(((times < known[0]) | (times > known[-1])).sum())
    without = int((~np.isfinite(times)).sum())
    reasons = {
        "beyond the ends of the track": beyond,
        "in gaps of the track": len(left) - beyond - without,
        "without a time": without,
    }
    why = ", ".join(f"{number} {reason}" for reason, number in reasons.items() if number)
    word = table.row_word if len(left) == 1 else f"{table.row_word}s"
    return f"{counted(len(left), 'row')} without a fix left out ({word} {some}): {why}"


def _nothing_in_common(
    log: _Clocked, fixes: _Clocked, seconds: Array, known: Array, shift: float, gap_s: float
) -> InputError:
    """Return the error for a log that has no time in common with a track."""
    if not len(known):
        return InputError(
            f"{fixes.table.path.name} has no fix with a time",
            expected="a track with times and positions",
            where=OPTION,
        )
    moved = f" (with {shift:+g} s)" if shift else ""
    inside = (seconds >= known[0]) & (seconds <= known[-1])
    if inside.any():
        return InputError(
            f"no row lies between fixes at most {gap_s:g} s apart: those of {fixes.table.path.name} are "
            f"mostly {_usual_step(known):.3g} s apart",
            expected="a track with more fixes",
            where=GAP_OPTION,
            fix=f"allow longer gaps with {GAP_OPTION}, if the boat went straight between the fixes",
        )
    share = {hours: _share_inside(seconds + 3600.0 * hours, known) for hours in _HOURS}
    best = max(share, key=lambda hours: (share[hours], -abs(hours)))
    fix = "give the track of the same day, or the difference of the clocks"
    if share[best] > 0.5:
        whole = shift / 3600.0 + best
        fix = f"if the clocks differ by the time zone, {OFFSET_OPTION}={whole:g}h would make them overlap"
    return InputError(
        f"the log and the track have no time in common: {log.range}{moved}, {fixes.range}",
        expected="times that overlap",
        where=OPTION,
        fix=fix,
    )


def _share_inside(seconds: Array, known: Array) -> float:
    return float(np.mean((seconds >= known[0]) & (seconds <= known[-1])))
