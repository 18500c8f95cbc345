"""What the columns of a table hold, for somebody who has to choose one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import is_depth
from fieldbo.errors import InputError, counted, printable
from fieldbo.tables.clocks import calendar_columns
from fieldbo.tables.coordinates import Direction, degrees_of, parse
from fieldbo.tables.table import Table
from fieldbo.tables.times import Times, times_of
from fieldbo.tables.units import bare, short_names
from fieldbo.tables.zones import is_in_calendar

Kind = Literal[
    "latitude",
    "longitude",
    "time",
    "depth",
    "easting",
    "northing",
    "value",
    "count",
    "constant",
    "flag",
    "noise",
    "logger",
    "text",
    "empty",
]

_LATITUDE = frozenset(["lat", "latitude", "lats", "breite", "breitengrad"])
_LONGITUDE = frozenset(["lon", "long", "lng", "longitude", "lons", "länge", "laenge", "längengrad"])
_EASTING = frozenset(["x", "east", "easting", "utmx", "utme", "rechtswert", "ostwert"])
_NORTHING = frozenset(["y", "north", "northing", "utmy", "utmn", "hochwert", "nordwert"])
_TIME = frozenset(
    {*("time", "date", "datetime", "timestamp", "utc", "gmt", "epoch", "zeit", "datum", "uhrzeit")}
    | {*("julian", "datenum", "mjd", "doy", "tow")}
)
_COUNT = frozenset(
    {*("id", "index", "idx", "no", "nr", "num", "record", "row", "sample", "scan", "seq", "station")}
    | {*("rn", "obs", "rec", "recno", "number", "ensemble", "point")}
)
_FLAG = frozenset(
    {"flag", "flags", "qc", "qf", "qa", "quality", "status", "remark", "grade", "error", "errors"}
)
_NOISE = frozenset({"sd", "std", "stdev", "uncertainty", "noise", "stderr", "sigma", "deviation"})
_LOGGER = frozenset(
    {
        *(
            "batt",
            "battery",
            "batv",
            "battv",
            "cable",
            "pwr",
            "supply",
            "ptemp",
            "panel",
            "wiper",
            "memory",
            "rssi",
        )
    }
    | {
        *(
            "hdop",
            "vdop",
            "pdop",
            "satellites",
            "sats",
            "nsat",
            "heading",
            "course",
            "cog",
            "sog",
            "roll",
            "pitch",
        )
    }
    | {*("yaw", "logger", "internal", "firmware", "serial")}
)
"""Words of columns in which a logger or a boat tells of itself."""

_MOST_FLAGS = 12
"""A column of flags has no more different ones."""


@dataclass(frozen=True)
class Column:
    """A column of a log.

    Attributes
    ----------
    name : str
    unit : str or None
    kind : str
        What it holds as the file's form says, or else seems to hold, from its name and its numbers;
        ``"value"`` is a candidate for a map, ``"logger"`` tells of the logger or the boat itself.
    count, missing : int
        Cells with and without a value.
    low, high : str
        The least and the largest value, of positions in decimal degrees; empty for text.
    """

    name: str
    unit: str | None
    kind: Kind
    count: int
    missing: int
    low: str = ""
    high: str = ""


def describe_columns(log: Table) -> list[Column]:
    """Return what each column of a log holds, in order.

    Examples
    --------
    >>> from fieldbo.tables.table import Table
    >>> cells = {"Lat": ("47.1", "47.2"), "Time": ("12:00:00", "12:00:01"), "DO (mg/l)": ("9.1", "")}
    >>> log = Table(None, tuple(cells), {"DO (mg/l)": "mg/l"}, cells, np.array([2, 3]))
    >>> [(column.kind, column.low, column.high) for column in describe_columns(log)]
    [('latitude', '47.1', '47.2'), ('time', '12:00:00', '12:00:01'), ('value', '9.1', '9.1')]
    """
    calendar = set(calendar_columns(log).values())
    return [_describe(log, name, in_date=name in calendar) for name in log.names]


def _describe(log: Table, name: str, *, in_date: bool = False) -> Column:
    unit, missing, role = log.units.get(name), int(log.is_missing(name).sum()), log.roles.get(name)
    numbers, present = log.numbers(name), len(log) - missing
    finite = numbers[np.isfinite(numbers)]
    words, is_numeric = _split_words(name), len(finite) > 0.5 * present
    if not present:
        return Column(name, unit, "empty", 0, missing)
    if in_date:
        return Column(name, unit, "time", len(finite), missing, *_range(finite))
    times = _parse_times(log, name, role, bool(words & _TIME), is_numeric)
    if times is not None:
        if len(finite) and not times.absolute:
            ends = _range(finite)
        else:
            ends = _clock(np.nanmin(times.seconds), times), _clock(np.nanmax(times.seconds), times)
        return Column(name, unit, "time", int(np.isfinite(times.seconds).sum()), missing, *ends)
    kind: Kind | None = role if role in get_args(Kind) else None  # type: ignore[assignment]
    if is_numeric:
        kind = kind or _guess_kind(name, words, finite)
        ends = _range(finite)
        if kind in ("latitude", "longitude"):
            ends = _range_of_degrees(log, name, kind) or ends
        return Column(name, unit, kind, len(finite), len(log) - len(finite), *ends)
    coordinates = sum(parse(cell) is not None for cell in log.cells[name])
    if (
        kind in ("latitude", "longitude") or words & (_LATITUDE | _LONGITUDE)
    ) and coordinates > 0.5 * present:
        side: Direction = "latitude" if kind == "latitude" or words & _LATITUDE else "longitude"
        degrees = _range_of_degrees(log, name, side) or ("", "")
        return Column(name, unit, side, coordinates, len(log) - coordinates, *degrees)
    is_flag = kind == "flag" or (words & _FLAG and len(set(log.cells[name])) <= _MOST_FLAGS)
    return Column(name, unit, "flag" if is_flag else "text", present, missing)


def _parse_times(log: Table, name: str, role: str | None, named: bool, is_numeric: bool) -> Times | None:
    """Return the times of a column; numbers are times only if its name or its role says so."""
    if role not in (None, "time") or not (named or role or not is_numeric):
        return None
    numbers, unit = named or role == "time", log.units.get(name, "")
    return times_of(log.cells[name], numbers=numbers, name=name, unit=unit, comments=log.comments)


def _guess_kind(name: str, words: frozenset[str], numbers: Array) -> Kind:
    largest, is_whole = float(np.abs(numbers).max()), bool((numbers % 1 == 0).all())
    guesses: tuple[tuple[Kind, bool], ...] = (
        ("latitude", bool(words & _LATITUDE) and (largest <= 90 or largest > 360)),  # above 360: ddmm.mmmm
        ("longitude", bool(words & _LONGITUDE)),
        ("depth", is_depth(name)),
        ("easting", bool(words & _EASTING)),
        ("northing", bool(words & _NORTHING)),
        ("constant", len(numbers) > 1 and bool(np.ptp(numbers) == 0)),
        ("count", bool(words & _COUNT or "#" in name) and is_whole),
        ("flag", bool(words & _FLAG) and is_whole and len(np.unique(numbers)) <= _MOST_FLAGS),
        ("noise", bool(words & _NOISE) and bool((numbers >= 0).all())),
        ("logger", bool(words & _LOGGER)),
    )
    return next((kind for kind, holds in guesses if holds), "value")


def _split_words(name: str) -> frozenset[str]:
    """Return the words of a column's name: of "GPS_Latitude" or "gpsLatitude", "gps" and "latitude"."""
    apart = re.sub(r"(?<=[a-zäöü])(?=[A-Z])", " ", bare(name))
    return frozenset(re.split(r"[^a-zäöüß]+", apart.lower()))


