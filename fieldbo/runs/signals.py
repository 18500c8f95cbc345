"""Signals that must not break off an update."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that stop a run; Windows lacks the last one."""


@contextmanager
def unbroken() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and SIGHUP until the block is done, so that no update stays half finished.

    Only signals that Python handles are delayed: others end the process at once, or are ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    handlers = {n: handler for n in numbers if callable(handler := signal.getsignal(n))}
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    try:
        with ExitStack() as restored:  # each one, even if a signal arrives in between
            for number, handler in handlers.items():
                restored.callback(signal.signal, number, handler)
                signal.signal(number, note)
            yield
    finally:
        for number in received:
            handlers[number](number, None)
