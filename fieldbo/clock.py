"""Time, and waiting: by this machine's clock, or by one that a test moves.

Whatever has a deadline, or waits, takes a `Clock`. Tests pass a `fieldbo.testing.SteppedClock`, which moves
only while somebody waits by it: they neither wait in real time nor depend on how busy the machine is. What
really takes place elsewhere, in another process or at the other end of a socket, is waited for in real time.
"""

from __future__ import annotations

import sys
import time
from queue import SimpleQueue
from threading import Event
from typing import TypeVar

T = TypeVar("T")


class Clock:
    """The clock of this machine, which never goes back.

    Examples
    --------
    >>> clock = Clock()
    >>> before_s = clock.now_s()
    >>> clock.sleep(0.01)
    >>> clock.now_s() >= before_s + 0.01
    True
    """

    def now_s(self) -> float:
        """Return the time in seconds; it may stand still while the computer is suspended."""
        return time.monotonic()

    def boot_s(self) -> float:
        """Return the time in seconds; it runs on while the computer is suspended, if the system can tell."""
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; return at once if there is nothing to wait for."""
        time.sleep(max(0.0, seconds))

    def get(self, queue: SimpleQueue[T], timeout_s: float) -> T:
        """Return the next item of a queue; wait for it for `timeout_s` at most.

        Raises
        ------
        queue.Empty
            There is none.
        """
        return queue.get(timeout=timeout_s) if timeout_s > 0.0 else queue.get_nowait()

    def wait(self, event: Event, timeout_s: float) -> bool:
        """Wait for an event for `timeout_s` at most; return whether it has happened."""
        return event.wait(timeout_s)


MACHINE_CLOCK = Clock()
"""By which everything waits unless it is given another clock."""
