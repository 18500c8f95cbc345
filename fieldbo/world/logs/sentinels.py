"""Numbers in a log that are no readings: codes for "no value", and limits of detection."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.world.logs.log import Log
from fieldbo.world.logs.text import fix_of_limit

_NINES = re.compile(r"-?9{2,}(\.9+)?|-?9\.9{2,}")
_OTHERS = frozenset({-32768.0, 32767.0, 65535.0, 1e30, -1e30, 1e32, 1e34, 1e35, 1e36, 1e37, -8888.0, -7777.0})
_LIMIT = re.compile(r"[<>≤≥]=?\s*\d.*")
_FAR = 5.0
"""Distance from all other values, in ranges of these, at which such a number is suspect."""


def sentinel_doubts(values: Array, name: str, known: Sequence[float] = ()) -> list[str]:
    """Return a question for each number, such as -9999, that may stand for no value.

    It is a usual code, and lies by itself, far outside the range of the other values.

    Parameters
    ----------
    values : (n,) array
    name : str
        Column of the values.
    known : sequence of float
        Numbers already known to stand for no value.

    Examples
    --------
    >>> sentinel_doubts(np.array([4.1, -999.0, 5.2, 4.4, -999.0]), "temp")[0][:40]
    'temp is -999 in 2 rows and else between '
    >>> sentinel_doubts(np.array([98.0, 99.0, 95.0]), "saturation")
    []
    """
    finite = values[np.isfinite(values)]
    numbers, counts = np.unique(finite, return_counts=True)
    codes = np.array([_is_code(number) and number not in known for number in numbers], dtype=bool)
    real = numbers[~codes]
    if not len(real):
        return []
    low, high = float(real.min()), float(real.max())
    doubts = []
    for number, count in zip(numbers[codes], counts[codes], strict=True):
        if max(low - number, number - high) > _FAR * max(high - low, 1e-9 * abs(number)):
            doubts.append(
                f"{name} is {number:g} in {counted(int(count), 'row')} and else between {low:g} and "
                f"{high:g}; does it stand for no value? Then add --missing {number:g}"
            )
    return doubts


def _is_code(number: float) -> bool:
    return number in _OTHERS or _NINES.fullmatch(f"{number:.10g}") is not None


def check_limits(log: Log, name: str) -> None:
    """Raise an `InputError` if a column holds limits of detection such as <0.5.

    To leave them out would bias the map, for they are the lowest or the highest values.
    """
    rows = [row for row, cell in enumerate(log.cells[name]) if _LIMIT.fullmatch(cell)]
    if rows:
        raise InputError(
            f"{log.cells[name][rows[0]]!r} is a limit of detection, in {counted(len(rows), 'row')}",
            expected="a number",
            where=log.place(rows[0], name),
            fix=fix_of_limit(log.cells[name][rows[0]]) or "write a number instead",
        )
