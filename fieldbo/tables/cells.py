"""What a single cell of a text holds: a number, a time, a position, a unit, or a word of statistics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from fieldbo.tables.units import is_unit

Holds = Literal["nothing", "number", "time", "position", "text"]

MISSING = frozenset(
    {"", "na", "n/a", "nan", "#n/a", "null", "none", "nil", "-", "--", "---", "*", "***", "?"}
)
"""Cells, in lower case, that stand for no value."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_TIME = re.compile(
    r"""(\d{1,4}([-/.])\d{1,2}\2\d{1,4}(?!\d)         # 2024-05-01, 1.5.2024, 05/01/24
    | \d{1,2}:\d{2}(:\d{2})?                         # 12:30
    | \d{1,2}[-\s]?[a-z]{3}[-\s]?\d{2,4}            # 1-May-2024
    | [a-z]{3}\s\d{1,2},?\s\d{4}                    # May 1 2024
    | \d{4}-?\d{2}-?\d{2}t\d                        # 20240501T1230
    )[-+\d:.,TZ ]{0,24}([AP]\.?M\.?)?\s?[A-Z]{0,5}[-+\d:]{0,6}""",
    re.VERBOSE | re.IGNORECASE,
)
_POSITION = re.compile(
    r"[NSEW]\s*\d{1,3}\D.*|\d{1,3}\s*[°º]\s*\d.*|[-+]?\d{1,3}(\.\d+)?\s*[°º]?\s*[NSEW]|\d{4,5}\.\d+\s*[NSEW]"
    r"|\d{1,3}[\s:]\d{1,2}(\.\d+)?[\s:'].*[NSEW]"
)
_MEAN = {"mean", "average", "avg", "mittelwert", "moyenne"}
_SPREAD = {"standard deviation", "std", "stdev", "std dev", "std. dev", "std. dev.", "sd", "s.d.", "variance",
           "standard error", "se", "standardabweichung", "cv", "rms"}  # fmt: skip
_ENDS = {"min", "minimum", "max", "maximum", "median", "range"}
_SIZES = {"count", "n", "sum", "total", "anzahl", "summe"}
_SERIALS = {"sensor serial number", "serial number", "serial no", "serial no.", "seriennummer"}
_LABELS = _MEAN | _SPREAD | _ENDS | _SIZES | _SERIALS
_SHORT = {"avg", "std", "sd", "s.d.", "se", "cv", "rms", "min", "max", "n", "count", "sum", "total", "range"}


def is_number(cell: str) -> bool:
    """Return whether a cell is a plain decimal number.

    Examples
    --------
    >>> [is_number(cell) for cell in ("-1.5e3", "7", "nan", "1,5", "")]
    [True, True, False, False, False]
    """
    return _NUMBER.fullmatch(cell.strip()) is not None


def held(cell: str) -> Holds:
    """Return what a cell holds; numbers may have a decimal comma.

    Examples
    --------
    >>> [held(cell) for cell in ("-1,5", "NA", "2024-05-01 12:00", "47°18.6'N", "16s", "chl")]
    ['number', 'nothing', 'time', 'position', 'text', 'text']
    """
    cell = cell.strip()
    if cell.lower() in MISSING:
        return "nothing"
    if _NUMBER.fullmatch(cell) or _DECIMAL_COMMA.fullmatch(cell):
        return "number"
    if _TIME.fullmatch(cell):
        return "time"
    return "position" if _POSITION.fullmatch(cell) else "text"


def statistic_of(cells: Sequence[str]) -> tuple[int, str, bool] | None:
    """Return which cell says that a row holds a mean or the like, or serial numbers; None if none does.

    Returns
    -------
    (column, label, certain)
        Whether the label is `certain`: written out, not an abbreviation that may be the name of a station.

    Examples
    --------
    >>> statistic_of(["", "", "MEAN VALUE:", "7.1"])
    (2, 'MEAN VALUE', True)
    >>> statistic_of(["SE", "7.1"]), statistic_of(["north", "7.1"])
    ((0, 'SE', False), None)
    """
    for column, cell in enumerate(cells):
        if not cell or cell[-1:].isdigit():
            continue
        label = cell.strip().rstrip(":").strip()
        word = label.lower().removesuffix(" values").removesuffix(" value")
        if word in _LABELS:
            return column, label, word not in _SHORT or cell.strip().endswith(":")
    return None


_BRACKETED = re.compile(r"[(\[{<].*[)\]}>]")
_WIDTH = re.compile(r"\d+[sndSND]")
_PROCESSING = frozenset(
    ["smp", "avg", "min", "max", "tot", "std", "tmn", "tmx", "med", "cov", "wvc", "hst", "sample", "mom", ""]
)
_NO_UNITS = frozenset(
    ["utc", "fraction", "ts", "rn", "1", "-", "none", "unitless", "yyyy-mm-dd", "hh:mm:ss", "hh:mm",
     "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy"]
)  # fmt: skip
"""What a line of units holds for columns that have none, in lower case."""


def may_be_unit(cell: str) -> bool:
    """Return whether a cell of a line of units holds one: a unit, its absence, or text in brackets.

    Examples
    --------
    >>> [may_be_unit(cell) for cell in ("(deg)", "1e-3", "mg/l", "Chl")]
    [True, True, True, False]
    """
    cell = cell.strip()
    return _BRACKETED.fullmatch(cell) is not None or cell.lower() in _NO_UNITS or is_unit(cell)


def is_width(cell: str) -> bool:
    """Return whether a cell is a column's width and type in an .rdb file, such as ``15s``."""
    return _WIDTH.fullmatch(cell.strip()) is not None


def is_processing(cell: str) -> bool:
    """Return whether a cell says how a logger made its values, such as ``Avg``."""
    return cell.strip().lower() in _PROCESSING
