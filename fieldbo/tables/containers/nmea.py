"""Logs of NMEA 0183: fixes of a GPS with the depths and temperatures that instruments sent in between.

A row is one fix with what followed it until the next. Sentences of instruments have no time of their own:
they have that of the fix before them or, if the logger wrote a time before each sentence, their own, by which
their position is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import (
    POSITION_ROLES,
    POSITION_UNITS,
    Filled,
    choose,
    damage_named,
    make_table,
    write_number,
    write_times,
)
from fieldbo.tables.containers.nmea_sentences import (
    READERS,
    TIMED,
    Log,
    Sentence,
    clock_of,
    date_of,
    parse_sentences,
    place_of,
)
from fieldbo.tables.joining import positions_at
from fieldbo.tables.table import Table
from fieldbo.tables.times import times_of

_EPOCH = date(1970, 1, 1)
_DAY_S = 86_400
_GAP_S = 5.0
"""Positions of instruments' sentences are interpolated between fixes at most this far apart, in seconds."""

_SPREAD_S = 5.0  # of the differences between a logger's clock and the fixes' times
_MOST_LISTED = 5

_UNITS = {**POSITION_UNITS, "altitude": "m", "speed_over_ground": "kn", "course_over_ground": "deg",
          "depth_below_transducer": "m", "depth_below_transducer.DBT": "m", "depth_below_surface": "m",
          "depth_below_surface.DBS": "m", "depth_below_keel": "m", "depth_below_keel.DBK": "m",
          "water_temperature": "degC"}  # fmt: skip
_ROLES = {**POSITION_ROLES, "fix_quality": "flag", "satellites": "count", "depth_below_transducer": "value",
          "depth_below_transducer.DBT": "value", "depth_below_surface": "value",
          "depth_below_surface.DBS": "value", "depth_below_keel": "value", "depth_below_keel.DBK": "value"
          }  # fmt: skip


@dataclass
class Row:
    """A fix, with what followed it."""

    line: int
    clock: float
    day: date | None = None
    place: tuple[float, float] | None = None
    stamp: str = ""
    sensor_stamp: str = ""
    cells: dict[str, str] = field(default_factory=dict)


def read(path: Path, layer: str | None = None) -> Table:
    """Return the fixes of an NMEA log, with the readings between them.

    Positions come from GGA, RMC and GLL, dates from RMC and ZDA; depths from DPT, DBT, DBS and DBK,
    temperatures from MTW, speed and course from RMC and VTG, and other quantities from XDR. Sentences whose
    checksum is wrong are left out, and the notes list their lines.

    Parameters
    ----------
    path : Path
    layer : str, optional
        The talker whose positions count, such as ``GP``, if there are several receivers.

    Raises
    ------
    InputError
        Most sentences are damaged, there are no positions, or several receivers sent some.
    """
    return _read(path, layer, track=False)


def read_track(path: Path, layer: str | None = None) -> Table:
    """Return the fixes of an NMEA log at their own times.

    Raises
    ------
    InputError
        As `read`.
    """
    return _read(path, layer, track=True)


def _read(path: Path, layer: str | None, *, track: bool) -> Table:
    with damage_named(path, "an NMEA 0183 log"):
        log = parse_sentences(path.read_text(encoding="latin-1"))
    _check_damage(path, log)
    talker = _choose_talker(path, log.sentences, layer)
    rows, others = _collect(log, talker)
    if not any(row.place for row in rows):
        raise InputError(
            f"{path.name} has no valid position: no GGA, RMC or GLL with a fix",
            expected="an NMEA log of a receiver that had a fix",
            where=str(path),
            fix="log GGA or RMC, too; or join the readings with a track",
        )
    notes = [
        f"NMEA 0183: {counted(len(log.sentences), 'sentence')}, "
        f"{counted(sum(row.place is not None for row in rows), 'fix', 'fixes')} of talker {talker}"
    ]
    notes += [_list_lines(f"sentences {reason} left out", lines) for reason, lines in log.bad.items()]
    if log.unsigned:
        notes.append("no sentence has a checksum: damaged ones can't be told")
    if others:
        kinds = ", ".join(f"{kind} ({number})" for kind, number in sorted(others.items()))
        notes.append(f"sentences that are not read: {kinds}")
    return _make_table(path, rows, notes, track=track)


