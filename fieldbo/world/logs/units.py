"""Units of columns: in a line below the names, or in brackets behind a name."""

from __future__ import annotations

import re

Row = tuple[int, list[str]]
"""Line number and cells of a row."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[{<]\s*(.*?)\s*[)\]}>]")
_KNOWN = {
    *("deg", "degree", "degrees", "°", "dd", "deg n", "deg e", "degrees_north", "degrees_east"),
    *("m", "cm", "mm", "km", "ft", "s", "ms", "min", "h", "utc", "m/s", "kn", "knots", "v", "mv", "1/m"),
    *("c", "°c", "degc", "deg c", "k", "degk", "f", "°f", "celsius", "bar", "dbar", "mbar", "hpa", "kpa"),
    *("psu", "ppt", "ppb", "ppm", "pss", "pss-78", "ntu", "fnu", "rfu", "g/kg", "mg/l", "ug/l", "µg/l"),
    *("mg/m3", "mg/m^3", "mg m-3", "ug/m3", "µs/cm", "us/cm", "ms/cm", "s/m", "mmol/l", "umol/l", "umol/kg"),
    *("%", "% sat", "%sat", "ph", "cells/ml", "yyyy-mm-dd", "hh:mm:ss", "psi", "μg/l"),
}  # fmt: skip


def is_number(cell: str) -> bool:
    """Return whether a cell is a plain decimal number.

    Examples
    --------
    >>> [is_number(cell) for cell in ("-1.5e3", "7", "nan", "1,5", "")]
    [True, True, False, False, False]
    """
    return _NUMBER.fullmatch(cell.strip()) is not None


def bare(name: str) -> str:
    """Return the name of a column without a unit in brackets.

    Examples
    --------
    >>> bare("Temp (°C)"), bare("chl")
    ('Temp', 'chl')
    """
    return _BRACKETS.sub("", name).strip() or name


def unit_of(name: str) -> str | None:
    """Return the unit in brackets behind a column's name; None if there is none.

    Examples
    --------
    >>> unit_of("Temp (°C)"), unit_of("DO [mg/L]"), unit_of("chl")
    ('°C', 'mg/L', None)
    """
    found = _BRACKETS.search(name)
    return found[1] or None if found else None


def units_row(rows: list[Row]) -> list[str] | None:
    """Return the units if the row below the column names holds them, one per column; None if it does not.

    No cell of such a row is a number, one at least is in brackets or a unit that is known, and numbers begin
    below it.

    Examples
    --------
    >>> units_row([(1, ["t", "lat", "v"]), (2, ["", "(deg)", "[mg/l]"]), (3, ["12:00", "47.1", "3"])])
    ['', 'deg', 'mg/l']
    >>> units_row([(1, ["x", "v"]), (2, ["NA", "NA"]), (3, ["1", "2"])]) is None
    True
    """
    if len(rows) < 3:
        return None
    cells = [cell.strip() for cell in rows[1][1]]
    below = [cell.strip() for cell in rows[2][1]]
    if any(map(is_number, cells)) or len(cells) > len(rows[0][1]):
        return None
    if not any(_is_unit(cell) and is_number(number) for cell, number in zip(cells, below, strict=False)):
        return None
    return [unit_of(cell) or cell for cell in cells] + [""] * (len(rows[0][1]) - len(cells))


def _is_unit(cell: str) -> bool:
    return _BRACKETS.fullmatch(cell) is not None or cell.lower() in _KNOWN
