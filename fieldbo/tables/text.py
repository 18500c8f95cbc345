"""From the bytes of a text file of any encoding, delimiter and compression to rows of cells."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.units import clean_unit, is_unit

Row = tuple[int, list[str]]
"""Line number and cells of a row."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[{<]\s*(.*?)\s*[)\]}>]")


def is_number(cell: str) -> bool:
    """Return whether a cell is a plain decimal number.

    Examples
    --------
    >>> [is_number(cell) for cell in ("-1.5e3", "7", "nan", "1,5", "")]
    [True, True, False, False, False]
    """
    return _NUMBER.fullmatch(cell.strip()) is not None


def units_row(rows: list[Row]) -> list[str] | None:
    """Return the units if the row below the column names holds them, one per column; None if it does not.

    No cell of such a row is a number, one at least is in brackets or a unit that is known, and numbers begin
    below it.

    Examples
    --------
    >>> units_row([(1, ["t", "lat", "v"]), (2, ["", "(deg)", "[mg/l]"]), (3, ["12:00", "47.1", "3"])])
    ['', 'deg', 'mg/l']
    >>> units_row([(1, ["x", "v"]), (2, ["NA", "NA"]), (3, ["1", "2"])]) is None
    True
    """
    if len(rows) < 3:
        return None
    cells = [cell.strip() for cell in rows[1][1]]
    below = [cell.strip() for cell in rows[2][1]]
    if any(map(is_number, cells)) or len(cells) > len(rows[0][1]):
        return None
    if not any(_is_unit(cell) and is_number(number) for cell, number in zip(cells, below, strict=False)):
        return None
    return [clean_unit(cell) for cell in cells] + [""] * (len(rows[0][1]) - len(cells))


def _is_unit(cell: str) -> bool:
    return _BRACKETS.fullmatch(cell) is not None or is_unit(cell)


_EXPECTED = "a CSV file of readings"
_SAMPLE = 400  # lines that tell how many cells a row has
_FEWEST_CELLS, _WHOLE, _LONGEST_PREAMBLE = 3, 0.8, 60
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+")
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\v\x1a")


@dataclass(frozen=True)
class Text:
    """The rows of a file.

    Attributes
    ----------
    rows : list of (int, list of str)
        Line number and cells of each row that is not empty, the column names first.
    comments : tuple of str
        Comment lines above the first row, without their ``#``.
    units : tuple of str
        Units from a line below the names, one per column or none at all; that line is not in `rows`.
    notes : tuple of str
        What was recognised.
    """

    rows: list[Row]
    comments: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_text(path: Path) -> Text:
    """Read a table separated by comma, semicolon, tab or blanks; gzip, UTF-8, UTF-16 or Latin-1.

    Lines above the table that begin with ``#`` are comments, and so is an Excel line ``sep=;``. If the last
    comment has as many cells as the first row, and that row holds a number, the comment holds the names.
    Lines above the names that have far fewer cells than most are a logger's preamble, and left out. In a
    table separated by semicolons, tabs or blanks, decimal commas become points. A line of units below the
    names is recognised.

    Raises
    ------
    InputError
        The file is missing, empty or not text, or it mixes decimal commas with points.
    """
    return parse_text(path, *_decode(path, _read_bytes(path)))


def parse_text(path: Path, text: str, notes: list[str]) -> Text:
    """Return the rows of a text, as `read_text` does."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if not _is_above(line)), 0)
    preamble = _count_preamble(lines[start : start + _SAMPLE])
    if preamble:
        notes.append(f"lines {start + 1} to {start + preamble} above the column names are left out")
        start += preamble
    above, declared = lines[:start], None
    for line in above:
        declared = declared or _find_separator(line)
    head = [line.strip() for line in above if line.lstrip().startswith("#")]
    if not any(line.strip() for line in lines):
        raise InputError("the file is empty", expected="a line of column names", where=str(path))
    delimiter = declared or _find_delimiter(lines[start])
    try:
        rows = _split(lines[start:], delimiter, start)
    except csv.Error as error:
        raise InputError(
            f"this is not a CSV file: {error}", expected="cells without line breaks", where=str(path)
        ) from None
    if not rows:
        raise InputError("the file is empty", expected="a line of column names", where=str(path))
    width = len(rows[0][1])  # a station may be called #7, but then its row is whole
    rows = [row for row in rows if not row[1][0].lstrip().startswith("#") or len(row[1]) == width]
    rows, head, comment_is_header = _move_header(rows, head, delimiter, start)
    if comment_is_header:
        notes.append("the last comment line holds the column names")
    comma = delimiter != "," and _has_decimal_commas(path, rows, certain=delimiter == ";")
    if comma:
        rows = [rows[0], *((line, [_replace_comma(cell) for cell in cells]) for line, cells in rows[1:])]
        notes.append("decimal commas are read as points")
    units = units_row(rows)
    if units is not None:
        notes.append(f"line {rows[1][0]} holds units")
        del rows[1]
    comments = tuple(line.lstrip("#").strip() for line in head)
    return Text(rows, comments, tuple(units or ()), tuple(notes))


def _count_preamble(lines: list[str]) -> int:
    """Return how many lines a logger wrote above the column names: they have far fewer cells than most."""
    if not lines:
        return 0
    delimiter = max(";\t,", key=lambda mark: sum(mark in line for line in lines))
    counts = [sum(bool(cell.strip(' "')) for cell in line.split(delimiter)) for line in lines]
    usual = max(set(counts), key=counts.count)
    if usual < _FEWEST_CELLS or counts.count(usual) < 0.5 * len(counts):
        return 0
    first = next(i for i, count in enumerate(counts) if count >= _WHOLE * usual)
    if first and counts[first - 1] > 1 and all(map(is_number, lines[first].split(delimiter))):
        return 0  # the line above holds too few names, which is not a preamble but a fault
    return first if first <= _LONGEST_PREAMBLE else 0


def _is_above(line: str) -> bool:
    """Return whether a line above the column names is none of them."""
    return not line.strip() or line.lstrip().startswith("#") or _find_separator(line) is not None


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path.name}", expected=_EXPECTED, where=str(path.parent)
        ) from None
    except IsADirectoryError:
        raise InputError(f"{path.name} is a folder", expected=_EXPECTED, where=str(path)) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(
            "the compressed file is damaged or incomplete",
            expected="a whole gzip file",
            where=str(path),
            fix="copy or download it again",
        ) from None
    except OSError as error:
        raise InputError(
            f"the file can't be read: {error.strerror}", expected=_EXPECTED, where=str(path)
        ) from None


def _decode(path: Path, content: bytes) -> tuple[str, list[str]]:
    wide = _guess_wide_encoding(content)
    if b"\0" in content and not wide:
        raise _not_text(path)
    try:
        return content.decode(wide or "utf-8-sig"), ["read as UTF-16"] if wide else []
    except UnicodeDecodeError:
        if wide or _CONTROLS & frozenset(content) or _is_not_latin(content):
            raise _not_text(path) from None
    try:
        return content.decode("cp1252"), ["read as Windows-1252 (Latin-1)"]
    except UnicodeDecodeError:
        return content.decode("latin-1"), ["read as Latin-1"]


def _guess_wide_encoding(content: bytes) -> str | None:
    """Return the kind of UTF-16, by its byte order mark or its many zeros; None if it is another encoding."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    half = len(content) // 2
    if half and content[1::2].count(0) > 0.8 * half:
        return "utf-16-le"
    return "utf-16-be" if half and content[::2].count(0) > 0.8 * half else None


