"""Notes on how the readings of a level set lie to its threshold, and the range of readings in words.

A reading at or below the limit of detection says only that the value is at most that limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.world.world import Quantity


def on_one_side(threshold: float, values: Array, limit: float | None, quantity: Quantity) -> Iterator[str]:
    """Yield a note if the threshold lies above all readings (n,), or below all; none otherwise."""
    most = _at_most(values, limit)
    if len(most) and most.max() < threshold:
        side = "above"
    elif len(most) and most.min() > (threshold if limit is None else max(threshold, limit)):
        side = "below"
    else:
        return
    yield f"the threshold {threshold:.4g} lies {side} all readings, {range_of(values, limit, quantity)}"


def range_of(values: Array, limit: float | None, quantity: Quantity) -> str:
    """Return the range of readings (n,) in words.

    Examples
    --------
    >>> zinc = Quantity("zinc", "ug/L")
    >>> range_of(np.array([0.1, 2.3]), None, zinc), range_of(np.array([0.1, 2.3]), 0.1, zinc)
    ('0.1 to 2.3 ug/L', 'at most 0.1 to 2.3 ug/L')
    >>> range_of(np.array([0.1, 0.1]), 0.1, zinc)
    'at most 0.1 ug/L'
    """
    most = _at_most(values, limit)
    low, high = float(most.min()), float(most.max())
    censored = limit is not None and low <= limit
    least = "" if censored and high == low else f"{low:.4g} to "
    return f"{'at most ' if censored else ''}{least}{quantity.amount(high)}"


def _at_most(values: Array, limit: float | None) -> Array:
    """Return what the finite ones of the values read can be at most."""
    finite = values[np.isfinite(values)]
    return finite if limit is None else np.maximum(finite, limit)
