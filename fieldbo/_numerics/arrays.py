"""Array types, read-only arrays, and a cache of what is computed from arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def frozen_array(values: ArrayLike, dtype: type = float) -> NDArray[Any]:
    """Return a contiguous, read-only copy of `values`."""
    array: NDArray[Any] = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array


T = TypeVar("T")

Key = tuple[Any, *tuple[bytes, ...]]
"""What is cached, and the bytes of the arrays that it was computed from."""


class LruBytes(Generic[T]):
    """A cache that drops the least recently used values once it exceeds a number of bytes.

    Parameters
    ----------
    most : int
        How many bytes keys and values may take together.
    size : Callable
        Returns the number of bytes of a value.

    Examples
    --------
    >>> cache = LruBytes(most=4, size=len)
    >>> cache.get(("word",), lambda: "one"), cache.get(("word",), lambda: "two")
    ('one', 'one')
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most, self.size, self.total = most, size, 0
        self._values: OrderedDict[Key, T] = OrderedDict()

    def get(self, key: Key, make: Callable[[], T]) -> T:
        """Return the value of `key`, made if it is not cached; a value that is too large is not kept."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = make()
        if self._bytes(key, value) <= self.most:
            self._values[key] = value
            self.total += self._bytes(key, value)
            while self.total > self.most:
                self.total -= self._bytes(*self._values.popitem(last=False))
        return value

    def _bytes(self, key: Key, value: T) -> int:
        return self.size(value) + sum(map(len, key[1:]))
