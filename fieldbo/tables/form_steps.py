"""What known forms say in words rather than cells: start times, stations, flags, limits of detection."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from fieldbo.errors import InputError, counted
from fieldbo.tables.sheet import Sheet
from fieldbo.tables.zones import names_pair

OFFSETS = {
    **dict.fromkeys(("UTC", "GMT", "Z", "WET"), 0),
    **{"BST": 60, "CET": 60, "CEST": 120, "EET": 120, "EEST": 180},
    **{"NST": -210, "NDT": -150, "AST": -240, "ADT": -180, "EST": -300, "EDT": -240, "CST": -360},
    **{"CDT": -300},
    **{"MST": -420, "MDT": -360, "PST": -480, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600},
    **{"SST": -660, "ChST": 600, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780, "JST": 540},
}  # fmt: skip
"""Minutes from UTC of the time zones that archives and loggers abbreviate."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?")
_MONTHS = "%b %d %Y %H:%M:%S"
_2000 = datetime(2000, 1, 1, tzinfo=UTC)
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def offset_of(minutes: int) -> str:
    """Return an offset from UTC as ISO 8601 writes it.

    Examples
    --------
    >>> offset_of(-210), offset_of(0)
    ('-03:30', '+00:00')
    """
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def find(sheet: Sheet, pattern: str) -> int | None:
    """Return the first column whose name a pattern is found in; None without one."""
    return next((i for i, name in enumerate(sheet.names) if re.search(pattern, name)), None)


def _stated(sheet: Sheet, pattern: str) -> str:
    """Return the group ``value`` of a pattern in the lines above the table; empty if it is not there."""
    found = re.search(pattern, sheet.above, re.MULTILINE)
    return found["value"].strip() if found else ""


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def read_offset(sheet: Sheet, offset: str) -> None:
    """Give the times an offset that the header states, such as ``-06:00``, ``+0000``, ``-8`` or ``8:00``."""
    time, found = (
        find(sheet, r"(?i)^date[ /]?time|^time"),
        re.fullmatch(r"([-+]?)(\d{1,2}?):?(\d{2})?", offset),
    )
    if time is not None and found is not None:
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        _set_offset(sheet, time, -minutes if found[1] == "-" else minutes)
        sheet.notes.append(f"times have the offset {offset} of the header")


def _set_offset(sheet: Sheet, time: int, minutes: int) -> None:
    """Write an offset behind times in ISO 8601; behind others, state it as the unit of their column."""
    sheet.roles[time] = "time"
    cells = sheet.column(time)
    if all(_ISO.fullmatch(cell) for cell in cells if cell):
        sheet.units[time] = ""
        sheet.replace(time, [f"{cell}{offset_of(minutes)}" if cell else "" for cell in cells])
    else:
        sheet.units[time] = f"UTC{offset_of(minutes)}"


def join_date_and_time(sheet: Sheet) -> None:
    """Write dates such as 2026/07/14 in front of the times of day in the next column."""
    date, time = find(sheet, r"^date$"), find(sheet, r"^time$")
    if date is not None and time is not None:
        halves = zip(sheet.column(date), sheet.column(time), strict=True)
        sheet.replace(time, [f"{d.replace('/', '-')} {t}" if d and t else "" for d, t in halves])
        sheet.roles[date], sheet.roles[time] = "text", "time"


def add_fractions_of_seconds(sheet: Sheet) -> None:
    """Put the column of fractions of seconds into that of times."""
    time, fraction = find(sheet, r"^Time \(HH:mm:ss\)"), find(sheet, r"^Time \(Fract")
    if time is None or fraction is None:
        return
    sheet.roles[fraction] = "text"
    parts = [_float(cell) or 0.0 for cell in sheet.column(fraction)]
    if any(0 < part < 1 for part in parts):
        whole = zip(sheet.column(time), parts, strict=True)
        sheet.replace(time, [f"{t}{f'{part:.3f}'[1:]}" if t and 0 < part < 1 else t for t, part in whole])
        sheet.notes.append("fractions of seconds are added to the times")


