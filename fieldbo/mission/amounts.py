"""Amounts in the units that people have: ``6000``, ``"1 h 15 min"`` for a cost in s, ``"35 %"`` of full.

A table of multiples covers what batteries are measured in, so that no library of units is loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator

from fieldbo.errors import InputError


def _is_amount(given: object) -> object:
    """Reject anything but text and finite numbers above 0."""
    if not isinstance(given, str) and not (_is_number(given) and 0 < given < math.inf):  # type: ignore[operator]
        raise ValueError('a number above 0, or text with a unit, such as "6000 s"')
    return given


def _is_amount_or_nothing(given: object) -> object:
    """Reject anything but text and finite numbers of at least 0."""
    if not isinstance(given, str) and not (_is_number(given) and 0 <= given < math.inf):  # type: ignore[operator]
        raise ValueError('at least 0, or text with a unit, such as "600 s"')
    return given


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


Amount = Annotated[float | str, BeforeValidator(_is_amount)]
"""A setting above 0 that `amount` converts."""

AmountOrNothing = Annotated[float | str, BeforeValidator(_is_amount_or_nothing)]
"""A setting of at least 0 that `amount` converts."""

_MULTIPLES: tuple[dict[str, float], ...] = (
    {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "mWh": 3.6, "Wh": 3600.0, "kWh": 3.6e6},
    {"C": 1.0, "mAh": 3.6, "Ah": 3600.0},
    {"mm": 1e-3, "cm": 0.01, "m": 1.0, "km": 1000.0},
    {"m/s": 1.0, "km/h": 1 / 3.6, "kn": 1852 / 3600, "mph": 0.44704},
)
"""Units of time, energy, charge, length and speed, each in the first that is 1."""

_WORDS = {
    **{"sec": "s", "second": "s", "minute": "min", "mn": "min", "hour": "h", "hr": "h", "day": "d"},
    **{"joule": "j", "coulomb": "c", "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km"},
    **{"knot": "kn", "kt": "kn", "kph": "km/h", "kmh": "km/h"},
}
"""Other words for units, in lower case and in the singular."""

_AMOUNT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*", re.ASCII)


_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(d|h|min|s)(?![A-Za-z])", re.ASCII)


def _parse(given: object) -> tuple[float, str] | None:
    """Return the number and the unit of an amount in text; None if it is none.

    Examples
    --------
    >>> _parse("90 min"), _parse("1 h 15 min"), _parse("15 min 1 h"), _parse("a lot")
    ((90.0, 'min'), (4500.0, 's'), None, None)
    """
    if not isinstance(given, str):
        return None
    times = _PART.findall(given)
    if len(times) < 2 or _PART.sub("", given).strip():
        parts = _AMOUNT.fullmatch(given)
        return None if parts is None else (float(parts.group(1)), parts.group(2))
    units = [_MULTIPLES[0][unit] for _, unit in times]
    if sorted(set(units), reverse=True) != units:
        return None
    return math.fsum(float(number) * unit for (number, _), unit in zip(times, units, strict=True)), "s"


def is_share(given: object) -> bool:
    """Return True if an amount is a percentage, such as ``"35 %"``."""
    parts = _parse(given)
    return parts is not None and parts[1] == "%"


def unit_in(given: float | str) -> str:
    """Return the unit that an amount names; s if it names none."""
    parts = _parse(given)
    return (parts[1] if parts is not None else "") or "s"


def names_unit(given: float | str) -> bool:
    """Return True if an amount names its unit; without one it is in the world's.

    Examples
    --------
    >>> names_unit("90 min"), names_unit("90")
    (True, False)
    """
    parts = _parse(given)
    return parts is not None and bool(parts[1])


def amount(
    given: float | str,
    unit: str,
    where: str,
    *,
    full: float | None = None,
    whole: str = "",
    zero: bool = False,
    what: str = "this world's cost unit",
) -> float:
    """Return an amount in the world's cost unit, or in another one.

    Parameters
    ----------
    given : float or str
        A number in that unit, or text: a number with that unit or a multiple of it, a time in several units
        (``"1 h 15 min"``), or a percentage of a full battery.
    unit : str
        The world's cost unit.
    where : str
        The key, for example ``"agent.battery"``; errors name it.
    full : float, optional
        What a full battery holds, in that unit.
    whole : str
        What a percentage refers to, for the error without `full`; empty where percentages make no sense.
    zero : bool
        Whether 0 is allowed.
    what : str
        What the unit is, for errors.

    Raises
    ------
    InputError
        The text is not an amount, its unit measures something else, the amount is out of range, or a
        percentage is of an unknown whole.

    Examples
    --------
    >>> amount("2 h", "s", "agent.battery"), amount("1800 kJ", "Wh", "agent.battery")
    (7200.0, 500.0)
    >>> amount("35 %", "s", "agent.battery", full=6000.0)
    2100.0
    """
    name = where.rsplit(".", 1)[-1]
    least = "a finite number of at least 0" if zero else "a finite number above 0"
    if not isinstance(given, str):
        _check_range(float(given), name, str(given), where, least, zero=zero)
        return float(given)
    parts = _parse(given)
    if parts is None:
        raise InputError(
            f'{name} = "{given}"',
            expected=f'a number, or a number with its unit, for example "6000 {unit}"',
            where=where,
            fix=_suggest_point(given),
        )
    number, its_unit = parts
    if its_unit == "%":
        return _take_share(number, given, where, full, whole, zero=zero)
    value = number * _find_factor(given, its_unit or unit, unit, where, what)
    _check_range(value, name, f'"{given}"', where, least, zero=zero)
    return value


def _check_range(value: float, name: str, shown: str, where: str, expected: str, *, zero: bool) -> None:
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise InputError(f"{name} = {shown}", expected=expected, where=where)


def _find_factor(given: str, its_unit: str, unit: str, where: str, what: str) -> float:
    """Return how many of the world's units one of the given unit is."""
    if its_unit == unit:
        return 1.0
    name = where.rsplit(".", 1)[-1]
    multiples: dict[str, float] = next((table for table in _MULTIPLES if unit in table), {})
    if its_unit not in multiples:
        others = [other for other in multiples if other != unit]
        raise InputError(
            f'{name} = "{given}" is in {its_unit}',
            expected=f"an amount in {unit}, {what}"
            + (f", or in {', '.join(others[:-1])} or {others[-1]}" if others else ""),
            where=where,
            fix=None if (meant := _guess_unit(its_unit, multiples)) is None else f"did you mean {meant}?",
        )
    return multiples[its_unit] / multiples[unit]


