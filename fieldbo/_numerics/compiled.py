"""Loops that numba compiles: plain functions of arrays and numbers, and nothing else.

One module for each room that they serve. They are compiled when they are first called, once a machine, and
kept on disk from then on. Sums are made in an order that does not depend on the number of threads.

Code on disk knows when its own file has changed, and not when another one has that it calls loops of: after a
change in `blocks` or `choice` delete ``__pycache__``.

Import a module of this room where it is used, inside a function: numba takes a third of a second to load.
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
    """Hear of compilations: functions loaded from disk raise no event."""
    from numba.core import event

    class Heard(event.Listener):
        def on_start(self, event: object) -> None:
            for listener in _listeners:
                listener()

        def on_end(self, event: object) -> None:
            """Nobody waits for the end; a listener has to have this."""

    event.register("numba:compile", Heard())  # type: ignore[no-untyped-call]


def compiled(
    *, parallel: bool = False, numbers: bool = False, inline: bool = False
) -> Callable[[Loop], Loop]:
    """Return a decorator that compiles a loop at its first call, and keeps the code on disk if it can.

    Sums may be reordered to fit vector registers; infinity keeps its meaning, and so does NaN, unless the
    loop promises that all it meets are `numbers`. An `inline` loop becomes part of its callers. Of parallel
    loops one runs at a time, which not all of numba's ways to run threads see to.
    """
    # Threads that wait for work sleep, and leave the cores to whatever else runs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import numba

    _listen()
    options: dict[str, Any] = {
        "nogil": True,
        "parallel": parallel,
        "error_model": "numpy",  # to look for a zero would take longer than to divide by it
        "inline": "always" if inline else "never",
        "fastmath": {"reassoc", "contract", "arcp", "nsz"} | ({"nnan"} if numbers else set()),
    }

    def decorate(loop: Loop) -> Loop:
        try:
            fast: Any = numba.njit(cache=True, **options)(loop)
        except RuntimeError:  # there is no folder that can be written to
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
def when_compiling(say: Callable[[], object]) -> Iterator[None]:
    """Call `say` within the block whenever a loop has to be compiled: it takes seconds, once a machine."""
    _listeners.append(say)
    try:
        yield
    finally:
        _listeners.remove(say)
