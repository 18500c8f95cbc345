"""Readings from a CSV file, with errors that name the line and the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.tables.rows import Row
from fieldbo.tables.table import LEAST_READINGS, check_widths, fix_of_limit
from fieldbo.tables.text import read_text


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
    path: Path,
    axes: Sequence[str],
    value: str,
    noise_sd: str | None = None,
    channels: Sequence[str] = (),
    *,
    least: int = LEAST_READINGS,
    gaps: bool = False,
) -> Readings:
    """Read the named columns of a CSV file, separated by comma, semicolon, tab or blanks.

    Parameters
    ----------
    path : Path
    axes : sequence of d column names
    value : str
        Column that holds the value.
    noise_sd : str, optional
        Column of the readings' noise standard deviations.
    channels : sequence of str
        Columns of other quantities; a missing or empty entry becomes NaN.
    least : int
        Fewest readings that the file must have.
    gaps : bool
        Whether a value may be missing, too.

    Raises
    ------
    InputError
        The file is missing or not text, a column is missing, an entry is not a finite number, a noise is
        negative, or there are too few readings. The message names line and column.
    """
    rows = read_text(path).rows
    wanted = [*axes, value, *([noise_sd] if noise_sd else []), *channels]
    named = [name.strip() for name in rows[0][1]]
    plain = {name: name if name in named else name.lstrip("# ") for name in wanted}  # of a commented header
    header = _check_header(path, rows, list(plain.values()))
    position = {name: header.index(plain[name]) for name in wanted}

    def column(name: str, *, gaps: bool = False) -> Array:
        return np.array(
            [_parse_number(path, line, cells, name, position[name], gaps) for line, cells in rows[1:]]
        )

    if len(rows) - 1 < least:
        raise InputError(
            f"the file has {counted(len(rows) - 1, 'reading')}", expected=f"at least {least}", where=str(path)
        )
    noise = column(noise_sd) if noise_sd else None
    if noise is not None and (noise < 0).any():
        line = rows[1 + int(np.argmax(noise < 0))][0]
        raise InputError(
            f"noise = {noise.min()}",
            expected="a standard deviation of at least 0",
            where=f"{path}, line {line}, column {noise_sd}",
        )
    return Readings(
        np.column_stack([column(a) for a in axes]),
        column(value, gaps=gaps),
        None if noise is None else noise**2,
        {c: column(c, gaps=True) for c in channels},
        value,
        tuple(line for line, _ in rows[1:]),
    )


def column_names(path: Path) -> list[str]:
    """Return the column names of a CSV file, in order.

    Raises
    ------
    InputError
        The file is missing, empty or not text.
    """
    return [name.strip() for name in read_text(path).rows[0][1]]


def column_cells(path: Path, name: str) -> list[tuple[int, str]]:
    """Return line number and text of each cell of a column; empty text where a row is too short.

    Raises
    ------
    InputError
        As for `column_names`, or there is no such column.
    """
    rows = read_text(path).rows
    index = _check_header(path, rows, [name]).index(name)
    return [(line, cells[index].strip() if index < len(cells) else "") for line, cells in rows[1:]]


def _check_header(path: Path, rows: list[Row], wanted: Sequence[str]) -> list[str]:
    """Return the column names, after checking that all `wanted` exist and that no row is too long."""
    first, names = rows[0]
    header = [name.strip() for name in names]
    for name in wanted:
        if name not in header:
            raise UnknownNameError.of("column", name, header, where=f"{path}, line {first}")
        if header.count(name) > 1:
            raise InputError(
                f"{header.count(name)} columns are named {name!r}",
                expected="one column with that name",
                where=f"{path}, line {first}",
            )
    check_widths(path, rows[1:], header)
    return header


def _parse_number(path: Path, line: int, cells: list[str], name: str, index: int, gaps: bool) -> float:
    cell = cells[index].strip() if index < len(cells) else ""
    if gaps and cell.lower() in ("", "na", "nan"):
        return float("nan")
    try:
        number = float(cell)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number) and not gaps:
        raise InputError(
            f"{cell!r} is not a finite number" if cell else "the cell is empty",
            expected="a finite number",
            where=f"{path}, line {line}, column {name}",
            fix=fix_of_limit(cell) or "correct the cell, or delete the line",
        )
    return number


def inside(folder: Path, name: str, *, where: str, owner: str = "world") -> Path:
    """Return ``folder / name``, or raise an `InputError` if that lies outside the `owner`'s folder."""
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError):
        raise InputError(
            f"{name!r} is not a valid file name", expected="the name of a file", where=where
        ) from None
    if not path.is_relative_to(folder.resolve()):
        raise InputError(
            f"{name!r} lies outside the folder {folder.name or '.'}",
            expected=f"a file in the {owner}'s own folder",
            where=where,
            fix="copy the file there",
        )
    return path
