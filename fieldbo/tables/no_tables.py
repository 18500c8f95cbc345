"""Texts that are no tables: what they are, and what to export instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fieldbo.errors import InputError
from fieldbo.tables.rows import Row


class NoTable(NamedTuple):
    """A kind of text that is refused."""

    name: str
    begins: str
    """What is found in its first lines."""
    fix: str


_CSV = "export a table with a line of column names and a line per reading, such as CSV"
NO_TABLES = (
    NoTable(
        "a raw Sea-Bird .hex file",
        r"\A\*+ ?Sea-?Bird(?:.*\n)+?\*END\*[^\n]*\n[0-9A-Fa-f]{8,}[ \t]*$",
        "convert it to .cnv with Data Conversion in Sea-Bird's SBE Data Processing or Fathom",
    ),
    NoTable(
        "a Sea-Bird bottle file (.btl), with two lines per bottle",
        r"^ *Bottle +(Bottle +)?Date\b",
        "export the scans as .cnv",
    ),
    NoTable("a Sea-Bird file of bottles fired (.bl)", r"^RESET \w{3} \d\d \d{4}", "export the scans as .cnv"),
    NoTable("an IOS Shell file", r"^\*IOS HEADER VERSION", "convert it to CSV or NetCDF"),
    NoTable(
        "a report of In-Situ's Win-Situ",
        r"^Application:\s+WinSitu",
        "export the log as CSV in Win-Situ, or as HTML in VuSitu",
    ),
    NoTable("a Campbell file in CSIXML", r"<csixml", "choose TOA5 in LoggerNet or CardConvert"),
    NoTable(
        "a Solinst Levelogger .xle file",
        r"<Body_xle>",
        "open it in Levelogger Software, compensate the levels, and export it as CSV",
    ),
    NoTable("a GPX track", r"<gpx\b", "name it with the suffix .gpx"),
    NoTable("a KML file", r"<kml\b", "convert its points to CSV, for example with QGIS"),
    NoTable("an ODF file of Fisheries and Oceans Canada", r"\AODF_HEADER,", "convert it to CSV or NetCDF"),
    NoTable("a log of NMEA 0183 sentences", r"\A(?:[^$!\n]{0,40}[$!][A-Z]{2,5}[A-Z]{3},.*\n){3}", _CSV),
    NoTable("a text in rich text format", r"\A\{\\rtf", "save it as plain text or CSV"),
    NoTable("a Python, R or shell script", r"\A#!|^import \w+$|^library\(\w+\)$", _CSV),
    NoTable("an e-mail", r"\A(From|Received|Return-Path|Delivered-To): ", "save its attachment"),
)  # fmt: skip


_HEAD, _LONG_HEAD = 4_000, 200_000  # characters; of Sea-Bird's files with calibrations


def refuse_no_table(path: Path, text: str) -> None:
    """Raise an `InputError` if a text is of a kind that holds no table.

    Raises
    ------
    InputError
        It says what the text is, and what to export instead.
    """
    head = text[: _LONG_HEAD if text.lstrip().startswith("*") else _HEAD]
    for kind in NO_TABLES:
        if re.search(kind.begins, head, re.MULTILINE):
            raise _refused(path, kind.name, kind.fix)
    start = head.lstrip()
    if re.match(r"(?i)<!doctype html|<html", start):
        raise _refused(path, "a web page", _CSV)
    if start.startswith("<"):
        root = re.search(r"<(?![?!])([\w:.-]+)", start)
        what = f"XML ({root[1]})" if root else "XML"
        raise _refused(path, what, f"in the program that wrote it, {_CSV}")
    if re.match(r'[{\[]\s*("|\{|\[|\}|\]|-?\d+\s*[,\]])', start) and not re.match(
        r"\[[\w ]+\]\s*$", start, re.MULTILINE
    ):
        raise _refused(path, "JSON", _CSV)


def refuse_prose(path: Path, rows: Sequence[Row], delimiter: str | None) -> None:
    """Raise an `InputError` if rows are sentences rather than cells.

    Raises
    ------
    InputError
        Hardly a word is a number and cells are long; or rows have as many lengths as sentences.
    """
    cells = [cell for _, row in rows[:200] for cell in row if cell.strip()]
    words = [word for cell in cells for word in cell.split()]
    wordy = len(words) >= 20 and sum(word[:1].isdigit() for word in words) < 0.05 * len(words)
    lengths = Counter(len(row) for _, row in rows if len(row) > 1)
    ragged = lengths.total() >= 3 and max(lengths.values()) <= 0.5 * lengths.total()
    if (wordy or ragged) if delimiter is None else (wordy and len(words) >= 4 * len(cells)):
        raise _refused(path, "text without columns", _CSV)


def _refused(path: Path, what: str, fix: str) -> InputError:
    return InputError(
        f"{path.name} is {what}",
        expected="a table: a line of column names, and a line per reading",
        where=str(path),
        fix=fix,
    )
