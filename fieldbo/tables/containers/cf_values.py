"""Values of NetCDF variables by the CF conventions: fills, scales, times, and flags of quality."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError, counted

Attributes = Mapping[str, Any]
"""Attributes of a variable, by name."""

_DEFAULT_FILLS = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i2": -32767, "i4": -2147483647}
"""What the NetCDF library leaves where nothing was written, by type."""

_SINCE = re.compile(
    r"\s*(\w+)\s+since\s+(\d{1,4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T\s]\s*(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d*)?)?)?\s*(?:Z|UTC|GMT|([+-])(\d{1,2}):?(\d{2})?)?\s*",
    re.IGNORECASE,
)
_SECOND = 1_000_000
_MICROS = {
    **dict.fromkeys(["us", "microsecond"], 1),
    **dict.fromkeys(["ms", "msec", "millisecond"], 1000),
    **dict.fromkeys(["s", "sec", "second"], _SECOND),
    **dict.fromkeys(["min", "minute"], 60 * _SECOND),
    **dict.fromkeys(["h", "hr", "hour"], 3600 * _SECOND),
    **dict.fromkeys(["d", "day"], 86_400 * _SECOND),
}
_CALENDARS = frozenset(["standard", "gregorian", "proleptic_gregorian", ""])
_BAD = re.compile(r"bad|fail|missing|erroneous|invalid|no_?data|out_of_range|reject|wrong", re.IGNORECASE)
_DOUBTFUL = re.compile(
    r"suspect|question|doubt|high_interest|caution|unusual|interpolated|estimated", re.IGNORECASE
)
_TABLE_2 = {"3": "probably_bad_data", "4": "bad_data", "8": "estimated_value", "9": "missing_value"}
"""Argo's reference table 2 of flags, which OceanSITES and EGO gliders use as well; the others are good."""


def text_of(attributes: Attributes, name: str) -> str:
    """Return an attribute as text; empty if there is none."""
    value = attributes.get(name, "")
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value).strip()


def numbers_of(raw: NDArray[Any], attributes: Attributes) -> Array:
    """Return the numbers of a variable in double precision, NaN where there is none.

    Fills are none; scale and offset are applied.

    Examples
    --------
    >>> numbers_of(np.array([123, -1], dtype="i2"), {"_FillValue": -1, "scale_factor": 0.5, "add_offset": 1})
    array([62.5,  nan])
    """
    if text_of(attributes, "_Unsigned").lower() == "true" and raw.dtype.kind == "i":
        raw = raw.view(raw.dtype.str.replace("i", "u"))
    missing: Mask = np.zeros(raw.shape, dtype=bool)
    for name in ("_FillValue", "missing_value"):
        for fill in np.atleast_1d(attributes.get(name, [])):
            missing |= raw == np.asarray(fill).astype(raw.dtype)
    if "_FillValue" not in attributes and raw.dtype.str[1:] in _DEFAULT_FILLS:
        missing |= raw == np.asarray(_DEFAULT_FILLS[raw.dtype.str[1:]]).astype(raw.dtype)
    numbers = raw.astype(float)
    scale, offset = (float(attributes.get(name, default)) for name, default in _PACKING)
    if scale != 1.0 or offset != 0.0:
        numbers = numbers * scale + offset
    numbers[missing] = np.nan
    return numbers


_PACKING = (("scale_factor", 1.0), ("add_offset", 0.0))


def beyond_range(raw: NDArray[Any], numbers: Array, attributes: Attributes) -> Mask:
    """Return which numbers of a variable lie outside of its valid range, as far as it states one.

    The range is that of the numbers as they are stored if it has their type, and else of those in `numbers`.
    """
    ends = np.atleast_1d(attributes.get("valid_range", [None, None]))
    beyond: Mask = np.zeros(raw.shape, dtype=bool)
    for end, name, sign in ((ends[0], "valid_min", 1), (ends[-1], "valid_max", -1)):
        limit = attributes.get(name, end)
        if limit is None:
            continue
        stored = raw.dtype.kind in "iu" and np.asarray(limit).dtype.kind in "iu"
        compared = raw.astype(float) if stored else numbers
        with np.errstate(invalid="ignore"):
            beyond |= np.isfinite(numbers) & (sign * compared < sign * float(np.asarray(limit).item()))
    return beyond


def is_time(attributes: Attributes) -> bool:
    """Return whether a variable holds times: its units count since one."""
    return _SINCE.fullmatch(text_of(attributes, "units")) is not None


