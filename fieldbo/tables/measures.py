"""Columns of positions, depths and heights in the unit that is asked for, whatever their header states."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis, is_depth, is_height
from fieldbo.errors import InputError
from fieldbo.tables.table import Table
from fieldbo.tables.units import bare, conversion, is_known, is_plain, is_pressure, unit_of

Length = Literal["easting", "northing", "position", "depth", "height"]
"""What a column of lengths holds. A depth points down, a height up."""


class Measured(NamedTuple):
    """The numbers of a column in the unit that was asked for, and what was done to them."""

    numbers: Array
    """(n,), NaN where there is none."""
    notes: tuple[str, ...] = ()


_DOWN = re.compile(r"depth|tiefe|profond|profundi|\bdep|below|\bdown", re.IGNORECASE)
_UP = re.compile(r"height|elev|altitude|\balt\b|höhe|hoehe|above|\bup\b|upward", re.IGNORECASE)
_PRESSURE = re.compile(r"press|\bpres\b|^p$|\bprdm\b|\bprsm\b|druck", re.IGNORECASE)
_REMARK = re.compile(
    r"""(epsg[:\s]*\d+|esri[:\s]*\d+|wgs[\s-]*(19)?84|nad[\s-]*(19)?(27|83).*|etrs.*|gda\d*.*|itrf.*|utm.*|zone.*|
    rd|rd[\s-]new|osgb.*|bng|mga.*|lv\d\d\+?|gauss.*|lambert.*|gk.*|ch\d.*|gps|gnss|rtk|dgps|nmea|usv|auv|rov|
    projected|local|grid|true|corr(ected)?|calc(ulated)?|smoothed|raw|mean|avg|average|median|sonar|ctd|pressure|
    salt\s*water|fresh\s*water|(positive[\s-]*)?(up|down)(wards?)?|below\s.*|above\s.*|from\s.*|[xyzen])""",
    re.IGNORECASE | re.VERBOSE,
)
"""What stands in brackets behind a position or a depth without being a unit."""

_LENGTHS = "m, cm, km, ft, US survey feet, fathoms, yd or nautical miles"


def lengths_of(table: Table, name: str, kind: Length, unit: str = "m") -> Measured:
    """Return a column of lengths in a unit; a column that states none holds that unit.

    Depths point down and heights up: a column whose name says the other direction is turned round, with a
    note.

    Parameters
    ----------
    table : Table
    name : str
        A column's full name.
    kind : {"easting", "northing", "position", "depth", "height"}
    unit : str
        The unit of the result, that of an axis.

    Raises
    ------
    InputError
        The unit is not known or none of length, the column holds pressures, or its numbers contradict the
        direction that its name states.

    Examples
    --------
    >>> from pathlib import Path
    >>> cells = {"Depth (ft)": ("6.56", "26.25")}
    >>> table = Table(Path("log.csv"), tuple(cells), {"Depth (ft)": "ft"}, cells, np.array([2, 3]))
    >>> lengths_of(table, "Depth (ft)", "depth")
    Measured(numbers=array([1.999488, 8.001   ]), notes=('Depth (ft) is converted from ft to m',))
    """
    stated = stated_unit(table, name) or _length_within(name)
    upright = kind in ("depth", "height")
    if upright:
        _check_no_pressure(table, name, stated)
    numbers, notes = table.numbers(name), []
    if stated is not None:
        change = conversion(stated, unit)
        if change is None:
            raise _not_a_length(table, name, stated, unit)
        if change.factor != 1:
            numbers = change.of(table.cells[name], numbers)
            notes.append(f"{name} is converted from {stated} to {unit}")
    if upright:
        numbers, turning = _turn(table, name, kind == "depth", numbers)
        notes += turning
    return Measured(numbers, tuple(notes))


def kind_of(axis: str) -> Length:
    """Return what an axis of a world measures, by its name."""
    return "depth" if is_depth(axis) else "height" if is_height(axis) else "position"


def along(table: Table, name: str, axis: Axis) -> Measured:
    """Return a column of positions along an axis, in the axis' unit.

    Raises
    ------
    InputError
        As of `lengths_of`; or the column states a unit that can't become that of the axis.
    """
    if conversion(axis.unit, "m") is not None:
        return lengths_of(table, name, kind_of(axis.name), axis.unit)
    stated, numbers = stated_unit(table, name), table.numbers(name)
    if stated is None or stated == axis.unit or not is_known(axis.unit):
        return Measured(numbers)
    change = conversion(stated, axis.unit)
    if change is None:
        raise InputError(
            f"the unit of column {name} is {stated!r}",
            expected=f"{axis.unit}, the unit of the axis {axis.name}, or one that can be converted to it",
            where=f"{table.path}, column {name}",
        )
    if change.is_none:
        return Measured(numbers)
    note = f"{name} is converted from {stated} to {axis.unit}"
    return Measured(change.of(table.cells[name], numbers), (note,))


def values_in(table: Table, name: str, unit: str) -> Measured:
    """Return a column of values in the unit of a world's quantity.

    They stay as they are if one of the two units is not known.

    Raises
    ------
    InputError
        The column states a unit of another kind.

    Examples
    --------
    >>> from pathlib import Path
    >>> cells = {"chl (mg/L)": ("0.0123",)}
    >>> table = Table(Path("log.csv"), tuple(cells), {"chl (mg/L)": "mg/L"}, cells, np.array([2]))
    >>> values_in(table, "chl (mg/L)", "ug/L")
    Measured(numbers=array([12.3]), notes=('chl (mg/L) is converted from mg/L to ug/L',))
    """
    stated = stated_unit(table, name)
    if stated is None or is_plain(unit) or not is_known(stated) or not is_known(unit):
        return Measured(table.numbers(name))
    change = conversion(stated, unit)
    if change is None:
        raise InputError(
            f"the unit of column {name} is {stated!r}",
            expected=f"{unit}, or a unit that can be converted to it",
            where=f"{table.path}, column {name}",
            fix=f"convert the column, or write {unit} into its header if that is its unit",
        )
    if change.is_none:
        return Measured(table.numbers(name))
    note = f"{name} is converted from {stated} to {unit}"
    return Measured(change.of(table.cells[name], table.numbers(name)), (note,))


def has_unit_of_kind(table: Table, name: str, unit: str) -> bool:
    """Return whether a column states a unit that can be converted to another, or one of the two states none.

    Examples
    --------
    >>> cells = {"chl (RFU)": ("1.2",)}
    >>> table = Table(None, tuple(cells), {"chl (RFU)": "RFU"}, cells, np.array([2]))
    >>> has_unit_of_kind(table, "chl (RFU)", "ug/L")
    False
    """
    stated = stated_unit(table, name)
    if stated is None or is_plain(unit) or not is_known(stated) or not is_known(unit):
        return True
    return conversion(stated, unit) is not None


def spreads_in(table: Table, name: str, unit: str, value: str | None = None) -> Measured:
    """Return a column of standard deviations in the unit of the values; differences have no offset.

    A column that states no unit has that of the column `value`.

    Raises
    ------
    InputError
        The column states a unit of another kind.
    """
    stated = stated_unit(table, name) or (None if value is None else stated_unit(table, value))
    change = None if stated is None or is_plain(unit) else conversion(stated, unit)
    if change is None:
        return values_in(table, name, unit)
    if change.factor == 1:
        return Measured(table.numbers(name))
    note = f"{name} is converted from {stated} to {unit}"
    return Measured(change._replace(offset=Fraction(0)).of(table.cells[name], table.numbers(name)), (note,))


def stated_unit(table: Table, name: str) -> str | None:
    """Return the unit that the header states for a column of positions or depths; None if it states none.

    A coordinate system or a remark in brackets is none: "Easting (UTM 32N)", "Depth (below surface)".

    Raises
    ------
    InputError
        The column's name and the line of units state different ones.
    """
    stated, in_name = table.units.get(name), unit_of(name)
    if stated is None or is_plain(stated):
        return None
    if in_name is not None and len(in_name) > 1 and is_known(in_name) and is_known(stated):
        change = conversion(in_name, stated)
        if change is None or not change.is_none:
            raise InputError(
                f"the name of column {name!r} states the unit {in_name}, the line of units {stated}",
                expected="one unit",
                where=f"{table.path}, column {name}",
                fix="correct the one that is wrong",
            )
    return None if not is_known(stated) and _REMARK.fullmatch(stated) else stated


_WORDS_OF_LENGTHS = (
    *(
        "ft",
        "feet",
        "foot",
        "fm",
        "fms",
        "fathom",
        "fathoms",
        "yd",
        "yards",
        "inch",
        "inches",
        "cm",
        "mm",
        "km",
    ),
    *("m", "meter", "meters", "metre", "metres"),
)


def _length_within(name: str) -> str | None:
    """Return the unit of length that is a word of a column's name, as in DepthFt; several, with a slash.

    None if there is none. Several are no unit, so that they are refused.
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    apart = re.sub(r"(depth|height|elevation|altitude)(?=[a-z])", r"\1 ", apart.lower())
    words = [word for word in re.split(r"[\W\d_]+", apart) if word]
    found = dict.fromkeys(word for word in words if word in _WORDS_OF_LENGTHS)
    return "/".join(found) if len(found) < len(words) and found else None