_PACKED = {"MMDDYY": (4, 0, 2), "DDMMYY": (4, 2, 0), "YYMMDD": (0, 2, 4)}


def read_packed_times(sheet: Sheet) -> None:
    """Write dates and times of day without signs in full, by the line of units: ``MMDDYY``, ``HHMMSS``.

    Rows with text for a date, such as "Power loss", are left out.
    """
    date = next((column for column, unit in enumerate(sheet.units) if unit in _PACKED), None)
    if date is not None:
        dated = sheet.column(date)
        texts = [re.search(r"[^\W\d_]", cell) is not None for cell in dated]
        left = [
            f"{cell} (line {line})"
            for (line, _), cell, text in zip(sheet.rows, dated, texts, strict=True)
            if text
        ]
        sheet.notes += [f"left out: {each}" for each in left]
        sheet.keep([not text for text in texts])
    for column, unit in enumerate(sheet.units):
        cells = [cell.zfill(6) if cell.isdigit() and len(cell) < 7 else "" for cell in sheet.column(column)]
        if unit in _PACKED:
            parts = [[cell[i : i + 2] for i in _PACKED[unit]] for cell in cells]
            sheet.replace(column, [f"20{'-'.join(part)}" if any(part) else "" for part in parts])
        elif unit == "HHMMSS":
            sheet.replace(column, [f"{c[:2]}:{c[2:4]}:{c[4:]}" if c else "" for c in cells])
        else:
            continue
        sheet.units[column], sheet.roles[column] = "", "time"


def read_zone_in_name(sheet: Sheet) -> None:
    """Give times the offset in their column's name: ``Date Time, GMT-07:00``, ``Date-Time (CEST)``."""
    time = find(sheet, r"(?i)^Date[ -]Time")
    if time is None:
        return
    sheet.roles[time] = "time"
    name = sheet.names[time]
    if names_pair(name):
        return  # each date has its own
    found = re.search(r"(?:GMT|UTC)\s*([-+]?)(\d{1,2}):?(\d{2})?", name)
    zone = re.search(r"\b([A-Z]{1,4}T|ChST|UTC|GMT|Z)\b", name)
    if found:
        _set_offset(sheet, time, (int(found[2]) * 60 + int(found[3] or 0)) * (-1 if found[1] == "-" else 1))
    elif zone and zone[1] in OFFSETS:
        _set_offset(sheet, time, OFFSETS[zone[1]])
        sheet.notes.append(f"{zone[1]} in {name!r} is UTC{offset_of(OFFSETS[zone[1]])}")
    elif zone:
        raise InputError(
            f"the time zone {zone[1]} is not known",
            expected="an offset such as GMT+02:00, or one of " + ", ".join(sorted(OFFSETS)),
            where=f"{sheet.path}, line {sheet.line}, column {name}",
            fix="export with times in GMT",
        )


def read_seabird_scans(sheet: Sheet) -> None:
    """Check the number of scans, and leave those out that are marked as bad."""
    if re.search(r"^# file_type = binary", sheet.above, re.MULTILINE):
        raise InputError(
            "the scans of this .cnv file are binary",
            expected="a .cnv file with scans in ASCII",
            where=str(sheet.path),
            fix="convert it with ASCII Out, or with Translate, in SBE Data Processing",
        )
    announced = _stated(sheet, r"^# nvalues = (?P<value>\d+)")
    if announced and int(announced) != len(sheet.rows):
        sheet.notes.append(f"the header announces {announced} scans, the file holds {len(sheet.rows)}")
    flag, stated = find(sheet, r"^flag$"), _stated(sheet, r"^# bad_flag = (?P<value>\S+)")
    if flag is None or not stated:
        return
    bad = _float(stated)
    if bad is None:
        raise InputError(
            f"bad_flag is {stated!r}",
            expected="a number such as -9.990e-29",
            where=f"{sheet.path}, # bad_flag",
        )
    good = [_float(cell) != bad for cell in sheet.column(flag)]
    if not all(good):
        lines = [line for (line, _), use in zip(sheet.rows, good, strict=True) if not use]
        listed = ", ".join(map(str, lines[:3])) + (", ..." if len(lines) > 3 else "")
        sheet.notes.append(f"{counted(len(lines), 'scan')} marked as bad left out (line {listed})")
        sheet.keep(good)


_SEABIRD_TIMES: dict[str, Callable[[datetime, float], datetime]] = {
    r"^timeJ|^timeSCP": lambda start, days: (
        datetime(start.year, 1, 1, tzinfo=start.tzinfo) + timedelta(days=days - 1)
    ),
    "^timeS$": lambda start, seconds: start + timedelta(seconds=seconds),
    r"^timeM$": lambda start, minutes: start + timedelta(minutes=minutes),
    r"^timeH$": lambda start, hours: start + timedelta(hours=hours),
    r"^timeQ": lambda start, seconds: _2000 + timedelta(seconds=seconds),
    r"^timeK": lambda start, seconds: (_2000 + timedelta(seconds=seconds)).replace(tzinfo=start.tzinfo),
    r"^timeN": lambda start, seconds: _1970 + timedelta(seconds=seconds),
    r"^timeY": lambda start, seconds: (_1970 + timedelta(seconds=seconds)).replace(tzinfo=start.tzinfo),
}


def read_seabird_times(sheet: Sheet) -> None:
    """Write the times of scans in full, from the start time and a column of time or the interval."""
    stated = re.search(
        r"^# start_time = (\w{3} +\d+ \d{4} +\d\d:\d\d:\d\d)(?:\s*\[(.*)\])?", sheet.above, re.MULTILINE
    )
    if stated is None:
        return
    in_utc = bool(stated[2]) and ("NMEA" in stated[2] or "UTC" in stated[2])
    try:
        start = datetime.strptime(" ".join(stated[1].split()), _MONTHS).replace(
            tzinfo=UTC if in_utc else None
        )
    except ValueError:
        raise InputError(
            f"start_time is {stated[1]!r}",
            expected="a time such as Jul 14 2026 09:00:00",
            where=f"{sheet.path}, # start_time",
        ) from None
    for pattern, at in _SEABIRD_TIMES.items():
        column = find(sheet, pattern)
        if column is not None:
            numbers = [_float(cell) for cell in sheet.column(column)]
            known = [None if n in sheet.missing else n for n in numbers]
            sheet.replace(column, ["" if n is None else _written(at, start, n) for n in known])
            sheet.units[column], sheet.roles[column] = "", "time"
            sheet.notes.append(f"{sheet.names[column]} is written as time; scans began at {stated[1]}")
            return
    times = _times_of_scans(sheet, start)
    if times:
        sheet.add("time", times, role="time")
        sheet.notes.append("time is the start time plus the intervals between scans")


def _times_of_scans(sheet: Sheet, start: datetime) -> list[str]:
    """Return the times of scans in equal intervals; none if the intervals are not of time."""
    interval = _float(_stated(sheet, r"^# interval = seconds: (?P<value>\S+)"))
    scan = find(sheet, r"^scan$")
    if interval is None:
        return []
    numbers: Sequence[float | None] = range(1, len(sheet.rows) + 1)
    if scan is not None:
        numbers = [_float(cell) for cell in sheet.column(scan)]
        if find(sheet, r"^nbin$") is not None or any(n is None for n in numbers):
            return []
    return [_written(_SEABIRD_TIMES["^timeS$"], start, interval * ((n or 1) - 1)) for n in numbers]


def _written(at: Callable[[datetime, float], datetime], start: datetime, number: float) -> str:
    """Return a time that a number of a column stands for; empty if it is beyond all calendars."""
    try:
        return _iso(at(start, number))
    except (OverflowError, ValueError):
        return ""


def _iso(at: datetime) -> str:
    at += timedelta(microseconds=500)
    text = at.isoformat(timespec="milliseconds" if at.microsecond >= 1000 else "seconds")
    return text.replace("+00:00", "Z")