def _guess_unit(word: str, units: Iterable[str]) -> str | None:
    """Return which of the units a word stands for; None for none of them.

    Examples
    --------
    >>> _guess_unit("Minutes", ["s", "min"]), _guess_unit("kwh", ["Wh", "kWh"]), _guess_unit("mAh", ["s"])
    ('min', 'kWh', None)
    """
    low = word.lower()
    singular = low.removesuffix("s") if len(low) > 2 else low
    meant = _WORDS.get(singular, singular)
    return next((unit for unit in units if unit.lower() in (meant, low)), None)


def _suggest_point(given: str) -> str | None:
    """Return how to write a number with a decimal comma, or with commas between thousands."""
    if not _AMOUNT.fullmatch(given.replace(",", "")):
        return None
    if re.search(r",\d{3}(?!\d)", given):
        return f"write {given.replace(',', '')}, without the comma"
    pointed = given.replace(",", ".")
    return f"write {pointed}" if _AMOUNT.fullmatch(pointed) else None


def _take_share(
    percent: float, given: str, where: str, full: float | None, whole: str, *, zero: bool
) -> float:
    name = where.rsplit(".", 1)[-1]
    if not whole and full is None:
        raise InputError(f'{name} = "{given}"', expected="an amount, not a percentage", where=where)
    if percent < 0 or percent > 100 or (percent == 0 and not zero):
        raise InputError(
            f'{name} = "{given}"',
            expected=f"{'0 %' if zero else 'more than 0 %'} and at most 100 %",
            where=where,
        )
    if full is None:
        raise InputError(
            f'{name} = "{given}", but the capacity of a full battery is not given',
            expected=f"{whole}, in the world's cost unit",
            where=where,
            fix="add that key, or give an amount instead of a percentage",
        )
    return full * percent / 100.0
