"""Latitude and longitude as people write them: in degrees, minutes and seconds, with N, S, E and W."""

from __future__ import annotations

import re

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError

_DEGREE, _MINUTE, _SECOND = "[°º]", "['′’]", "(?:[\"″”]|''|′′)"
_NUMBER = r"\d+(?:[.,]\d+)?"
_PARTS = (
    rf"(?P<d>{_NUMBER})(?:(?:\s*{_DEGREE}\s*|\s+)(?P<m>{_NUMBER})(?:(?:\s*{_MINUTE}\s*|\s+)(?P<s>{_NUMBER}))?)?"
    rf"\s*(?P<sign>{_DEGREE}|{_SECOND}|{_MINUTE})?"
)
_ANGLES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\s*{_PARTS}\s*(?P<side>[NSEW])",
        rf"\s*(?P<side>[NSEW])\s*{_PARTS}",
        rf"\s*(?P<minus>[+-]?)(?P<d>{_NUMBER})\s*{_DEGREE}"
        rf"(?:\s*(?P<m>{_NUMBER})\s*{_MINUTE}(?:\s*(?P<s>{_NUMBER})\s*{_SECOND})?)?",
    )
)
"""An angle with its side behind it, with its side before it, and with a sign instead."""

_EXAMPLE = "type, for example, 47.3079 8.5105 or 47°18.48'N 8°30.63'E"


def has_angles(text: str) -> bool:
    """Return whether a text holds more than plain numbers: signs of degrees, or N, S, E or W."""
    return re.search(f"{_DEGREE}|{_MINUTE}|{_SECOND}|[NSEW]", text, re.IGNORECASE) is not None


def angles_in(text: str) -> tuple[Array, str]:
    """Return latitude and longitude (2,) in degrees, and the rest of the text.

    Latitude comes first unless N, S, E or W say otherwise; these may stand before or behind the numbers. A
    comma between digits is a decimal one.

    Raises
    ------
    InputError
        The text does not begin with a latitude and a longitude.

    Examples
    --------
    >>> angles_in("47°18.48'N 8°30.63'E")
    (array([47.308 ,  8.5105]), '')
    >>> angles_in("W8 30 37.8, S47 18 28.8; 2.5")
    (array([-47.308 ,  -8.5105]), '2.5')
    """
    for pattern in _ANGLES:
        first = pattern.match(text)
        second = None if first is None else pattern.match(text, _behind(text, first))
        if first is not None and second is not None:
            return _pair(text, first, second), text[_behind(text, second) :].strip()
    raise _wrong(text)


def _behind(text: str, angle: re.Match[str]) -> int:
    """Return where the text goes on behind an angle and a comma or semicolon."""
    separator = re.compile(r"\s*[,;]?\s*").match(text, angle.end())
    assert separator is not None
    return separator.end()


def _pair(text: str, first: re.Match[str], second: re.Match[str]) -> Array:
    """Return latitude and longitude (2,)."""
    sides = [(found.groupdict().get("side") or "").upper() for found in (first, second)]
    values = [_value(text, found) for found in (first, second)]
    if sides[0] and (sides[0] in "NS") == (sides[1] in "NS"):
        raise _wrong(text)
    if sides[0] and sides[0] in "EW":
        values.reverse()
    if abs(values[0]) > 90.0 or abs(values[1]) > 180.0:
        raise _wrong(text)
    return np.array(values)


def _value(text: str, angle: re.Match[str]) -> float:
    """Return an angle in degrees; south and west are negative."""
    of = angle.groupdict()
    parts = [float(of[key].replace(",", ".")) for key in "dms" if of[key] is not None]
    sign = of.get("sign")
    if max(parts[1:], default=0.0) >= 60.0 or (
        sign and not re.match((_DEGREE, _MINUTE, _SECOND)[len(parts) - 1], sign)
    ):
        raise _wrong(text)
    value = sum(part / 60.0**k for k, part in enumerate(parts))
    return -value if (of.get("side") or "").upper() in ("S", "W") or of.get("minus") == "-" else value


def _wrong(text: str) -> InputError:
    return InputError(f"{text!r} is not a latitude and a longitude", fix=_EXAMPLE)
