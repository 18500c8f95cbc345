"""Notes on how the readings of a level set lie to its threshold, and the range of readings in words.

A reading at or below the limit of detection says only that the value is at most that limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.world.world import Quantity


def on_one_class(above: bool, threshold: float, values: Array, limit: float | None) -> str:
    """Return the note that every site is classified as above, or as below, the threshold.

    Parameters
    ----------
    above : bool
    threshold : float
    values : (n,) array
        The readings, in the unit of the threshold.
    limit : float, optional
        Limit of detection.

    Examples
    --------
    >>> print(on_one_class(False, 5.0, np.array([1.0, 6.0]), None))
    every site is classified as below the threshold, although 1 of 2 readings reaches it
    """
    most = _at_most(values, limit)
    censored = np.zeros(len(most), dtype=bool) if limit is None else most <= limit
    beyond = most < threshold if above else (most >= threshold) & ~censored
    text = f"every site is classified as {'above' if above else 'below'} the threshold"
    if count := np.count_nonzero(beyond):
        verb = (
            ("lies below" if count == 1 else "lie below") if above else "reaches" if count == 1 else "reach"
        )
        return f"{text}, although {count} of {len(most)} readings {verb} it"
    if count := np.count_nonzero(censored & (most >= threshold)):
        which = f"{count} of {len(most)} readings {'is' if count == 1 else 'are'}"
        return f"{text}, but {which} at or below the limit of detection, which does not tell the side"
    reached = "fallen below" if above else "reached"
    return f"{text}. No reading has {reached} it, so a patch between the readings may have been missed"


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
    >>> range_of(np.array([0.1, 0.1]), 0.1, zinc), range_of(np.array([0.1]), None, zinc)
    ('at most 0.1 ug/L', '0.1 ug/L')
    """
    most = _at_most(values, limit)
    low, high = float(most.min()), float(most.max())
    censored = limit is not None and low <= limit
    least = "" if high == low else f"{low:.4g} to "
    return f"{'at most ' if censored else ''}{least}{quantity.amount(high)}"


def _at_most(values: Array, limit: float | None) -> Array:
    """Return what the finite ones of the values read can be at most."""
    finite = values[np.isfinite(values)]
    return finite if limit is None else np.maximum(finite, limit)
