"""Numbers that stand for no value although nothing says so: found to be asked about, never left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import counted

_NINES = re.compile(r"-?9{2,}(\.9+)?|-?9\.9{2,}|-?9{3,}\.25|-?(\d)\2{3,}")
_OTHERS = frozenset(
    {-7999.0, 7999.0, -6999.0, 6999.0, -8190.0, 8190.0, -32768.0, 32767.0, 65535.0, -32767.0}
    | {2147483647.0, -2147483648.0, 4294967295.0}
)
_HUGE = 1e20
"""No quantity of the field reaches it: 1e+34, 9.96921e+36 (the default of NetCDF), -1e+30."""
_TINY = 1e-20
"""No reading is this close to zero unless it is zero, relative to the others: -9.99e-29, 1e-34."""
_FAR = 5.0
"""Distance from all other values, in ranges of these, at which a usual mark is suspect."""
_BELOW, _REPEATS = 0.25, 3
"""How far below the others, in ranges of these, and how often, a negative number is suspect."""


def sentinel_doubts(values: Array, name: str, known: Sequence[float] = ()) -> list[str]:
    """Return a question for each number, such as -9999, that may stand for no value.

    It is a usual mark and lies by itself, far outside the range of the other values; it is too large or too
    close to zero to be read by any instrument; or it is negative and lies apart while no other value is
    negative, and is a usual mark or repeats exactly.

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
    >>> sentinel_doubts(np.array([4.1, -9.99e-29, 5.2]), "chl")[0][-28:]
    'Then add --missing -9.99e-29'
    >>> sentinel_doubts(np.array([98.0, 99.0, 95.0]), "saturation")
    []
    """
    numbers, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    wild = (np.abs(numbers) >= _HUGE) | _is_tiny(numbers)
    usual = wild | np.array([is_mark(number) for number in numbers], dtype=bool)
    real = numbers[~usual]
    if not len(real):
        return []
    away = np.maximum(real.min() - numbers, numbers - real.max())
    marks = usual & (wild | (away > _FAR * np.maximum(np.ptp(real), 1e-9 * np.abs(numbers))))
    marks |= _find_negative(numbers, counts, ~usual) | _find_negative_marks(numbers, usual & ~wild)
    marks &= ~np.isin(numbers, np.array(known, dtype=float))
    rest = numbers[~marks & ~wild]
    if not len(rest):
        return []
    return [
        f"{name} is {_text(number)} in {counted(int(count), 'row')} and else between {rest.min():g} and "
        f"{rest.max():g}; does it stand for no value? Then add --missing {_text(number)}"
        for number, count in zip(numbers[marks], counts[marks], strict=True)
    ]


def is_mark(number: float) -> bool:
    """Return whether a number is a usual mark of no value."""
    return number in _OTHERS or _NINES.fullmatch(f"{number:.10g}") is not None


def _is_tiny(numbers: Array) -> Mask:
    """Return which numbers are closer to zero than any reading, but are not zero."""
    sizes = np.abs(numbers[numbers != 0])
    usual = float(np.median(sizes)) if len(sizes) else 1.0
    return np.asarray((numbers != 0) & (np.abs(numbers) < _TINY * min(usual, 1.0)))


def _find_negative(numbers: Array, counts: NDArray[np.int64], candidates: Mask) -> Mask:
    """Return which number is the only negative one, repeats, and lies apart."""
    found = np.zeros(len(numbers), dtype=bool)
    below = np.flatnonzero((numbers < 0) & (np.abs(numbers) < _HUGE) & candidates)
    above = numbers[(numbers >= 0) & candidates]
    if len(below) == 1 and len(above) > 2:
        row, gap = int(below[0]), float(above[0] - numbers[below[0]])
        apart = gap > _BELOW * float(np.ptp(above)) and gap > 3 * float(np.diff(above).max())
        found[row] = counts[row] >= _REPEATS and apart
    return found


def _find_negative_marks(numbers: Array, usual: Mask) -> Mask:
    """Return which usual marks are negative and lie apart, if no other number is negative."""
    others = numbers[~usual & (np.abs(numbers) < _HUGE)]
    if others.min() < 0:
        return np.zeros(len(numbers), dtype=bool)
    gap = others.min() - numbers
    return np.asarray(usual & (numbers < 0) & (gap > _BELOW * np.ptp(others)))


def _text(number: float) -> str:
    """Return a number with all its digits, as an option takes it."""
    return repr(float(number)).removesuffix(".0")
