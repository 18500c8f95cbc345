"""Messages of autopilots: kinds at rates of their own, whose readings get the vehicle's positions by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    POSITION_UNITS,
    Filled,
    choose,
    describe,
    make_table,
    write_numbers,
    write_times,
)
from fieldbo.tables.joining import positions_at
from fieldbo.tables.table import Table

GAP_S = 5.0
"""Readings between fixes further apart than this get no position, in seconds."""

_SECOND = 1_000_000


@dataclass(frozen=True)
class Stream:
    """Messages of one kind.

    Attributes
    ----------
    micros : (n,) int array
        Times in microseconds since 1970, in UTC.
    columns : dict of str to Filled
        Cells of the messages, by field; names of positions are `latitude` and `longitude`.
    sensor : bool
        Whether they hold what a sensor measured around the vehicle, not the vehicle's own state.
    """

    micros: NDArray[np.int64]
    columns: Mapping[str, Filled]
    sensor: bool = False

    def __len__(self) -> int:
        return len(self.micros)


@dataclass(frozen=True)
class Fixes:
    """Positions of a vehicle.

    Attributes
    ----------
    name : str
        The kind of message that they are from.
    micros : (n,) int array
        Times in microseconds since 1970, in UTC.
    lat, lon : (n,) arrays
        Degrees.
    columns : dict of str to Filled
        Other fields.
    """

    name: str
    micros: NDArray[np.int64]
    lat: Array
    lon: Array
    columns: Mapping[str, Filled] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.micros)


def choose_stream(path: Path, streams: Mapping[str, Stream], fixes: Fixes, layer: str | None) -> str:
    """Return the kind of message to read: the one given, the only sensor's, or else the positions.

    Raises
    ------
    InputError
        There is no such kind, or there are several sensors and none is named.
    """
    about = {name: counted(len(stream), "message") for name, stream in streams.items()}
    about = {fixes.name: counted(len(fixes), "fix", "fixes"), **about}
    if layer is not None:
        return choose(path, about, layer, "kind of message")
    sensors = {name: about[name] for name, stream in streams.items() if stream.sensor}
    if not sensors:
        return fixes.name
    return choose(path, sensors, None, "sensor")


def make_stream_table(
    path: Path,
    form: str,
    fixes: Fixes,
    streams: Mapping[str, Stream],
    layer: str | None,
    notes: Sequence[str],
) -> Table:
    """Return the readings of one kind of message at the positions that the vehicle had then.

    Positions are interpolated between fixes at most `GAP_S` seconds apart; messages with positions of their
    own keep these.

    Raises
    ------
    InputError
        The log has no fix, or as `choose_stream` does.
    """
    if not len(fixes):
        raise no_fixes(path)
    name = choose_stream(path, streams, fixes, layer)
    others = {kind: counted(len(stream), "message") for kind, stream in streams.items() if kind != name}
    said = [f"{form}: {name}", *notes]
    if name == fixes.name:
        columns = _columns(fixes.micros, fixes.lat, fixes.lon, fixes.columns)
    else:
        stream = streams[name]
        if {"latitude", "longitude"} <= set(stream.columns):
            said.append(f"positions are those in {name} itself")
            columns = {"time": Filled(write_times(stream.micros), role="time"), **stream.columns}
        else:
            start = int(fixes.micros[0])
            seconds, known = (((micros - start) / _SECOND) for micros in (stream.micros, fixes.micros))
            lat, lon = positions_at(seconds, known, fixes.lat, fixes.lon, GAP_S)
            said.append(
                f"positions are those of {fixes.name} at the time of each message, straight between fixes at "
                f"most {GAP_S:g} s apart"
            )
            left = int(np.isnan(lat).sum())
            said += [f"{counted(left, 'message')} without a position"] if left else []
            columns = _columns(stream.micros, lat, lon, stream.columns)
    if others:
        said.append(
            f"other messages are left out: {describe(others)}; {LAYER_OPTION} KIND takes one of these"
        )
    return make_table(path, columns, form=form, row_word="message", notes=said)


def no_fixes(path: Path) -> InputError:
    """Return the error for a log without positions."""
    return InputError(
        f"{path.name} holds no position: the vehicle had no fix of a GPS",
        expected="a log of a vehicle with a 3D fix",
        where=str(path),
        fix="give another log; a log without positions can be joined with another track",
    )


def _columns(
    micros: NDArray[np.int64], lat: Array, lon: Array, others: Mapping[str, Filled]
) -> dict[str, Filled]:
    return {
        "time": Filled(write_times(micros), role="time"),
        "latitude": Filled(write_numbers(lat), POSITION_UNITS["latitude"], "latitude"),
        "longitude": Filled(write_numbers(lon), POSITION_UNITS["longitude"], "longitude"),
        **others,
    }
