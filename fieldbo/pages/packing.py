"""Arrays as a page holds them: quantised, as base64."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array

STEPS, MISSING = 65534, 65535
"""Largest quantised value, and the one that stands for NaN or infinity."""


def quantised(values: Array) -> dict[str, Any]:
    """Return values (N,) as 16-bit integers between their ends.

    Returns
    -------
    dict
        ``low`` and ``high``, the ends; ``values``, in little-endian base64. A value is
        ``low + (high - low) * integer / STEPS``, or unknown if the integer is `MISSING`.

    Examples
    --------
    >>> quantised(np.array([1.0, 2.0, np.nan]))
    {'low': 1.0, 'high': 2.0, 'values': 'AAD+////'}
    """
    finite = np.isfinite(values)
    low, high = (
        (float(end) for end in (values[finite].min(), values[finite].max())) if finite.any() else (0.0, 0.0)
    )
    whole = np.full(len(values), MISSING, dtype="<u2")
    share = (values[finite] - low) / (high - low) if high > low else np.zeros(np.count_nonzero(finite))
    whole[finite] = np.rint(STEPS * share).astype("<u2")
    return {"low": low, "high": high, "values": text(whole)}


def text(values: NDArray[Any]) -> str:
    """Return the bytes of an array as base64."""
    return b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