def _check_damage(path: Path, log: Log) -> None:
    wrong = log.bad.get("with a wrong checksum", [])
    if len(wrong) > len(log.sentences):
        raise InputError(
            f"{counted(len(wrong), 'sentence')} of {len(wrong) + len(log.sentences)} have a wrong checksum",
            expected="a log whose sentences are whole",
            where=f"{path}, line {wrong[0]}",
            fix="log again with the right baud rate; if a program changed the sentences, give its input",
        )
    if not log.sentences:
        raise InputError("the file has no sentences", expected="lines such as $GPGGA,...*47", where=str(path))


def _choose_talker(path: Path, sentences: Sequence[Sentence], layer: str | None) -> str:
    """Return the talker whose positions count."""
    fixes: dict[str, int] = {}
    for each in sentences:
        if each.kind in ("GGA", "RMC", "GLL") and place_of(each) is not None:
            fixes[each.talker] = fixes.get(each.talker, 0) + 1
    if not fixes:
        return layer or next((s.talker for s in sentences if s.kind in ("GGA", "RMC", "GLL")), "")
    return choose(path, {t: counted(n, "position") for t, n in fixes.items()}, layer, "talker")


def _collect(log: Log, talker: str) -> tuple[list[Row], dict[str, int]]:
    """Return the rows of a log, and how many sentences of other kinds there are."""
    rows: list[Row] = []
    others: dict[str, int] = {}
    early: list[int] = []
    for each in log.sentences:
        if each.kind in TIMED:
            if each.talker == talker:
                _take_fix(rows, each)
            continue
        if each.kind not in READERS:
            others[each.kind] = others.get(each.kind, 0) + 1
            continue
        cells = READERS[each.kind](each)
        if not cells:
            continue
        if not rows:
            early.append(each.line)
            continue
        row = rows[-1]
        if set(cells) & set(row.cells) and each.kind != "VTG":
            row = Row(each.line, row.clock, row.day, row.place, row.stamp)
            rows.append(row)
        row.cells = {**cells, **row.cells}
        if each.kind != "VTG":
            row.sensor_stamp = row.sensor_stamp or each.stamp
    if early:
        log.bad["before the first time of a fix"] = early
    return rows, others


def _take_fix(rows: list[Row], sentence: Sentence) -> None:
    """Begin a row at the time of a sentence, or add to the row of the same time."""
    clock = clock_of(sentence.at(TIMED[sentence.kind]))
    if clock is None:
        return
    if not rows or rows[-1].clock != clock:
        rows.append(Row(sentence.line, clock, stamp=sentence.stamp))
    same = [row for row in rows[-8:] if row.clock == clock]
    day = date_of(sentence) if sentence.kind in ("RMC", "ZDA") else None
    place = None if sentence.kind == "ZDA" else place_of(sentence)
    cells: dict[str, str] = {}
    if sentence.kind == "GGA":
        names = {5: "fix_quality", 6: "satellites", 7: "hdop", 8: "altitude"}
        cells = {name: sentence.at(number) for number, name in names.items() if sentence.at(number)}
    elif sentence.kind == "RMC":
        names = {6: "speed_over_ground", 7: "course_over_ground"}
        cells = {name: sentence.at(number) for number, name in names.items() if sentence.at(number)}
    for row in same:
        row.day = row.day or day
        row.place = place if sentence.kind == "GGA" and place else row.place or place
        row.cells = {**cells, **row.cells}


def _make_table(path: Path, rows: Sequence[Row], notes: list[str], *, track: bool) -> Table:
    seconds, dated, about = _count_seconds(rows)
    notes += about
    lat = np.array([np.nan if row.place is None else row.place[0] for row in rows])
    lon = np.array([np.nan if row.place is None else row.place[1] for row in rows])
    if not track:
        seconds, lat, lon, about = _place_sensors(path, rows, seconds, lat, lon)
        notes += about
    columns: dict[str, Filled] = {}
    micros = np.round(seconds * 1e6).astype(np.int64)
    cells = write_times(micros)
    columns["time"] = Filled(cells if dated else [cell[11:].rstrip("Z") for cell in cells], role="time")
    for name, axis in (("latitude", lat), ("longitude", lon)):
        columns[name] = Filled(list(map(write_number, axis.tolist())))
    for name in dict.fromkeys(name for row in rows for name in row.cells):
        columns[_shorten(name, rows)] = Filled([row.cells.get(name, "") for row in rows])
    filled = {
        name: Filled(column.cells, _UNITS.get(name, ""), column.role or _ROLES.get(name, ""))
        for name, column in columns.items()
    }
    lines = np.array([row.line for row in rows], dtype=np.int64)
    return make_table(path, filled, form="NMEA 0183", row_word="line", notes=notes, lines=lines)


