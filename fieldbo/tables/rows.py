"""From lines of text to rows of cells: delimiters, quotes and decimal commas."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.cells import is_number

Row = tuple[int, list[str]]
"""Line number and cells of a row."""

DELIMITERS = "\t;,|"
_SAMPLE = 300
_FEW = 3
_MOST_COLUMNS = 10_000
_QUOTED = re.compile(r'"[^"]*"')
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+")
_COMMAS_BETWEEN_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+|[-+]?\d{1,3}(,\d{3}){2,}")
_PERHAPS_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


def separator_of(line: str) -> str | None:
    """Return the delimiter that Excel's line ``sep=;`` declares; None for another line.

    Examples
    --------
    >>> separator_of("sep=;"), separator_of("a;b")
    (';', None)
    """
    found = re.fullmatch(r'"?sep=(.)"?[,;\t]*', line.strip(" \n"), re.IGNORECASE)
    return found[1] if found and found[1] in DELIMITERS else None


def delimiter_of(lines: Sequence[str]) -> str | None:
    """Return the delimiter of most lines; None for blanks.

    Of those that split most lines alike, it is the one that does so from the first line on: decimal commas
    begin below the names.

    Examples
    --------
    >>> delimiter_of(["lat;chl", "47,1;3,5", "47,2;3,6"]), delimiter_of(["lat chl", "47,1 3"])
    (';', None)
    """
    sample = _some(lines)
    plain = [_QUOTED.sub('""', line) for line in sample]
    found: list[tuple[int, int, str | None]] = []
    for mark in (*DELIMITERS, None):
        counts = [len(line.split(mark)) for line in plain]
        several = Counter(count for count in counts if count > 1)
        if several:
            usual = max(several, key=lambda count: (several[count], count))
            found.append((several[usual], counts.index(usual), mark))
    marked = [each for each in found if each[2] is not None and each[0] >= min(2, 0.5 * len(sample))]
    if not marked:
        return None
    most = max(alike for alike, _, _ in marked)
    if sum(map(_is_of_numbers, plain)) > _FEW * most:
        return None  # the marks stand in a text above a table
    best = [each for each in marked if each[0] >= 0.5 * most]
    _, first, mark = min(best, key=lambda each: each[1])
    blanks = next((alike for alike, at, each in found if each is None and at < first), 0)
    named = sum(not cell.strip()[:1].isdigit() for cell in plain[first].split(mark))
    return None if blanks >= most and named < len(plain[first].split(mark)) / 2 else mark


def _is_of_numbers(line: str) -> bool:
    """Return whether blanks separate mostly numbers in a line."""
    cells = line.split()
    return len(cells) > 1 and sum(cell[0].isdigit() or cell[0] in "+-." for cell in cells) > 0.5 * len(cells)


def _some(lines: Sequence[str]) -> list[str]:
    """Return the first lines, and some of all others."""
    rest = lines[_SAMPLE:]
    return [line for line in (*lines[:_SAMPLE], *rest[:: 1 + len(rest) // _SAMPLE]) if line.strip()]


def split_rows(path: Path, lines: Sequence[str], delimiter: str | None, first: int = 1) -> list[Row]:
    """Return the rows that are not empty, quoted as in RFC 4180.

    Parameters
    ----------
    path : Path
        For messages.
    lines : sequence of str
    delimiter : str or None
        None for blanks.
    first : int
        The number of the first line.

    Raises
    ------
    InputError
        A quote is never closed, or swallows rows; or a row has more cells than any table.
    """
    rows = _split_rows(path, lines, delimiter, first)
    line, most = max(((line, len(cells)) for line, cells in rows), key=lambda row: row[1], default=(0, 0))
    if most > _MOST_COLUMNS:
        raise InputError(
            f"the line has {most:,} cells",
            expected=f"a table of at most {_MOST_COLUMNS:,} columns",
            where=f"{path}, line {line}",
            fix="export a line per reading, and the columns that you need",
        )
    return rows


def _split_rows(path: Path, lines: Sequence[str], delimiter: str | None, first: int) -> list[Row]:
    if delimiter is None and not any('"' in line for line in lines):
        return [(i, cells) for i, cells in enumerate(map(str.split, lines), first) if cells]
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter or " ", skipinitialspace=delimiter is None
    )
    rows, before = [], 0
    try:
        for cells in reader:
            line, before = first + before, reader.line_num
            if before - line + first > 1:
                _check_quotes(path, line, cells, lines[line - first : before], delimiter)
            if any(cell.strip() for cell in cells):
                rows.append((line, cells))
    except csv.Error:
        raise _open_quote(path, first + before) from None
    if delimiter is None:
        rows = [(line, [cell for cell in cells if cell]) for line, cells in rows]
    return rows


def _check_quotes(
    path: Path, line: int, cells: Sequence[str], spanned: Sequence[str], delimiter: str | None
) -> None:
    """Raise an `InputError` if a cell over several lines is rather a quote that was not closed."""
    width = len(cells) - 1
    swallowed = any(inner.count(delimiter or " ") >= max(2, width) for inner in spanned[1:-1])
    if swallowed or "".join(spanned).count('"') % 2:
        raise _open_quote(path, line)


def _open_quote(path: Path, line: int) -> InputError:
    return InputError(
        "a quote is opened and never closed",
        expected='text in pairs of quotes, and quotes within it doubled ("")',
        where=f"{path}, line {line}",
        fix="remove the single quote, or close it",
    )


def with_points(path: Path, rows: list[Row], delimiter: str | None) -> tuple[list[Row], bool]:
    """Return rows with decimal points for decimal commas, and whether there were any.

    Between semicolons a comma is a decimal comma; elsewhere it may stand between thousands.

    Raises
    ------
    InputError
        Points and commas are mixed, or it is not clear what a comma means.
    """
    if not _has_decimal_commas(path, rows, certain=delimiter == ";"):
        return rows, False
    return [(line, [_point(cell) if "," in cell else cell for cell in cells]) for line, cells in rows], True


def _has_decimal_commas(path: Path, rows: Iterable[Row], *, certain: bool) -> bool:
    point: tuple[int, str] | None = None
    commas: list[tuple[int, str]] = []
    for line, cells in rows:
        for cell in map(str.strip, cells):
            if "," in cell:
                if _DECIMAL_COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell):
                    commas.append((line, cell))
                elif _COMMAS_BETWEEN_THOUSANDS.fullmatch(cell):
                    raise _thousands(path, line, f"{cell!r} has a comma between thousands")
            elif point is None and "." in cell and is_number(cell):
                point = (line, cell)
    if not commas:
        return False
    grouped = next((each for each in commas if "." in each[1]), None)
    line, cell = grouped or commas[0]
    if grouped or point:
        other = "points between thousands" if grouped or point is None else f"{point[1]!r} in line {point[0]}"
        raise InputError(
            f"decimal commas and points are mixed: {cell!r} and {other}",
            expected="one decimal sign in the whole file",
            where=f"{path}, line {line}",
            fix="export the table again with decimal points, and no sign between thousands",
        )
    if not certain and all(_PERHAPS_THOUSANDS.fullmatch(cell) for _, cell in commas):
        raise _thousands(path, line, f"{cell!r} may have a decimal comma, or a comma between thousands")
    return True


def _thousands(path: Path, line: int, problem: str) -> InputError:
    return InputError(
        problem,
        expected="decimal points, or semicolons between the cells",
        where=f"{path}, line {line}",
        fix="export the table again with decimal points, and no sign between thousands",
    )


def _point(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell
