"""What the readers of containers share: cells of numbers and times, the choice of a table, damage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.tables.table import Table

LAYER_OPTION = "--layer"
"""The option that names one of several tables in a file: a layer, sheet, track or kind of message."""


@dataclass(frozen=True)
class Filled:
    """A column that a container fills.

    Attributes
    ----------
    cells : sequence of str
    unit : str
        Empty if there is none.
    role : str
        What it holds (`fieldbo.tables.columns.Kind`); empty to have it guessed from its name.
    """

    cells: Sequence[str]
    unit: str = ""
    role: str = ""


def write_number(number: Any) -> str:
    """Return a number as a cell, not rounded; empty for NaN and None.

    Examples
    --------
    >>> write_number(0.1 + 0.2), write_number(7), write_number(float("nan"))
    ('0.30000000000000004', '7', '')
    """
    if number is None:
        return ""
    if isinstance(number, (int, np.integer)):
        return str(int(number))
    value = float(number)
    return "" if math.isnan(value) else repr(value)


def write_numbers(numbers: NDArray[Any]) -> tuple[str, ...]:
    """Return numbers (n,) as cells, not rounded; empty for NaN."""
    if numbers.dtype.kind in "iub":
        return tuple(map(str, numbers.astype(object)))
    return tuple("" if math.isnan(number) else repr(number) for number in numbers.astype(float).tolist())


def write_times(micros: NDArray[np.int64], known: NDArray[np.bool_] | None = None) -> tuple[str, ...]:
    """Return times (n,), in microseconds since 1970, as cells in UTC; empty where they are not known.

    Examples
    --------
    >>> write_times(np.array([1_714_564_800_000_000, 1_714_564_800_500_000]))
    ('2024-05-01T12:00:00.000Z', '2024-05-01T12:00:00.500Z')
    """
    known = np.ones(len(micros), dtype=bool) if known is None else known
    fraction = micros[known] % 1_000_000
    unit: Literal["us", "ms", "s"] = "us" if (fraction % 1000).any() else "ms" if fraction.any() else "s"
    instants: NDArray[np.datetime64] = micros.astype("datetime64[us]")
    texts = np.datetime_as_string(instants, unit=unit).tolist()
    return tuple(f"{text}Z" if there else "" for text, there in zip(texts, known.tolist(), strict=True))


def make_table(
    path: Path,
    columns: Mapping[str, Filled],
    *,
    form: str,
    row_word: str,
    notes: Iterable[str] = (),
    lines: NDArray[np.int64] | None = None,
) -> Table:
    """Return a table of columns that are equally long.

    Raises
    ------
    InputError
        There are no rows.
    """
    rows = max((len(column.cells) for column in columns.values()), default=0)
    if not rows:
        raise InputError("the file has no readings", expected=f"at least one {row_word}", where=str(path))
    return Table(
        path,
        tuple(columns),
        {name: column.unit for name, column in columns.items() if column.unit},
        {name: tuple(column.cells) for name, column in columns.items()},
        np.arange(1, rows + 1, dtype=np.int64) if lines is None else lines,
        notes=tuple(notes),
        form=form,
        roles={name: column.role for name, column in columns.items() if column.role},
        row_word=row_word,
    )


def make_table_of_points(
    path: Path,
    points: Sequence[Mapping[str, str]],
    units: Mapping[str, str],
    roles: Mapping[str, str],
    *,
    form: str,
    row_word: str = "point",
    notes: Iterable[str] = (),
) -> Table:
    """Return a table of points that do not all have the same cells; those that a point lacks are empty.

    Columns stand in the order in which they first appear.

    Raises
    ------
    InputError
        There are no points.
    """
    names = list(dict.fromkeys(name for point in points for name in point))
    columns = {
        name: Filled([point.get(name, "") for point in points], units.get(name, ""), roles.get(name, ""))
        for name in names
    }
    return make_table(path, columns, form=form, row_word=row_word, notes=notes)


POSITION_UNITS = {"latitude": "degrees_north", "longitude": "degrees_east"}
POSITION_ROLES = {"latitude": "latitude", "longitude": "longitude", "time": "time"}


_COORDINATES = frozenset(["lat", "latitude", "lon", "lng", "long", "longitude"])


def position_role(name: str) -> str:
    """Return the role of an attribute of points: text, if it is called like their position, else none."""
    return "text" if name.lower() in _COORDINATES else ""


def make_distinct(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken yet: with a number behind it if need be.

    Examples
    --------
    >>> make_distinct("Temperature", ["Temperature", "Temperature.2"])
    'Temperature.3'
    """
    taken, number, distinct = set(taken), 1, name
    while distinct in taken:
        number += 1
        distinct = f"{name}.{number}"
    return distinct


def choose(
    path: Path, tables: Mapping[str, str], given: str | None, what: str, several: str | None = None
) -> str:
    """Return the name of the table to read: the one given, or the only one.

    Parameters
    ----------
    path : Path
    tables : mapping of str to str
        What each of the tables is, such as "120 points", by name.
    given : str, optional
        The one that the user named.
    what : str
        What a table is called, such as "sheet".
    several : str, optional
        Its plural.

    Raises
    ------
    InputError
        There is no table of that name, or there are several and none is named.
    """
    if given is not None:
        found = [name for name in tables if name.lower() == given.strip().lower()]
        if given in tables or len(found) == 1:
            return given if given in tables else found[0]
        raise UnknownNameError.of(what, given, list(tables), where=f"{path} ({LAYER_OPTION})")
    if len(tables) > 1:
        raise InputError(
            f"{path.name} has {counted(len(tables), what, several)} that may be meant: {describe(tables)}",
            expected="one table of readings",
            where=str(path),
            fix=f"name one: {LAYER_OPTION} {next(iter(tables))!r}; of a track, "
            f"--track '{path.name}:{next(iter(tables))}'",
        )
    return next(iter(tables))


def describe(tables: Mapping[str, str]) -> str:
    """Return names with what they are in brackets."""
    return ", ".join(f"{name} ({about})" if about else name for name, about in tables.items())


@contextmanager
def damage_named(path: Path, kind: str, fix: str | None = None) -> Iterator[None]:
    """Turn what a library raises while it reads a file into one `InputError`.

    Parameters
    ----------
    path : Path
    kind : str
        What the file should be, such as "an Excel workbook".
    fix : str, optional
        What to do instead of copying it again.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # libraries raise nearly anything for damaged files, even Exception itself
        lines = str(error).strip().splitlines()
        reason = f": {lines[0]}" if lines else ""
        raise InputError(
            f"{path.name} is damaged or cut off: it can't be read as {kind} ({type(error).__name__}{reason})",
            expected=f"{kind}, whole",
            where=str(path),
            fix=fix or "copy it from the instrument again, or export it anew",
        ) from None


def library(name: str, extra: str, path: Path, kind: str) -> Any:
    """Return a module of a library that not everybody has installed.

    Raises
    ------
    InputError
        It is not installed; the error names the extra that brings it.
    """
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"reading {kind} needs {name.partition('.')[0]}, which is not installed",
            expected=f"the extra {extra}",
            where=str(path),
            fix=f"pip install 'fieldbo[{extra}]'",
        ) from None