def _shorten(name: str, rows: Sequence[Row]) -> str:
    """Return the name of a depth without its sentence, where no other sentence gives the same depth."""
    plain = name.partition(".")[0]
    named = name.startswith("depth_") and not any(plain in row.cells for row in rows)
    return plain if named else name


def _count_seconds(rows: Sequence[Row]) -> tuple[Array, bool, list[str]]:
    """Return the times (n,) of rows in seconds since 1970, or since midnight without dates, and notes."""
    clocks = np.array([row.clock for row in rows])
    days = np.append(0, np.cumsum(np.diff(clocks) < -_DAY_S / 2))
    known = [i for i, row in enumerate(rows) if row.day is not None]
    if known:
        before = np.clip(np.searchsorted(known, np.arange(len(rows)), side="right") - 1, 0, None)
        anchors = np.array(known)[before]
        dates = np.array([((row.day or _EPOCH) - _EPOCH).days for row in rows])
        return (dates[anchors] + days - days[anchors]) * float(_DAY_S) + clocks, True, []
    stamps = times_of([row.stamp for row in rows]) if any(row.stamp for row in rows) else None
    if stamps is not None and stamps.absolute:
        ahead = np.nanmedian(stamps.seconds - (days * _DAY_S + clocks))
        day = int(np.round(ahead / _DAY_S))
        first = _EPOCH + timedelta(days=day)
        note = f"no RMC or ZDA states the date: the log begins on {first:%Y-%m-%d} by the logger's clock"
        return (day + days) * float(_DAY_S) + clocks, True, [note]
    note = "no RMC or ZDA states the date: times are times of day in UTC"
    return days * float(_DAY_S) + clocks, False, [note]


def _place_sensors(
    path: Path, rows: Sequence[Row], seconds: Array, lat: Array, lon: Array
) -> tuple[Array, Array, Array, list[str]]:
    """Return times and positions (n,) of rows, those of instruments' sentences by their own times."""
    sensing = np.array([bool(row.sensor_stamp) for row in rows])
    fixed = np.flatnonzero(np.isfinite(lat))
    step = float(np.median(np.diff(np.unique(seconds[fixed])))) if len(fixed) > 1 else 0.0
    has_readings = any(set(row.cells) - {"fix_quality", "satellites", "hdop", "altitude"} for row in rows)
    placed = f"a sentence without a time has that of the fix before it, at most {step:.3g} s earlier"
    if not sensing.any():
        return seconds, lat, lon, [placed] if has_readings else []
    of_fixes = times_of([row.stamp for row in rows])
    of_sensors = times_of([row.sensor_stamp for row in rows])
    if of_fixes is None or of_sensors is None or not np.isfinite(of_fixes.seconds).any():
        return seconds, lat, lon, [f"what stands before the sentences is no time; {placed}"]
    ahead = of_fixes.seconds - seconds
    shift = float(np.nanmedian(ahead))
    if of_fixes.absolute and abs(shift) > _DAY_S:
        side = "behind" if shift > 0 else "ahead of"
        raise InputError(
            f"the receiver's dates are {abs(shift) / _DAY_S:,.0f} days {side} those of the logger",
            expected="the same day; old receivers are 7,168 days (1,024 weeks) behind",
            where=str(path),
            fix="remove the times before the sentences, or correct the dates in RMC and ZDA",
        )
    if np.nanmax(np.abs(ahead - shift)) > _SPREAD_S or of_sensors.kind != of_fixes.kind:
        spread = float(np.nanmax(np.abs(ahead - shift)))
        return seconds, lat, lon, [
            f"the logger's times and those of the fixes differ by up to {spread:.3g} s; {placed}"
        ]  # fmt: skip
    own = np.where(sensing & np.isfinite(of_sensors.seconds), of_sensors.seconds - shift, seconds)
    y, x = positions_at(own, seconds, lat, lon, _GAP_S)
    note = (
        f"sentences of instruments are placed at the logger's times, straight between fixes at most "
        f"{_GAP_S:g} s apart; its clock is {shift:+.3f} s from that of the fixes"
    )
    left = int((np.isnan(y) & np.isfinite(lat)).sum())
    return own, y, x, [note, *([f"{counted(left, 'reading')} between fixes further apart"] if left else [])]


def _list_lines(what: str, lines: Sequence[int]) -> str:
    some = ", ".join(map(str, lines[:_MOST_LISTED])) + (", ..." if len(lines) > _MOST_LISTED else "")
    return f"{len(lines)} {what} ({'line' if len(lines) == 1 else 'lines'} {some})"
