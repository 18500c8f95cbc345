"""Dates and times of day in cells: in which ways they can be read, and the zones behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.tables.cells import MISSING
from fieldbo.tables.zones import Zone, is_in_calendar, split_zone

_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d-%m-%y", "%m-%d-%y", "%d-%b-%Y", "%d %b %Y", "%b %d %Y", "%d-%b-%y", "%d%b%Y"),
    *("%d %B %Y", "%B %d %Y"),
)
_YEAR_FIRST = ("%y/%m/%d", "%y-%m-%d", "%y.%m.%d")
_SAYS_YEAR_FIRST = re.compile(r"(?<!y)yy[-/.]mm[-/.]dd", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:\s*([ap])\.?m\.?)?", re.IGNORECASE)
_DAY_AND_CLOCK = re.compile(rf"(?:(.*?)[\sT,_]+)??({_CLOCK.pattern})", re.IGNORECASE)
COMPACT = re.compile(
    r"((?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?:([01]\d|2[0-3])([0-5]\d)([0-5]\d)?)?"
)
"""A date such as 20260714, perhaps with a time of day: 20260714090000."""
_CREATED = re.compile(
    r"(?:creat|export|download|sav|written|generat|print|upload)\D{0,40}(\d{1,4}([-./])\d{1,2}\2\d{2,4})",
    re.IGNORECASE,
)
_LEAP = re.compile(r"(:59:)60(?!\d)")
_DAY_S = 86_400.0


def read_dates(cells: Sequence[str], header: str) -> list[Array]:
    """Return the times (n,) of cells in each way that they can be read."""
    cells = ["" if cell.lower() in MISSING else cell for cell in cells]
    iso = np.array([_or_nan(_iso(cell) if cell else None) for cell in cells])
    if np.isfinite(iso).any() and np.isfinite(iso).sum() == sum(map(bool, cells)):
        return [iso]
    columns = [iso] if np.isfinite(iso).any() else []
    found = [_DAY_AND_CLOCK.fullmatch(cell) for cell in cells]
    if _are_clocks(cells, found):
        return [*columns, np.array([_or_nan(each and _clock(each[2])) for each in found])]
    days = [" ".join((cell if each is None else each[1] or "").replace(",", " ").split())
            for cell, each in zip(cells, found, strict=True)]  # fmt: skip
    hours = np.array([0.0 if each is None else _or_nan(_clock(each[2])) for each in found])
    layouts = (*_DATES, *_YEAR_FIRST) if _SAYS_YEAR_FIRST.search(header) else _DATES
    for layout in layouts:
        _add_reading(columns, days, hours, layout)
    if layouts is _DATES:
        least = min((float(np.ptp(each[np.isfinite(each)])) for each in columns), default=np.inf)
        for layout in _YEAR_FIRST:
            others = list(columns)
            _add_reading(others, days, hours, layout)
            if len(others) > len(columns):
                extent = float(np.ptp(others[-1][np.isfinite(others[-1])]))
                # Only hyphens are usual in both orders; others must be told by the data.
                if extent < least or (extent == least and "-" in layout):
                    columns = others
    return columns


def _are_clocks(cells: Sequence[str], found: Sequence[re.Match[str] | None]) -> bool:
    """Return whether cells are times of day, but for a few that are none and no dates with one."""
    clocks = sum(each is not None and not each[1] for each in found)
    dated = any(each is not None and each[1] for each in found)
    return not dated and 2 * clocks > sum(map(bool, cells))


def _add_reading(columns: list[Array], days: Sequence[str], hours: Array, layout: str) -> None:
    """Add the times (n,) as a layout reads them, unless it reads none or the same as another."""
    known = {day: _or_nan(day_of(day, layout)) for day in set(days)}
    seconds = np.array([known[day] for day in days]) + hours
    same = (np.allclose(seconds, each, rtol=0.0, atol=1e-5, equal_nan=True) for each in columns)
    if np.isfinite(seconds).any() and not any(same):
        columns.append(seconds)


def _iso(cell: str) -> float | None:
    at = _read_iso(cell)
    return None if at is None else _epoch(at)


def _read_iso(cell: str) -> datetime | None:
    """Return a time in ISO 8601; a leap second is the first second of the next minute, as clocks count it."""
    text = cell.replace("/", "-")
    before = _LEAP.sub(r"\g<1>59", text)
    try:
        return datetime.fromisoformat(before) + timedelta(seconds=before != text)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=20_000)
def day_of(text: str, layout: str) -> float | None:
    """Return when a day begins, in seconds since 1970."""
    try:
        return _epoch(datetime.strptime(text, layout))
    except ValueError:
        return None


def _clock(text: str) -> float | None:
    """Return a time of day in seconds."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
    if found[5]:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + 12 * (found[5].lower() == "p")
    if minutes > 59 or seconds > 59 or hours > 23:
        return None
    return hours * 3600 + minutes * 60 + seconds + (float(f"0.{found[4]}") if found[4] else 0.0)


def has_offset(cell: str) -> bool:
    """Return whether a time in ISO 8601 states its offset from UTC."""
    at = _read_iso(cell)
    return at is not None and at.tzinfo is not None


def take_zones(cells: Sequence[str], tried: Sequence[str]) -> tuple[list[str], dict[int, Zone]]:
    """Return the cells without zones behind times that are not in ISO 8601, and these zones by row.

    Zones may have a question.
    """
    if not any(_iso(cell) is None and split_zone(cell)[1] is not None for cell in tried):
        return list(cells), {}
    bare, zones = list(cells), {}
    for row, cell in enumerate(cells):
        bare[row], zone = split_zone(cell)
        if zone is not None:
            zones[row] = zone
    return bare, zones


def latest_of(comments: Sequence[str]) -> float | None:
    """Return the latest time, in seconds since 1970, that a file may hold by the date of its creation."""
    days = [found[1] for line in comments if (found := _CREATED.search(line))]
    read = [at for day in days for layout in _DATES if (at := day_of(day, layout)) is not None]
    return max(read) + 2 * _DAY_S if read else None  # at its end, in any zone


def _epoch(at: datetime) -> float | None:
    """Return seconds since 1970 in UTC; None beyond the years 1 to 9999, where an offset may lead."""
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return seconds if is_in_calendar(seconds) else None


def _or_nan(number: float | None) -> float:
    return float("nan") if number is None else number
