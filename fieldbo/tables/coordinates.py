"""Latitudes and longitudes as loggers write them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError
from fieldbo.tables.measures import Measured, stated_unit
from fieldbo.tables.table import Table
from fieldbo.tables.units import Conversion, compass_of, conversion

Direction = Literal["latitude", "longitude"]
Bounds = tuple[float, float, float, float]
"""West, south, east and north, in degrees."""

_LETTERS: dict[Direction, str] = {"latitude": "NS", "longitude": "EW"}
_LIMIT: dict[Direction, float] = {"latitude": 90.0, "longitude": 180.0}
_POLAR = 85.0
"""Degrees of latitude beyond which a survey is so rare that its columns are more likely exchanged."""

_TEXT = re.compile(
    r"""(?P<before>[NSEW])?\s*(?P<sign>[-+−])?\s*(?P<degrees>\d+(\.\d*)?)\s*
    ((?P<mark>[°ºd:\s])\s*(?P<minutes>\d+(\.\d*)?)\s*
    (['′’:m\s]\s*(?P<seconds>\d+(\.\d*)?)?)?)?
    \s*[°º"″”'′’]{0,2}\s*(?P<after>[NSEW])?""",
    re.VERBOSE | re.IGNORECASE,
)
_LONGEST = 80  # characters: longer cells are no coordinates, and slow to match


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
    text = cell.strip()
    found = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
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
    """Return the coordinates (n,) of a column in decimal degrees, as `read_degrees`, without its notes."""
    return read_degrees(log, name, direction).numbers


def read_degrees(log: Table, name: str, direction: Direction) -> Measured:
    """Return the coordinates (n,) of a column in decimal degrees; NaN where it is missing.

    North and east are positive. A letter N, S, E or W may stand in the cell, in the column to the right, or
    in the header: "Longitude (deg W)", "longitude_w". NMEA's ddmm.mmmm is converted if a letter is given or
    the header says so, and so are radians and gons.

    Raises
    ------
    InputError
        Most cells are no coordinates, the header states a unit that is not known or none of angles, a letter
        belongs to the other direction or contradicts a sign, or the column holds ddmm.mmmm and nothing says
        so.

    Examples
    --------
    >>> from pathlib import Path
    >>> cells = {"Longitude (deg W)": ("88.5", "88.51")}
    >>> log = Table(Path("log.csv"), tuple(cells), {"Longitude (deg W)": "deg W"}, cells, np.array([2, 3]))
    >>> read_degrees(log, "Longitude (deg W)", "longitude").numbers.tolist()
    [-88.5, -88.51]
    """
    header = _read_header(log, name, direction)
    if header.change is not None:
        return _convert(log, name, direction, header)
    parsed = [parse(cell) for cell in log.cells[name]]
    _check_coordinates(log, name, direction, parsed)
    letters = _find_letters_beside(log, name, direction)
    nmea = header.in_minutes or _is_nmea(log, name, direction, parsed)
    degrees = np.full(len(log), np.nan)
    for row, found in enumerate(parsed):
        if found is None or found.degrees in log.missing or -found.degrees in log.missing:
            continue
        letter = found.letter or letters[row]
        _check_letter(log, row, name, direction, found, letter, header)
        letter = letter or header.letter
        if nmea and found.plain and not letter and not header.in_minutes:
            raise InputError(
                f"{log.cells[name][row]!r} looks like degrees and minutes (ddmm.mmmm, as in NMEA)",
                expected=f"decimal degrees, or {' or '.join(_LETTERS[direction])} behind the number or in "
                "the column to the right",
                where=log.place(row, name),
                fix="convert them: degrees = dd + mm.mmmm / 60",
            )
        in_minutes = nmea and found.plain
        whole = found.degrees // 100 + found.degrees % 100 / 60 if in_minutes else found.degrees
        degrees[row] = -whole if found.sign == "-" or letter in ("S", "W") else whole
    return Measured(degrees, _note_letter(name, direction, header) if header.letter in ("S", "W") else ())


class _Header(NamedTuple):
    """What the header says of a column of coordinates."""

    letter: str = ""
    """N, S, E or W; empty if it names none."""
    change: Conversion | None = None
    """How its unit becomes degrees; None for degrees."""
    in_minutes: bool = False
    """Whether it says ddmm.mmmm."""
    unit: str = ""


_IN_MINUTES = re.compile(r"d{2,3}\s*°?\s*mm[.,]?m*", re.IGNORECASE)
_FORMAT = re.compile(
    r"""[-+±\s°'"′″.,:/dmsnew]*|.*\b(decimal|nmea|dms|ddm|negative|positive)\b.*|.*\bdeg\w*\W+min.*|"""
    r"(north|south|east|west)(ern|ing)?",
    re.IGNORECASE,
)
"""What stands in brackets behind a coordinate without being a unit."""
_SIGN = re.compile(
    r"(?<![^\W\d_])(?P<plus>positiv\w*|plus)(?![^\W_])|(?<![^\W\d_])(?P<minus>negativ\w*|minus)(?![^\W_])"
    r"|(?P<mark>[-+])(?=ve\b)|(?<![\w\s])(?<!\+/)\s*(?P<before>[-+])(?=\s*=?\s*[nsew]\b)|(?<=\s)(?P<close>[-+])(?=[nsew]\b)"
    r"|(?<=\b[nsew])\s*=?\s*(?P<after>[-+])(?!\w)",
    re.IGNORECASE,
)
"""A sign that a header gives to a side: W positive, (+E), (W-); none is the hyphen of Lon-W."""
_SIDE = re.compile(r"(?<![^\W_])(?:[nsew]|north|south|east|west)(?![^\W_])", re.IGNORECASE)
_OPPOSITE = {"N": "S", "S": "N", "E": "W", "W": "E"}
_SIDES: dict[Direction, dict[str, str]] = {
    "latitude": {
        "n": "N",
        "north": "N",
        "nord": "N",
        "s": "S",
        "south": "S",
        "süd": "S",
        "sud": "S",
        "sur": "S",
    },
    "longitude": {"e": "E", "east": "E", "ost": "E", "w": "W", "west": "W", "ouest": "W", "oeste": "W"},
}


def _read_header(log: Table, name: str, direction: Direction) -> _Header:
    """Return what the header says of a column of coordinates.

    Raises
    ------
    InputError
        It states a unit that is not known, or none of angles.
    """
    stated = log.units.get(name) or ""
    in_minutes = _IN_MINUTES.search(f"{name} {stated}") is not None
    letter = _find_side(name, stated, direction)
    is_format = _FORMAT.fullmatch(stated) and all(conversion(stated, unit) is None for unit in ("deg", "m"))
    unit = None if is_format else stated_unit(log, name)
    if unit is None or in_minutes or conversion(unit, "deg") == Conversion(Fraction(1)):
        return _Header(letter, None, in_minutes)
    change = conversion(unit, "deg")
    if change is not None:
        return _Header(letter, change, unit=unit)
    is_length = conversion(unit, "m") is not None
    raise InputError(
        f"the unit {unit!r} of column {name} is {'a length' if is_length else 'not known'}",
        expected=f"a {direction} in degrees",
        where=f"{log.path}, column {name}",
        fix="name columns in metres with --x and --y"
        if is_length
        else f"write the unit into the column's name, such as {direction.capitalize()} (deg)",
    )


def _find_side(name: str, stated: str, direction: Direction) -> str:
    """Return the letter of the side that a header names; empty if it names none, or both."""
    header = name if stated in name else f"{name} {stated}"
    signs = list(_SIGN.finditer(header))
    if signs:
        return _find_positive(header, signs)
    apart = re.sub(r"(?<=[a-zäöü])(?=[A-Z])", " ", f"{name} {stated}")
    # The s at the end of "lats" is none, but that of "LatS" is.
    apart = re.sub(
        r"\b(lon|long|lng|longitude|lat|latitude)(?=([new]|north|south|east|west)\b)", r"\1 ", apart.lower()
    )
    sides = {_SIDES[direction].get(word, "") for word in re.split(r"[^a-zäöüß]+", apart)}
    sides |= {compass_of(stated)} & set(_LETTERS[direction])
    sides.discard("")
    return sides.pop() if len(sides) == 1 else ""


def _find_positive(header: str, signs: list[re.Match[str]]) -> str:
    """Return the letter of the side that a header calls positive; empty if it does not say.

    A sign belongs to the nearest side.
    """
    sides = list(_SIDE.finditer(header))
    positive = set()
    for sign in signs:
        if not sides:
            break
        nearest = min(sides, key=lambda side: max(side.start() - sign.end(), sign.start() - side.end()))
        letter = nearest[0][0].upper()
        negative = sign["minus"] is not None or "-" in sign[0]
        positive.add(_OPPOSITE[letter] if negative else letter)
    return positive.pop() if len(positive) == 1 else ""


def _note_letter(name: str, direction: Direction, header: _Header) -> tuple[str, ...]:
    side = {"W": "west", "S": "south"}[header.letter]
    return (f"{name} counts {side} as positive: {direction}s are its numbers with a minus",)


def _convert(log: Table, name: str, direction: Direction, header: _Header) -> Measured:
    """Return the coordinates (n,) of a column in another unit than degrees."""
    assert header.change is not None
    numbers = log.numbers(name)
    known = np.flatnonzero(np.isfinite(numbers))
    degrees = header.change.of(log.cells[name], numbers)
    most = 90.0 if direction == "latitude" else 360.0
    if not len(known) or np.mean(np.abs(degrees[known]) > 1.001 * most) > 0.5:
        row = int(known[np.argmax(np.abs(degrees[known]))]) if len(known) else 0
        raise InputError(
            f"{log.cells[name][row]!r} {header.unit} is not a {direction}",
            expected=f"a {direction} in {header.unit}, as the header says",
            where=log.place(row, name),
            fix="correct the unit in the header, or the column",
        )
    notes = (f"{name} is converted from {header.unit} to degrees",)
    if header.letter in ("S", "W"):
        negative = np.flatnonzero(degrees < 0)
        if len(negative):
            raise _sign_and_side(log, int(negative[0]), name, header)
        return Measured(-degrees, (*notes, *_note_letter(name, direction, header)))
    return Measured(degrees, notes)


def _check_coordinates(log: Table, name: str, direction: Direction, parsed: list[Coordinate | None]) -> None:
    """Raise an `InputError` if most cells are no coordinates."""
    present = [i for i, missing in enumerate(log.is_missing(name)) if not missing]
    wrong = [i for i in present if parsed[i] is None]
    if present and len(wrong) <= len(present) / 2:
        return
    row = wrong[0] if wrong else 0
    raise InputError(
        f"{log.cells[name][row]!r} is not a {direction}",
        expected="decimal degrees such as -47.31, or degrees and minutes such as 47°18.6'N",
        where=log.place(row, name),
        fix=f"name the column of the {direction}",
    )


def _check_letter(
    log: Table, row: int, name: str, direction: Direction, found: Coordinate, letter: str, header: _Header
) -> None:
    """Raise an `InputError` if the letter of a cell contradicts its column, its sign or the header."""
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
    if header.letter in ("S", "W"):
        if letter and letter != header.letter:
            raise InputError(
                f"{log.cells[name][row]!r} says {letter}, the header {header.letter}",
                expected="a header that fits its cells",
                where=log.place(row, name),
                fix="correct the column's name, or the cells",
            )
        if found.sign == "-":
            raise _sign_and_side(log, row, name, header)


def _sign_and_side(log: Table, row: int, name: str, header: _Header) -> InputError:
    return InputError(
        f"{log.cells[name][row]!r} is negative, and the header says {header.letter}: it may be either side",
        expected="a sign, or a header that names the side",
        where=log.place(row, name),
        fix=f"take {header.letter} out of the column's name if the sign is right, or remove the signs",
    )


def _find_letters_beside(log: Table, name: str, direction: Direction) -> tuple[str, ...]:
    """Return the letters N and S, or E and W, of the column to the right; empty if it holds others.

    Raises
    ------
    InputError
        Most of its cells are such letters, but not all: leaving them out would change sides.
    """
    after = log.names.index(name) + 1
    if after == len(log.names):
        return ("",) * len(log)
    cells = tuple(cell.upper() for cell in log.cells[log.names[after]])
    letters = [cell in _LETTERS[direction] for cell in cells if cell]
    if not letters or 2 * sum(letters) <= len(letters):
        return ("",) * len(log)
    if not all(letters):
        row = next(row for row, cell in enumerate(cells) if cell and cell not in _LETTERS[direction])
        raise InputError(
            f"{log.cells[log.names[after]][row]!r} stands beside a {direction}",
            expected=" or ".join(_LETTERS[direction]),
            where=log.place(row, log.names[after]),
            fix="delete the row if it is no reading",
        )
    return cells


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
    >>> swapped(np.array([-89.4]), np.array([43.1]))  # doctest: +ELLIPSIS
    'latitude and longitude seem to be exchanged: as they are, the readings lie at -89.4 degrees, ...'
    >>> swapped(np.array([8.5]), np.array([47.3]), (8.4, 47.2, 8.6, 47.4))
    'latitude and longitude seem to be exchanged: only so do the readings lie where they should'
    """
    if not len(lat):
        return None
    said = "latitude and longitude seem to be exchanged"
    if np.mean(np.abs(lat) > 90) > 0.5 and np.mean(np.abs(lon) <= 90) > 0.5:
        return f"{said}: latitudes reach {lat[np.argmax(np.abs(lat))]:.4g}"
    if bounds is None:
        polar = np.abs(lat) > _POLAR
        if np.mean(polar) > 0.5 and np.mean(np.abs(lon) <= 90) > 0.5:
            at = f"the readings lie at {np.median(lat[polar]):.4g} degrees"
            return f"{said}: as they are, {at}, near a pole, where a survey needs its outline"
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
