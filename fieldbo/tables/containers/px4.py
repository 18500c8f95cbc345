"""Logs of PX4 (.ulg), read by pyulog."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Mask
from fieldbo.errors import UnknownNameError
from fieldbo.tables.containers.filling import LAYER_OPTION, Filled, damage_named, library, write_numbers
from fieldbo.tables.containers.streams import Fixes, Stream, make_stream_table, no_fixes
from fieldbo.tables.table import Table

_KIND = "a PX4 log (.ulg)"
_FORM = "PX4 log"
_GPS = ("vehicle_gps_position", "sensor_gps")
_SENSORS = {"distance_sensor": "current_distance", "debug_key_value": "value"}
"""Kinds of messages of sensors, and the field that holds their reading."""

_UNITS = {"current_distance": "m", "min_distance": "m", "max_distance": "m", "temperature": "degC"}
_FIX_3D = 3
_SINCE_1970 = 1_000_000_000_000_000  # microseconds: 2001
_SCALE = 10_000_000  # of latitudes and longitudes before PX4 1.14


def read(path: Path, layer: str | None = None) -> Table:
    """Return what one sensor logged, at the positions of the GPS, or else these positions.

    Parameters
    ----------
    path : Path
    layer : str, optional
        A kind of message, such as ``distance_sensor``, or the key of a debugging value; by default the only
        sensor in the log, and else ``vehicle_gps_position``.

    Raises
    ------
    InputError
        The log is damaged, has no fix of a GPS, or has several sensors and none is named.
    """
    log, notes = _open(path, {*_GPS, *_SENSORS, *([layer.partition("[")[0]] if layer else [])})
    shift, fixes = _find_fixes(path, log)
    streams = _make_streams(log, shift)
    if layer is not None and layer.lower() not in {name.lower() for name in (fixes.name, *streams)}:
        raise UnknownNameError.of(
            "kind of message", layer, log.message_formats, where=f"{path} ({LAYER_OPTION})"
        )
    return make_stream_table(path, _FORM, fixes, streams, layer, notes)


def read_track(path: Path, layer: str | None = None) -> Table:
    """Return the positions of the GPS.

    Raises
    ------
    InputError
        As `read`.
    """
    log, notes = _open(path, set(_GPS))
    _, fixes = _find_fixes(path, log)
    return make_stream_table(path, _FORM, fixes, {}, layer or fixes.name, notes)


def _open(path: Path, names: set[str]) -> tuple[Any, list[str]]:
    """Return the messages of some kinds, and notes."""
    core = library("pyulog.core", "logs", path, "logs of autopilots")
    said = StringIO()
    with damage_named(path, _KIND, "download the log again"), redirect_stdout(said), redirect_stderr(said):
        try:
            log = core.ULog(str(path), message_name_filter_list=sorted(names))
        except core.ULogException as error:
            raise ValueError(error) from None
    return log, ["parts of the log are damaged, and left out"] if log.file_corruption else []


def _find_fixes(path: Path, log: Any) -> tuple[int, Fixes]:
    """Return the microseconds from a log's own clock to UTC, and the positions of the first receiver.

    Raises
    ------
    InputError
        No message of the GPS has a 3D fix and the time.
    """
    receivers = [data for name in _GPS for data in log.data_list if data.name == name]
    fixed = [(data, rows) for data in receivers if (rows := _find_fixed(data.data)).any()]
    if not fixed:
        raise no_fixes(path)
    data, rows = max(fixed, key=lambda each: (each[0].name == _GPS[0], int(each[1].sum()), -each[0].multi_id))
    own: NDArray[np.int64] = data.data["timestamp"].astype(np.int64)
    utc = data.data["time_utc_usec"].astype(np.int64)
    shift = int(np.median((utc - own)[rows]))
    if "latitude_deg" in data.data:
        lat, lon = data.data["latitude_deg"], data.data["longitude_deg"]
    else:
        lat, lon = (data.data[name] / _SCALE for name in ("lat", "lon"))
    others = {
        "fix_type": Filled(write_numbers(data.data["fix_type"][rows]), role="flag"),
        **{
            name: Filled(write_numbers(data.data[name][rows]), unit, role)
            for name, unit, role in (
                ("eph", "m", ""), ("vel_m_s", "m/s", ""), ("satellites_used", "", "count"),
            )
            if name in data.data
        },
    }  # fmt: skip
    return shift, Fixes(data.name, own[rows] + shift, lat[rows], lon[rows], others)


def _find_fixed(columns: Any) -> Mask:
    """Return which messages of a GPS have a 3D fix and the time."""
    placed = {"latitude_deg", "longitude_deg"} <= set(columns) or {"lat", "lon"} <= set(columns)
    if not placed or not {"timestamp", "time_utc_usec", "fix_type"} <= set(columns):
        return np.zeros(0, dtype=bool)
    fixed: Mask = (columns["fix_type"] >= _FIX_3D) & (columns["time_utc_usec"] > _SINCE_1970)
    return fixed


def _make_streams(log: Any, shift: int) -> dict[str, Stream]:
    """Return the messages of sensors and the one that is wanted; debugging values by their keys."""
    streams: dict[str, Stream] = {}
    sources = [data for data in log.data_list if data.name not in _GPS]
    for data in sources:
        several = sum(other.name == data.name for other in sources) > 1
        name = f"{data.name}[{data.multi_id}]" if several else data.name
        if data.name == "debug_key_value":
            keys = _keys(data.data)
            for key in dict.fromkeys(keys.tolist()):
                streams[key] = _make_stream(data, shift, keys == key, key)
        else:
            streams[name] = _make_stream(data, shift, np.ones(len(data.data["timestamp"]), dtype=bool))
    return streams


def _keys(columns: Any) -> NDArray[np.str_]:
    """Return the keys of debugging values, whose letters are a column each."""
    letters = [columns[name] for name in columns if name.startswith("key[")]
    texts = ["".join(chr(letter) for letter in row if letter > 0) for row in zip(*letters, strict=True)]
    return np.array(texts)


def _make_stream(data: Any, shift: int, rows: Mask, key: str = "") -> Stream:
    micros = data.data["timestamp"].astype(np.int64)[rows] + shift
    columns = {}
    for name, values in data.data.items():
        if name == "timestamp" or name.startswith("key["):
            continue
        cells, role = write_numbers(values[rows]), "value" if _SENSORS.get(data.name) == name else ""
        if data.name == "distance_sensor" and name == "current_distance":
            cells = _measured(cells, data.data, rows)
        columns[key if key and name == "value" else name] = Filled(cells, _UNITS.get(name, ""), role)
    return Stream(micros, columns, data.name in _SENSORS)


def _measured(cells: tuple[str, ...], columns: Any, rows: Mask) -> tuple[str, ...]:
    """Return distances, empty where they are out of the sensor's range or of quality 0."""
    distance = columns["current_distance"][rows]
    good = np.ones(len(distance), dtype=bool)
    if {"min_distance", "max_distance"} <= set(columns):
        good &= (distance >= columns["min_distance"][rows]) & (distance <= columns["max_distance"][rows])
    if "signal_quality" in columns:
        good &= columns["signal_quality"][rows] != 0
    return tuple(cell if there else "" for cell, there in zip(cells, good.tolist(), strict=True))
