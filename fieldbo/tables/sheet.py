"""The readings of a text, while what its form says is applied to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fieldbo.tables.rows import Row


@dataclass
class Sheet:
    """The readings of a text, while what its form says is applied to them.

    Attributes
    ----------
    path : Path
    names : list of str
        Names of the columns.
    line : int
        The line of the names.
    rows : list of (int, list of str)
        Line number and cells of each reading.
    units : list of str
        One per column; empty where no line of units states one.
    roles : list of str
        One per column; empty where the form says nothing.
    above : str
        The lines above the names.
    notes : list of str
        What was recognised.
    missing : set of float
        Numbers that stand for no value.
    units_line : int
        The line of the units; 0 without one.
    others : sequence of int
        Lines among the readings that are no readings.
    """

    path: Path
    names: list[str]
    line: int
    rows: list[Row]
    units: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    above: str = ""
    notes: list[str] = field(default_factory=list)
    missing: set[float] = field(default_factory=set)
    units_line: int = 0
    others: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.names = [name.strip() for name in self.names]
        if len(self.names) > 1 and not self.names[-1]:
            self._drop_empty_columns()
        short = len(self.names) - len(self.units)
        self.units = [*self.units[: len(self.names)], *[""] * short]
        self.roles = [""] * len(self.names)

    def _drop_empty_columns(self) -> None:
        """Leave columns at the right out that have neither a name nor a value."""
        used = max((i for i, name in enumerate(self.names, 1) if name), default=1)
        for _, cells in self.rows:
            for i in range(len(cells), used, -1):
                if cells[i - 1].strip():
                    used = i
                    break
        del self.names[used:]

    def rename(self, names: list[str]) -> None:
        """Give the columns other names, before anything else is known of them."""
        self.names, self.roles = names, [""] * len(names)
        self.units = [*self.units, *[""] * len(names)][: len(names)]

    def add(self, name: str, cells: Sequence[str], unit: str = "", role: str = "") -> None:
        """Append a column."""
        width = len(self.names)
        for (_, row), cell in zip(self.rows, cells, strict=True):
            row[width:] = []
            row.extend([""] * (width - len(row)))
            row.append(cell)
        self.names.append(name)
        self.units.append(unit)
        self.roles.append(role)

    def cell(self, row: int, column: int) -> str:
        """Return a cell; empty beyond the end of a short row."""
        cells = self.rows[row][1]
        return cells[column].strip() if column < len(cells) else ""

    def column(self, column: int) -> list[str]:
        """Return the cells (n,) of a column."""
        return [cells[column].strip() if column < len(cells) else "" for _, cells in self.rows]

    def replace(self, column: int, cells: Sequence[str]) -> None:
        """Replace the cells (n,) of a column."""
        for (_, row), cell in zip(self.rows, cells, strict=True):
            row.extend([""] * (column + 1 - len(row)))
            row[column] = cell

    def keep(self, wanted: Sequence[bool]) -> None:
        """Leave the rows out that are not wanted."""
        self.rows = [row for row, use in zip(self.rows, wanted, strict=True) if use]