def _not_a_length(table: Table, name: str, stated: str, unit: str) -> InputError:
    where = f"{table.path}, column {name}"
    if conversion(stated, "deg") is not None:
        return InputError(
            f"the positions in {name!r} are angles ({stated})",
            expected=f"a length, such as {unit}",
            where=where,
            fix="name columns in degrees with --lat and --lon",
        )
    known = "is no length" if is_known(stated) else "is not known"
    return InputError(
        f"the unit {stated!r} of column {name} {known}",
        expected=f"a unit of length: {_LENGTHS}",
        where=where,
        fix=f"write the unit into the column's name, such as {bare(name)} (m)",
    )


def _check_no_pressure(table: Table, name: str, stated: str | None) -> None:
    """Raise an `InputError` for pressures.

    How deep a pressure is depends on the water's density, on the latitude, and on whether the pressure of
    the air (10 dbar, as much as 10 m of water) is still in it, which few headers tell.
    """
    if stated is None:
        if not _PRESSURE.search(" ".join(re.split(r"[\W_]+", bare(name)))):
            return
    elif not is_pressure(stated):
        return
    raise InputError(
        f"column {name} holds pressures" + (f" ({stated})" if stated else "") + ", not depths",
        expected="depths in metres",
        where=f"{table.path}, column {name}",
        fix="let the maker's program export the depth, or add a column: take the pressure of the air away "
        "if it is included (10.13 dbar at sea level), then 1 dbar is 1.02 m of fresh and 0.99 m of sea water",
    )


