"""A file of text as rows of cells under column names: known forms, and any other table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fieldbo.errors import InputError, counted
from fieldbo.tables.cells import is_number
from fieldbo.tables.decoding import decoded
from fieldbo.tables.forms import PLAIN, VUSITU, Form, apply_form, form_of, other_form_in
from fieldbo.tables.layout import lay_out, names_between_blanks
from fieldbo.tables.no_tables import refuse_no_table, refuse_prose
from fieldbo.tables.quantities import choose_quantity
from fieldbo.tables.rows import Row, delimiter_of, separator_of, split_rows, with_points
from fieldbo.tables.sheet import Sheet
from fieldbo.tables.vusitu import BEGINS, rows_of

_COMMENTS = ("#", "%", "//")
_MOST_COMMENTS = 500


@dataclass(frozen=True)
class Text:
    """The rows of a file.

    Attributes
    ----------
    rows : list of (int, list of str)
        Line number and cells of each row that is not empty, the column names first.
    comments : tuple of str
        The lines above the names, without what marks them as comments.
    units : tuple of str
        Units from a line below the names or from the form, one per column or none at all.
    notes : tuple of str
        What was recognised.
    form : str
        The known form of the file; empty for a plain table.
    roles : tuple of str
        What the form says that each column holds; empty where it says nothing.
    missing : tuple of float
        Numbers that stand for no value, as the form says.
    """

    rows: list[Row]
    comments: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    form: str = ""
    roles: tuple[str, ...] = ()
    missing: tuple[float, ...] = ()


def read_text(path: Path, quantity: str | None = None) -> Text:
    """Read a table of text: in a known form, or any other with a line of names and a line per reading.

    Cells are separated by commas, semicolons, tabs or blanks, and quoted as in RFC 4180; the text may be
    gzipped, and is in UTF-8, UTF-16 or Latin-1. Decimal commas become points. What stands above the names,
    lines of units below them, rows of statistics and repeated names are left out of the readings.

    Parameters
    ----------
    path : Path
    quantity : str, optional
        Which quantity to read, from a table that has several in one column.

    Raises
    ------
    InputError
        The file is missing, empty or no table, it mixes decimal commas with points, or one of several
        quantities must be chosen.
    """
    return parse_text(path, *decoded(path), quantity)


def parse_text(path: Path, text: str, notes: Sequence[str] = (), quantity: str | None = None) -> Text:
    """Return the rows of a text, as `read_text` does; its lines end with line feeds.

    Raises
    ------
    InputError
        As `read_text`.
    """
    if not text.strip():
        raise _empty(path)
    form: Form | None
    if re.search(BEGINS, text[:_LONGEST_HEAD]):
        form, sheet = VUSITU, _read_report(path, text)
    else:
        refuse_no_table(path, text)
        form = form_of(text)
        sheet = _read_table(path, text, form)
    said = form.name if form else ""
    if sheet.units_line:
        said = (
            f"{said}: units from line {sheet.units_line}" if said else f"line {sheet.units_line} holds units"
        )
    apply_form(form or PLAIN, sheet)
    choose_quantity(sheet, quantity)
    return Text(
        [(sheet.line, sheet.names), *sheet.rows],
        _comments(sheet.above),
        tuple(sheet.units) if any(sheet.units) else (),
        (*notes, *([said] if said else []), *sheet.notes),
        form.name if form else "",
        tuple(sheet.roles),
        tuple(sorted(sheet.missing)),
    )


_LONGEST_HEAD = 200_000  # a report begins with the maker's logo


def _read_report(path: Path, text: str) -> Sheet:
    above, rows, notes = rows_of(text)
    if len(rows) < 2:
        raise InputError(
            "the report holds no readings",
            expected="an HTML report of VuSitu with a table of readings",
            where=str(path),
        )
    sheet = lay_out(path, rows[1:], top=rows[0])
    sheet.above = above
    sheet.notes += notes
    return sheet


def _read_table(path: Path, text: str, form: Form | None) -> Sheet:
    """Return the table in a text of rows."""
    lines = text.split("\n")
    start = _find_start(path, lines, form)
    if start == len(lines):
        raise _empty(path)
    delimiter = next(filter(None, map(separator_of, lines[:start])), None)
    if form and form.delimiter:
        delimiter = None if form.delimiter == "blanks" else form.delimiter
    elif delimiter is None:
        delimiter = delimiter_of(lines[start:])
    rows = split_rows(path, lines[start:], delimiter, start + 1)
    if not rows:
        raise InputError("the file has no readings", expected="a line per reading", where=str(path))
    if form is None:
        refuse_prose(path, rows, delimiter)
    notes = [] if text.endswith("\n") else _leave_cut_line_out(rows)
    below, name = (form.below, form.name) if form else ((), "")
    if form and form.header:
        below = form.header[2:]
        rows = rows[form.header.index("names") :]
    top = _names_above(path, form, lines[:start], rows, delimiter)
    if not rows or (top is not None and not top[1]):
        raise InputError(
            "the file ends within its header", expected=f"the header of {name} and readings", where=str(path)
        )
    sheet = lay_out(path, rows, below, name, top)
    _check_forms(sheet, lines, form)
    if form and form.column_width:
        _check_width(sheet, lines, form.column_width)
    if delimiter is None and top is None:
        sheet.rename(names_between_blanks(path, sheet, lines[sheet.line - 1]))
    sheet.above = "\n".join(lines[: start if form and form.named else sheet.line - 1])
    sheet.notes[:0] = notes
    if form is None:
        sheet.notes += _about_names(sheet, rows[0][0], in_comment=top is not None)
    if delimiter != "," or '"' in text:
        sheet.rows, commas = with_points(path, sheet.rows, delimiter)
        if commas:
            sheet.notes.append("decimal commas are read as points")
    return sheet


def _about_names(sheet: Sheet, first: int, *, in_comment: bool) -> list[str]:
    """Return a note on where the names stand, if that is not the first line that is no comment."""
    if in_comment:
        return ["the last comment line holds the column names"]
    if first < sheet.line:
        return [f"lines {first} to {sheet.line - 1} above the column names are left out"]
    return []


def _check_forms(sheet: Sheet, lines: Sequence[str], form: Form | None) -> None:
    """Raise an `InputError` if what stands among the readings begins a file of another form."""
    among = "\n".join(lines[line - 1] for line in sheet.others)
    other = other_form_in(among, form) if among else None
    if other is not None:
        raise InputError(
            f"two files seem to be in one: {form.name if form else 'a table'} and {other.name}",
            expected="one table",
            where=f"{sheet.path}, line {sheet.others[0]} and below",
            fix="put each table into a file of its own",
        )


def _find_start(path: Path, lines: Sequence[str], form: Form | None) -> int:
    """Return the index of the first line that is no comment, or of the first one below a header."""
    if form and form.ends:
        ends = re.compile(form.ends)
        found = next((i for i, line in enumerate(lines, 1) if ends.search(line)), None)
        if found is None:
            raise InputError(
                "the file ends within its header",
                expected=f"the header of {form.name} and readings",
                where=str(path),
                fix="copy or download it again",
            )
        return found
    if form and form.names:
        return next((i for i, line in enumerate(lines) if line.startswith(form.names)), len(lines))
    marks = _COMMENTS if form is None else (form.comment,) if form.comment else ()
    for i, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith(marks) and separator_of(line) is None:
            return i
    return len(lines)


def _names_above(
    path: Path, form: Form | None, above: Sequence[str], rows: Sequence[Row], delimiter: str | None
) -> Row | None:
    """Return the names if they stand above the table: in a line each, or in the last comment."""
    if form and form.named:
        found = list(re.finditer(form.named, "\n".join(above), re.MULTILINE))
        numbers = [int(each["at"]) for each in found if "at" in each.groupdict()]
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            raise InputError(
                "columns are named in another order, or some are missing",
                expected=f"columns {numbers[0]}, {numbers[0] + 1}, ... one after the other",
                where=f"{path}, line {len(above)} and above",
                fix="export the file again",
            )
        return len(above), [*form.leading, *(each["name"].strip() for each in found)]
    comment = next((line for line in reversed(above) if line.strip()), "")
    if form is not None or not comment.lstrip().startswith(_COMMENTS):
        return None
    if not any(map(is_number, rows[0][1])):
        return None
    plain = comment.strip().lstrip("#%/").strip()
    cells = split_rows(Path(), [plain], delimiter_of([plain]) if delimiter is None else delimiter)
    return (len(above), cells[0][1]) if cells and len(cells[0][1]) == len(rows[0][1]) else None


def _check_width(sheet: Sheet, lines: Sequence[str], width: int) -> None:
    """Split rows whose numbers touch each other by the width of columns.

    Raises
    ------
    InputError
        A row has fewer or more cells than there are columns.
    """
    n = len(sheet.names)
    for at, (line, cells) in enumerate(sheet.rows):
        if len(cells) == n:
            continue
        text = lines[line - 1].rstrip()
        pieces = [text[i : i + width].strip() for i in range(0, len(text), width)]
        if len(pieces) != n or not all(map(is_number, pieces)):
            raise InputError(
                f"the line has {counted(len(cells), 'cell')}",
                expected=f"{n}, one per column ({', '.join(sheet.names)})",
                where=f"{sheet.path}, line {line}",
                fix="export the file again",
            )
        sheet.rows[at] = line, pieces


def _leave_cut_line_out(rows: list[Row]) -> list[str]:
    """Remove the last row if the file ends within it, and return a note on it."""
    usual = [cells for _, cells in rows[-12:-1]]
    line, cells = rows[-1]
    if len(usual) < 3 or not cells[-1].strip():
        return []
    decimals = {len(row[-1].strip().partition(".")[2]) for row in usual if is_number(row[-1])}
    fewer = len(decimals) == 1 and len(cells[-1].strip().partition(".")[2]) < min(decimals)
    if len(cells) >= min(map(len, usual)) and not fewer:
        return []
    rows.pop()
    return [f"the file ends within line {line}, which is left out"]


def _comments(above: str) -> tuple[str, ...]:
    """Return the lines above the names, without marks of comments and delimiters at the end."""
    said = [line for line in above.split("\n")[:_MOST_COMMENTS] if separator_of(line) is None]
    plain = [line.strip().lstrip("#%/*").strip().rstrip(",;\t ").strip('"') for line in said]
    return tuple(line for line in plain if line and line[0] not in ",;")


def _empty(path: Path) -> InputError:
    return InputError("the file is empty", expected="a line of column names", where=str(path))