def direction_of(name: str) -> Direction | None:
    """Return whether a column is named like latitudes or like longitudes; None if like neither, or both.

    Examples
    --------
    >>> direction_of("GPS_Latitude"), direction_of("gpsLon (deg)"), direction_of("depth")
    ('latitude', 'longitude', None)
    """
    words = _split_words(name)
    if bool(words & _LATITUDE) == bool(words & _LONGITUDE):
        return None
    return "latitude" if words & _LATITUDE else "longitude"


def _range(numbers: Array) -> tuple[str, str]:
    return f"{numbers.min():.7g}", f"{numbers.max():.7g}"


def _range_of_degrees(log: Table, name: str, direction: Direction) -> tuple[str, str] | None:
    """Return the ends of a column of positions in decimal degrees; None if they can't be read."""
    try:
        degrees = degrees_of(log, name, direction)
    except InputError:
        return None
    degrees = degrees[np.isfinite(degrees)]
    return _range(degrees) if len(degrees) else None


def _clock(seconds: float, times: Times) -> str:
    if not is_in_calendar(float(seconds)):
        return f"{seconds:.7g}"
    at = datetime.fromtimestamp(float(seconds), UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}" if times.absolute else f"{at:%H:%M:%S}"


def table_of(columns: Sequence[Column]) -> list[str]:
    r"""Return the columns as the lines of an aligned table.

    Examples
    --------
    >>> print(*table_of([Column("temp", "degC", "value", 90, 2, "4.1", "19")]), sep="\n")
    column  unit  holds  values  missing  least  largest
    temp    degC  value      90        2    4.1       19
    """
    rows = [("column", "unit", "holds", "values", "missing", "least", "largest")]
    rows += [
        (printable(c.name), printable(c.unit or ""), c.kind, str(c.count), str(c.missing), c.low, c.high)
        for c in columns
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    forms = [f"{side}{width}" for side, width in zip("<<<>>>>", widths, strict=True)]
    return ["  ".join(map(format, row, forms)).rstrip() for row in rows]


def degrees_in(columns: Sequence[Column]) -> tuple[str, str] | None:
    """Return the columns of latitudes and longitudes; None unless there is one of each."""
    lat, lon = ([c.name for c in columns if c.kind == kind] for kind in ("latitude", "longitude"))
    return (lat[0], lon[0]) if len(lat) == len(lon) == 1 else None


def option_text(log: Table, name: str) -> str:
    """Return a column as it is typed in a command: by its name without a unit, if that is unique.

    Examples
    --------
    >>> cells = {"Temp, °C (LGR S/N: 7, SEN S/N: 7)": ("9",), "DO mg/L": ("1",), "DO RFU": ("2",)}
    >>> log = Table(None, tuple(cells), {}, cells, np.array([2]))
    >>> [option_text(log, name) for name in log.names]
    ['Temp', "'DO mg/L'", "'DO RFU'"]
    """
    shorter = bare(name)
    alike = [each for each in log.names if shorter.lower() in short_names(each)]
    return shlex.quote(shorter if alike == [name] else name)


def no_value_chosen(log: Table, *, placed: bool = True) -> InputError:
    """Return the error for a command that needs ``--value``: it names the columns to choose from.

    Its fix also names the columns of the positions, unless the user has `placed` the log.
    """
    columns = describe_columns(log)
    names = [column.name for column in columns if column.kind == "value"]
    names = names or [column.name for column in columns if column.kind in ("noise", "logger", "count")]
    problem = f"the column of the value is missing: {log.path.name} has {counted(len(names), 'candidate')}"
    if not names:
        return InputError(problem, expected="a column of numbers that differ", where="--value")
    options = [("--value", names[0])]
    degrees = None if placed else degrees_in(columns)
    if degrees is not None:
        options = [*zip(("--lat", "--lon"), degrees, strict=True), *options]
    example = " ".join(f"{option} {option_text(log, name)}" for option, name in options)
    fix = f"choose one with --value COL, such as {example}"
    return InputError(problem, expected=", ".join(names), where="--value", fix=fix)
