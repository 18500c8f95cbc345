"""Times as loggers write them: ISO 8601, dates of several countries, times of day, seconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.world.logs.log import MISSING

_DATES = (
    *("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y"),
    *("%d-%b-%Y", "%d %b %Y", "%b %d %Y", "%d-%b-%y"),
)
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "")
_EPOCHS = {"s": 1.0, "ms": 1e3, "us": 1e6}
_FIRST, _LAST = 3e8, 4.2e9  # 1979 and 2103, in seconds since 1970
_TRIED = 40


class Times(NamedTuple):
    """Times of a column."""

    seconds: Array
    """(n,), NaN where there is none."""
    absolute: bool
    """Whether they count from 1970 in UTC."""
    notes: tuple[str, ...] = ()
    """What is uncertain."""


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
        return _from_numbers(cells) if numbers else None
    parsers = [parser for parser in _parsers() if _share(parser, tried) > 0.5]
    if not parsers:
        return None
    columns = [np.array([_or_nan(parser(cell)) for cell in cells]) for parser in parsers]
    most = max(int(np.isfinite(seconds).sum()) for seconds in columns)
    complete = [seconds for seconds in columns if np.isfinite(seconds).sum() == most]
    jumps = [float(np.nansum(np.abs(np.diff(s[np.isfinite(s)])))) for s in complete]
    best = complete[int(np.argmin(jumps))]
    if np.nanmax(best) < 86400.0:
        return Times(_past_midnight(best), absolute=False)
    others = any(not np.array_equal(seconds, best, equal_nan=True) for seconds in complete)
    notes = ("dates may have the day or the month first; the one with fewer jumps is used",) if others else ()
    return Times(best, absolute=True, notes=notes)


def _from_numbers(cells: Sequence[str]) -> Times | None:
    numbers = np.array([_or_nan(_float(cell)) for cell in cells])
    numbers[~np.isfinite(numbers)] = np.nan
    if np.isnan(numbers).all():
        return None
    middle = float(np.nanmedian(numbers))
    for per_second in _EPOCHS.values():
        seconds = numbers / per_second
        if _FIRST < middle / per_second < _LAST:
            return Times(np.where((seconds > _FIRST) & (seconds < _LAST), seconds, np.nan), absolute=True)
    return Times(numbers, absolute=False)


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


def _epoch(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _past_midnight(seconds: Array) -> Array:
    """Return times of day that go on after midnight."""
    known = np.flatnonzero(np.isfinite(seconds))
    days = np.append(0, np.cumsum(np.diff(seconds[known]) < -43200.0))
    going_on = seconds.copy()
    going_on[known] += 86400.0 * days
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
