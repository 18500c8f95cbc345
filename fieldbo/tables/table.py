"""A table of readings: named columns of cells, with units and the line of each row in its file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.tables.cells import MISSING, is_number
from fieldbo.tables.rows import Row
from fieldbo.tables.text import Text, read_text
from fieldbo.tables.units import clean_unit, short_names, unit_of

LEAST_READINGS = 5
"""Fewest readings that a field is fitted to."""


def fix_of_limit(cell: str) -> str | None:
    """Return what to do about a reading below a limit of detection; None if the cell holds something else.

    Examples
    --------
    >>> fix_of_limit("< 0.8")
    'write 0.8, and set below = 0.8 in [sensor]; leaving such readings out makes the map too high'
    """
    found = re.fullmatch(r"\s*<\s*(\d*\.?\d+)\s*", cell)
    if found is None:
        return None
    advice = f"write {found[1]}, and set below = {found[1]} in [sensor]"
    return f"{advice}; leaving such readings out makes the map too high"


_DECLARED = re.compile(
    r"(?:missing|no.?data|fill|null|invalid|bad)[\s_-]*(?:value|flag|data)?s?\s*(?:is|are|=|:)?\s*"
    r"([-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?)(?![\d.])",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Table:
    """A table of text, with a line number for each row.

    Attributes
    ----------
    path : Path
    names : tuple of str
        The columns' names, as in the file.
    units : dict of str to str
        Units of the columns that state one, by name.
    cells : dict of str to tuple of str
        The cells of each column, without blanks around them.
    lines : (n,) array
        The line of each row in the file.
    comments : tuple of str
        Comment lines above the table.
    missing : tuple of float
        Numbers that the comments declare to stand for no value, such as -9999.
    notes : tuple of str
        What was recognised in the file.
    form : str
        The known form of the file, such as "Campbell TOA5"; empty for a plain table.
    roles : dict of str to str
        What the form says that a column holds, by name: a `fieldbo.tables.columns.Kind`.
    row_word : str
        What a row's number in `lines` counts: lines of a text, records of a database, points of a track.
    names_line : int
        The line of the column names; 0 where they stand in no line.
    repeated : dict of str to int
        How many columns of the file have a name, of those that have the same one.
    mixed : dict of str to str
        What is wrong with the columns whose rows have units that can't become one, by name.
    """

    path: Path
    names: tuple[str, ...]
    units: dict[str, str]
    cells: dict[str, tuple[str, ...]]
    lines: NDArray[np.int64]
    comments: tuple[str, ...] = ()
    missing: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    form: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    row_word: str = "line"
    names_line: int = 0
    repeated: Mapping[str, int] = field(default_factory=dict)
    mixed: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str, option: str | None = None) -> str:
        """Return the full name of a column, which may be given without its unit and in any case.

        Raises
        ------
        UnknownNameError
            No column, or more than one, has the name; `option` is the option that gave it.
        InputError
            The file has the very name twice, or the column has several units.
        """
        if name in self.repeated:
            raise InputError(
                f"{self.repeated[name]} columns are named {name!r}",
                expected="one column with that name",
                where=self._place_of_names(option),
                fix=f"name {name}.1, {name}.2, ... for the first, the second, ...",
            )
        if name in self.names:
            return self._checked(name)
        if name.endswith(".1") and name[:-2] in self.repeated:
            return name[:-2]
        wanted = name.strip().lower()
        like = [full for full in self.names if wanted in short_names(full)]
        if len(like) == 1:
            return self._checked(like[0])
        raise UnknownNameError.of("column", name, self.names, where=self._place_of_names(option))

    def _checked(self, name: str) -> str:
        """Return the name of a column, all of whose rows have one unit."""
        if name not in self.mixed:
            return name
        raise InputError(
            self.mixed[name],
            expected="units of one kind, one in each row",
            where=f"{self.path}, column {name}",
            fix="correct the units, or put the rows of each into a file of their own",
        )

    def _place_of_names(self, option: str | None) -> str:
        return f"{self.place_of_names}{f' ({option})' if option else ''}"

    @property
    def place_of_names(self) -> str:
        """The place of the column names, for messages."""
        line = f"line {self.names_line}" if self.names_line else "the column names"
        return f"{self.path}, {line}"

    def rows(self, kept: NDArray[np.bool_]) -> Table:
        """Return the table with only some of its rows, given which of them (n,)."""
        cells = {name: tuple(compress(column, kept)) for name, column in self.cells.items()}
        return replace(self, cells=cells, lines=self.lines[kept])

    def is_missing(self, name: str) -> NDArray[np.bool_]:
        """Return which cells (n,) of a column hold no value."""
        return np.array([cell.lower() in MISSING for cell in self.cells[name]], dtype=bool)

    def numbers(self, name: str) -> Array:
        """Return the numbers (n,) of a column; NaN where a cell is none, or declared to be no value."""
        numbers = np.array([_number(cell) for cell in self.cells[name]], dtype=float)
        numbers[~np.isfinite(numbers) | np.isin(numbers, self.missing)] = np.nan
        return numbers

    def place(self, row: int, name: str) -> str:
        """Return the place of a cell, for messages."""
        return f"{self.path}, {self.row_word} {self.lines[row]}, column {name}"


def read_text_table(path: Path, quantity: str | None = None) -> Table:
    """Read the log of a boat or sonde: any text with a line of column names and one line per reading.

    Delimiters are commas, semicolons, tabs or blanks; decimal commas, gzip, UTF-16 and Latin-1, comment lines
    and a line of units below the names are recognised, and `Table.notes` says so.

    Raises
    ------
    InputError
        The file can't be read, is not such a table, or has no rows.
    """
    return make_text_table(path, read_text(path, quantity))


def make_text_table(path: Path, text: Text) -> Table:
    """Return the table that the rows of a text make.

    Raises
    ------
    InputError
        The rows are not such a table, or there are none.
    """
    first, header = text.rows[0]
    names = [name.strip() for name in header]
    rows = text.rows[1:]
    width = len(names)
    if not names[-1] and not any(cell.strip() for _, cells in rows for cell in cells[width - 1 :]):
        names.pop()  # a delimiter at the end of each line
    _check_names(path, first, names)
    repeated = {name: count for name, count in Counter(names).items() if name and count > 1}
    names = _make_distinct([name or f"column {i}" for i, name in enumerate(names, 1)])
    check_widths(path, rows, names)
    if not rows:
        raise InputError("the file has no readings", expected="a line per reading", where=str(path))
    width = len(names)
    table = [[cell.strip() for cell in cells[:width]] + [""] * (width - len(cells)) for _, cells in rows]
    units = {name: unit for name in names if (unit := unit_of(name))} | _find_units_above(
        names, text.comments
    )
    below = {name: clean_unit(unit) for name, unit in zip(names, text.units, strict=False)}
    units |= {name: unit for name, unit in below.items() if unit}
    declared = {float(found) for comment in text.comments for found in _DECLARED.findall(comment)}
    notes = list(text.notes)
    if declared:
        numbers = ", ".join(f"{number:g}" for number in sorted(declared))
        notes.append(f"{numbers} stands for no value, as a comment says")
    return Table(
        path,
        tuple(names),
        units,
        {name: tuple(column) for name, column in zip(names, zip(*table, strict=True), strict=True)},
        np.array([line for line, _ in rows], dtype=np.int64),
        text.comments,
        tuple(sorted(declared | {*text.missing})),
        tuple(notes),
        text.form,
        {name: role for name, role in zip(names, text.roles, strict=False) if role},
        names_line=first,
        repeated=repeated,
    )


def _find_units_above(names: Sequence[str], comments: Sequence[str]) -> dict[str, str]:
    """Return the units that lines above the table state: the name of a column, and below it "UNIT: ft"."""
    stated = {name: _UNIT_LINE.fullmatch(below) for name, below in pairwise(comments) if name in names}
    return {name: clean_unit(found[1]) for name, found in stated.items() if found is not None}


_UNIT_LINE = re.compile(r"\s*units?\s*[:=]\s*(\S.*)", re.IGNORECASE)


def check_widths(path: Path, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Raise an `InputError` if a row has more cells than there are columns."""
    for line, cells in rows:
        if any(cell.strip() for cell in cells[len(names) :]):
            raise InputError(
                f"the line has {counted(len(cells), 'cell')}",
                expected=f"{len(names)}, one per column ({', '.join(names)})",
                where=f"{path}, line {line}",
                fix="write decimals with a point, not a comma, and put text with commas in quotes",
            )


def _make_distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number behind those that appeared before: flag, flag.2."""
    counts: dict[str, int] = {}
    distinct = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        distinct.append(name if counts[name] == 1 else f"{name}.{counts[name]}")
    return distinct


def _check_names(path: Path, line: int, names: Sequence[str]) -> None:
    """Raise an `InputError` if the first line is a reading, too."""
    if sum(map(is_number, names)) > len(names) / 2:
        raise InputError(
            f"the first line holds numbers, not names: {', '.join(names[:6])}",
            expected="a line of column names above the readings",
            where=f"{path}, line {line}",
            fix="insert a line such as time,lat,lon,temperature at the top",
        )


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
