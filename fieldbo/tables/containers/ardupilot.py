"""Dataflash logs of ArduPilot (.bin, or .log as text), read by pymavlink."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo.errors import UnknownNameError, counted
from fieldbo.tables.containers.filling import LAYER_OPTION, Filled, damage_named, library, write_number
from fieldbo.tables.containers.streams import Fixes, Stream, make_stream_table, no_fixes
from fieldbo.tables.table import Table

_KIND = "an ArduPilot log"
_FORM = "ArduPilot dataflash log"
_SENSORS = {"RFND": "Dist", "DPTH": "Depth"}
"""Kinds of messages of sensors, and the field that holds their reading."""

_GOOD = 4
"""The state (RFND.Stat) of a range finder that measures; else its distance is its last one, or a limit."""

_DIGITS = {"L": 7, "c": 2, "C": 2, "e": 2, "E": 2}
"""Decimals of a field by the letter of its format, which pymavlink multiplies by 1e-7 and 0.01."""

_LEAP_S = {
    datetime(2017, 1, 1): 18,
    datetime(2015, 7, 1): 17,
    datetime(2012, 7, 1): 16,
    datetime(2009, 1, 1): 15,
}
"""Seconds that GPS is ahead of UTC, since when."""

_GPS_EPOCH = datetime(1980, 1, 6)
_WEEK_MS = 7 * 86_400_000
_FIX_3D = 3
_STDERR, _SAID = 2, 100_000  # descriptor, and characters of it that are read
_UNITS = {"degheading": "deg", "deglatitude": "degrees_north", "deglongitude": "degrees_east", "°C": "degC"}


@dataclass
class _Messages:
    """Messages of one kind, while a log is read."""

    formats: list[str]
    fields: list[str]
    units: dict[str, str]
    rows: list[list[Any]] = field(default_factory=list)


def read(path: Path, layer: str | None = None) -> Table:
    """Return what one sensor logged, at the positions of the GPS, or else these positions.

    Parameters
    ----------
    path : Path
    layer : str, optional
        A kind of message, such as ``RFND``; by default the depth or distance of a sonar if there is one, and
        else ``GPS``.

    Raises
    ------
    InputError
        The log is damaged, has no fix of a GPS, or has several sensors and none is named.
    """
    wanted = None if layer is None else layer.upper()
    messages, kinds, notes = _parse(path, {"GPS", *([wanted.partition("[")[0]] if wanted else _SENSORS)})
    shift, fixes = _find_fixes(path, messages.get("GPS"))
    streams = dict(_make_streams(messages, shift))
    if "DPTH" in streams and "RFND" in streams and wanted is None:
        notes.append(
            f"RFND ({counted(len(streams.pop('RFND')), 'message')}) is left out, for DPTH is made of it"
        )
    if wanted is not None and wanted not in {"GPS", *streams}:
        raise UnknownNameError.of("kind of message", layer, kinds, where=f"{path} ({LAYER_OPTION})")
    return make_stream_table(path, _FORM, fixes, streams, wanted, notes)


def read_track(path: Path, layer: str | None = None) -> Table:
    """Return the positions of the GPS.

    Raises
    ------
    InputError
        As `read`.
    """
    return read(path, layer or "GPS")


def _parse(path: Path, wanted: set[str]) -> tuple[dict[str, _Messages], list[str], list[str]]:
    """Return the messages of a log that are wanted, the kinds that it has, and notes."""
    reader = library("pymavlink.DFReader", "logs", path, "logs of autopilots")
    messages: dict[str, _Messages] = {}
    said = StringIO()
    with (
        damage_named(path, _KIND, "download the log again; it must begin with its formats"),
        redirect_stdout(said),
        redirect_stderr(said),
        _compiled_stderr(said),
    ):
        is_text = path.read_bytes()[:4] == b"FMT,"
        log = (reader.DFReader_text if is_text else reader.DFReader_binary)(str(path))
        try:
            while (message := log.recv_match(type=set(wanted), strict=True)) is not None:
                _take(messages, message.get_type(), message)
            kinds = sorted(kind for kind, number in log.name_to_id.items() if log.counts[number])
        finally:
            log.close()
    damaged = re.search(
        "bad header|bad hdr|skipped|failed to parse|unknown msg", said.getvalue(), re.IGNORECASE
    )
    return messages, kinds, ["parts of the log are damaged, and left out"] if damaged else []


@contextmanager
def _compiled_stderr(said: StringIO) -> Iterator[None]:
    """Write to `said` what compiled code writes to standard error: a line per damaged byte of a log."""
    try:
        before = os.dup(_STDERR)
    except OSError:  # it is closed
        yield
        return
    with TemporaryFile() as file:
        os.dup2(file.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(before, _STDERR)
            os.close(before)
            file.seek(0)
            said.write(file.read(_SAID).decode(errors="replace"))


def _take(messages: dict[str, _Messages], kind: str, message: Any) -> None:
    names = message.get_fieldnames()
    if kind not in messages:
        formats, units = list(message.fmt.format), {}
        for name in names:
            unit = message.fmt.get_unit(name)
            if unit:
                units[name] = _UNITS.get(unit, unit)
        messages[kind] = _Messages(formats, list(names), units)
    found = messages[kind]
    if list(names) == found.fields:
        found.rows.append([getattr(message, name) for name in names])


def _find_fixes(path: Path, gps: _Messages | None) -> tuple[int, Fixes]:
    """Return the microseconds from a log's own clock to UTC, and the positions of the first receiver.

    Raises
    ------
    InputError
        No message of the GPS has a 3D fix and the time.
    """
    needed = {"TimeUS", "Status", "GMS", "GWk", "Lat", "Lng"}
    if gps is None or not needed <= set(gps.fields):
        raise no_fixes(path)
    column = {name: [row[i] for row in gps.rows] for i, name in enumerate(gps.fields)}
    receivers = column.get("I", [0] * len(gps.rows))
    fixed = [i for i, status in enumerate(column["Status"]) if status >= _FIX_3D and column["GWk"][i] > 0]
    counts = {
        receiver: sum(receivers[i] == receiver for i in fixed) for receiver in {receivers[i] for i in fixed}
    }
    if not counts:
        raise no_fixes(path)
    receiver = max(counts, key=lambda number: (counts[number], -number))
    rows = [i for i in fixed if receivers[i] == receiver]
    own: NDArray[np.int64] = np.array([column["TimeUS"][i] for i in rows], dtype=np.int64)
    utc = np.array([_micros_of_week(column["GWk"][i], column["GMS"][i]) for i in rows], dtype=np.int64)
    shift = int(np.median(utc - own))
    others = {
        name: _fill([column[name][i] for i in rows], gps, name)
        for name in gps.fields
        if name not in ("TimeUS", "I", "Lat", "Lng", "GMS", "GWk")
    }
    lat, lon = (np.array([round(column[name][i], 7) for i in rows], dtype=float) for name in ("Lat", "Lng"))
    return shift, Fixes("GPS", own + shift, lat, lon, others)


def _micros_of_week(week: int, milliseconds: int) -> int:
    """Return microseconds since 1970 in UTC from a week and the milliseconds in it of a GPS."""
    start = int(_GPS_EPOCH.replace(tzinfo=UTC).timestamp()) * 1000
    whole = start + week * _WEEK_MS + milliseconds
    at = datetime.fromtimestamp(whole / 1000.0, UTC).replace(tzinfo=None)
    leap = next((seconds for since, seconds in _LEAP_S.items() if at >= since), 14)
    return 1000 * (whole - 1000 * leap)


def _make_streams(messages: dict[str, _Messages], shift: int) -> Iterator[tuple[str, Stream]]:
    """Yield the kinds of messages other than those of the GPS; of a sensor's several instances, each one."""
    for kind, found in messages.items():
        if kind == "GPS" or "TimeUS" not in found.fields or not found.rows:
            continue
        instance = next((name for name in ("Instance", "Inst", "I") if name in found.fields), None)
        numbers = [0 if instance is None else row[found.fields.index(instance)] for row in found.rows]
        for number in sorted(set(numbers)):
            rows = [row for row, its in zip(found.rows, numbers, strict=True) if its == number]
            if kind == "RFND" and "Stat" in found.fields:
                state, distance = found.fields.index("Stat"), found.fields.index("Dist")
                rows = [row if row[state] == _GOOD else _without(row, distance) for row in rows]
            name = kind if len(set(numbers)) == 1 else f"{kind}[{number}]"
            yield name, _make_stream(kind, found, rows, shift)


