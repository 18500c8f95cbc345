"""Excel workbooks (.xlsx): a sheet is read as the same table would be from text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import LAYER_OPTION, choose, damage_named, library, write_number
from fieldbo.tables.table import Table, make_text_table
from fieldbo.tables.text import parse_text

_KIND = "an Excel workbook"
_LEAST_ROWS, _LEAST_COLUMNS = 3, 2
"""A sheet with fewer holds no readings, and is not asked about."""

_MOST_LISTED = 5
_QUOTE = '"'


def read(path: Path, layer: str | None = None, quantity: str | None = None) -> Table:
    """Return the table in a sheet of a workbook.

    Cells of formulas count with the value that was saved with them; times and dates are written as ISO 8601,
    and what is shown as a percentage counts in percent.

    Parameters
    ----------
    path : Path
    layer : str, optional
        Name of the sheet, if there are several.
    quantity : str, optional
        Which quantity to read, from a sheet that has several in one column.

    Raises
    ------
    InputError
        The workbook is damaged or protected, several sheets may be meant, or formulas were saved without
        values.
    """
    openpyxl = library("openpyxl", "excel", path, "Excel workbooks")
    with damage_named(path, _KIND, "save it again in Excel or LibreOffice, or save the sheet as CSV (UTF-8)"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheets = {sheet.title: sheet for sheet in book.worksheets if sheet.sheet_state == "visible"}
            rows = {name: _read_cells(sheet) for name, sheet in sheets.items()}
        finally:
            book.close()
    name = _choose_sheet(path, rows, layer)
    notes = [f"Excel workbook: sheet {name!r}"]
    left = [other for other in rows if other != name]
    if left:
        notes.append(f"other sheets are left out: {', '.join(left)}; {LAYER_OPTION} NAME takes one of these")
    if any(cell == "" for row in rows[name] for cell in row):
        _check_formulas(path, name, rows[name], openpyxl)
    text = "".join(map(_write_row, rows[name]))
    table = make_text_table(path, parse_text(path, text, notes, quantity))
    return replace(table, row_word="row")


def _read_cells(sheet: Any) -> list[list[str]]:
    """Return the cells of a sheet, without empty rows at its end."""
    rows = [[_write(cell) for cell in row] for row in sheet.iter_rows()]
    while rows and not any(rows[-1]):
        rows.pop()
    width = max((column for row in rows for column, cell in enumerate(row, 1) if cell), default=0)
    return [[*row[:width], *[""] * (width - len(row))] for row in rows]


def _write(cell: Any) -> str:
    """Return the text of a cell."""
    value = cell.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        number = write_number(value)
        return str(Decimal(number) * 100) if number and "%" in (cell.number_format or "") else number
    if isinstance(value, datetime):
        alone = value.time() == time() and "h" not in (cell.number_format or "").lower()
        return value.date().isoformat() if alone else value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return write_number(value.total_seconds())
    return "" if value is None else " ".join(str(value).split())


def _write_row(cells: list[str]) -> str:
    """Return a row as a line of text: quoted where a cell could be taken for a comment or for several."""
    named = any(cells[1:]) and cells[0].startswith(("#", "%", "//"))
    quoted = [
        f'"{cell.replace(_QUOTE, 2 * _QUOTE)}"' if _QUOTE in cell or (named and not column) else cell
        for column, cell in enumerate(cells)
    ]
    return "\t".join(quoted) + "\n"


def _choose_sheet(path: Path, rows: dict[str, list[list[str]]], layer: str | None) -> str:
    """Return the name of the only sheet that may hold readings, or of the one given."""
    sizes = {name: counted(len(cells), "row") for name, cells in rows.items()}
    if layer is not None:
        return choose(path, sizes, layer, "sheet")
    full = {
        name: sizes[name]
        for name, cells in rows.items()
        if len(cells) >= _LEAST_ROWS and len(cells[0]) >= _LEAST_COLUMNS
    }
    if not full:
        raise InputError(
            f"{path.name} has no sheet with readings: {', '.join(sizes) or 'no sheet that is visible'}",
            expected="a sheet with a row of names and a row per reading",
            where=str(path),
        )
    return choose(path, full, None, "sheet")


def _check_formulas(path: Path, name: str, rows: list[list[str]], openpyxl: Any) -> None:
    """Raise an `InputError` if formulas were saved without values, as by programs that can't compute."""
    with damage_named(path, _KIND):
        book = openpyxl.load_workbook(path, read_only=True)
        try:
            empty = list(_find_formulas(book[name].iter_rows(), rows))
        finally:
            book.close()
    if empty:
        some = ", ".join(empty[:_MOST_LISTED]) + (", ..." if len(empty) > _MOST_LISTED else "")
        has = "has" if len(empty) == 1 else "have"
        raise InputError(
            f"{counted(len(empty), 'formula')} in sheet {name!r} {has} no value: {some}",
            expected="a workbook that was saved by Excel or LibreOffice, with the values of its formulas",
            where=f"{path}, sheet {name}",
            fix="open it in Excel or LibreOffice and save it, or save the sheet as CSV (UTF-8)",
        )


def _find_formulas(formulas: Iterable[Any], rows: list[list[str]]) -> Iterable[str]:
    """Yield the names of cells with a formula and no value, such as C7."""
    for row, cells in zip(formulas, rows, strict=False):
        for cell, text in zip(row, cells, strict=False):
            if not text and cell.value is not None and cell.data_type == "f":
                yield cell.coordinate
