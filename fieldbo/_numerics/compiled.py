"""Compile loops with numba: plain functions of arrays and numbers.

Loops live in modules named ``_*_loops``, next to the code that uses them. Each is compiled at its first call
on a machine and cached on disk. The order of sums does not depend on the number of threads.

The cache notices changes in a loop's own file, but not in other files whose loops it calls. After changing
`fieldbo.policies.travel._block_loops` or `_choice_loops`, delete ``__pycache__``.

Import a module of loops inside the function that needs it, because numba takes a third of a second to load.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, TypeVar, cast

Loop = TypeVar("Loop", bound=Callable[..., Any])

_listeners: list[Callable[[], object]] = []
_one_at_a_time = Lock()


@lru_cache(maxsize=1)
def _listen() -> None:
    """Listen for compilations; loading a function from disk raises no event."""
    from numba.core import event

    class CompilationListener(event.Listener):
        def on_start(self, event: object) -> None:
            for listener in _listeners:
                listener()

        def on_end(self, event: object) -> None:
            """Do nothing; numba requires the method."""

    event.register("numba:compile", CompilationListener())  # type: ignore[no-untyped-call]


def compiled(
    *, parallel: bool = False, numbers: bool = False, inline: bool = False
) -> Callable[[Loop], Loop]:
    """Return a decorator that compiles a loop at its first call, and caches the code on disk if possible.

    Sums may be reordered to fit vector registers. Infinity keeps its meaning, and so does NaN unless
    `numbers` is set. Only one parallel loop runs at a time, because not all of numba's threading layers
    ensure this.

    Parameters
    ----------
    parallel : bool
        Whether the loop uses `numba.prange`.
    numbers : bool
        Whether the loop never meets NaN.
    inline : bool
        Whether the loop becomes part of its callers.
    """
    # Threads that wait for work sleep, which leaves the cores to other processes.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import numba

    _listen()
    options: dict[str, Any] = {
        "nogil": True,
        "parallel": parallel,
        "error_model": "numpy",  # checking for zero would take longer than dividing by it
        "inline": "always" if inline else "never",
        "fastmath": {"reassoc", "contract", "arcp", "nsz"} | ({"nnan"} if numbers else set()),
    }

    def decorate(loop: Loop) -> Loop:
        try:
            fast: Any = numba.njit(cache=True, **options)(loop)
        except RuntimeError:  # no folder is writable
            fast = numba.njit(**options)(loop)
        if not parallel:
            return cast(Loop, fast)

        @wraps(loop)
        def alone(*args: Any) -> Any:
            with _one_at_a_time:
                return fast(*args)

        return cast(Loop, alone)

    return decorate


@contextmanager
def when_compiling(notify: Callable[[], object]) -> Iterator[None]:
    """Call `notify` whenever the block compiles a loop, which takes seconds, once per machine."""
    _listeners.append(notify)
    try:
        yield
    finally:
        _listeners.remove(notify)
