"""Limit BLAS to one thread: fastest for matrices of these sizes, and the same digits everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Find the BLAS libraries once; the search takes longer than setting the limit."""
    import scipy.linalg  # noqa: F401  (loads its BLAS, so that it is found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_limited = ContextVar("limited", default=False)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the block with BLAS on one thread; nested blocks have no further effect."""
    if _limited.get():
        yield
        return
    token = _limited.set(True)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.reset(token)


def on_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to run inside `one_blas_thread`."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited
