"""The HTML report of In-Situ's VuSitu and HydroVu as the rows of a table."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

from fieldbo.errors import counted
from fieldbo.tables.rows import Row

BEGINS = r'<table[^>]*\bid="isi-report"|name="isi-(report|csv)'
"""What is found in such a report, and in no other page."""

_ROW = re.compile(r"<tr\b([^>]*)>(.*?)</tr>", re.DOTALL | re.IGNORECASE)
_CELL = re.compile(r"<td\b([^>]*)>(.*?)</td>", re.DOTALL | re.IGNORECASE)
_DATA = re.compile(r"""\bclass=["']?(?:[^"']*\s)?data\b""", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_QUALITY = re.compile(r'isi-data-quality="(\d+)"')
_QUALITIES = {
    "1": "with an expired user calibration",
    "2": "with an expired factory calibration",
    "3": "with an error",
    "4": "while the sensor warmed up",
    "5": "with a warning",
    "6": "while calibrating",
    "7": "of a sensor that was off line",
}
_WRONG = ("3", "6", "7")


def rows_of(text: str) -> tuple[str, list[Row], list[str]]:
    """Return the lines above the table, its rows with their lines in the report, and notes on flagged values.

    Values that the sonde flags as an error are left out.
    """
    above: list[str] = []
    rows: list[Row] = []
    qualities: Counter[str] = Counter()
    at, line = 0, 1
    for found in _ROW.finditer(text):
        line, at = line + text.count("\n", at, found.start()), found.start()
        cells = _CELL.findall(found[2])
        names = "isi-data-table" in found[1] or any("isi-data-column-header" in each for each, _ in cells)
        if not names and "isi-data-row" not in found[1] and not (rows and _DATA.search(found[1])):
            above.append(" ".join(_plain(cell) for _, cell in cells))
            continue
        flags = [_QUALITY.search(attributes) for attributes, _ in cells]
        codes = [flag[1] if flag else "" for flag in flags]
        qualities.update(code for code in codes if code in _QUALITIES)
        rows.append(
            (
                line,
                [
                    "" if code in _WRONG else _plain(cell)
                    for code, (_, cell) in zip(codes, cells, strict=True)
                ],
            )
        )
    notes = [
        f"{counted(qualities[code], 'value')} {what}, {'left out' if code in _WRONG else 'and used'}"
        for code, what in _QUALITIES.items()
        if qualities[code]
    ]
    return "\n".join(above), rows, notes


def _plain(cell: str) -> str:
    return unescape(_TAG.sub("", cell) if "<" in cell else cell).strip()