def _turn(table: Table, name: str, down: bool, numbers: Array) -> tuple[Array, list[str]]:
    """Return depths positive downwards, or heights positive upwards, and a note if the sign was changed."""
    text = name.replace("_", " ")
    says_down, says_up = bool(_DOWN.search(text)), bool(_UP.search(text))
    known = numbers[np.isfinite(numbers)]
    if says_down and says_up:
        says_down, says_up = bool(_DOWN.match(text)), bool(_UP.match(text))  # "height above the bottom"
    if not down:
        if not says_down or says_up:
            return numbers, []
        raise InputError(
            f"column {name} holds depths, not heights",
            expected="heights, positive upwards",
            where=f"{table.path}, column {name}",
            fix="name a column of heights",
        )
    is_negative = bool(known.any()) and float(np.mean(known[known != 0] < 0)) > 0.5  # some may be in air
    if says_up and not says_down:
        if is_negative or not known.any():
            return -numbers + 0.0, [f"{name} points up: depths are its numbers without their minus"]
        raise InputError(
            f"column {name} points up and reaches {known.max():g}: these are no depths",
            expected="depths below the surface, positive downwards; or heights below 0",
            where=f"{table.path}, column {name}",
            fix="name a column of depths, or add one: the height of the surface minus these heights",
        )
    if not is_negative:
        return numbers, []
    if says_down:
        raise InputError(
            f"depths are negative in column {name}, down to {known.min():g}",
            expected="depths of at least 0, positive downwards",
            where=f"{table.path}, column {name}",
            fix="remove the minus signs; or call the column elevation if it counts upwards from the surface",
        )
    return -numbers + 0.0, [f"{name} is negative: depths are its numbers without their minus"]
