"""Columns that say more of another one: the unit of each of its cells, its minutes, or how good each is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np

from fieldbo.errors import counted
from fieldbo.tables.cells import MISSING, held
from fieldbo.tables.table import Table
from fieldbo.tables.units import bare, conversion, is_known

_UNIT_ENDS = ("unit", "units", "unitcode", "uom")
_FLAG_WORDS = frozenset(["qc", "qartod", "flag", "flags", "qf", "agg", "aggregate", "primary", "rollup"])
_QARTOD = {"1": "good", "2": "not evaluated", "3": "suspect", "4": "failed", "9": "missing"}
"""What the flags of IOOS QARTOD mean; those of Argo and SeaDataNet agree on them, by and large."""
_BAD, _SUSPECT, _MOST_FLAGS = ("4", "9"), "3", 12


def apply_companions(table: Table) -> Table:
    """Return a table with the values of each column in one unit, and without those that are flagged as bad.

    Minutes in a column of their own, as of Campbell's GPS(), are added to the whole degrees beside them.

    Examples
    --------
    >>> from pathlib import Path
    >>> cells = {"z": ("6.56", "2.0"), "z_unit": ("ft", "m"), "do": ("3", "4"), "qartod_do": ("1", "4")}
    >>> table = Table(Path("log.csv"), tuple(cells), {}, cells, np.array([2, 3]))
    >>> table = apply_companions(table)
    >>> table.cells["z"], table.units["z"], table.cells["do"]
    (('6.56', '6.561679790026247'), 'ft', ('3', ''))
    """
    for name in table.names:
        measure = _measure_of(table, name)
        if measure is not None:
            table = _apply_units(table, measure, name)
    for name in table.names:
        table = _join_parts(table, name)
    for name in table.names:
        if table.roles.get(name) != "flag":
            table = _apply_flags(table, name)
    return table


# -- units ---------------------------------------------------------------------------------------------------


def _measure_of(table: Table, name: str) -> str | None:
    """Return the column whose units a column holds; None if it holds no units of another one."""
    folded = _fold(name)
    if not folded.endswith(_UNIT_ENDS) or any(
        held(cell) not in ("text", "nothing") for cell in table.cells[name]
    ):
        return None
    stems = {folded[: -len(end)] for end in _UNIT_ENDS if folded.endswith(end)}
    stems |= {f"{stem}value" for stem in stems}
    found = [each for each in table.names if each != name and {_fold(each), _fold(bare(each))} & stems]
    return found[0] if len(found) == 1 and np.isfinite(table.numbers(found[0])).any() else None


def _apply_units(table: Table, name: str, unit_column: str) -> Table:
    """Return a table with a column in the unit of most of its rows, or marked as one of several units."""
    units = ["" if cell.lower() in ("", "na", "nan", "null") else cell for cell in table.cells[unit_column]]
    numbers = table.numbers(name)
    rows = np.flatnonzero(np.isfinite(numbers)).tolist()
    counts = Counter(units[row] for row in rows)
    if set(counts) == {""}:
        return table
    usual = counts.most_common(1)[0][0]
    stated = table.units.get(name, "")
    in_header = is_known(stated)
    target = stated if in_header else usual or next(filter(None, counts))
    changes = {
        unit: conversion(unit, target) for unit in counts if unit != target and (unit or not in_header)
    }
    if in_header and not all(change is not None and change.is_none for change in changes.values()):
        problem = f"the header states the unit {stated} for {name}, {unit_column} states {', '.join(changes)}"
        return replace(table, mixed={**table.mixed, name: problem})
    if any(change is None for change in changes.values()):
        listed = ", ".join(f"{unit or 'none'} in {counted(n, 'row')}" for unit, n in counts.most_common(6))
        problem = f"the units of {name} in {unit_column} can't be converted to one: {listed}"
        return replace(table, mixed={**table.mixed, name: problem})
    cells, notes = list(table.cells[name]), []
    for unit, change in changes.items():
        if change is None or change.is_none:
            continue
        these = [row for row in rows if units[row] == unit]
        converted = change.of([cells[row] for row in these], numbers[these]).tolist()
        for row, number in zip(these, converted, strict=True):
            cells[row] = repr(number)
        notes.append(
            f"{counted(len(these), 'value')} of {name} converted from {unit} to {target}, by {unit_column}"
        )
    return replace(
        table,
        cells={**table.cells, name: tuple(cells)},
        units={**table.units, name: target},
        notes=(*table.notes, *notes),
    )


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


# -- degrees and minutes -------------------------------------------------------------------------------------

_COORDINATE = frozenset(["lat", "latitude", "lon", "long", "lng", "longitude"])
_DEGREES = frozenset(["a", "d", "deg", "degs", "degree", "degrees", "dd", "ddd"])
_MINUTES = frozenset(["b", "m", "min", "mins", "minute", "minutes", "mm"])
_SECONDS = frozenset(["c", "s", "sec", "secs", "second", "seconds", "ss"])


def _join_parts(table: Table, name: str) -> Table:
    """Return a table with minutes and seconds of columns of their own added to whole degrees.

    The sign of the degrees holds for all. ``lat`` and ``lat_min`` alone may be a mean and a minimum.
    """
    rest = [word for word in _split(name) if word not in _DEGREES]
    if not _COORDINATE & {*rest}:
        return table
    certain = _MINUTES if rest != _split(name) else _MINUTES & {"minute", "minutes", "mins"}
    minutes, seconds = (_part_of(table, name, rest, words) for words in (certain, _SECONDS))
    if minutes is None:
        return table
    degrees = table.numbers(name)
    if not np.isfinite(degrees).any() or (degrees[np.isfinite(degrees)] % 1).any():
        return table
    parts = [(minutes, 60), *([(seconds, 3600)] if seconds else [])]
    size = np.abs(degrees) + sum(np.abs(table.numbers(part)) / per for part, per in parts)
    below = table.numbers(minutes) < 0
    cells = tuple(
        ""
        if not np.isfinite(number)
        else f"-{number!r}"
        if cell.startswith("-") or negative
        else repr(number)
        for cell, number, negative in zip(table.cells[name], size.tolist(), below.tolist(), strict=True)
    )
    joined = {part for part, _ in parts}
    said = " and ".join(part for part, _ in parts)
    return replace(
        table,
        names=tuple(each for each in table.names if each not in joined),
        cells={each: column for each, column in table.cells.items() if each not in joined} | {name: cells},
        units={**table.units, name: "degrees"},
        notes=(*table.notes, f"{name} is its degrees with {said} added"),
    )


def _part_of(table: Table, name: str, rest: list[str], words: frozenset[str]) -> str | None:
    """Return the column of minutes or seconds, below 60, of a coordinate; None without one."""
    for each in table.names:
        own = _split(each)
        if each != name and words & {*own} and [word for word in own if word not in words] == rest:
            numbers = table.numbers(each)
            known = np.abs(numbers[np.isfinite(numbers)])
            return each if len(known) and (known < 60).all() else None
    return None


# -- flags ---------------------------------------------------------------------------------------------------


def _apply_flags(table: Table, name: str) -> Table:
    """Return a table without the values that a column flags as bad, or with a note that it is not applied."""
    words = frozenset(_split(name))
    if not words & _FLAG_WORDS:
        return table
    rest = [word for word in _split(name) if word not in _FLAG_WORDS]
    of = [each for each in table.names if each != name and rest and _split(bare(each)) == rest]
    flags = [_plain(cell) for cell in table.cells[name]]
    counts = Counter(flag for flag in flags if flag.lower() not in MISSING)
    if (rest and len(of) != 1) or not 0 < len(counts) <= _MOST_FLAGS or set(counts) in ({"0"}, {"1"}, {"2"}):
        return table
    certain = "qartod" in words or ("qc" in words and 2 * (counts["1"] + counts["2"]) > counts.total())
    if not of or not certain or not counts.keys() <= _QARTOD.keys():
        listed = ", ".join(f"{flag} ({n})" for flag, n in sorted(counts.items()))
        about = f"the flags of {of[0]} in {name}" if of else f"the flags in {name}"
        note = f"{about} are not applied, for their meaning is not certain: {listed}"
        return replace(table, notes=(*table.notes, note))
    value = of[0]
    cells = tuple("" if flag in _BAD else cell for flag, cell in zip(flags, table.cells[value], strict=True))
    said = {"flagged as bad left out (QARTOD)": sum(counts[flag] for flag in _BAD)}
    said["flagged as suspect (QARTOD), and used"] = counts[_SUSPECT]
    notes = [f"{counted(n, 'value')} of {value} {what}" for what, n in said.items() if n]
    return replace(table, cells={**table.cells, value: cells}, notes=(*table.notes, *notes))


def _split(name: str) -> list[str]:
    """Return the words of a name, in lower case: of "chl_QC" or "chlQC", "chl" and "qc"."""
    return [word.lower() for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name) if word]


def _plain(cell: str) -> str:
    """Return a flag without the decimals that a spreadsheet or an archive may add to it."""
    return re.sub(r"\.0*$", "", cell)
