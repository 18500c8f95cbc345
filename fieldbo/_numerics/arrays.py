"""Array types, and arrays that cannot be written to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def frozen_array(values: ArrayLike, dtype: type = float) -> NDArray[Any]:
    """Return `values` as a contiguous array that can't be written to."""
    array: NDArray[Any] = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array
