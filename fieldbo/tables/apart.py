"""Readings far outside the range of all others of a log, alone or up to three side by side.

Neither noise nor a narrow plume reaches so far beyond the rest, however rough the log is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask

_RANGES = 3.0
"""Ranges of all others that lie between them and a reading apart."""

_LOG_SDS = 2.0
"""Of positive values, the gap is so many robust standard deviations of the logarithm, too."""

_TOGETHER = 3
"""More readings apart that are neighbours are a plume."""

_FRACTION = 0.02
"""Of a long log, at most so many readings are apart."""


def find_apart(values: Array, near: NDArray[np.int64]) -> Mask:
    """Return which values (n,) lie far outside the range of the others, by themselves.

    Parameters
    ----------
    values : (n,) array
    near : (n, k) int array
        The rows next to each, which tell a plume from single readings.

    Examples
    --------
    >>> values = np.sin(np.arange(40.0))
    >>> values[[20, 21]] = 30.0
    >>> near = (np.arange(40)[:, None] + [-1, 1, -2, 2, -3, 3]) % 40
    >>> np.flatnonzero(find_apart(values, near)).tolist()
    [20, 21]
    """
    return _find_above(values, near) | _find_above(-values, near)


def _find_above(values: Array, near: NDArray[np.int64]) -> Mask:
    """Return the largest set of values (n,) above all others that is apart and no plume."""
    rows = np.argsort(values, kind="stable")
    for count in _cuts(values[rows]):
        found = np.zeros(len(values), dtype=bool)
        found[rows[-count:]] = True
        if (found[near[found]].sum(axis=1) < _TOGETHER).all():
            return found
    return np.zeros(len(values), dtype=bool)


def _cuts(ascending: Array) -> Iterator[int]:
    """Yield how many of the highest values may lie apart from the rest, the most first."""
    n = len(ascending)
    most = min(n // 10, max(_TOGETHER, int(_FRACTION * n)))
    for count in range(most, 0, -1):
        rest = ascending[most : n - count]  # nor do outliers below widen the range
        width, gap = rest[-1] - rest[0], ascending[n - count] - rest[-1]
        if width <= 0 or gap <= _RANGES * width:
            continue
        steps = np.diff(rest)
        if gap > _RANGES * (width + 2 * steps[steps > 0].min()) and _is_far_in_log(
            rest, ascending[n - count]
        ):
            yield count


def _is_far_in_log(rest: Array, value: float) -> bool:
    """Return whether the logarithm is far off, too, if values are positive: skewed ones vary more."""
    positive = rest[rest > 0]
    if rest[0] < 0 or len(positive) < 2:
        return True
    low, high = np.quantile(np.log(positive), [0.16, 0.84])
    return bool(np.log(value / positive[-1]) > _LOG_SDS * (high - low) / 2)
