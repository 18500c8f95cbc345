"""BLAS threads: factorisations of these sizes are fastest with one, and give the same digits everywhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
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


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS runs on one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


def on_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as it runs inside `one_blas_thread`."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited
