"""Numbers that are times: seconds since 1970, days of spreadsheets or of a year, weeks of GPS."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.tables.cells import MISSING
from fieldbo.tables.table import Table
from fieldbo.tables.units import Conversion, bare, conversion

_DAY_S = 86_400
_FIRST, _LAST = 3e8, 4.2e9  # 1979 and 2103, in seconds since 1970
_PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_SINCE = re.compile(
    r"\b(?P<unit>days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|s|ms|milliseconds?)\s+since\s+"
    r"(?P<from>\d{4}-\d{1,2}-\d{1,2}(?:[T\s]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?)",
    re.IGNORECASE,
)


class _Count(NamedTuple):
    """A way to count days."""

    words: re.Pattern[str]
    """How headers call it."""
    low: float
    high: float
    """What numbers it makes of the years 1990 to 2100."""
    origin: Fraction
    """Days from its beginning to 1970."""
    note: str


_COUNTS = (
    _Count(
        re.compile(r"excel|serial|\bole\b|\bdate\b|datum", re.IGNORECASE),
        32_874,
        73_051,
        Fraction(25_569),
        "days as spreadsheets count them, from 1900",
    ),
    _Count(
        re.compile(r"matlab|datenum|mtime|\bdate\b", re.IGNORECASE),
        726_834,
        767_011,
        Fraction(719_529),
        "days as MATLAB counts them, from the year 0",
    ),
    _Count(
        re.compile(r"julian|\bjd\b", re.IGNORECASE),
        2_447_892,
        2_488_070,
        Fraction(4_881_175, 2),
        "Julian dates, in days from 4713 BC",
    ),
    _Count(
        re.compile(r"\bmjd\b|modified julian", re.IGNORECASE),
        47_892,
        88_069,
        Fraction(40_587),
        "modified Julian dates, in days from 17 November 1858",
    ),
)
_DAY_OF_YEAR = re.compile(
    r"^timej$|julian|\bdoy\b|day[\s_]*of[\s_]*(the[\s_]*)?year|\byday\b|year[\s_]?day|\bjday\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_DATED = re.compile(r"time|date|utc|start|cast|upload|created|begin", re.IGNORECASE)
_FINE_STEP = 0.01
"""Steps below this are rarely seconds: at 100 Hz; of days, they are a quarter of an hour."""


class Counted(NamedTuple):
    """Times read from numbers."""

    seconds: Array
    """(n,), since 1970 if they are `absolute`, else of any clock."""
    absolute: bool
    zoned: bool = False
    """Whether they are in UTC by their kind, as seconds since 1970 are."""
    note: str = ""
    question: str = ""


def count_times(
    cells: Sequence[str], name: str = "", unit: str = "", comments: Sequence[str] = ()
) -> Counted | None:
    """Return the times (n,) in cells that hold numbers; None if they hold none.

    Seconds, milliseconds, microseconds and nanoseconds since 1970 are known by their size; days of
    spreadsheets, of MATLAB and of Julian dates by the header, or by their size and fine steps; days of a
    year by the header, the year by the `comments`.

    Parameters
    ----------
    cells : sequence of str
    name, unit : str
        The column's name and unit, as its header says.
    comments : sequence of str
        The lines above the table.

    Examples
    --------
    >>> count_times(("1784019600",)).seconds.tolist(), count_times(("46217.375",), "Date").seconds.tolist()
    ([1784019600.0], [1784019600.0])
    >>> count_times(("195.375",), "timeJ", comments=("start_time = Jul 14 2026 09:00:00",)).seconds.tolist()
    [1784019600.0]
    """
    numbers = np.array([_number(cell) for cell in cells], dtype=float)
    if np.isnan(numbers).all():
        return None
    since = _SINCE.search(f"{name} {unit}")
    if since is not None and (begin := _begin_of(since["from"])) is not None:
        return _count_since(cells, numbers, since["unit"], begin)
    middle = float(np.nanmedian(numbers))
    for per_second in _PER_SECOND.values():
        if _FIRST < middle / per_second < _LAST:
            seconds = Conversion(Fraction(1, per_second)).of(cells, numbers)
            kept = (seconds > _FIRST) & (seconds < _LAST)
            return Counted(np.where(kept, seconds, np.nan), absolute=True, zoned=True)
    words = bare(name).replace("_", " ")
    for count in sorted(_COUNTS, key=lambda each: not each.words.search(words)):
        named = count.words.search(words) is not None
        if count.low < middle < count.high and (
            named or (_is_fine(cells, numbers) and count is not _COUNTS[-1])
        ):
            seconds = Conversion(Fraction(_DAY_S), -_DAY_S * count.origin).of(cells, numbers)
            return Counted(seconds, absolute=True, note=f"{name or 'time'} holds {count.note}")
    if _DAY_OF_YEAR.search(words) and 0 <= np.nanmin(numbers) <= np.nanmax(numbers) < 800:
        return _count_days_of_year(cells, numbers, name, comments)
    change = conversion(unit, "s") if unit else None
    if change is not None and not change.offset:
        numbers = change.of(cells, numbers)
    return Counted(numbers, absolute=False, zoned=True)


def _begin_of(text: str) -> float | None:
    """Return a date in seconds since 1970; None if there is none such."""
    try:
        return (
            datetime.fromisoformat(re.sub(r"\b(\d)\b", r"0\1", text.strip())).replace(tzinfo=UTC).timestamp()
        )
    except ValueError:  # the 45th of a month
        return None


def _count_since(cells: Sequence[str], numbers: Array, unit: str, begin: float) -> Counted:
    """Return times counted since a date, as in "days since 1950-01-01"."""
    per_unit = {"d": 86_400, "h": 3600, "mi": 60, "s": 1}
    word = unit.lower()
    factor = Fraction(1, 1000) if word.startswith(("ms", "milli")) else None
    factor = factor or next(Fraction(s) for start, s in per_unit.items() if word.startswith(start))
    return Counted(Conversion(factor, Fraction(begin)).of(cells, numbers), absolute=True, zoned=True)


def _count_days_of_year(cells: Sequence[str], numbers: Array, name: str, comments: Sequence[str]) -> Counted:
    """Return times counted in days of a year, of which the first of January is day 1."""
    years = {found for line in comments if _DATED.search(line) for found in _YEAR.findall(line)}
    if len(years) != 1:
        question = (
            "" if not years else f"{name} holds days of a year, which may be {' or '.join(sorted(years))}"
        )
        seconds = Conversion(Fraction(_DAY_S)).of(cells, numbers)
        return Counted(seconds, absolute=False, zoned=True, question=question)
    year = int(years.pop())
    begin = datetime(year, 1, 1, tzinfo=UTC).timestamp()
    seconds = Conversion(Fraction(_DAY_S), Fraction(begin) - _DAY_S).of(cells, numbers)
    return Counted(
        seconds, absolute=True, note=f"{name} holds days of {year}, as a line above the names says"
    )


def _is_fine(cells: Sequence[str], numbers: Array) -> bool:
    """Return whether numbers go on in steps that are likelier days than seconds."""
    steps = np.diff(np.unique(numbers[np.isfinite(numbers)]))
    decimals = max(len(cell.partition(".")[2]) for cell in cells)
    return bool(len(steps)) and decimals >= 4 and float(np.median(steps)) < _FINE_STEP


def count_day_parts(log: Table, name: str) -> Array | None:
    """Return the times of day (n,) in seconds of a column that holds parts of a day; None if it does not."""
    numbers = log.numbers(name)
    known = numbers[np.isfinite(numbers)]
    decimals = max((len(cell.partition(".")[2]) for cell in log.cells[name]), default=0)
    if not len(known) or not ((known >= 0) & (known < 1)).all() or decimals < 4:
        return None
    return Conversion(Fraction(_DAY_S)).of(log.cells[name], numbers)


# -- GPS weeks -----------------------------------------------------------------------------------------------

_WEEK = re.compile(r"^(gps)?(week|wk|weekno|weeknumber|weeknr|gwk)$")
_OF_WEEK = re.compile(
    r"^(gps)?(tow|itow|sow|gms|secondsofweek|secondofweek|timeofweek|weekseconds)(s|ms)?$|^gps(seconds|secs|sec|s|ms)$"
)
_GPS_BEGAN = datetime(1980, 1, 6, tzinfo=UTC).timestamp()
_WEEK_S = 7 * _DAY_S
_LEAPS = (("1999-01-01", 13), ("2006-01-01", 14), ("2009-01-01", 15), ("2012-07-01", 16), ("2015-07-01", 17),
          ("2017-01-01", 18))  # fmt: skip
"""By how many seconds the clock of GPS is ahead of UTC, since when."""


def gps_columns(log: Table) -> tuple[str, str] | None:
    """Return the columns of GPS weeks and of seconds in them; None if there is not one of each."""
    folded = {name: re.sub(r"[\W_]+", "", bare(name).lower()) for name in log.names}
    weeks = [name for name, fold in folded.items() if _WEEK.fullmatch(fold)]
    seconds = [name for name, fold in folded.items() if _OF_WEEK.fullmatch(fold)]
    return (weeks[0], seconds[0]) if len(weeks) == 1 and len(seconds) == 1 else None


def count_gps(log: Table, week: str, second: str) -> Counted | None:
    """Return the times (n,) of GPS weeks and seconds in UTC; None if the numbers are neither.

    Weeks that began anew after 1,024 of them are not recognised.
    """
    weeks, seconds = log.numbers(week), log.numbers(second)
    known = np.isfinite(weeks) & np.isfinite(seconds)
    if not known.any() or not 1024 < np.nanmedian(weeks) < 5000:
        return None
    unit = log.units.get(second, "")
    per = 1000 if unit.lower() == "ms" or float(np.nanmax(seconds[known])) > _WEEK_S else 1
    seconds = Conversion(Fraction(1, per)).of(log.cells[second], seconds)
    if not ((seconds[known] >= 0) & (seconds[known] <= _WEEK_S)).all():
        return None
    at = _GPS_BEGAN + weeks * _WEEK_S + seconds
    ahead = np.zeros(len(at))
    for since, leap in _LEAPS:
        ahead[at >= datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp()] = leap
    least, most = (int(leap) for leap in (ahead[known].min(), ahead[known].max()))
    note = f"time is {week} and {second} together: GPS time, which is {most} s ahead of UTC"
    return Counted(at - ahead, absolute=True, zoned=True, note=note if least == most else "")


# -- years, months, days ... in columns of their own ---------------------------------------------------------

_PARTS = {
    "year": {"year", "yyyy", "yr", "yy", "jahr"},
    "month": {"month", "mon", "mo", "MM", "monat"},
    "day": {"day", "dd", "tag", "DD"},
    "doy": {"doy", "dayofyear", "yearday", "yday", "julianday", "jday", "jd"},
    "hour": {"hour", "hours", "hh", "hr", "stunde"},
    "minute": {"minute", "minutes", "min", "mn", "mm", "mi"},
    "second": {"second", "seconds", "sec", "ss", "secs"},
}
_LIMITS = {"year": (1970, 2100), "month": (1, 12), "day": (1, 31), "doy": (1, 367), "hour": (0, 24),
           "minute": (0, 60), "second": (0, 60)}  # fmt: skip


def calendar_columns(log: Table) -> dict[str, str]:
    """Return the columns of years, months, days, hours ... by what they hold; empty without a whole date.

    A date is a year, a month and a day, or a year and a day of it.
    """
    found: dict[str, list[str]] = {part: [] for part in _PARTS}
    for name in log.names:
        plain = re.sub(r"[\W_]+", "", bare(name))
        for part, words in _PARTS.items():
            if plain in words or (plain.lower() in words and plain.lower() != "mm"):
                found[part].append(name)
    columns = {part: names[0] for part, names in found.items() if len(names) == 1}
    for part, larger in (("minute", "hour"), ("second", "minute")):
        if larger not in columns:
            columns.pop(part, None)  # mm of rain
    dated = "year" in columns and ({"month", "day"} <= columns.keys() or "doy" in columns)
    return columns if dated and all(_lies_within(log, name, part) for part, name in columns.items()) else {}


def _lies_within(log: Table, name: str, part: str) -> bool:
    numbers = log.numbers(name)
    numbers = numbers[np.isfinite(numbers)]
    low, high = _LIMITS[part]
    whole = part in ("doy", "second") or bool((numbers % 1 == 0).all())
    return bool(len(numbers)) and whole and bool((numbers >= low).all() and (numbers <= high).all())


def count_calendar(log: Table, columns: dict[str, str]) -> Counted:
    """Return the times (n,) that columns of years, months, days ... hold together, in no certain zone."""
    parts = {part: log.numbers(name) for part, name in columns.items()}
    seconds = np.full(len(log), np.nan)
    for row in np.flatnonzero(np.isfinite(np.array(list(parts.values()))).all(axis=0)).tolist():
        year, month, day = (
            int(parts[part][row]) if part in parts else 1 for part in ("year", "month", "day")
        )
        if "month" not in parts:
            month = day = 1
        try:
            begin = datetime(year, month, day, tzinfo=UTC).timestamp()
        except ValueError:  # 31 June
            continue
        days = parts["doy"][row] - 1 if "month" not in parts else 0.0
        clock = sum(per * parts[part][row] for part, per in _SECONDS.items() if part in parts)
        seconds[row] = begin + _DAY_S * days + clock
    named = ", ".join(columns.values())
    return Counted(seconds, absolute=True, note=f"time is {named} together")


_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def _number(cell: str) -> float:
    if cell.lower() in MISSING:
        return float("nan")
    try:
        number = float(cell)
    except ValueError:
        return float("nan")
    return number if np.isfinite(number) else float("nan")
