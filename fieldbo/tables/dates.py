"""Dates and times of day in cells: in which ways they can be read, and the zones behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np

from fieldbo._numerics.arrays import Array
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
    iso = np.array([_or_nan(_iso(cell)) for cell in cells])
    columns = [iso] if np.isfinite(iso).any() else []
    found = [_DAY_AND_CLOCK.fullmatch(cell) for cell in cells]
    days = [" ".join((cell if each is None else each[1] or "").replace(",", " ").split())
            for cell, each in zip(cells, found, strict=True)]  # fmt: skip
    hours = np.array([0.0 if each is None else _or_nan(_clock(each[2])) for each in found])
    if not any(days):
        return [*columns, hours]
    layouts = (*_DATES, *_YEAR_FIRST) if _SAYS_YEAR_FIRST.search(header) else _DATES
    for layout in layouts:
        known = {day: _or_nan(day_of(day, layout)) for day in set(days)}
        seconds = np.array([known[day] for day in days]) + hours
        if np.isfinite(seconds).any() and not any(
            np.array_equal(seconds, c, equal_nan=True) for c in columns
        ):
            columns.append(seconds)
    return columns


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
    """Return the cells without zones behind times that are not in ISO 8601, and these zones by row."""
    if not any(_iso(cell) is None and split_zone(cell)[1] is not None for cell in tried):
        return list(cells), {}
    bare, zones = list(cells), {}
    for row, cell in enumerate(cells):
        bare[row], zone = split_zone(cell)
        if zone is not None and not zone.question:
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
