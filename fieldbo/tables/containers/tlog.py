"""Logs that a ground station keeps of MAVLink (.tlog): each packet behind the time at which it came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    POSITION_UNITS,
    Filled,
    choose,
    damage_named,
    library,
    write_number,
)
from fieldbo.tables.containers.streams import Fixes, Stream, make_stream_table, no_fixes
from fieldbo.tables.table import Table

_KIND = "a MAVLink log (.tlog)"
_FORM = "MAVLink log"
_HEADERS = {0xFE: (6, 2), 0xFD: (10, 2)}
"""Bytes of a packet before and after its content, by the mark at its beginning."""

_SIGNATURE, _SIGNED = 13, 1
_FIX_3D = 3
_SCALE = 10_000_000  # of latitudes and longitudes
_SINCE_1970 = 1_000_000_000_000_000  # microseconds: 2001; a smaller one counts from the start of a vehicle
_SENSORS = {"WATER_DEPTH": "distance", "RANGEFINDER": "distance", "DISTANCE_SENSOR": "current_distance"}
"""Kinds of messages of sensors, and the field that holds their reading; a later one is made of the same."""

_INVALID = 1  # quality of a DISTANCE_SENSOR's signal; 0 is unknown
_NAMED = ("NAMED_VALUE_FLOAT", "NAMED_VALUE_INT")
_TEXTS = frozenset(["name", "type", "id", "orientation", "covariance", "healthy", "signal_quality"])
_UNITS = {"degE7": "deg", "degC": "degC", "cdegC": "0.01 degC"}


class _Packet(NamedTuple):
    """A message with the time of its arrival, in microseconds since 1970, and the vehicle that sent it."""

    micros: int
    system: int
    message: Any


def read(path: Path, layer: str | None = None) -> Table:
    """Return what one sensor sent, at the positions of the GPS, or else these positions.

    Parameters
    ----------
    path : Path
    layer : str, optional
        A kind of message, such as ``RANGEFINDER``, or the name of a value that the vehicle names itself; of
        several vehicles, behind the number of one: ``2:RANGEFINDER`` or ``2``.

    Raises
    ------
    InputError
        The log is damaged, has no fix of a GPS, or has several sensors or vehicles and none is named.
    """
    with damage_named(path, _KIND, "copy it again from the ground station"):
        packets, bad = _parse(path)
    if bad > len(packets):
        raise InputError(
            f"{counted(bad, 'packet')} of {bad + len(packets)} are damaged",
            expected="a whole .tlog file",
            where=str(path),
            fix="copy it again from the ground station",
        )
    wanted = re.fullmatch(r"(?:(\d+)(?::|$))?(.*)", layer or "")
    assert wanted is not None
    system = _choose_vehicle(path, packets, wanted[1])
    packets = [packet for packet in packets if packet.system == system]
    shift, notes = _find_shift(packets)
    if bad:
        notes.append(f"{counted(bad, 'packet')} with a wrong checksum or of an unknown kind left out")
    fixes = _find_fixes(path, packets, shift)
    kind = wanted[2].upper() or None
    streams = dict(_make_streams(packets, shift, kind))
    if kind is None:
        present = [name for name in _SENSORS if name in streams]
        for name in present[1:]:
            notes.append(
                f"{name} ({counted(len(streams.pop(name)), 'message')}) is left out beside {present[0]}"
            )
    elif kind not in {fixes.name, *streams}:
        kinds = sorted({packet.message.get_type() for packet in packets})
        raise UnknownNameError.of("kind of message", kind, kinds, where=f"{path} ({LAYER_OPTION})")
    return make_stream_table(path, _FORM, fixes, streams, kind, notes)


def read_track(path: Path, layer: str | None = None) -> Table:
    """Return the positions of a vehicle.

    Raises
    ------
    InputError
        As `read`.
    """
    with damage_named(path, _KIND):
        packets, _ = _parse(path)
    number = (layer or "").partition(":")[0]
    system = _choose_vehicle(path, packets, number if number.isdigit() else None)
    packets = [packet for packet in packets if packet.system == system]
    shift, notes = _find_shift(packets)
    fixes = _find_fixes(path, packets, shift)
    return make_stream_table(path, _FORM, fixes, {}, fixes.name, notes)


def _parse(path: Path) -> tuple[list[_Packet], int]:
    """Return the messages of a log that matter here, and how many packets could not be read."""
    dialect = library("pymavlink.dialects.v20.ardupilotmega", "logs", path, "logs of autopilots")
    parser = dialect.MAVLink(None)
    packets, bad = [], 0
    for micros, packet in _split(path.read_bytes()):
        try:
            message = parser.decode(bytearray(packet))
        except (dialect.MAVError, ValueError, KeyError, IndexError):
            bad += 1
            continue
        packets.append(_Packet(micros, message.get_srcSystem(), message))
    return packets, bad


def _split(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the packets of a log with their times; behind a damaged one, go on at the next that is whole."""
    at, end = 0, len(content)
    while at + 16 < end:
        mark = content[at + 8]
        micros = int.from_bytes(content[at : at + 8], "big")
        if mark not in _HEADERS or not _SINCE_1970 < micros < 5 * _SINCE_1970:
            at += 1
            continue
        before, after = _HEADERS[mark]
        signed = mark == 0xFD and content[at + 10] & _SIGNED
        length = before + content[at + 9] + after + (_SIGNATURE if signed else 0)
        if at + 8 + length > end:
            return
        yield micros, content[at + 8 : at + 8 + length]
        at += 8 + length


