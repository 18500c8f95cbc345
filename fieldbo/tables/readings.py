"""Readings in named columns of a table, with errors that name the line and the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.tables.opening import open_table
from fieldbo.tables.table import LEAST_READINGS, Table, fix_of_limit


@dataclass(frozen=True, eq=False)
class Readings:
    """Scattered readings, as in a file.

    Attributes
    ----------
    sites : (n, d) array
    values : (n,) array
    noise_variances : (n,) array or None
        None where the file has no noise column.
    channels : dict of str to (n,) array
    column : str
        The column of the value.
    lines : tuple of int
        Line number of each reading in the file.
    """

    sites: Array
    values: Array
    noise_variances: Array | None
    channels: dict[str, Array]
    column: str = ""
    lines: tuple[int, ...] = ()

    @property
    def repeated(self) -> int:
        """Number of readings that share their site with an earlier one; a fit pools them."""
        return len(self.sites) - len(np.unique(self.sites, axis=0))


def read_readings(
    source: Path | Table,
    axes: Sequence[str],
    value: str,
    noise_sd: str | None = None,
    channels: Sequence[str] = (),
    *,
    least: int = LEAST_READINGS,
    gaps: bool = False,
) -> Readings:
    """Read named columns, in which every cell has to be a number.

    Parameters
    ----------
    source : Path or Table
        A file of any known format, or its table.
    axes : sequence of d column names
    value : str
        Column that holds the value.
    noise_sd : str, optional
        Column of the readings' noise standard deviations.
    channels : sequence of str
        Columns of other quantities; an entry that is no number becomes NaN.
    least : int
        Fewest readings that the file must have.
    gaps : bool
        Whether a value may be missing, too.

    Raises
    ------
    InputError
        The file can't be read, a column is missing, an entry is not a finite number, a noise is negative, or
        there are too few readings. The message names line and column.
    """
    table = source if isinstance(source, Table) else open_table(source)
    wanted = [*axes, value, *([noise_sd] if noise_sd else []), *channels]
    columns = {name: _find_column(table, name) for name in wanted}
    if len(table) < least:
        raise InputError(
            f"the file has {counted(len(table), 'reading')}",
            expected=f"at least {least}",
            where=str(table.path),
        )
    noise = _finite_numbers(table, columns[noise_sd]) if noise_sd else None
    if noise is not None and (noise < 0).any():
        raise InputError(
            f"noise = {noise.min()}",
            expected="a standard deviation of at least 0",
            where=table.place(int(np.argmax(noise < 0)), str(noise_sd)),
        )
    read_value = table.numbers if gaps else lambda column: _finite_numbers(table, column)
    return Readings(
        np.column_stack([_finite_numbers(table, columns[axis]) for axis in axes]),
        read_value(columns[value]),
        None if noise is None else noise**2,
        {channel: table.numbers(columns[channel]) for channel in channels},
        value,
        tuple(table.lines.tolist()),
    )


def _find_column(table: Table, name: str) -> str:
    """Return the column with a name; that of a header in a comment may begin with ``#`` in world files."""
    return table.column(name if name in table.names else name.lstrip("# "))


def _finite_numbers(table: Table, name: str) -> Array:
    """Return the numbers (n,) of a column, or raise an `InputError` at the first cell that is none."""
    numbers = table.numbers(name)
    if np.isfinite(numbers).all():
        return numbers
    row = int(np.argmin(np.isfinite(numbers)))
    cell = table.cells[name][row]
    raise InputError(
        f"{cell!r} is not a finite number" if cell else "the cell is empty",
        expected="a finite number",
        where=table.place(row, name),
        fix=fix_of_limit(cell) or "correct the cell, or delete the line",
    )
