"""BLAS threads: factorisations of these sizes are fastest with one, and give the same digits everywhere."""

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
    """Find the BLAS libraries once; that takes longer than limiting them."""
    import scipy.linalg  # noqa: F401  (its BLAS has to be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_limited = ContextVar("limited", default=False)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the block with BLAS on one thread; within another such block nothing is left to do."""
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
    """Return the function as it runs inside `one_blas_thread`."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited
