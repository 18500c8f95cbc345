"""Logs of RBR instruments: .rsk files of Ruskin, which are SQLite databases.

Of the two layouts, that of Ruskin 1 and 2 has tables ``channels`` and ``data`` with times ``tstamp``; that of
version 3 has ``channel`` and ``data`` with times ``timestamp`` and one schedule or several.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import (
    Filled,
    choose,
    damage_named,
    make_distinct,
    make_table,
    write_number,
    write_numbers,
    write_times,
)
from fieldbo.tables.joining import GAP_S, positions_at
from fieldbo.tables.table import Table

_KIND = "an RBR log (.rsk)"
_HIDDEN = 1  # bit of a channel's status
_DATA = re.compile(r"channel(\d+)")


class Channel(NamedTuple):
    """A channel of an instrument."""

    name: str
    unit: str
    hidden: bool


def read(path: Path, layer: str | None = None) -> Table:
    """Return the readings of an .rsk file, with positions if a telephone or a person added some.

    Parameters
    ----------
    path : Path
    layer : str, optional
        Number of the schedule, of an instrument that samples by several.

    Raises
    ------
    InputError
        The database is damaged, or holds no readings yet.
    """
    with damage_named(path, _KIND):
        base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return _read(path, base, layer)
        finally:
            base.close()


def _read(path: Path, base: sqlite3.Connection, layer: str | None) -> Table:
    tables = {
        name.lower(): _columns_of(base, name) for (name,) in base.execute("SELECT name FROM sqlite_master")
    }
    if not {"channels", "channel"} & set(tables):
        some = ", ".join(sorted(tables)[:6]) or "no tables"
        raise InputError(
            f"{path.name} is an SQLite database of a kind that is not known: {some}",
            expected="an RBR log (.rsk) or a GeoPackage",
            where=str(path),
            fix="export its table of readings as CSV, for example with DB Browser for SQLite",
        )
    data = tables.get("data", [])
    clock = next((name for name in ("tstamp", "timestamp") if name in data), None)
    known = _find_channels(base, tables)
    numbers = [name for name in data if _DATA.fullmatch(name)]
    if clock is None or not numbers or not known:
        raise InputError(
            f"{path.name} holds no readings that fieldbo can read: Ruskin has not decoded what it downloaded",
            expected="a table data with a column of times and one per channel",
            where=str(path),
            fix="open it in Ruskin and save it again, or export it as CSV",
        )
    unnamed = [name for name in numbers if _number(name) not in known]
    if unnamed:
        raise InputError(
            f"{path.name} does not say what {', '.join(unnamed)} measured",
            expected="a channel for each column of data",
            where=f"{path}, table channels",
            fix="open it in Ruskin and export it as CSV",
        )
    where, notes = "", list[str]()
    if "scheduleid" in (name.lower() for name in data):
        schedules = base.execute("SELECT scheduleId, COUNT(*) FROM data GROUP BY scheduleId").fetchall()
        about = {str(number): counted(rows, "reading") for number, rows in schedules}
        if about:
            schedule = choose(path, about, layer, "schedule")
            where = f"WHERE scheduleId = {int(schedule)}"
    shown = [name for name in numbers if not known[_number(name)].hidden]
    rows = base.execute(f"SELECT {', '.join([clock, *shown])} FROM data {where} ORDER BY {clock}").fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * (1 + len(shown))
    times: NDArray[np.int64] = np.array(columns[0], dtype=np.int64)
    # Ruskin sets an instrument's clock to UTC or to local time, and the file does not say to which.
    filled = {"time": Filled([cell.rstrip("Z") for cell in write_times(1000 * times)], role="time")}
    for name, cells in zip(shown, columns[1:], strict=True):
        channel = known[_number(name)]
        role = "depth" if channel.name == "Depth" else ""
        filled[make_distinct(channel.name, filled)] = Filled(
            list(map(write_number, cells)), channel.unit, role
        )
    hidden = [known[_number(name)].name for name in numbers if known[_number(name)].hidden]
    if hidden:
        notes.append(f"channels that the instrument hides are left out: {', '.join(hidden)}")
    placed, about_places = _place(base, tables, times)
    notes += about_places
    if placed is not None:
        for name, axis in zip(("latitude", "longitude"), placed, strict=True):
            unit = "degrees_north" if name == "latitude" else "degrees_east"
            filled[make_distinct(name, filled)] = Filled(write_numbers(axis), unit, name)
    model = base.execute("SELECT model FROM instruments").fetchone() if "instruments" in tables else None
    notes.insert(0, f"RBR .rsk{f' of an {model[0]}' if model else ''}: names and units of its channels")
    return make_table(path, filled, form="RBR .rsk", row_word="record", notes=notes)


def _columns_of(base: sqlite3.Connection, table: str) -> list[str]:
    quoted = table.replace('"', '""')
    return [name for _, name, *_ in base.execute(f'PRAGMA table_info("{quoted}")')]


def _number(column: str) -> int:
    """Return the number of a channel in the name of a column: 3 of channel03."""
    found = _DATA.fullmatch(column)
    assert found is not None
    return int(found[1])


def _find_channels(base: sqlite3.Connection, tables: dict[str, list[str]]) -> dict[int, Channel]:
    """Return the channels by the number that their column of data has.

    That is their order in the instrument, or else their id.
    """
    if "channels" in tables:
        table, key, unit, orders, channel = (
            "channels",
            "channelID",
            "units",
            "instrumentChannels",
            "channelID",
        )
    else:
        table, key, unit, orders, channel = "channel", "id", "unit", "instrumentChannel", "channelId"
    if table not in tables:
        return {}
    described = {
        number: (str(name), str(text or "")) for number, name, text in
        base.execute(f"SELECT {key}, longName, {unit} FROM {table} ORDER BY {key}")
    }  # fmt: skip
    listed: Sequence[tuple[int, int, int]] = ()
    if orders.lower() in tables:
        listed = base.execute(f"SELECT {channel}, channelOrder, channelStatus FROM {orders}").fetchall()
    order = {number: (place, status or 0) for number, place, status in listed if place is not None}
    found = {}
    for number, (name, text) in described.items():
        place, status = order.get(number, (number, 0))
        found[place] = Channel(name, text, bool(status & _HIDDEN))
    return found


def _place(
    base: sqlite3.Connection, tables: dict[str, list[str]], times: NDArray[np.int64]
) -> tuple[tuple[Array, Array] | None, list[str]]:
    """Return latitudes and longitudes (n,) of readings, if there are fixes, and notes."""
    if not {"tstamp1", "tstamp2", "type"} <= set(tables.get("region", [])):
        profiles, fixes = [], []
    else:
        profiles = base.execute("SELECT tstamp1, tstamp2 FROM region WHERE type = 'PROFILE'").fetchall()
        fixes = [] if "regiongeodata" not in tables else base.execute(
            "SELECT tstamp1, latitude, longitude FROM region JOIN regionGeoData USING (regionID)"
        ).fetchall()  # fmt: skip
    if not fixes and {"tstamp", "latitude", "longitude"} <= set(tables.get("geodata", [])):
        fixes = base.execute("SELECT tstamp, latitude, longitude FROM geodata").fetchall()
    fixes = [fix for fix in fixes if None not in fix]
    if not fixes:
        return None, []
    at, lat, lon = (np.array(column, dtype=float) for column in zip(*fixes, strict=True))
    y, x = positions_at(times / 1000.0, at / 1000.0, lat, lon, GAP_S)
    casts = 0
    for start, end in profiles:
        inside = np.flatnonzero((at >= start) & (at <= end))
        if len(inside):
            rows = (times >= start) & (times <= end)
            y[rows], x[rows], casts = lat[inside[0]], lon[inside[0]], casts + 1
    note = (
        f"positions are those of {counted(len(fixes), 'fix', 'fixes')} in the file: "
        f"{counted(casts, 'profile')} at the first fix within it, others straight between fixes "
        f"at most {GAP_S:g} s apart"
    )
    left = int(np.isnan(y).sum())
    return (y, x), [note, *([f"{counted(left, 'record')} without a position"] if left else [])]
