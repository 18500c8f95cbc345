"""Wake all viewers when something changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Streams:
    """Tells all viewers that something has changed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = set[asyncio.Event]()

    def start(self) -> None:
        """Begin to tell viewers, in the present event loop."""
        self._loop = asyncio.get_running_loop()

    def changed(self) -> None:
        """Tell viewers; called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it closes just now
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)

    @property
    def count(self) -> int:
        """Number of viewers."""
        return len(self._waiting)