def _is_not_latin(content: bytes) -> bool:
    """Return whether too much is beyond ASCII for the log of an instrument."""
    return sum(byte > 127 for byte in content) > 0.2 * len(content)


def _not_text(path: Path) -> InputError:
    return InputError(
        "the file is not text",
        expected="a CSV file in UTF-8",
        where=str(path),
        fix="export it from the spreadsheet as CSV (UTF-8)",
    )


def _find_separator(line: str) -> str | None:
    """Return the delimiter of Excel's line ``sep=;``."""
    found = re.fullmatch(r'"?sep=(.)"?', line.strip(" \r\n"), re.IGNORECASE)
    return found[1] if found and found[1] in ",;\t" else None


def _find_delimiter(header: str) -> str | None:
    """Return the delimiter that a line of column names uses most, outside quotes; None for blanks."""
    plain = re.sub(r'"[^"]*"', "", header)
    delimiter = max(",;\t", key=plain.count)
    return delimiter if plain.count(delimiter) else None


def _split(lines: list[str], delimiter: str | None, above: int) -> list[Row]:
    """Return the non-empty rows as (line number, cells)."""
    if delimiter is None:
        numbered = enumerate(lines, above + 1)
        split = ((i, line.replace('"', "").split()) for i, line in numbered)
        return [(i, cells) for i, cells in split if cells]
    reader = csv.reader(lines, delimiter=delimiter)
    return [(above + reader.line_num, row) for row in reader if any(c.strip() for c in row)]


def _move_header(
    rows: list[Row], comments: list[str], delimiter: str | None, above: int
) -> tuple[list[Row], list[str], bool]:
    """Return the rows and comments, the column names moved from the last comment if they are there."""
    if not comments or not rows or not any(is_number(cell) for cell in rows[0][1]):
        return rows, comments, False
    names = comments[-1].lstrip("#").strip()
    cells = _split([names], _find_delimiter(names) if delimiter is None else delimiter, 0)
    if not cells or len(cells[0][1]) != len(rows[0][1]):
        return rows, comments, False
    return [(above, cells[0][1]), *rows], comments[:-1], True


def _has_decimal_commas(path: Path, rows: list[Row], *, certain: bool) -> bool:
    """Return whether numbers have decimal commas.

    Raises
    ------
    InputError
        Points and commas are mixed. Or the comma may separate thousands, since three digits always follow it;
        `certain` excludes that.
    """
    point: tuple[int, str] | None = None
    commas: list[tuple[int, str]] = []
    for line, cells in rows[1:]:
        for cell in map(str.strip, cells):
            if "," in cell and (_DECIMAL_COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell)):
                commas.append((line, cell))
            elif point is None and "." in cell and is_number(cell):
                point = (line, cell)
    if not commas:
        return False
    grouped = next((each for each in commas if "." in each[1]), None)
    line, cell = grouped or commas[0]
    fix = "export the table again with decimal points, and no sign between thousands"
    if grouped or point:
        other = "points between thousands" if grouped or point is None else f"{point[1]!r} in line {point[0]}"
        raise InputError(
            f"decimal commas and points are mixed: {cell!r} and {other}",
            expected="one decimal sign in the whole file",
            where=f"{path}, line {line}",
            fix=fix,
        )
    if not certain and all(re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", cell) for _, cell in commas):
        raise InputError(
            f"{cell!r} may have a decimal comma, or a comma between thousands",
            expected="decimal points, or semicolons between the cells",
            where=f"{path}, line {line}",
            fix=fix,
        )
    return True


def _replace_comma(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell
