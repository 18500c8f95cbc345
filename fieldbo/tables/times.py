"""Times as loggers write them: ISO 8601, dates of several countries, times of day, counts of seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.tables.cells import MISSING
from fieldbo.tables.clocks import (
    Counted,
    calendar_columns,
    count_calendar,
    count_day_parts,
    count_gps,
    count_times,
    gps_columns,
)
from fieldbo.tables.dates import COMPACT, day_of, has_offset, latest_of, read_dates, take_zones
from fieldbo.tables.table import Table
from fieldbo.tables.zones import split_zone, zone_of, zones_of_rows

IN_UTC = "times without an offset are taken as UTC"
"""Note on times that say neither zone nor offset."""

_TRIED = 40
_LONGEST = 120  # characters: longer cells are no times, and slow to match
_DAY_S = 86_400.0


class Times(NamedTuple):
    """Times of a column."""

    seconds: Array
    """(n,), NaN where there is none."""
    kind: Literal["instant", "date", "clock", "number"]
    """Whether they are dates with a time of day, dates alone, times of day alone, or of any clock."""
    notes: tuple[str, ...] = ()
    """What is uncertain."""
    undecided: str = ""
    """The two readings of a date, if the log does not tell whether the day or the month comes first."""
    offsets: bool = True
    """Whether all of them state their offset from UTC, or need none."""
    unzoned: str = ""
    """Why their zone is not certain, if the header says something of it; they are taken as UTC."""

    @property
    def absolute(self) -> bool:
        """Whether they count from 1970 in UTC."""
        return self.kind in ("instant", "date")


def times_of(
    cells: Sequence[str],
    *,
    numbers: bool = True,
    name: str = "",
    unit: str = "",
    comments: Sequence[str] = (),
) -> Times | None:
    """Return the times in the cells of a column; None if most are none.

    Times without a zone are taken as UTC. Times of day go on after midnight. Whether the day or the month
    comes first in 03/04/2024 is decided by a number above 12 anywhere in the column, by when the file was
    created, and else by which makes the log more continuous; never by what the header says, for programs
    that write MM/DD/YYYY there write dates as the computer does.

    Parameters
    ----------
    cells : sequence of str
    numbers : bool
        Whether plain numbers are times, too: since 1970, or else of any clock.
    name, unit : str
        The column's name and unit, which tell what numbers count.
    comments : sequence of str
        The lines above the table, which may say when the file was created.

    Examples
    --------
    >>> times_of(["2024-05-01T12:00:00Z", "2024-05-01 12:00:01.5", ""]).seconds.tolist()
    [1714564800.0, 1714564801.5, nan]
    >>> times_of(["23:59:59", "00:00:01"]).seconds.tolist()
    [86399.0, 86401.0]
    """
    cells = [cell if len(cell) <= _LONGEST else "text" for cell in cells]
    present = [cell for cell in cells if cell.lower() not in MISSING]
    if not present:
        return None
    tried = [present[i] for i in np.unique(np.linspace(0, len(present) - 1, _TRIED).astype(int))]
    if all(_float(cell) is not None for cell in tried):
        return _read_numbers(cells, tried, name, unit, comments) if numbers else None
    times, zones = take_zones(cells, tried)
    columns = read_dates(times, f"{name} {unit}")
    most = max((int(np.isfinite(seconds).sum()) for seconds in columns), default=0)
    if most <= 0.5 * len(present):
        return None
    best, notes, undecided = _choose(cells, [s for s in columns if np.isfinite(s).sum() == most], comments)
    if np.nanmax(best) < _DAY_S:
        return Times(_count_past_midnight(best), "clock")
    known = np.flatnonzero(np.isfinite(best)).tolist()
    alone = not any(":" in cell for cell in present) and not (best[known] % _DAY_S).any()
    for row in zones.keys() & set(known):
        best[row] = zones[row].seconds(best[row])
    asked = next(
        (zone.question for row, zone in zones.items() if zone.question and np.isfinite(best[row])), ""
    )
    offsets = not asked and all(row in zones or has_offset(cells[row]) for row in known)
    unzoned = f"the zone of {name or 'the times'} is not certain: {asked}" if asked else ""
    return Times(best, "date" if alone else "instant", notes, undecided, offsets, unzoned)


def _choose(
    cells: Sequence[str], columns: Sequence[Array], comments: Sequence[str]
) -> tuple[Array, tuple[str, ...], str]:
    """Return the best way to read dates, a note on another one, and that as a question if nothing decides."""
    latest = latest_of(comments)
    possible = [seconds for seconds in columns if latest is None or np.nanmax(seconds) <= latest] or columns
    jumps = [float(np.nansum(np.abs(np.diff(s[np.isfinite(s)])))) for s in possible]
    first = int(np.argmin(jumps))
    best = possible[first]
    if np.nanmax(best) < _DAY_S:
        return best, (), ""
    notes, undecided = _compare(cells, best, jumps[first], possible, jumps)
    if len(possible) < len(columns) and not undecided:
        notes = (*notes, *_note_created(cells, best, columns))
    return best, notes, undecided


def _compare(
    cells: Sequence[str], best: Array, least: float, others: Sequence[Array], jumps: Sequence[float]
) -> tuple[tuple[str, ...], str]:
    """Return a note if dates can be read in another way, and it as a question if nothing decides."""
    notes: tuple[str, ...] = ()
    undecided = ""
    for other, jump in zip(others, jumps, strict=True):
        differ = np.flatnonzero(np.isfinite(best) & np.isfinite(other) & (best != other))
        if len(differ):
            row, decided = int(differ[0]), not np.isclose(jump, least)
            notes = (_note_either(cells[row], best[row], other[row], decided),)
            undecided = undecided or ("" if decided else notes[0])
    return notes, undecided


def _note_created(cells: Sequence[str], best: Array, complete: Sequence[Array]) -> list[str]:
    """Return a note on the reading that is left out because the file was created before it."""
    for other in complete:
        differ = np.flatnonzero(np.isfinite(best) & np.isfinite(other) & (best != other))
        if len(differ):
            used, left = (f"{at.day} {at:%B %Y}" for at in map(_at, (best[differ[0]], other[differ[0]])))
            return [f"{cells[differ[0]]!r} is read as {used}: the file was created before {left}"]
    return []


def times_in(log: Table, name: str) -> Times | None:
    """Return the times in a column of a log; None if most cells are none.

    Dates alone are put together with the times of day of another column, and times of day with dates, if
    there is exactly one such column; fractions of seconds in a column of their own are added, and weeks of
    GPS are put together with their seconds. The zone is that of the cells, of the header or of a column of
    zones.
    """
    gps = gps_columns(log)
    if gps is not None and name in gps and (counted := count_gps(log, *gps)) is not None:
        return _as_times(counted)
    calendar = calendar_columns(log)
    if name in calendar.values():
        return _apply_zone(log, list(calendar.values()), _as_times(count_calendar(log, calendar)))
    times = _times_of_column(log, name)
    if times is None:
        return None
    names = [name]
    if times.kind in ("date", "clock"):
        halves = _find_other_half(log, name, times)
        if halves is None:
            times = _ask_for_clock(log, name, times)
        else:
            names.append(halves)
            times = _put_together(log, name, halves, times)
    if times.kind == "instant" or len(names) > 1:
        times = _add_fractions(log, times)
    return _apply_zone(log, names, times)


def _times_of_column(log: Table, name: str, *, numbers: bool = True) -> Times | None:
    cells: Sequence[str] = log.cells[name]
    if log.missing:
        cells = ["" if _float(cell) in log.missing else cell for cell in cells]
    return times_of(cells, numbers=numbers, name=name, unit=log.units.get(name, ""), comments=log.comments)


def _put_together(log: Table, name: str, other: str, times: Times) -> Times:
    """Return dates of one column together with the times of day of another."""
    second = _half(log, other)
    assert second is not None
    date, clock = (name, other) if times.kind == "date" else (other, name)
    days, hours = (times, second) if times.kind == "date" else (second, times)
    together = days.seconds + hours.seconds % _DAY_S
    notes: tuple[str, ...] = (f"time is {date} and {clock} together", *days.notes)
    seconds, known = _count_past_midnight(together), np.isfinite(together)
    stays = known.any() and np.ptp(days.seconds[known]) == 0 and (np.diff(seconds[known]) >= 0).all()
    if stays and (seconds[known] != together[known]).any():
        notes += (f"{date} stays the same after midnight; the times go on with the next day",)
        together = seconds
    return _apply_zones_of_clock(log, clock, Times(together, "instant", notes, days.undecided, offsets=False))


def _apply_zones_of_clock(log: Table, clock: str, times: Times) -> Times:
    """Return times in UTC by the zones that stand behind their times of day, such as 12:00 MESZ."""
    cells = log.cells[clock]
    zones = take_zones(cells, cells)[1]
    known = np.flatnonzero(np.isfinite(times.seconds)).tolist()
    if not zones:
        return times
    asked = next((zone.question for zone in zones.values() if zone.question), "")
    if not asked and not zones.keys() >= set(known):
        asked = "some of its cells state one, and others none"
    if asked:
        return times._replace(unzoned=f"the zone of {clock} is not certain: {asked}")
    seconds = times.seconds.copy()
    for row in known:
        seconds[row] = zones[row].seconds(seconds[row])
    return times._replace(seconds=seconds, offsets=True)


def _add_fractions(log: Table, times: Times) -> Times:
    """Return times with the fractions of seconds added that stand in a column of their own."""
    if (times.seconds[np.isfinite(times.seconds)] % 1).any():
        return times
    for name in log.names:
        per = 1000.0 if name.lower() in ("ms", "millis", "milliseconds") else 1.0
        if per == 1.0 and not _FRACTIONS.search(name):
            continue
        numbers = log.numbers(name) / per
        known = np.isfinite(numbers)
        if known.any() and ((numbers[known] >= 0) & (numbers[known] < 1)).all():
            return times._replace(seconds=times.seconds + np.where(known, numbers, 0.0))
    return times


_FRACTIONS = re.compile(r"fract.*sec|sec.*fract", re.IGNORECASE)


def _apply_zone(log: Table, names: Sequence[str], times: Times) -> Times:
    """Return times in UTC, by the zone that the header or a column of zones states."""
    if times.offsets or not times.absolute:
        return times
    stated = [zone for name in names if (zone := zone_of(f"{name} ({log.units.get(name, '')})")) is not None]
    header = stated[0] if stated else None
    known = np.flatnonzero(np.isfinite(times.seconds)).tolist()
    rows = zones_of_rows(log.cells, times.seconds) if header is None else None
    asked = next((zone.question for zone in stated if zone.question), "")
    asked = asked or next((rows[row].question for row in known if rows and rows[row].question), "")
    if known and len({zone.seconds(times.seconds[known[0]]) for zone in stated}) > 1:
        asked = asked or f"{' and '.join(names)} state different ones"
    if asked:
        return times._replace(unzoned=times.unzoned or f"the zone of {names[0]} is not certain: {asked}")
    if header is None and rows is None:
        return times
    if times.kind == "date":
        return times._replace(offsets=True)
    seconds = times.seconds.copy()
    for row in known:
        zone = header if header is not None else rows[row] if rows else None
        if zone is not None and not _states_zone(log.cells[names[0]][row]):
            seconds[row] = zone.seconds(seconds[row])
    notes = times.notes
    if (seconds != times.seconds)[np.isfinite(seconds)].any():
        notes += (
            "the header states the zone of the times" if header else "a column states the zone of the times",
        )
    return times._replace(seconds=seconds, notes=notes, offsets=True)


def _states_zone(cell: str) -> bool:
    return has_offset(cell) or split_zone(cell)[1] is not None


def column_of_time(log: Table, names: Sequence[str]) -> str | None:
    """Return which of the columns that hold times is to be read; None if that is not clear.

    It is the only one, or one of two that hold dates and times of day.
    """
    calendar = calendar_columns(log)
    if calendar and set(names) <= set(calendar.values()):
        return calendar["year"]
    names = [name for name in names if not _FRACTIONS.search(name)]
    if len(names) == 2:
        times = _times_of_column(log, names[0])
        return names[0] if times is not None and _find_other_half(log, names[0], times) == names[1] else None
    return names[0] if len(names) == 1 else None


def _find_other_half(log: Table, name: str, times: Times) -> str | None:
    """Return the only column of times of day, for dates, or of dates, for times of day; None without one."""
    wanted = {"date": "clock", "clock": "date"}.get(times.kind)
    if wanted is None:
        return None
    found = _columns_of_kind(log, name, wanted)
    return found[0] if len(found) == 1 else None


def _columns_of_kind(log: Table, name: str, wanted: str) -> list[str]:
    """Return the columns other than `name` that hold dates, or times of day."""
    others = {each: _half(log, each) for each in log.names if each != name}
    return [each for each, other in others.items() if other is not None and other.kind == wanted]


def _half(log: Table, name: str) -> Times | None:
    """Return the dates or the times of day in a column, which a spreadsheet may write as parts of a day."""
    times = _times_of_column(log, name, numbers="dat" in name.lower())
    if times is None and _names_clock(name) and (parts := count_day_parts(log, name)) is not None:
        return Times(parts, "clock")
    return times


def _ask_for_clock(log: Table, name: str, times: Times) -> Times:
    """Return dates alone; with a question if another column seems to hold their times of day."""
    if times.kind != "date":
        return times
    clocks = _columns_of_kind(log, name, "clock")
    if clocks:
        either = f"{name} holds dates alone, and its times of day may be {' or '.join(clocks)}"
        return times._replace(unzoned=f"{either}; name one of them as the time")
    others = [each for each in log.names if each != name and _names_clock(each)]
    if not others:
        return times
    return times._replace(unzoned=f"{name} holds dates alone, and {others[0]} no times of day that are known")


def _names_clock(name: str) -> bool:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return _NAMES_CLOCK.search(words) is not None and not re.search(r"zone|offset", name, re.IGNORECASE)


_NAMES_CLOCK = re.compile(
    r"(?<![^\W_])(?:time|clock|hora|hours?|stunde)(?![^\W\d_])|zeit|heure|hh:?mm|uhr", re.IGNORECASE
)


def _as_times(counted: Counted) -> Times:
    notes = (counted.note,) if counted.note else ()
    alone = not counted.zoned and not (counted.seconds[np.isfinite(counted.seconds)] % _DAY_S).any()
    kind: Literal["instant", "date", "number"] = "date" if alone else "instant"
    kind = kind if counted.absolute else "number"
    return Times(counted.seconds, kind, notes, counted.question, counted.zoned)


def _read_numbers(
    cells: Sequence[str], tried: Sequence[str], name: str, unit: str, comments: Sequence[str]
) -> Times | None:
    if all(COMPACT.fullmatch(cell) for cell in tried):
        return _read_compact(cells)
    counted = count_times(cells, name, unit, comments)
    return None if counted is None else _as_times(counted)


def _read_compact(cells: Sequence[str]) -> Times:
    """Return the times of cells such as 20260714 or 20260714090000."""
    seconds = np.full(len(cells), np.nan)
    found = [COMPACT.fullmatch(cell) for cell in cells]
    for row, each in enumerate(found):
        if each is not None and (day := day_of(each[1], "%Y%m%d")) is not None:
            hours, minutes, rest = (int(part or 0) for part in each.groups()[1:])
            seconds[row] = day + hours * 3600 + minutes * 60 + rest
    alone = not any(each is not None and each[2] for each in found)
    return Times(seconds, "date" if alone else "instant", offsets=False)


def _note_either(cell: str, best: float, other: float, decided: bool) -> str:
    used, left = (f"{at.day} {at:%B %Y}" for at in map(_at, (best, other)))
    said = f"dates may have the day or the month first: {cell!r} is read as {used}"
    return f"{said}, not {left}: that leaves fewer jumps" if decided else f"{said}, but may be {left}"


def _at(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _count_past_midnight(seconds: Array) -> Array:
    known = np.flatnonzero(np.isfinite(seconds))
    days = np.append(0, np.cumsum(np.diff(seconds[known]) < -_DAY_S / 2))
    going_on = seconds.copy()
    going_on[known] += _DAY_S * days
    return going_on


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