def read_castaway_time(sheet: Sheet) -> None:
    """Add the time of each sample, or that of the cast."""
    cast = _stated(sheet, r"^% Cast time \(UTC\),(?P<value>.*?),*$")
    try:
        start = datetime.fromisoformat(cast).replace(tzinfo=UTC)
    except ValueError:
        return
    column = find(sheet, r"^Time \(Seconds\)")
    since = [0.0] * len(sheet.rows) if column is None else [_float(c) or 0.0 for c in sheet.column(column)]
    sheet.add("time", [_written(_SEABIRD_TIMES["^timeS$"], start, s) for s in since], role="time")
    if column is not None:
        sheet.roles[column] = "text"
    what = "that of the cast" if column is None else "that of the cast plus Time (Seconds)"
    sheet.notes.append(f"time is {what}")


def read_rdb_datum(sheet: Sheet) -> None:
    """Say in which datum positions are; NAD83 is within two metres of WGS 84, older ones are not."""
    column = find(sheet, r"^dec_coord_datum_cd$")
    if column is None:
        return
    found = {cell for cell in sheet.column(column) if cell}
    for datum in sorted(found - {"WGS84"}):
        far = "within 2 m of WGS 84" if datum == "NAD83" else "up to 200 m from WGS 84; convert them first"
        sheet.notes.append(f"positions in {datum}, {far}")


def read_rdb_zones(sheet: Sheet) -> None:
    """Write times with the offset of their time zone."""
    zone = find(sheet, r"^(tz_cd|sample_start_time_datum_cd)$")
    time = find(sheet, r"^(datetime|sample_tm)$")
    if zone is None or time is None:
        return
    date = find(sheet, r"^sample_dt$") if sheet.names[time] == "sample_tm" else None
    _write_zones(sheet, date, time, zone)


def _write_zones(sheet: Sheet, date: int | None, time: int, zone: int) -> None:
    """Put date, time of day and the abbreviation of a time zone together in the column of times."""
    dates = [""] * len(sheet.rows) if date is None else sheet.column(date)
    unknown: set[str] = set()
    cells = []
    for day, clock, name in zip(dates, sheet.column(time), sheet.column(zone), strict=True):
        if not clock or not name:
            cells.append(day if date is not None and not clock else f"{day} {clock}".strip())
            continue
        if name not in OFFSETS:
            unknown.add(name)
        cells.append(f"{day} {clock}{offset_of(OFFSETS.get(name, 0))}".strip())
    if unknown:
        raise InputError(
            f"time zones are not known: {', '.join(sorted(unknown))}",
            expected=", ".join(sorted(OFFSETS)),
            where=f"{sheet.path}, column {sheet.names[zone]}",
            fix="export times in UTC",
        )
    sheet.replace(time, cells)
    sheet.roles[time] = "time"
    sheet.notes.append(f"times take their offset from {sheet.names[zone]}")
    if date is not None:
        sheet.roles[date] = "text"


def fill_stations(sheet: Sheet) -> None:
    """Copy what an ODV spreadsheet states in the first row of a station to its other rows."""
    lat, lon = find(sheet, r"^Latitude\b"), find(sheet, r"^Longitude\b")
    station = find(sheet, r"^Station\b")
    if lat is None or lon is None:
        return
    meta = range(max(c for c in (lat, lon, find(sheet, r"^Bot\. Depth"), station) if c is not None) + 1)
    filled, last = 0, [""] * len(meta)
    for row in range(len(sheet.rows)):
        own = [sheet.cell(row, i) for i in meta]
        if any(own):
            last = own
            continue
        cells = sheet.rows[row][1]
        cells[: len(meta)] = last
        filled += 1
    if filled:
        sheet.notes.append(f"{counted(filled, 'row')} with the position and time of the station's first row")