def micros_of(numbers: Array, attributes: Attributes, where: str) -> tuple[NDArray[np.int64], Mask]:
    """Return times in microseconds since 1970 in UTC, and which of them are known.

    Raises
    ------
    InputError
        The unit or the calendar of the times is not one of clocks.

    Examples
    --------
    >>> micros_of(np.array([0.5]), {"units": "days since 1970-01-01 01:00 +1:00"}, "time")[0].tolist()
    [43200000000]
    """
    found = _SINCE.fullmatch(text_of(attributes, "units"))
    assert found is not None
    word = found[1].lower()
    factor = _MICROS.get(word, _MICROS.get(word.removesuffix("s")))
    if word in ("ns", "nanosecond", "nanoseconds"):
        numbers, factor = numbers / 1000.0, 1
    calendar = text_of(attributes, "calendar").lower()
    if factor is None or calendar not in _CALENDARS:
        raise InputError(
            f"times are in {text_of(attributes, 'units')!r}" + (f", calendar {calendar}" if calendar else ""),
            expected="days, hours, minutes or seconds since a date of the usual calendar",
            where=where,
        )
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[1:7])
    sign, hours, minutes = found[9] or "+", int(found[10] or 0), int(found[11] or 0)
    offset = (1 if sign == "+" else -1) * timedelta(hours=hours, minutes=minutes)
    origin = datetime(year, month, day, hour, minute, second, tzinfo=timezone(offset))
    since = origin - datetime(1970, 1, 1, tzinfo=UTC)
    start = (since.days * 86_400 + since.seconds) * _SECOND + round(float(found[8] or 0) * _SECOND)
    known: Mask = np.isfinite(numbers)
    whole = np.where(known, np.floor(np.where(known, numbers, 0.0)), 0.0)
    rest = np.where(known, numbers - whole, 0.0)
    micros = whole.astype(np.int64) * factor + np.round(rest * factor).astype(np.int64) + start
    return micros, known


@dataclass(frozen=True)
class Flags:
    """Which values a flag of quality calls bad, and what it says of others.

    Attributes
    ----------
    bad : (...) bool array
    counts : dict of str to int
        How many values have each meaning that calls them bad, or doubtful.
    doubtful : dict of str to int
    """

    bad: Mask
    counts: dict[str, int]
    doubtful: dict[str, int]


def flags_of(raw: NDArray[Any], attributes: Attributes) -> Flags | None:
    """Return what a variable of flags says; None if it does not say what its values mean.

    Examples
    --------
    >>> meant = {"flag_values": [1, 3, 4], "flag_meanings": "pass suspect fail"}
    >>> flags = flags_of(np.array([1, 4, 3]), meant)
    >>> flags.bad.tolist(), flags.counts, flags.doubtful
    ([False, True, False], {'fail': 1}, {'suspect': 1})
    """
    meanings = text_of(attributes, "flag_meanings").replace(",", " ").split()
    values = [_as_text(value) for value in np.atleast_1d(attributes.get("flag_values", []))]
    masks = np.atleast_1d(attributes.get("flag_masks", [])).tolist()
    texts = _as_texts(raw)
    if meanings and len(meanings) == len(values):
        chosen = {meaning: texts == value for meaning, value in zip(meanings, values, strict=True)}
        if masks and len(masks) == len(meanings):
            chosen = {m: (raw & int(mask)) == int(float(value)) for m, mask, value in
                      zip(meanings, masks, values, strict=True)}  # fmt: skip
    elif meanings and len(meanings) == len(masks):
        chosen = {meaning: (raw & int(mask)) != 0 for meaning, mask in zip(meanings, masks, strict=True)}
    elif re.search(r"reference table 2|QC flags", text_of(attributes, "conventions"), re.IGNORECASE):
        chosen = {meaning: texts == value for value, meaning in _TABLE_2.items()}
    else:
        return None
    bad: Mask = np.zeros(raw.shape, dtype=bool)
    counts, doubtful = {}, {}
    for meaning, there in chosen.items():
        if not there.any() or re.match(r"(not|no)_(?!data)", meaning):
            continue
        if _BAD.search(meaning):
            bad |= there
            counts[meaning] = int(there.sum())
        elif _DOUBTFUL.search(meaning):
            doubtful[meaning] = int(there.sum())
    return Flags(bad, counts, doubtful)


def _as_text(value: Any) -> str:
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode(errors="replace").strip()
    return str(value).strip() if isinstance(value, str) else f"{float(value):g}"


def _as_texts(raw: NDArray[Any]) -> NDArray[np.str_]:
    """Return flags as texts: letters as they are, numbers without a decimal point."""
    if raw.dtype.kind in "SO":
        return np.vectorize(_as_text, otypes=[str])(raw) if raw.size else raw.astype(str)
    return raw.astype(str) if raw.dtype.kind == "U" else np.char.mod("%g", raw.astype(float))


def note_flags(name: str, flag: str, flags: Flags) -> list[str]:
    """Return the notes on the values of a variable that a flag calls bad or doubtful."""
    notes = []
    if flags.counts:
        why = ", ".join(f"{meaning} {number}" for meaning, number in flags.counts.items())
        notes.append(f"{name}: {counted(sum(flags.counts.values()), 'value')} left out by {flag} ({why})")
    if flags.doubtful:
        why = ", ".join(f"{meaning} {number}" for meaning, number in flags.doubtful.items())
        notes.append(
            f"{name}: {counted(sum(flags.doubtful.values()), 'value')} kept that {flag} doubts ({why})"
        )
    return notes
