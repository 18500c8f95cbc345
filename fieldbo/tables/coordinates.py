"""Latitudes and longitudes as loggers write them."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError
from fieldbo.tables.table import Table

Direction = Literal["latitude", "longitude"]
Bounds = tuple[float, float, float, float]
"""West, south, east and north, in degrees."""

_LETTERS: dict[Direction, str] = {"latitude": "NS", "longitude": "EW"}
_LIMIT: dict[Direction, float] = {"latitude": 90.0, "longitude": 180.0}
_TEXT = re.compile(
    r"""(?P<before>[NSEW])?\s*(?P<sign>[-+−])?\s*(?P<degrees>\d+(\.\d*)?)\s*
    ((?P<mark>[°ºd:\s])\s*(?P<minutes>\d+(\.\d*)?)\s*
    (['′’:m\s]\s*(?P<seconds>\d+(\.\d*)?)?)?)?
    \s*[°º"″”'′’]{0,2}\s*(?P<after>[NSEW])?""",
    re.VERBOSE | re.IGNORECASE,
)


class Coordinate(NamedTuple):
    """A cell that holds a coordinate: `degrees` without sign, and what else it states."""

    degrees: float
    sign: str
    letter: str
    plain: bool
    """Whether it is a single number, which may be degrees or NMEA's ddmm.mmmm."""


def parse(cell: str) -> Coordinate | None:
    """Return the coordinate in a cell; None if it holds none.

    Examples
    --------
    >>> parse("47°18.6'N")
    Coordinate(degrees=47.31, sign='', letter='N', plain=False)
    >>> round(parse("W 8 34 48").degrees, 6), parse("-8.58").sign, parse("no fix")
    (8.58, '-', None)
    """
    found = _TEXT.fullmatch(cell.strip())
    if found is None:
        return None
    degrees, minutes, seconds = (float(found[part] or 0) for part in ("degrees", "minutes", "seconds"))
    before, after = (found["before"] or "").upper(), (found["after"] or "").upper()
    if minutes >= 60 or seconds >= 60 or (before and after) or (found["minutes"] and degrees % 1):
        return None
    sign = "-" if found["sign"] in ("-", "−") else "+" if found["sign"] else ""
    whole = degrees + minutes / 60 + seconds / 3600
    return Coordinate(whole, sign, before or after, found["minutes"] is None)


def degrees_of(log: Table, name: str, direction: Direction) -> Array:
    """Return the coordinates (n,) of a column in decimal degrees; NaN where it is missing.

    North and east are positive. A letter N, S, E or W may stand in the cell or in the column to the right.
    NMEA's ddmm.mmmm is converted if a letter is given.

    Raises
    ------
    InputError
        Most cells are no coordinates, a letter belongs to the other direction or contradicts a sign, or the
        column holds ddmm.mmmm without letters.
    """
    parsed = [parse(cell) for cell in log.cells[name]]
    present = [i for i, missing in enumerate(log.is_missing(name)) if not missing]
    wrong = [i for i in present if parsed[i] is None]
    if not present or len(wrong) > len(present) / 2:
        row = wrong[0] if wrong else 0
        raise InputError(
            f"{log.cells[name][row]!r} is not a {direction}",
            expected="decimal degrees such as -47.31, or degrees and minutes such as 47°18.6'N",
            where=log.place(row, name),
            fix=f"name the column of the {direction}",
        )
    letters = _find_letters_beside(log, name, direction)
    nmea = _is_nmea(log, name, direction, parsed)
    degrees = np.full(len(log), np.nan)
    for row, found in enumerate(parsed):
        if found is None or found.degrees in log.missing or -found.degrees in log.missing:
            continue
        letter = found.letter or letters[row]
        if letter and letter not in _LETTERS[direction]:
            raise InputError(
                f"{log.cells[name][row]!r} is not a {direction}",
                expected=f"{' or '.join(_LETTERS[direction])}, for a {direction}",
                where=log.place(row, name),
                fix="exchange the columns of latitude and longitude",
            )
        if letter and found.sign == "-":
            raise InputError(
                f"{log.cells[name][row]!r} has a sign and {letter}",
                expected="a sign, or a letter for north, south, east or west",
                where=log.place(row, name),
                fix="remove the signs, or the letters",
            )
        if nmea and not letter:
            raise InputError(
                f"{log.cells[name][row]!r} looks like degrees and minutes (ddmm.mmmm, as in NMEA)",
                expected=f"decimal degrees, or {' or '.join(_LETTERS[direction])} behind the number or in "
                "the column to the right",
                where=log.place(row, name),
                fix="convert them: degrees = dd + mm.mmmm / 60",
            )
        whole = found.degrees // 100 + found.degrees % 100 / 60 if nmea else found.degrees
        degrees[row] = -whole if found.sign == "-" or letter in ("S", "W") else whole
    return degrees


def _find_letters_beside(log: Table, name: str, direction: Direction) -> tuple[str, ...]:
    """Return the letters N and S, or E and W, of the column to the right; empty if it holds others."""
    after = log.names.index(name) + 1
    if after < len(log.names):
        cells = tuple(cell.upper() for cell in log.cells[log.names[after]])
        if any(cells) and all(cell in ("", *_LETTERS[direction]) for cell in cells):
            return cells
    return ("",) * len(log)


def _is_nmea(log: Table, name: str, direction: Direction, parsed: list[Coordinate | None]) -> bool:
    """Return whether the numbers of a column are ddmm.mmmm: too large for degrees, or padded with zeros."""
    found = [(cell, c) for cell, c in zip(log.cells[name], parsed, strict=True) if c is not None]
    if not all(c.plain and c.degrees % 100 < 60 and c.degrees // 100 <= _LIMIT[direction] for _, c in found):
        return False
    width = 4 if direction == "latitude" else 5
    padded = re.compile(rf"[-+]?[NSEW]?\s*\d{{{width}}}\.\d+\s*[NSEW]?", re.IGNORECASE)
    large = [c.degrees > 2 * _LIMIT[direction] for _, c in found]  # longitudes reach 360
    return all(padded.fullmatch(cell) for cell, _ in found) or float(np.mean(large)) > 0.5


def swapped(lat: Array, lon: Array, bounds: Bounds | None = None) -> str | None:
    """Return the doubt that latitudes and longitudes (n,) are exchanged; None if there is none.

    Parameters
    ----------
    lat, lon : (n,) arrays
        Degrees.
    bounds : (west, south, east, north), optional
        Where the survey should lie, in degrees.

    Examples
    --------
    >>> swapped(np.array([147.2, 147.3]), np.array([-42.9, -42.8]))
    'latitude and longitude seem to be exchanged: latitudes reach 147.3'
    >>> swapped(np.array([8.5]), np.array([47.3]), (8.4, 47.2, 8.6, 47.4))
    'latitude and longitude seem to be exchanged: only so do the readings lie where they should'
    """
    if not len(lat):
        return None
    said = "latitude and longitude seem to be exchanged"
    if np.mean(np.abs(lat) > 90) > 0.5 and np.mean(np.abs(lon) <= 90) > 0.5:
        return f"{said}: latitudes reach {lat[np.argmax(np.abs(lat))]:.4g}"
    if bounds is None:
        return None
    if np.mean(_within(lat, lon, bounds)) < 0.1 and np.mean(_within(lon, lat, bounds)) > 0.5:
        return f"{said}: only so do the readings lie where they should"
    return None


def _within(lat: Array, lon: Array, bounds: Bounds) -> Mask:
    west, south, east, north = bounds
    pad_x, pad_y = 0.1 * (east - west), 0.1 * (north - south)
    across = (lon - west + pad_x) % 360.0 <= (east - west) % 360.0 + 2 * pad_x
    inside: Mask = across & (lat >= south - pad_y) & (lat <= north + pad_y)
    return inside


def unwrapped(lon: Array) -> tuple[Array, list[str]]:
    """Return longitudes (n,) without a jump of 360 degrees, and notes on what was done.

    They lie between -180 and 180, except for a survey across the antimeridian: that goes on beyond 180.

    Examples
    --------
    >>> unwrapped(np.array([351.5, 352.0]))[0].tolist()
    [-8.5, -8.0]
    >>> unwrapped(np.array([179.9, -179.9]))[0].round(1).tolist()
    [179.9, 180.1]
    """
    notes: list[str] = []
    around = np.where(np.abs(lon) > 180.0, (lon + 180.0) % 360.0 - 180.0, lon)
    if (lon > 180.0).any():
        notes.append("longitudes above 180 are west of Greenwich")
    beyond = np.where(around < 0, around + 360.0, around)
    if np.ptp(around) > 180.0 > np.ptp(beyond):
        return beyond, ["the survey crosses the antimeridian; its longitudes go on beyond 180"]
    return around, notes
