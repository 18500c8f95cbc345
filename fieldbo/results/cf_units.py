"""Units as netCDF files state them: in the words of UDUNITS, which CF prescribes.

A unit of a mission is free text, and much of it means nothing to UDUNITS (NTU, psu, RFU), or something else:
it takes ``ppt`` for parts per trillion, ``pH`` for picohenries, ``C`` for coulombs and the ``N`` in
``mg/l N`` for newtons. Programs that compute with units would do so with these. So a unit is written only if
UDUNITS is known to read it as it is meant. Any other becomes ``1``, the text goes into ``long_name``, and an
attribute of our own holds it as it was stated.

Units of time are written in the singular, which UDUNITS also knows: xarray turns whatever has the units
``days``, ``hours``, ``minutes`` or ``seconds`` into time spans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

STATED = "unit_as_stated"
"""The attribute that holds a unit which UDUNITS does not know, or which was written otherwise."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PREFIXES = ("da", *"YZEPTGMkhdcmunpfazy")
_LONG_PREFIXES = _set(
    "yotta zetta exa peta tera giga mega kilo hecto deka deci centi milli micro nano pico femto"
)
_SYMBOLS = _set("m g s A K mol cd rad sr Hz N Pa J W V S ohm Wb T lm lx Bq Gy kat L l bar eV")
"""Symbols that take prefixes. Without those that people use otherwise: C, F, H, P, Sv."""

_ALONE = _set(
    "% d h hr min sec yr ha t degC degF degree_C degree_F degK ft in yd lb atm psi ppm ppb mmHg arcdeg"
)
"""Symbols without prefixes. Without ppt, cps and others that people use otherwise."""

_NAMES = _set(
    "meter metre gram second minute hour day week month year ampere kelvin mole candela radian steradian "
    "newton pascal joule watt volt weber tesla lumen becquerel gray katal liter litre bar electronvolt "
    "hectare tonne degree yard fathom mile nautical_mile knot pound atmosphere count percent arc_degree "
    "arcminute arcsecond"
)
"""Names that also have a plural."""

_SINGULAR = _set(
    "hertz siemens lux celsius fahrenheit degree_Celsius degree_celsius degree_Fahrenheit degree_fahrenheit "
    "degree_north degree_east degree_true foot feet inch inches"
)
_MASSES = frozenset(f"{prefix}{unit}" for prefix in ("", *_PREFIXES) for unit in ("g", "mol"))
_ELEMENTS = _set("N K S V W")
"""Symbols of units that stand for a chemical element after a mass or an amount: ``mg/l N``."""

_WRITTEN = {
    **{f"{name}s": name for name in ("day", "hour", "minute", "second")},
    **{f"{prefix}seconds": f"{prefix}second" for prefix in ("milli", "micro", "nano")},
    "deg": "degree",
    "deg C": "degree_Celsius",
    "degrees C": "degree_Celsius",
    "deg F": "degree_Fahrenheit",
    "\N{DEGREE SIGN}": "degree",
    "\N{DEGREE SIGN}C": "degree_Celsius",
    "\N{DEGREE SIGN} C": "degree_Celsius",
    "\N{DEGREE SIGN}F": "degree_Fahrenheit",
    "kn": "knot",
    "kts": "knot",
    "\N{PER MILLE SIGN}": "1e-3",
}
"""What UDUNITS or xarray would not take as it is meant, in other words."""

_TEMPERATURES = {"C": "degree_Celsius", "F": "degree_Fahrenheit"}
"""What the letters mean of a quantity that is a temperature by its name."""

_ASCII = str.maketrans(
    "\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}\N{MIDDLE DOT}\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹", "uu -0123456789"
)
_TERM = re.compile(
    r"(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]+|%))(?P<power>(?:\^|\*\*)?[+-]?\d+)?"
)
_BETWEEN = re.compile(r" ?([/.* ]) ?")


def with_units(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return CF attributes whose `units` UDUNITS reads as they are meant.

    Parameters
    ----------
    attributes : mapping
        With a `long_name`, and `units` as a mission states them.

    Examples
    --------
    >>> with_units({"long_name": "turbidity", "units": "NTU"})
    {'long_name': 'turbidity (NTU)', 'units': '1', 'unit_as_stated': 'NTU'}
    >>> with_units({"long_name": "age", "units": "days"})
    {'long_name': 'age', 'units': 'day', 'unit_as_stated': 'days'}
    >>> with_units({"long_name": "chlorophyll", "units": "mg m-3"})
    {'long_name': 'chlorophyll', 'units': 'mg m-3'}
    """
    stated, long_name = attributes["units"], attributes["long_name"]
    units = udunits(stated, long_name)
    if units == stated:
        return dict(attributes)
    said = {STATED: stated} if stated else {}
    if units is None:
        return {**attributes, "units": "1", "long_name": f"{long_name} ({stated})", **said}
    return {**attributes, "units": units, **said}


def udunits(unit: str, quantity: str = "") -> str | None:
    """Return a unit in words of UDUNITS; None if there are none, or they would be taken for something else.

    Parameters
    ----------
    unit : str
        As a mission states it.
    quantity : str
        The name of what is measured.

    Examples
    --------
    >>> [udunits(unit) for unit in ("µg/L", "m s⁻¹", "100 mL", "", "psu", "ppt", "mg/l N", "C")]
    ['ug/L', 'm s-1', '100 mL', '1', None, None, None, None]
    >>> udunits("C", "water temperature")
    'degree_Celsius'
    """
    text = " ".join(unit.split())
    if text in _TEMPERATURES and "temp" in quantity.lower():
        return _TEMPERATURES[text]
    plain = _WRITTEN.get(text, text).translate(_ASCII) or "1"
    terms, position = [], 0
    while match := _TERM.match(plain, position):
        terms.append(match)
        position = match.end()
        between = _BETWEEN.match(plain, position)
        if between is None:
            break
        position = between.end()
    names = [match["name"] for match in terms if match["name"]]
    whole = bool(terms) and terms[-1].end() == len(plain)
    return plain if whole and all(map(_known, names)) and not _of_element(plain, terms) else None


def _known(name: str) -> bool:
    """Return whether UDUNITS knows a name as it is meant."""
    short = name in _ALONE or any(name.removeprefix(prefix) in _SYMBOLS for prefix in ("", *_PREFIXES))
    rest = [name.removeprefix(prefix) for prefix in ("", *_LONG_PREFIXES)]
    return short or any(word in _SINGULAR | _NAMES or word.removesuffix("s") in _NAMES for word in rest)


def _of_element(text: str, terms: list[re.Match[str]]) -> bool:
    """Return whether a term stands for a chemical element: ``N`` in ``mg/l N``."""
    weighed = False
    for match in terms:
        if weighed and match["name"] in _ELEMENTS and not match["power"]:
            return True
        below = "/" in text[: match.start()].rstrip()[-1:] or "-" in (match["power"] or "")
        weighed |= match["name"] in _MASSES and not below
    return False