def read_odv_dates(sheet: Sheet) -> None:
    """Write dates of the column ``mon/day/yr`` so that the month is certain."""
    time = find(sheet, r"^yyyy-mm-dd")
    if time is not None:
        sheet.roles[time] = "time"
        return
    column = find(sheet, r"^mon/day/yr$")
    if column is None:
        return
    parts = [re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", cell) for cell in sheet.column(column)]
    dates = zip(parts, sheet.column(column), strict=True)
    sheet.replace(column, [f"{p[3]}-{int(p[1]):02d}-{int(p[2]):02d}" if p else cell for p, cell in dates])


_BAD = {"ODV": ("8",), "SEADATANET": ("4", "9"), "WOCE": ("4", "9"), "ARGO": ("4", "9"), "IODE": ("4", "9")}
_DOUBTFUL = {"ODV": ("4",), "SEADATANET": ("3",), "WOCE": ("3",), "ARGO": ("3",), "IODE": ("3",)}


def apply_flags(sheet: Sheet) -> None:
    """Leave values out whose quality flag, in the column to the right, says that they are bad."""
    for column, role in enumerate(sheet.roles):
        if role != "flag" or column == 0 or sheet.names[column] == "STANDARD_DEV":
            continue
        flags = sheet.column(column)
        of = sheet.names[column - 1]
        scheme = next((each for each in _BAD if each in sheet.names[column].upper()), "ODV")
        scheme = "WOCE" if sheet.names[column].endswith("_FLAG_W") else scheme
        bad = [i for i, flag in enumerate(flags) if flag in _BAD[scheme]]
        doubtful = sum(flag in _DOUBTFUL[scheme] for flag in flags)
        for row in bad:
            sheet.rows[row][1][column - 1] = ""
        if bad:
            sheet.notes.append(f"{counted(len(bad), 'value')} of {of} flagged as bad left out ({scheme})")
        if doubtful:
            sheet.notes.append(
                f"{counted(doubtful, 'value')} of {of} flagged as doubtful ({scheme}), and used"
            )


def read_portal_times(sheet: Sheet) -> None:
    """Write the times of the Water Quality Portal with their date and offset."""
    date = find(sheet, r"^ActivityStartDate$|^Activity_StartDate$")
    time = find(sheet, r"^ActivityStartTime[/._]Time$|^Activity_StartTime$")
    zone = find(sheet, r"^ActivityStartTime[/._]TimeZoneCode$|^Activity_StartTimeZone$")
    if date is not None and time is not None and zone is not None:
        _write_zones(sheet, date, time, zone)
    if find(sheet, r"LatitudeMeasure$|^Location_Latitude$") is None:
        sheet.notes.append(
            "no positions: they are in the portal's file of stations, by MonitoringLocationIdentifier"
        )


def read_portal_limits(sheet: Sheet) -> None:
    """Write results that were not detected as below their limit; leave samples for quality control out."""
    kind = find(sheet, r"^ActivityTypeCode$|^Activity_TypeCode$")
    if kind is not None:
        good = [not cell.startswith("Quality Control") for cell in sheet.column(kind)]
        if not all(good):
            sheet.notes.append(f"{counted(good.count(False), 'sample')} for quality control left out")
            sheet.keep(good)
    value = find(sheet, r"^ResultMeasureValue$|^Result_Measure$")
    condition = find(sheet, r"^ResultDetectionConditionText$|^Result_ResultDetectionCondition$")
    limit = find(sheet, r"^DetectionQuantitationLimitMeasure[/._]MeasureValue$|^DetectionLimit_MeasureA$")
    if value is None or condition is None:
        return
    limits = [""] * len(sheet.rows) if limit is None else sheet.column(limit)
    cells, silent = [], 0
    for cell, why, least in zip(sheet.column(value), sheet.column(condition), limits, strict=True):
        below = not cell and bool(re.search(r"(?i)not detected|below", why))
        cells.append(f"<{least}" if below and least else cell)
        silent += below and not least
    sheet.replace(value, cells)
    if silent:
        sheet.notes.append(
            f"{counted(silent, 'result')} not detected, without a limit: without them, the map is too high"
        )