def _without(row: list[Any], column: int) -> list[Any]:
    return [None if i == column else value for i, value in enumerate(row)]


def _make_stream(kind: str, found: _Messages, rows: list[list[Any]], shift: int) -> Stream:
    times = found.fields.index("TimeUS")
    micros: NDArray[np.int64] = np.array([row[times] for row in rows], dtype=np.int64) + shift
    renamed = {"Lat": "latitude", "Lng": "longitude", "Lon": "longitude"}
    columns = {}
    for i, name in enumerate(found.fields):
        if name != "TimeUS":
            role = renamed.get(name, "value" if _SENSORS.get(kind) == name else "")
            columns[renamed.get(name, name)] = _fill([row[i] for row in rows], found, name, role)
    return Stream(micros, columns, kind in _SENSORS)


def _fill(values: list[Any], found: _Messages, name: str, role: str = "") -> Filled:
    """Return a column of a field, its numbers without the rounding errors of their scale."""
    digits = _DIGITS.get(found.formats[found.fields.index(name)])
    cells = [_write(value if digits is None or value is None else round(value, digits)) for value in values]
    role = role or {"Status": "flag", "NSats": "count", "Instance": "count", "I": "count", "U": "flag"}.get(
        name, ""
    )
    return Filled(cells, found.units.get(name, ""), role)


def _write(value: Any) -> str:
    return write_number(value) if value is None or isinstance(value, (int, float)) else str(value).strip()