def _choose_vehicle(path: Path, packets: list[_Packet], given: str | None) -> int:
    """Return the number of the vehicle that sent positions."""
    counts: dict[str, int] = {}
    for packet in packets:
        if packet.message.get_type() in ("GPS_RAW_INT", "GLOBAL_POSITION_INT"):
            counts[str(packet.system)] = counts.get(str(packet.system), 0) + 1
    if not counts:
        raise no_fixes(path)
    return int(choose(path, {s: counted(n, "position") for s, n in counts.items()}, given, "vehicle"))


def _find_shift(packets: list[_Packet]) -> tuple[int, list[str]]:
    """Return the microseconds from the ground station's clock to UTC as the vehicle knows it, and notes."""
    known = [
        packet.message.time_unix_usec - packet.micros
        for packet in packets
        if packet.message.get_type() == "SYSTEM_TIME" and packet.message.time_unix_usec > _SINCE_1970
    ]
    if not known:
        return 0, ["times are by the ground station's clock"]
    shift = int(np.median(known))
    return shift, [f"times are UTC by the vehicle, {shift / 1e6:+.3f} s from the ground station's clock"]


def _find_fixes(path: Path, packets: list[_Packet], shift: int) -> Fixes:
    """Return the positions of a vehicle: those of its GPS, or else those that it computed."""
    for kind in ("GPS_RAW_INT", "GLOBAL_POSITION_INT"):
        found = [
            packet for packet in packets if packet.message.get_type() == kind and _is_fixed(packet.message)
        ]
        if found:
            micros: NDArray[np.int64] = np.array([packet.micros for packet in found], dtype=np.int64) + shift
            lat, lon = (
                np.array([getattr(packet.message, name) / _SCALE for packet in found])
                for name in ("lat", "lon")
            )
            return Fixes(kind, micros, lat, lon)
    raise no_fixes(path)


def _is_fixed(message: Any) -> bool:
    return getattr(message, "fix_type", _FIX_3D) >= _FIX_3D and (message.lat != 0 or message.lon != 0)


def _make_streams(packets: list[_Packet], shift: int, wanted: str | None) -> Iterator[tuple[str, Stream]]:
    """Yield the messages of sensors and of the kind that is wanted; named values by their names."""
    kinds: dict[str, list[_Packet]] = {}
    for packet in packets:
        kind = packet.message.get_type()
        if kind in _NAMED:
            name = packet.message.name.upper()
            kinds.setdefault(name, []).append(packet)
        elif kind in _SENSORS or kind == wanted:
            kinds.setdefault(kind, []).append(packet)
    for kind, found in kinds.items():
        micros: NDArray[np.int64] = np.array([packet.micros for packet in found], dtype=np.int64) + shift
        sensor = kind in _SENSORS or found[0].message.get_type() in _NAMED
        yield kind, Stream(micros, _fill(kind, [packet.message for packet in found]), sensor)


def _is_measured(message: Any) -> bool:
    """Return whether a sensor says that its reading counts: in its range, and of good quality."""
    if hasattr(message, "current_distance") and not (
        message.min_distance <= message.current_distance <= message.max_distance
    ):
        return False
    return getattr(message, "signal_quality", 0) != _INVALID and getattr(message, "healthy", 1) != 0


def _fill(kind: str, messages: list[Any]) -> dict[str, Filled]:
    """Return the columns of messages of one kind."""
    columns = {}
    units = getattr(messages[0], "fieldunits_by_name", {})
    for name in messages[0].get_fieldnames():
        values = [getattr(message, name) for message in messages]
        if _SENSORS.get(kind) == name:
            good = map(_is_measured, messages)
            values = [value if measured else None for value, measured in zip(values, good, strict=True)]
        if name.startswith("time_"):
            continue
        if name in ("lat", "lng", "lon"):
            axis = "latitude" if name == "lat" else "longitude"
            columns[axis] = Filled(
                [write_number(value / _SCALE) for value in values], POSITION_UNITS[axis], axis
            )
        elif name == "value":
            columns[kind] = Filled([write_number(value) for value in values], role="value")
        elif all(value is None or isinstance(value, (int, float)) for value in values):
            role = "value" if _SENSORS.get(kind) == name else "count" if name in _TEXTS else ""
            columns[name] = Filled([write_number(value) for value in values], units.get(name, ""), role)
        elif name != "name":
            columns[name] = Filled([str(value) for value in values], role="text")
    return columns
