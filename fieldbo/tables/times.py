"""Times as loggers write them: ISO 8601, dates of several countries, times of day, seconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.tables.cells import MISSING
from fieldbo.tables.table import Table

IN_UTC = "times without an offset are taken as UTC"
"""Note on times that say neither zone nor offset."""

_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y"),
    *("%d-%b-%Y", "%d %b %Y", "%b %d %Y", "%d-%b-%y"),
)
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "")
_EPOCHS = {"s": 1.0, "ms": 1e3, "us": 1e6}
_FIRST, _LAST = 3e8, 4.2e9  # 1979 and 2103, in seconds since 1970
_TRIED = 40
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

    @property
    def absolute(self) -> bool:
        """Whether they count from 1970 in UTC."""
        return self.kind in ("instant", "date")


def times_of(cells: Sequence[str], *, numbers: bool = True) -> Times | None:
    """Return the times in the cells of a column; None if most are none.

    Times without a zone are taken as UTC. Times of day go on after midnight. A date such as 03/04/2024 is
    read with the day first, unless the month first makes the log more continuous.

    Parameters
    ----------
    cells : sequence of str
    numbers : bool
        Whether plain numbers are times, too: since 1970, or else of any clock.

    Examples
    --------
    >>> times_of(["2024-05-01T12:00:00Z", "2024-05-01 12:00:01.5", ""]).seconds.tolist()
    [1714564800.0, 1714564801.5, nan]
    >>> times_of(["23:59:59", "00:00:01"]).seconds.tolist()
    [86399.0, 86401.0]
    """
    present = [cell for cell in cells if cell.lower() not in MISSING]
    if not present:
        return None
    tried = [present[i] for i in np.unique(np.linspace(0, len(present) - 1, _TRIED).astype(int))]
    if all(_float(cell) is not None for cell in tried):
        return _parse_numbers(cells) if numbers else None
    parsers = [parser for parser in _parsers() if _share(parser, tried) > 0.5]
    if not parsers:
        return None
    columns = [np.array([_or_nan(parser(cell)) for cell in cells]) for parser in parsers]
    most = max(int(np.isfinite(seconds).sum()) for seconds in columns)
    complete = [seconds for seconds in columns if np.isfinite(seconds).sum() == most]
    jumps = [float(np.nansum(np.abs(np.diff(s[np.isfinite(s)])))) for s in complete]
    first = int(np.argmin(jumps))
    best = complete[first]
    if np.nanmax(best) < _DAY_S:
        return Times(_count_past_midnight(best), "clock")
    alone = not any(":" in cell for cell in present) and not (best[np.isfinite(best)] % _DAY_S).any()
    notes: tuple[str, ...] = ()
    undecided = ""
    for other, jump in zip(complete, jumps, strict=True):
        differ = np.flatnonzero(np.isfinite(best) & np.isfinite(other) & (best != other))
        if len(differ):
            row, decided = int(differ[0]), not np.isclose(jump, jumps[first])
            notes = (_note_either(cells[row], best[row], other[row], decided),)
            undecided = "" if decided else notes[0]
    offsets = all(map(has_offset, present))
    return Times(best, "date" if alone else "instant", notes, undecided, offsets)


def times_in(log: Table, name: str) -> Times | None:
    """Return the times in a column of a log; None if most cells are none.

    Dates alone are put together with the times of day of another column, and times of day with dates, if
    there is exactly one such column.
    """
    times = times_of(log.cells[name])
    other = None if times is None else _find_other_half(log, name, times)
    if times is None or other is None:
        return times
    date, clock = (name, other) if times.kind == "date" else (other, name)
    halves = zip(log.cells[date], log.cells[clock], strict=True)
    together = times_of(["" if {d.lower(), c.lower()} & MISSING else f"{d} {c}" for d, c in halves])
    if together is None:
        return times
    notes = (f"time is {date} and {clock} together", *together.notes)
    seconds, days = _count_past_midnight(together.seconds), together.seconds // _DAY_S
    days, known = days[np.isfinite(days)], seconds[np.isfinite(seconds)]
    if np.ptp(days) == 0 and known.max() // _DAY_S > days[0] and (np.diff(known) >= 0).all():
        notes += (f"{date} stays the same after midnight; the times go on with the next day",)
        return together._replace(seconds=seconds, notes=notes)
    return together._replace(notes=notes)


def column_of_time(log: Table, names: Sequence[str]) -> str | None:
    """Return which of the columns that hold times is to be read; None if that is not clear.

    It is the only one, or one of two that hold dates and times of day.
    """
    if len(names) == 2:
        times = times_of(log.cells[names[0]])
        return names[0] if times is not None and _find_other_half(log, names[0], times) == names[1] else None
    return names[0] if len(names) == 1 else None


def _find_other_half(log: Table, name: str, times: Times) -> str | None:
    """Return the only column of times of day, for dates, or of dates, for times of day; None without one."""
    wanted = {"date": "clock", "clock": "date"}.get(times.kind)
    if wanted is None:
        return None
    others = {each: times_of(log.cells[each], numbers=False) for each in log.names if each != name}
    found = [each for each, other in others.items() if other is not None and other.kind == wanted]
    return found[0] if len(found) == 1 else None


def _parse_numbers(cells: Sequence[str]) -> Times | None:
    numbers = np.array([_or_nan(_float(cell)) for cell in cells])
    numbers[~np.isfinite(numbers)] = np.nan
    if np.isnan(numbers).all():
        return None
    middle = float(np.nanmedian(numbers))
    for per_second in _EPOCHS.values():
        seconds = numbers / per_second
        if _FIRST < middle / per_second < _LAST:
            return Times(np.where((seconds > _FIRST) & (seconds < _LAST), seconds, np.nan), "instant")
    return Times(numbers, "number")


def _parsers() -> list[Callable[[str], float | None]]:
    formats = [f"{date} {clock}".strip() for date in _DATES for clock in _CLOCKS]
    return [_iso, *(_strptime(each) for each in formats), *(_clock(each) for each in _CLOCKS if each)]


def _iso(cell: str) -> float | None:
    try:
        return _epoch(datetime.fromisoformat(cell.replace("/", "-")))
    except ValueError:
        return None


def _strptime(layout: str) -> Callable[[str], float | None]:
    def parse(cell: str) -> float | None:
        try:
            return _epoch(datetime.strptime(cell, layout))
        except ValueError:
            return None

    return parse


def _clock(layout: str) -> Callable[[str], float | None]:
    def parse(cell: str) -> float | None:
        try:
            at = datetime.strptime(cell, layout)
        except ValueError:
            return None
        return at.hour * 3600.0 + at.minute * 60.0 + at.second + at.microsecond / 1e6

    return parse


def has_offset(cell: str) -> bool:
    """Return whether a time in ISO 8601 states its offset from UTC."""
    try:
        return datetime.fromisoformat(cell.replace("/", "-")).tzinfo is not None
    except ValueError:
        return False


def _note_either(cell: str, best: float, other: float, decided: bool) -> str:
    used, left = (f"{at.day} {at:%B %Y}" for at in (datetime.fromtimestamp(s, UTC) for s in (best, other)))
    said = f"dates may have the day or the month first: {cell!r} is read as {used}"
    return f"{said}, not {left}: that leaves fewer jumps" if decided else f"{said}, but may be {left}"


def _epoch(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _count_past_midnight(seconds: Array) -> Array:
    known = np.flatnonzero(np.isfinite(seconds))
    days = np.append(0, np.cumsum(np.diff(seconds[known]) < -_DAY_S / 2))
    going_on = seconds.copy()
    going_on[known] += _DAY_S * days
    return going_on


def _share(parser: Callable[[str], float | None], cells: Sequence[str]) -> float:
    return sum(parser(cell) is not None for cell in cells) / len(cells)


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _or_nan(number: float | None) -> float:
    return float("nan") if number is None else number
