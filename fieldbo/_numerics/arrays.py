"""Array types, and read-only arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def frozen_array(values: ArrayLike, dtype: type = float) -> NDArray[Any]:
    """Return a contiguous, read-only copy of `values`."""
    array: NDArray[Any] = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array
