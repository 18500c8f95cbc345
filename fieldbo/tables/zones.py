"""Offsets from UTC that headers and cells state: numbers, abbreviations, names of zones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.tables.cells import MISSING

_HOURS = {
    **{"UTC": 0, "GMT": 0, "Z": 0, "UT": 0, "ZULU": 0, "WET": 0, "WEZ": 0, "WEST": 1, "WESZ": 1},
    **{"CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2, "OEZ": 2, "EEST": 3, "OESZ": 3, "MSK": 3},
    **{"EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8},
    **{"HST": -10, "NST": -3.5, "NDT": -2.5, "ADT": -3, "BRT": -3, "ART": -3, "CLT": -4, "SAST": 2},
    **{"JST": 9, "KST": 9, "SGT": 8, "HKT": 8, "AWST": 8, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11},
    **{"NZST": 12, "NZDT": 13},
}
_WORDS = {
    "eastern standard time": -5,
    "eastern daylight time": -4,
    "central standard time": -6,
    "central daylight time": -5,
    "mountain standard time": -7,
    "mountain daylight time": -6,
    "pacific standard time": -8,
    "pacific daylight time": -7,
    "central european summer time": 2,
    "central european time": 1,
    "w. europe standard time": 1,
    "w. europe daylight time": 2,
}
_NORTH_AMERICA = {"CST": -6, "AST": -4}
"""What the abbreviations mean that stand for other zones elsewhere, in files of American agencies."""

_ANY_CASE = {
    *("CEST", "CET", "MEZ", "MESZ", "EEST", "AEST", "AEDT", "AWST", "ACST", "ACDT", "AKST", "AKDT", "NZST"),
    *("NZDT", "SAST", "EDT", "CDT", "MDT", "PST", "PDT", "JST", "KST", "HKT", "MSK"),
}
"""Abbreviations that are no words in small letters, as "est" and "west" are."""

_PAIRS = {
    **{"EST/EDT": "America/New_York", "CST/CDT": "America/Chicago", "MST/MDT": "America/Denver"},
    **{"PST/PDT": "America/Los_Angeles", "AKST/AKDT": "America/Anchorage", "AST/ADT": "America/Halifax"},
    **{"NST/NDT": "America/St_Johns", "WET/WEST": "Europe/Lisbon", "GMT/BST": "Europe/London"},
    **{"CET/CEST": "Europe/Berlin", "MEZ/MESZ": "Europe/Berlin", "EET/EEST": "Europe/Helsinki"},
    **{"AEST/AEDT": "Australia/Sydney", "ACST/ACDT": "Australia/Adelaide", "NZST/NZDT": "Pacific/Auckland"},
}
"""Where the clocks are that change between the two abbreviations, winter time first."""
_PAIR = re.compile(r"(?<![A-Za-z/])([A-Z]{2,4}T|MESZ|MEZ)\s*/\s*([A-Z]{2,4}T|MESZ|MEZ)(?![A-Za-z/])")
_FIRST, _END = -62_135_596_800.0, 253_402_300_799.0
"""The begin of the year 1 and the last second of 9999, in seconds since 1970."""


_UNCERTAIN = re.compile(
    r"(?<![^\W_])(?:CST|IST|BST|AST|ET|CT|MT|PT|LT|LST|LMT|LDT|cst|ist|bst|est|mst|hst)(?![^\W_])"
    r"|[Ll]ocale?(?![a-z])|LOCAL(?![A-Z])|(?i:localtime|(?<![^\W_])(?:ortszeit|lokalzeit|eastern|pacific)(?![^\W_]))"
)
_LOCAL = re.compile(r"[Ll]ocal(?![a-z])|LOCAL(?![A-Z])|(?i:localtime|ortszeit|lokalzeit)")
_NOT_UTC = re.compile(r"(?i)(?<![^\W_])(?:not|non|no|nicht|kein)[\s_-]*(?:in[\s_]+)?(?:UTC|GMT)")
_OFFSET = re.compile(
    r"""(?:(?<!/)(?P<base>UTC|GMT)[\s_]*|^|[\s(\[,])\s*
    (?P<sign>[-+−±]|(?<=[\s_])(?:plus|minus)(?=[\s_]))[\s_]*(?P<hours>\d{1,2})
    (?:\.(?P<tenths>\d{1,2})|[:_h]?(?P<minutes>\d{2}))?\s*(?:h|hrs?|hours?)?(?![^\W_])(?![.:]\d)""",
    re.VERBOSE | re.IGNORECASE,
)
_PLACE = re.compile(
    r"(?<![^\W_])(?P<area>Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)"
    r"[/_](?P<town>[^\W\d][\w/+-]+)"
)
_AFTER = re.compile(
    r"(?P<time>.*\d(?:\s*[AaPp]\.?[Mm]\.?)?)\s*(?P<zone>[A-Z]{1,5}|(?:UTC|GMT)?\s*[-+−]\d{1,2}(?::?\d{2})?)"
)


class Zone(NamedTuple):
    """The zone that a header or a cell states."""

    zone: tzinfo
    question: str = ""
    """Why it is not certain; then `zone` is UTC, or an offset that no clock has."""

    def seconds(self, seconds: float) -> float:
        """Return seconds since 1970 in UTC of a time of this zone, which is in seconds since its own 1970.

        NaN where there is none, or it is beyond the years 1 to 9999.
        """
        if not is_in_calendar(seconds):
            return float("nan")
        local = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=self.zone)
        in_utc = seconds - (local.utcoffset() or timedelta(0)).total_seconds()
        return in_utc if is_in_calendar(in_utc) else float("nan")


def is_in_calendar(seconds: float) -> bool:
    """Return whether seconds since 1970 are a time of the years 1 to 9999.

    Examples
    --------
    >>> is_in_calendar(0.0), is_in_calendar(1e12), is_in_calendar(float("nan"))
    (True, False, False)
    """
    return _FIRST <= seconds < _END


def zone_of(header: str) -> Zone | None:
    """Return the zone that a header states; None if it states none.

    Examples
    --------
    >>> [zone_of(name).seconds(0.0) / 3600 for name in ("Date Time, GMT+02:00", "Time (UTC-5)", "Zeit MESZ")]
    [-2.0, 5.0, -2.0]
    >>> zone_of("Time (CST)").question
    'CST may be more than one zone'
    >>> zone_of("Timestamp") is None
    True
    """
    for find in (_find_place, _find_pair, _find_offset, _find_words, _find_abbreviation, _find_question):
        zone = find(header)
        if zone is not None:
            return zone
    return None


def _find_place(header: str) -> Zone | None:
    place = _PLACE.search(header)
    return None if place is None else _zone_at(f"{place['area']}/{place['town']}")


def _zone_at(place: str) -> Zone:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return Zone(ZoneInfo(place))
    except (ZoneInfoNotFoundError, ValueError):
        return Zone(UTC, f"the zone {place} is not known")


def names_pair(header: str) -> bool:
    """Return whether a header names two zones, such as EST/EDT: which one holds depends on the date.

    Examples
    --------
    >>> names_pair("Date-Time (EST/EDT)"), names_pair("Date-Time (EDT)")
    (True, False)
    """
    return _PAIR.search(header) is not None


def _find_pair(header: str) -> Zone | None:
    """Return the zone of clocks that change between two abbreviations, in either order."""
    found = _PAIR.search(header)
    if found is None:
        return None
    place = _PAIRS.get(f"{found[1]}/{found[2]}") or _PAIRS.get(f"{found[2]}/{found[1]}")
    return Zone(UTC, f"it may be {found[1]} or {found[2]}") if place is None else _zone_at(place)


def _find_offset(header: str) -> Zone | None:
    """Return the zone of GMT+02:00 or (-5); behind a point may be minutes, or parts of an hour as in 5.75."""
    found = _OFFSET.search(header)
    if found is None or (found["sign"].isalpha() and found["base"] is None):
        return None
    minutes, tenths = int(found["minutes"] or 0), found["tenths"] or ""
    if tenths in ("00", "15", "30", "45"):
        minutes = int(tenths)
    elif tenths:
        minutes = 60 * int(tenths) // 10 ** len(tenths)
    total = (-1 if found["sign"].lower() in ("-", "−", "minus") else 1) * (60 * int(found["hours"]) + minutes)
    possible = minutes < 60 and -12 * 60 <= total <= 14 * 60
    question = "" if possible else f"{found[0].strip(' ([,')} is no offset from UTC"
    return Zone(timezone(timedelta(minutes=total)) if abs(total) < 1440 else UTC, question)


def _find_words(header: str) -> Zone | None:
    hours = next((hours for words, hours in _WORDS.items() if words in header.lower()), None)
    return None if hours is None else Zone(timezone(timedelta(hours=hours)))


def _find_abbreviation(header: str) -> Zone | None:
    if _NOT_UTC.search(header):
        return Zone(UTC, "it is not UTC")
    words = re.findall(r"(?<![A-Za-z])[A-Za-z]{2,5}(?![A-Za-z])", header)
    known = [word.upper() for word in words if word.isupper() or word.upper() in _ANY_CASE]
    word = next((word for word in known if word in _HOURS), None)
    if word is not None and (_HOURS[word] or not _LOCAL.search(header)):
        return Zone(timezone(timedelta(hours=_HOURS[word])))
    if _LOCAL.search(header):
        return None
    return Zone(UTC) if re.search(r"(?i)utc|gmt(?![a-z])|zulu", header) else None


def _find_question(header: str) -> Zone | None:
    doubtful = _UNCERTAIN.search(header)
    if doubtful is None:
        return None
    word = doubtful[0]
    return Zone(UTC, f"{word} may be more than one zone" if len(word) < 4 else f"{word} time is no zone")


def zone_named(code: str) -> Zone | None:
    """Return the zone of a cell in a column of zones, such as EST, +02:00 or Europe/Berlin.

    Examples
    --------
    >>> zone_named("CST").seconds(0.0), zone_named("-05:00").seconds(0.0), zone_named("boat")
    (21600.0, 18000.0, None)
    """
    code = code.strip()
    if code.upper() in _NORTH_AMERICA:
        return Zone(timezone(timedelta(hours=_NORTH_AMERICA[code.upper()])))
    found = zone_of(code) or zone_of(code.upper())
    return None if found is None or found.question else found


def split_zone(cell: str) -> tuple[str, Zone | None]:
    """Return a time without the zone behind it, and that zone.

    Examples
    --------
    >>> split_zone("14.07.2026 11:00 MESZ")[0], split_zone("07/14/26 11:00:00 AM")
    ('14.07.2026 11:00', ('07/14/26 11:00:00 AM', None))
    """
    found = _AFTER.fullmatch(cell)
    if found is None or found["zone"].upper() in ("AM", "PM", "A", "P"):
        return cell, None
    if found["zone"][0] in "-+−" and ":" not in found["time"]:
        return cell, None  # 14-07-2026
    zone = zone_of(found["zone"]) if len(found["zone"]) > 1 else Zone(UTC) if found["zone"] == "Z" else None
    return (cell, None) if zone is None else (found["time"], zone)


_ZONES = re.compile(
    r"time\s*_?zone|(?<![^\W_])tz(?![^\W_])|^tz_?cd$|timezonecode|(?:utc|gmt|tz).?offset|offset.?(?:utc|gmt)",
    re.IGNORECASE,
)
_OF_AGENCIES = re.compile(r"^tz_?cd$|timezonecode", re.IGNORECASE)
_PER_HOUR = {1: r"h|hrs?|hours?", 60: r"min|mins|minutes?", 3600: r"s|secs?|seconds?"}


def zones_of_rows(cells: Mapping[str, Sequence[str]], seconds: Array) -> list[Zone] | None:
    """Return the zone of each row, perhaps with a question, if a column states zones; None if none does.

    Parameters
    ----------
    cells : mapping of str to sequence of str
        The columns by their names.
    seconds : (n,) array
        Times since 1970 in their own zones, NaN where there is none.
    """
    found = [zones for name in cells if _ZONES.search(name) and (zones := _zones_in(name, cells[name]))]
    rows = np.flatnonzero(np.isfinite(seconds)).tolist()
    certain = [zones for zones in found if not any(zones[row].question for row in rows)] or found
    if not certain:
        return None
    for other in certain[1:]:
        if any(certain[0][row].seconds(seconds[row]) != other[row].seconds(seconds[row]) for row in rows):
            return [Zone(UTC, "two columns state different zones")] * len(seconds)
    return certain[0]


def _zones_in(name: str, cells: Sequence[str]) -> list[Zone] | None:
    """Return the zones in the cells of a column; None if all are empty.

    An empty cell is in the zone that all the others state.
    """
    known = {cell: _zone_in(name, cell) for cell in set(cells) if cell.lower() not in MISSING}
    if not known:
        return None
    only = set(known.values())
    empty = only.pop() if len(only) == 1 else Zone(UTC, f"column {name} has empty cells")
    return [known.get(cell, empty) for cell in cells]


def _zone_in(name: str, cell: str) -> Zone:
    if cell.upper() in _NORTH_AMERICA and not _OF_AGENCIES.search(name):
        return Zone(UTC, f"{cell} may be more than one zone")
    if re.fullmatch(r"[-+−]?\d+(\.\d+)?", cell):
        hours = _hours_in(name, cell.replace("−", "-"))
        if hours is None or not -12 <= hours <= 14:
            return Zone(UTC, f"{cell} in column {name} may be hours, minutes or seconds")
        return Zone(timezone(timedelta(hours=hours)))
    doubtful = zone_of(cell)
    if doubtful is not None and doubtful.question and cell.upper() not in _NORTH_AMERICA:
        return doubtful
    return zone_named(cell) or Zone(UTC, f"{cell} in column {name} is no zone that is known")


def _hours_in(name: str, cell: str) -> float | None:
    """Return an offset in hours that a number states, in the unit of its column's name or by its size."""
    number, digits = float(cell), cell.lstrip("-+").removesuffix(".0")
    for per, words in _PER_HOUR.items():
        if re.search(rf"(?<![^\W_])(?:{words})(?![^\W_])", name, re.IGNORECASE):
            return number / per
    if "." in digits or len(digits) < 3:
        return number
    if re.fullmatch(r"(0\d|1[0-4])(00|15|30|45)", digits):  # +0530
        return (-1 if number < 0 else 1) * (int(digits[:2]) + int(digits[2:]) / 60)
    return number / 3600 if abs(number) >= 1800 and number % 900 == 0 else None
